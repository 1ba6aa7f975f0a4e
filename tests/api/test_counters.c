/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check what natra_stats and natra_top report for packets whose
 * number and size are known. */
#include "one_pod.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NOT_ECT 0
#define ECT0    2
/* This is the length of the Ethernet, IPv4 and UDP headers. */
#define HEADERS (14 + 20 + 8)
#define KBIT    1000ULL

static void attach(const struct natra_policy *policy)
{
	struct natra_target target = pod_target(&pod, ID);

	OK(natra_attach(n, &target, policy, NULL));
}

/* Reads the counters when the packets that were sent have come through: a busy
 * kernel takes them from the veth later, so two reads must be alike. */
static struct natra_stats stats(void)
{
	struct natra_stats before = NATRA_INIT(before), now = NATRA_INIT(now);

	do {
		before = now;
		(void)usleep(50000);
		OK(natra_stats(n, ID, &now));
	} while (memcmp(&before, &now, sizeof(now)) != 0);
	return now;
}

/* Sends datagrams to all hosts, so that the pod receives them and nobody answers. The node keeps no
 * copy for itself: of a packet that is cloned, kernels before 5.18 let no program change the header.
 * Returns their source address. */
static struct in_addr send_udp(uint16_t sport, uint16_t dport, int tos,
			       size_t payload, int count)
{
	static const char zeroes[1400];
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct sockaddr_in to = {.sin_family = AF_INET};
	socklen_t len = sizeof(from);
	int zero = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	from.sin_port = htons(sport);
	to.sin_port = htons(dport);
	to.sin_addr.s_addr = htonl(INADDR_ALLHOSTS_GROUP);
	assert_true(fd >= 0 && payload <= sizeof(zeroes));
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, NODE_SIDE,
				    sizeof(NODE_SIDE)),
			 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &zero,
				    sizeof(zero)),
			 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)),
			 0);
	assert_int_equal(bind(fd, (void *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(send(fd, zeroes, payload, 0), payload);
	assert_int_equal(getsockname(fd, (void *)&from, &len), 0);
	(void)close(fd);
	return from.sin_addr;
}

static void is_count(const struct natra_count *count, uint64_t packets,
		     uint64_t frame)
{
	assert_int_equal(count->packets, packets);
	assert_int_equal(count->bytes, packets * frame);
}

/* At this rate a packet takes 20 ms: one is admitted, marked packets may overdraw
 * by 100 ms, and the rest is dropped. A packet more passes for each 20 ms that it takes
 * until all have come through. */
TH_TEST(what_is_over_the_rate_is_marked_then_dropped)
{
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_stats s;
	struct timespec from, to;
	uint64_t sum, most;

	policy.ingress_rate_bits_per_sec = 80 * KBIT;
	policy.ingress_burst_bits = 8;
	policy.fast_pass = NATRA_FAST_PASS_OFF;
	attach(&policy);
	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	send_udp(1000, 2000, ECT0, 200 - HEADERS, 200);
	s = stats();
	(void)clock_gettime(CLOCK_MONOTONIC, &to);
	/* Marks may overdraw 100 ms and are forgiven 67 ms. */
	most = 10 + (uint64_t)((to.tv_sec - from.tv_sec) * 50 +
			       (to.tv_nsec - from.tv_nsec) / 20000000);
	assert_in_range(s.ingress.admitted.packets, 1, most);
	assert_in_range(s.ingress.marked.packets, 4, most);
	assert_in_range(s.ingress.admitted.packets + s.ingress.marked.packets,
			5, most);
	sum = s.ingress.admitted.packets + s.ingress.marked.packets +
	      s.ingress.dropped_rate.packets;
	assert_int_equal(sum, 200);
	is_count(&s.ingress.admitted, s.ingress.admitted.packets, 200);
	is_count(&s.ingress.marked, s.ingress.marked.packets, 200);
	is_count(&s.ingress.dropped_rate, s.ingress.dropped_rate.packets, 200);
	is_count(&s.ingress.mice, 0, 0);
	is_count(&s.ingress.unlimited, 0, 0);
	is_count(&s.ingress.paced, 0, 0);
	is_count(&s.ingress.dropped_horizon, 0, 0);
	assert_int_equal(s.ingress.delay_sum_ns, 0);
	is_count(&s.egress.admitted, 0, 0);
}

TH_TEST(each_packet_is_in_one_counter)
{
	struct natra_policy policy = policy_of(100, 100);
	struct natra_stats s;

	policy.fast_pass = NATRA_FAST_PASS_OFF;
	attach(&policy);
	send_udp(1000, 2000, NOT_ECT, 100, 7);
	(void)stats();
	policy.fast_pass = NATRA_FAST_PASS_FREE;
	assert_int_equal(natra_configure(n, ID, &policy), 0);
	send_udp(1001, 2000, NOT_ECT, 200, 3);
	(void)stats();
	/* Only egress is limited now. */
	policy = policy_of(0, 100);
	assert_int_equal(natra_configure(n, ID, &policy), 0);
	send_udp(1002, 2000, NOT_ECT, 300, 5);
	s = stats();
	is_count(&s.ingress.admitted, 7, 100 + HEADERS);
	is_count(&s.ingress.mice, 3, 200 + HEADERS);
	is_count(&s.ingress.unlimited, 5, 300 + HEADERS);
	is_count(&s.ingress.marked, 0, 0);
	is_count(&s.ingress.dropped_rate, 0, 0);
	is_count(&s.ingress.other, 0, 0);
}

static void is_flow(const struct natra_flow *flow, struct in_addr from,
		    uint16_t sport, uint16_t dport, uint64_t packets)
{
	const uint8_t all_hosts[16] = {224, 0, 0, 1};
	uint8_t source[16] = {0};

	memcpy(source, &from, sizeof(from));
	assert_memory_equal(flow->saddr, source, 16);
	assert_memory_equal(flow->daddr, all_hosts, 16);
	assert_int_equal(flow->sport, sport);
	assert_int_equal(flow->dport, dport);
	assert_int_equal(flow->ip_version, 4);
	assert_int_equal(flow->protocol, IPPROTO_UDP);
	assert_int_equal(flow->packets, packets);
	assert_int_equal(flow->bytes, packets * (100 + HEADERS));
	/* The flow has been idle while stats() slept. */
	assert_in_range(flow->idle_ns, 40000000, 60000000000);
}

TH_TEST(top_has_each_flow_and_most_bytes_first)
{
	struct natra_policy policy = policy_of(1000, 1000);
	struct natra_flow flows[8];
	struct in_addr from;
	size_t len = 8;

	policy.fast_pass = NATRA_FAST_PASS_OFF;
	attach(&policy);
	(void)send_udp(1001, 2001, NOT_ECT, 100, 2);
	(void)send_udp(1002, 2002, NOT_ECT, 100, 9);
	from = send_udp(1003, 2003, NOT_ECT, 100, 4);
	(void)stats();
	OK(natra_top(n, ID, NATRA_DIRECTION_INGRESS, flows, &len));
	assert_int_equal(len, 3);
	is_flow(&flows[0], from, 1002, 2002, 9);
	is_flow(&flows[1], from, 1003, 2003, 4);
	is_flow(&flows[2], from, 1001, 2001, 2);
	len = 1;
	assert_int_equal(natra_top(n, ID, NATRA_DIRECTION_INGRESS, flows, &len),
			 0);
	assert_int_equal(len, 1);
	is_flow(&flows[0], from, 1002, 2002, 9);
	/* The pod has sent nothing, because nobody answers what goes to all. */
	len = 8;
	assert_int_equal(natra_top(n, ID, NATRA_DIRECTION_EGRESS, flows, &len),
			 0);
	assert_int_equal(len, 0);
}

/* The peer is the source of packets that the pod receives, and the destination
 * of packets that it sends. */
TH_TEST(peer_is_the_other_end)
{
	static const char *const source[] = {"10.78.0.0/16"};
	static const char *const all_hosts[] = {"224.0.0.1/32"};
	struct natra_policy policy = policy_of(100, 100);
	struct natra_stats s;

	policy.unshaped_subnets = source;
	policy.unshaped_subnets_len = 1;
	attach(&policy);
	send_udp(1000, 2000, NOT_ECT, 100, 5);
	s = stats();
	is_count(&s.ingress.unlimited, 5, 100 + HEADERS);
	is_count(&s.ingress.mice, 0, 0);
	policy.unshaped_subnets = all_hosts;
	attach(&policy);
	rig_sh("nsenter --net=%s python3 -c '"
	       "import socket; s = socket.socket(type=socket.SOCK_DGRAM);"
	       "s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b\"eth0\");"
	       "[s.sendto(bytes(100), (\"224.0.0.1\", 9)) for _ in range(5)]'",
	       pod.path);
	s = stats();
	is_count(&s.egress.unlimited, 5, 100 + HEADERS);
	is_count(&s.egress.mice, 0, 0);
}

POD_MAIN()
