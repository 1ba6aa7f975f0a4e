/* SPDX-License-Identifier: BSD-2-Clause */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/util/rtnl.h"
#include "../common/text.h"

#define ANSWER_MAX 65536

/* The most packet sockets of a pod that are read: the kernel counts from the first one again for
 * each part of the list. */
#define SOCKETS_MAX 16384

/* As many queues of an interface are looked at. */
#define QUEUES_MAX 256

struct request {
	struct nlmsghdr header;
	union {
		struct ifinfomsg link;
		struct tcmsg qdisc;
	} body;
};

static uint32_t number_of(const struct rtattr *attr)
{
	uint32_t number = 0;

	if (RTA_PAYLOAD(attr) >= sizeof(number))
		memcpy(&number, RTA_DATA(attr), sizeof(number));
	return number;
}

static void read_link(const struct nlmsghdr *h, struct link_facts *facts)
{
	const struct rtattr *attr = IFLA_RTA(NLMSG_DATA(h));
	size_t left = IFLA_PAYLOAD(h);

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == IFLA_GSO_MAX_SIZE)
			facts->gso_max_size = number_of(attr);
		else if (attr->rta_type == IFLA_GSO_MAX_SEGS)
			facts->gso_max_segs = number_of(attr);
		else if (attr->rta_type == IFLA_MTU)
			facts->mtu = number_of(attr);
		else if (attr->rta_type == IFLA_GSO_IPV4_MAX_SIZE)
			facts->gso_ipv4_max_size = number_of(attr);
	}
}

bool link_qdisc_is_harmless(const char *kind)
{
	static const char *const kinds[] = {"",   "noqueue",  "pfifo_fast",
					    "mq", "fq_codel", "fq"};

	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		if (strcmp(kind, kinds[n]) == 0)
			return true;
	}
	return false;
}

/* Reads the answer to the question for the qdisc at `parent`. */
static void read_qdisc(const struct nlmsghdr *h, const struct tcmsg *asked,
		       struct link_facts *facts)
{
	const struct tcmsg *tcm = NLMSG_DATA(h);
	const struct rtattr *attr = TCA_RTA(tcm);
	size_t left = TCA_PAYLOAD(h);
	struct tc_stats stats;

	if (tcm->tcm_ifindex != asked->tcm_ifindex ||
	    tcm->tcm_parent != asked->tcm_parent)
		return;
	facts->qdisc_handle = tcm->tcm_handle;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		size_t len = RTA_PAYLOAD(attr);

		if (attr->rta_type == TCA_KIND && len > 0 &&
		    len <= sizeof(facts->qdisc)) {
			memcpy(facts->qdisc, RTA_DATA(attr), len - 1);
		} else if (attr->rta_type == TCA_STATS &&
			   len >= offsetof(struct tc_stats, overlimits)) {
			memcpy(&stats, RTA_DATA(attr),
			       offsetof(struct tc_stats, overlimits));
			facts->qdisc_drops = stats.drops;
		}
	}
}

/* Reads the messages of one answer. Returns 1 if more follow, 0 at the end, or
 * -errno. */
static int read_answer(const char *answer, ssize_t size,
		       const struct request *request, struct link_facts *facts)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)answer;
	unsigned int left = (unsigned int)size;

	for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == RTM_NEWLINK)
			read_link(h, facts);
		else if (h->nlmsg_type == RTM_NEWQDISC)
			read_qdisc(h, &request->body.qdisc, facts);
		/* Behind that of a qdisc there is an acknowledgement. */
		if (h->nlmsg_type == RTM_NEWLINK)
			return 0;
	}
	return 1;
}

static int ask(int fd, const struct request *request, struct link_facts *facts)
{
	cleanup_text char *answer = memory_new(ANSWER_MAX);
	int r = 1;

	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	while (r == 1) {
		ssize_t size = recv(fd, answer, ANSWER_MAX, 0);

		r = size < 0 ? -errno
			     : read_answer(answer, size, request, facts);
	}
	return r;
}

/* Counts the packet sockets that are bound to the interface or to none. A socket of one
 * protocol gets its packets behind the hooks, but in a namespace with more than SOCKETS_MAX all
 * count. */
static uint32_t count_packet_sockets(unsigned int ifindex)
{
	enum { PROTOCOL = 3, INTERFACE, RUNS, WORDS };
	FILE *file = fopen("/proc/self/net/packet", "re");
	uint32_t count = 0, all = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		unsigned long words[WORDS] = {0}, bound;
		char *rest = line, *word;

		for (int i = 0; i < WORDS && (word = strsep(&rest, " "));) {
			if (!*word)
				continue;
			words[i] = strtoul(word, NULL, i == PROTOCOL ? 16 : 10);
			i++;
		}
		if (++all > SOCKETS_MAX) {
			count = all;
			break;
		}
		bound = words[INTERFACE];
		if (words[PROTOCOL] == ETH_P_ALL && words[RUNS] &&
		    (!bound || bound == ifindex))
			count++;
	}
	if (file)
		(void)fclose(file);
	return count;
}

/* Asks for the qdisc at the root, and if that is mq with a handle, without which nobody can have put
 * another one below it, for those of its queues. A dump would be of all interfaces, of which a pod
 * can make any number. The kernel sends the answer to those who listen for changes, and to us
 * because of NLM_F_ECHO. */
static int look_at_qdiscs(int fd, uint32_t ifindex, struct link_facts *facts)
{
	struct request ask_for = {
		.header = {NLMSG_LENGTH(sizeof(struct tcmsg)), RTM_GETQDISC,
			   NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO, 0, 0},
		.body.qdisc = {.tcm_ifindex = (int)ifindex,
			       .tcm_parent = TC_H_ROOT},
	};
	const int r = ask(fd, &ask_for, facts);
	const uint32_t mq =
		strcmp(facts->qdisc, "mq") == 0 ? facts->qdisc_handle : 0;
	struct link_facts queue = *facts;

	for (uint32_t i = 1; mq && i <= QUEUES_MAX; i++) {
		ask_for.body.qdisc.tcm_parent = mq | i;
		if (ask(fd, &ask_for, &queue) < 0)
			break;
		if (!link_qdisc_is_harmless(queue.qdisc)) {
			*facts = queue;
			break;
		}
	}
	return r == -ENOENT ? 0 : r; /* none that it would list */
}

static int look_here(uint32_t ifindex, struct link_facts *ret)
{
	struct request link = {
		.header = {NLMSG_LENGTH(sizeof(struct ifinfomsg)), RTM_GETLINK,
			   NLM_F_REQUEST, 0, 0},
		.body.link.ifi_index = (int)ifindex,
	};
	cleanup_close int fd = -1;
	int r;

	if (!ifindex || !if_indextoname(ifindex, ret->ifname))
		return -ENODEV;
	fd = rtnl_open();
	if (fd < 0)
		return fd;
	r = ask(fd, &link, ret);
	if (r == 0)
		r = look_at_qdiscs(fd, ifindex, ret);
	ret->packet_sockets = count_packet_sockets(ifindex);
	return r;
}

/* Looks in a process of its own, because a process that has entered a namespace
 * may not be able to come back. */
int link_look(int netns_fd, uint32_t ifindex, const char *ifname,
	      struct link_facts *ret)
{
	struct {
		int r;
		struct link_facts facts;
	} answer = {.r = -ECHILD};
	int ends[2], status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		answer.r = netns_fd >= 0 && setns(netns_fd, CLONE_NEWNET) < 0
				   ? -errno
				   : look_here(ifindex ? ifindex
						       : if_nametoindex(ifname),
					       &answer.facts);
		_exit(write(ends[1], &answer, sizeof(answer)) < 0);
	}
	(void)close(ends[1]);
	if (pid > 0 &&
	    read(ends[0], &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		answer.r = -ECHILD;
	(void)close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (answer.r == 0)
		*ret = answer.facts;
	return answer.r;
}
