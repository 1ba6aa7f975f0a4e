/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Feeds natra the kernel's answers about links, qdiscs and filters: there is no
 * crash, and each text about them is one line. sendmsg and recvmsg are this
 * file's, so that everything behind libnl's socket is the real code.
 *
 * The input begins with the question; then come the answers, each behind its
 * length (16 bits). Their sequence numbers are corrected, or libnl would read
 * no further. Answers to questions about links are well-formed, and only their
 * numbers come from the input, because libnl-route, which parses them, takes
 * the kernel's nesting for granted.
 */
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/pkt_sched.h>
#include <netlink/msg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "kernel/hook.h"
#include "kernel/link.h"
#include "kernel/qdisc.h"

#define DATAGRAM_MAX 8192

static struct {
	const uint8_t *data;
	size_t size;
	uint32_t seq;
	/* recvmsg returns this answer next. */
	_Alignas(struct nlmsghdr) uint8_t next[DATAGRAM_MAX];
	size_t len;
} answers;

static void take_next(void)
{
	uint16_t len;

	answers.len = 0;
	if (answers.size < sizeof(len)) {
		answers.size = 0;
		return;
	}
	memcpy(&len, answers.data, sizeof(len));
	answers.data += sizeof(len);
	answers.size -= sizeof(len);
	answers.len = len % DATAGRAM_MAX;
	if (answers.len > answers.size)
		answers.len = answers.size;
	memcpy(answers.next, answers.data, answers.len);
	answers.data += answers.len;
	answers.size -= answers.len;
	for (size_t at = 0; at + NLMSG_HDRLEN <= answers.len;) {
		struct nlmsghdr hdr;

		memcpy(&hdr, answers.next + at, sizeof(hdr));
		hdr.nlmsg_seq = answers.seq;
		memcpy(answers.next + at, &hdr, sizeof(hdr));
		if (hdr.nlmsg_len < NLMSG_HDRLEN ||
		    hdr.nlmsg_len > answers.len - at)
			break;
		at += NLMSG_ALIGN((size_t)hdr.nlmsg_len);
	}
}

static uint32_t take_u32(void)
{
	uint32_t value = 0;

	if (answers.size >= sizeof(value)) {
		memcpy(&value, answers.data, sizeof(value));
		answers.data += sizeof(value);
		answers.size -= sizeof(value);
	}
	return value;
}

/* Adds an answer that describes a veth, and the acknowledgement. */
static void describe_link(void)
{
	static const struct nlmsgerr success;
	const struct ifinfomsg ifi = {.ifi_type = ARPHRD_ETHER,
				      .ifi_index = (int)take_u32()};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);
	struct nlattr *info;
	struct nlmsghdr *ack;

	require(msg != NULL);
	require(nlmsg_append(msg, (void *)&ifi, sizeof(ifi), NLMSG_ALIGNTO) ==
		0);
	require(nla_put_string(msg, IFLA_IFNAME, "eth0") == 0);
	require(nla_put_u32(msg, IFLA_LINK, take_u32()) == 0);
	require(nla_put_s32(msg, IFLA_LINK_NETNSID, (int)take_u32()) == 0);
	info = nla_nest_start(msg, IFLA_LINKINFO);
	require(info && nla_put_string(msg, IFLA_INFO_KIND, "veth") == 0);
	nla_nest_end(msg, info);
	nlmsg_hdr(msg)->nlmsg_seq = answers.seq;
	answers.len = nlmsg_hdr(msg)->nlmsg_len;
	memcpy(answers.next, nlmsg_hdr(msg), answers.len);
	nlmsg_free(msg);
	ack = (struct nlmsghdr *)(void *)(answers.next + answers.len);
	*ack = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof(success)),
				 .nlmsg_type = NLMSG_ERROR,
				 .nlmsg_seq = answers.seq};
	memcpy(NLMSG_DATA(ack), &success, sizeof(success));
	answers.len += ack->nlmsg_len;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const struct nlmsghdr *hdr = msg->msg_iov[0].iov_base;

	(void)fd;
	(void)flags;
	answers.seq = hdr->nlmsg_seq;
	if (hdr->nlmsg_type == RTM_GETLINK)
		describe_link();
	return (ssize_t)msg->msg_iov[0].iov_len;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sockaddr_nl from = {.nl_family = AF_NETLINK};
	size_t len;

	(void)fd;
	if (!answers.len)
		take_next();
	if (!answers.len) {
		errno = ENOBUFS;
		return -1;
	}
	len = answers.len;
	if (len > msg->msg_iov[0].iov_len) {
		len = msg->msg_iov[0].iov_len;
		msg->msg_flags |= MSG_TRUNC;
	}
	memcpy(msg->msg_iov[0].iov_base, answers.next, len);
	memcpy(msg->msg_name, &from, sizeof(from));
	msg->msg_namelen = sizeof(from);
	msg->msg_controllen = 0;
	if (flags & MSG_PEEK)
		return (ssize_t)(flags & MSG_TRUNC ? answers.len : len);
	answers.len = 0;
	return (ssize_t)len;
}

static int judge_program(void *arg, const struct hook_program *program)
{
	int *count = arg;

	require(strnlen(program->name, sizeof(program->name)) <
		sizeof(program->name));
	(void)hook_program_is_natra(program);
	return ++*count == 100;
}

static void judge_link(const struct link_info *link)
{
	require(strnlen(link->ifname, sizeof(link->ifname)) <
		sizeof(link->ifname));
	require(strnlen(link->kind, sizeof(link->kind)) < sizeof(link->kind));
}

static void ask_of_links(struct natra *n, struct netlink *nl, uint8_t which)
{
	struct link_info link = {0}, peer = {0};
	int r = which & 1 ? link_by_name(n, nl, "eth0", &link)
			  : link_by_index(nl, 7, &link);

	/* libnl-route must have understood the answer. */
	require(r == 0);
	judge_link(&link);
	/* The number of the namespace is used only in a question here. */
	r = link_host_peer(n, nl, &link, which & 2 ? 5 : -1, &peer);
	require(r <= 0);
	if (r == 0) {
		judge_link(&peer);
		require(peer.peer_ifindex == link.ifindex);
	}
}

static void ask_of_qdiscs(struct natra *n, struct netlink *nl)
{
	struct qdisc qdisc = {0};

	require(qdisc_get(n, nl, 7, TC_H_ROOT, &qdisc) <= 0);
	require(strnlen(qdisc.kind, sizeof(qdisc.kind)) < sizeof(qdisc.kind));
	require(qdisc_remove(n, nl, 7, TC_H_ROOT, &qdisc) <= 0);
}

static void ask_of_filters(struct natra *n, uint8_t which)
{
	const struct hook hook = {.ifindex = 7, .ingress = which & 1};
	bool is_cut = false;
	int count = 0;
	int r = hook_clsact_list(n, &hook, judge_program, &count, &is_cut);

	require(r <= 0 || r == 1);
	require(count <= 100);
}

static void ask_of_leftovers(struct natra *n)
{
	struct natra_leftovers left = NATRA_INIT(left);
	struct natra_target target = NATRA_INIT(target);

	target.ifname = "eth0";
	if (natra_find_leftovers(n, &target, &left) < 0)
		return;
	require(strnlen(left.ifb_ifname, sizeof(left.ifb_ifname)) <
		sizeof(left.ifb_ifname));
	(void)natra_remove_leftovers(n, &target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_netlink struct netlink nl = {0};
	struct natra *n;
	uint8_t which;

	if (size < 1)
		return 0;
	require(natra_open(&n, NULL) == 0);
	require(netlink_open(n, &nl) == 0);
	which = data[0] >> 2;
	answers.data = data + 1;
	answers.size = size - 1;
	answers.len = 0;
	switch (data[0] & 3) {
	case 0:
		ask_of_links(n, &nl, which);
		break;
	case 1:
		ask_of_qdiscs(n, &nl);
		break;
	case 2:
		ask_of_filters(n, which);
		break;
	default:
		ask_of_leftovers(n);
		break;
	}
	for (const char *c = natra_error(n); *c; c++)
		require((unsigned char)*c >= 0x20 && *c != 0x7f);
	natra_close(n);
	return 0;
}
