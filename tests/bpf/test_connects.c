/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check which packets are taken for the beginning of a connection and for its
 * answer, and which time is between them. Two programs share a table here as the two
 * directions of a pod do. */
#include "cm.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "natra_connects.h"
#include "natra_durations.h"
#include "progrun.h"
#include "util/cleanup.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define ECE 0x40
#define CWR 0x80

#define PORT  40000
#define FIRST 1000000000U /* sequence number */

static struct progrun in, out;

static void load(enum stub_kind out_kind, enum natra_pass pass)
{
	struct program_options options = {
		.kind = STUB_RX,
		.has_l2 = true,
		.measures_connects = true,
	};
	struct natra_limits limits = th_limits();

	limits.pass = pass;
	th_load(&in, &options, &limits);
	options.kind = out_kind;
	th_load(&out, &options, &limits);
	th_share_table(&out, &in);
}

TH_STEP(load_police, load(STUB_TX, NATRA_PASS_FREE))
TH_STEP(load_strict, load(STUB_TX, NATRA_PASS_OFF))
TH_STEP(load_edt, load(STUB_EDT, NATRA_PASS_OFF))
static int unload(void **state)
{
	th_close(&in);
	th_close(&out);
	return 0;
}

static struct natra_connects connects(struct progrun *run)
{
	return th_read_state(run).connects;
}

static uint64_t accepted(const struct natra_connects *c)
{
	uint64_t count = 0;

	for (int i = 0; i < NATRA_DURATION_BUCKETS; i++)
		count += c->answers.count[i];
	return count;
}

/* What was counted of connections into the pod. */
static void expect(uint64_t begun, uint64_t repeated, uint64_t answered,
		   uint64_t refused)
{
	const struct natra_connects syns = connects(&in);
	const struct natra_connects answers = connects(&out);

	assert_int_equal(syns.begun, begun);
	assert_int_equal(syns.repeated, repeated);
	assert_int_equal(accepted(&answers), answered);
	assert_int_equal(answers.refused, refused);
	/* Nothing is the other direction's. */
	assert_int_equal(accepted(&syns) + syns.refused, 0);
	assert_int_equal(answers.begun + answers.repeated, 0);
}

static void put32(struct packet *p, size_t at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p->data[p->l4 + at + (size_t)i] =
			(uint8_t)(value >> (24 - 8 * i));
}

static void set_tcp(struct packet *p, uint8_t flags, uint32_t seq, uint32_t ack)
{
	put32(p, 4, seq);
	put32(p, 8, ack);
	p->data[p->l4 + 13] = flags;
}

static void swap(uint8_t *a, uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* Makes of a packet one of the other direction. */
static void turn(struct packet *p)
{
	const bool v4 = p->data[p->l3] >> 4 == 4;
	const size_t len = v4 ? 4 : 16;
	uint8_t *saddr = p->data + p->l3 + (v4 ? 12 : 8);

	swap(saddr, saddr + len, len);
	swap(p->data + p->l4, p->data + p->l4 + 2, 2);
}

static enum natra_counter send_tcp(struct progrun *run, const struct packet *p,
				   uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct packet packet = *p;
	struct th_result result;

	set_tcp(&packet, flags, seq, ack);
	th_send(run, &packet, NULL, &result);
	return result.counter;
}

static void wait_ms(long ms)
{
	const struct timespec time = {0, ms * 1000000};

	(void)nanosleep(&time, NULL);
}

/* A client's packet, and the pod's answer. */
struct pair {
	struct packet there, back;
};

static struct pair pair_of(const struct packet *packet)
{
	struct pair pair = {*packet, *packet};

	turn(&pair.back);
	return pair;
}

static struct pair pair4(uint16_t port)
{
	struct packet packet;

	packet_make_tcp4(&packet, port, 0, 74);
	return pair_of(&packet);
}

static void begin(const struct pair *pair)
{
	(void)send_tcp(&in, &pair->there, SYN, FIRST, 0);
}

static void answer(const struct pair *pair)
{
	(void)send_tcp(&out, &pair->back, SYN | ACK, 7, FIRST + 1);
}

TH_TEST(a_connection_is_timed_once)
{
	const struct pair pair = pair4(PORT);
	uint64_t least, most = th_now();
	struct natra_connects c;

	begin(&pair);
	least = th_now();
	wait_ms(20);
	least = th_now() - least;
	answer(&pair);
	most = th_now() - most;
	expect(1, 0, 1, 0);
	c = connects(&out);
	assert_in_range(c.answers.sum_ns, least, most);
	assert_int_equal(
		c.answers.count[natra_duration_bucket(c.answers.sum_ns)], 1);
	/* The second answer, and what follows, are none. */
	answer(&pair);
	(void)send_tcp(&in, &pair.there, ACK, FIRST + 1, 8);
	(void)send_tcp(&in, &pair.there, PSH | ACK, FIRST + 1, 8);
	(void)send_tcp(&out, &pair.back, FIN | ACK, 8, FIRST + 1);
	(void)send_tcp(&out, &pair.back, RST, 8, 0);
	(void)send_tcp(&out, &pair.back, RST | ACK, 8, FIRST + 1);
	expect(1, 0, 1, 0);
}

TH_TEST(both_directions_are_apart)
{
	const struct pair pair = pair4(PORT);

	/* The pod opens this one. Its own packets have the reverse tuple. */
	(void)send_tcp(&out, &pair.back, SYN, FIRST, 0);
	/* This is an answer in the wrong direction. */
	(void)send_tcp(&out, &pair.back, SYN | ACK, 7, FIRST + 1);
	assert_int_equal(accepted(&(struct natra_connects){
				 .answers = connects(&out).answers}),
			 0);
	(void)send_tcp(&in, &pair.there, SYN | ACK, 7, FIRST + 1);
	assert_int_equal(connects(&out).begun, 1);
	assert_int_equal(connects(&in).begun, 0);
	assert_int_equal(accepted(&(struct natra_connects){
				 .answers = connects(&in).answers}),
			 1);
}

TH_TEST(a_syn_again_keeps_the_first_time)
{
	const struct pair pair = pair4(PORT);

	begin(&pair);
	wait_ms(20);
	begin(&pair);
	begin(&pair);
	answer(&pair);
	expect(1, 2, 1, 0);
	assert_true(connects(&out).answers.sum_ns >= 20 * TH_MS);
}

TH_TEST(the_answer_must_be_to_this_syn)
{
	const struct pair pair = pair4(PORT);
	const struct pair other = pair4(PORT + 1);

	begin(&pair);
	answer(&other);
	(void)send_tcp(&out, &pair.back, SYN | ACK, 7, FIRST);
	(void)send_tcp(&out, &pair.back, SYN | ACK, 7,
		       FIRST + 2 + NATRA_CONNECT_DATA_MAX);
	expect(1, 0, 0, 0);
	/* The client has given up, and begins anew from the same port. */
	(void)send_tcp(&in, &pair.there, SYN | ECE | CWR, FIRST + 5000, 0);
	answer(&pair);
	expect(2, 0, 0, 0);
	(void)send_tcp(&out, &pair.back, SYN | ACK | ECE, 7, FIRST + 5001);
	expect(2, 0, 1, 0);
	assert_int_equal(connects(&in).forgotten, 0);
}

TH_TEST(a_reset_is_a_refusal)
{
	const struct pair pair = pair4(PORT);

	begin(&pair);
	(void)send_tcp(&out, &pair.back, RST, 0, FIRST + 1);
	(void)send_tcp(&out, &pair.back, RST | ACK, 0, FIRST);
	expect(1, 0, 0, 0);
	(void)send_tcp(&out, &pair.back, RST | ACK, 0, FIRST + 1);
	expect(1, 0, 0, 1);
	answer(&pair);
	expect(1, 0, 0, 1);
	begin(&pair);
	answer(&pair);
	expect(2, 0, 1, 1);
}

/* The parser reads these, not the fast path. */
TH_TEST(every_way_to_carry_tcp_counts)
{
	static const char *const ways[] = {
		"eth ip6 tcp",
		"eth ip4:o3 tcp",
		"eth vlan:5 ip4:s1 tcp",
		"eth ip6:s2 ext:60:16 tcp",
		"eth ip6:s3 frag:0:1 tcp", /* an atomic one */
	};

	for (size_t i = 0; i < TH_LEN(ways); i++) {
		const struct packet p = packet_of("%s", ways[i]);
		const struct pair pair = pair_of(&p);

		begin(&pair);
		answer(&pair);
		expect(i + 1, 0, i + 1, 0);
	}
}

TH_TEST(other_packets_are_no_syn)
{
	struct packet others[] = {packet_of("eth ip4 udp:80 pad:100"),
				  packet_of("eth ip4:f0x2000 tcp pad:100"),
				  packet_of("eth ip4:f4 tcp pad:100")};

	for (size_t i = 0; i < TH_LEN(others); i++) {
		struct th_result result;

		others[i].data[others[i].l4 + 13] = SYN;
		th_send(&in, &others[i], NULL, &result);
	}
	expect(0, 0, 0, 0);
}

TH_TEST(a_full_table_forgets_the_oldest)
{
	const unsigned int syns = 2000;
	const unsigned int room = NATRA_CONNECT_SETS * NATRA_CONNECT_WAYS;
	struct natra_connects c;
	struct pair pair;

	for (unsigned int i = 0; i < syns; i++) {
		pair = pair4((uint16_t)(PORT + i));
		begin(&pair);
	}
	c = connects(&in);
	assert_int_equal(c.begun, syns);
	/* With 31 SYNs for each set, none has a free entry left. */
	assert_int_equal(c.forgotten, syns - room);
	for (unsigned int i = 0; i < syns; i++) {
		pair = pair4((uint16_t)(PORT + i));
		answer(&pair);
		/* The newest of each set have stayed. */
		if (i == syns / 4)
			expect(syns, 0, 0, 0);
	}
	expect(syns, 0, room, 0);
}

static void make_older(uint64_t ns)
{
	struct natra_connect_table table;
	const uint32_t zero = 0;

	assert_int_equal(bpf_map_lookup_elem(in.table_fd, &zero, &table), 0);
	for (size_t i = 0; i < TH_LEN(table.entries); i++) {
		if (table.entries[i].key)
			table.entries[i].time_ns -= ns;
	}
	assert_int_equal(
		bpf_map_update_elem(in.table_fd, &zero, &table, BPF_EXIST), 0);
}

TH_TEST(a_lost_syn_is_forgotten)
{
	const struct pair pair = pair4(PORT);

	begin(&pair);
	make_older(NATRA_CONNECT_AGE_NS / 2);
	begin(&pair);
	expect(1, 1, 0, 0);
	make_older(NATRA_CONNECT_AGE_NS / 2);
	answer(&pair);
	expect(1, 1, 0, 0);
	begin(&pair);
	expect(2, 1, 0, 0);
	assert_int_equal(connects(&in).forgotten, 0);
	answer(&pair);
	expect(2, 1, 1, 0);
	assert_true(connects(&out).answers.sum_ns < TH_SECOND);
}

/* The bucket is this far in debt, so the next packet is dropped. */
static void fill(struct progrun *run)
{
	th_set_tat(run, th_now() + TH_SECOND);
}

TH_TEST_AFTER(what_is_dropped_is_no_answer, load_strict)
{
	const struct pair pair = pair4(PORT);

	fill(&in);
	assert_int_equal(send_tcp(&in, &pair.there, SYN, FIRST, 0),
			 NATRA_COUNT_DROPPED_RATE);
	wait_ms(20);
	th_set_tat(&in, 0);
	assert_int_equal(send_tcp(&in, &pair.there, SYN, FIRST, 0),
			 NATRA_COUNT_ADMITTED);
	fill(&out);
	assert_int_equal(send_tcp(&out, &pair.back, SYN | ACK, 7, FIRST + 1),
			 NATRA_COUNT_DROPPED_RATE);
	expect(1, 1, 0, 0);
	th_set_tat(&out, 0);
	wait_ms(20);
	answer(&pair);
	expect(1, 1, 1, 0);
	assert_true(connects(&out).answers.sum_ns >= 40 * TH_MS);
}

TH_TEST_AFTER(an_answer_that_is_held_ends_when_it_leaves, load_edt)
{
	const struct pair pair = pair4(PORT);
	uint64_t depart = th_now() + TH_SECOND;
	struct natra_connects c;

	begin(&pair);
	th_set_queue(&out, depart);
	th_set_tat(&out, depart);
	assert_int_equal(send_tcp(&out, &pair.back, SYN | ACK, 7, FIRST + 1),
			 NATRA_COUNT_PACED);
	expect(1, 0, 1, 0);
	c = connects(&out);
	assert_in_range(c.answers.sum_ns, TH_SECOND / 2, TH_SECOND + TH_MS);
}

/* The verifier takes them all, on each kernel where this runs. */
TH_TEST(each_program_can_measure)
{
	struct natra_subnet block;
	const struct subnets subnets = {
		.kind = SUBNETS_SHAPED, .list = &block, .len = 1};
	const struct th_peers peers = {.subnets = &subnets};
	const struct natra_limits limits = th_limits();

	assert_int_equal(subnet_parse("192.0.2.0/24", &block), 0);
	for (int i = 0; i < STUB_KIND_MAX * 4; i++) {
		const struct program_options options = {
			.kind = (enum stub_kind)(i / 4),
			.has_l2 = i & 1,
			.measures_connects = true,
		};
		struct progrun run;

		th_load_peers(&run, &options, i & 2 ? &peers : NULL, &limits);
		th_close(&run);
	}
}

TH_BPF_MAIN(load_police, unload)
