/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include "members.h"

#include <sys/mman.h>
#include <unistd.h>

#include "natra_groups.h"
#include "policy/group_limits.h"
#include "state/group_map.h"

#define MAP_SIZE (2 * NATRA_GROUPS * sizeof(struct natra_group))

static struct natra_group *groups;

struct natra_group *th_group_at(uint32_t number)
{
	return &groups[natra_group_place(number, true) - 1];
}

void th_write_group(uint32_t number, uint64_t rate, uint32_t parent)
{
	const struct natra_group_given given = {
		.name = "g",
		.rate_bits_per_sec = {rate, rate},
		.parent = parent,
	};

	th_group_at(number)->limits[0] = group_limits(&given, NULL, true);
}

void th_load_member(struct progrun *run, enum stub_kind kind,
		    const struct th_peers *peers, struct natra_limits *limits)
{
	struct program_options options = {
		.kind = kind,
		.has_l2 = true,
		.has_groups = true,
	};
	struct natra *n;
	int r;

	policy_join(&limits->member, TH_GROUP, true);
	assert_int_equal(natra_open(&n, NULL), 0);
	options.groups_fd = groups_make_map(n);
	assert_true(options.groups_fd >= 0);
	groups = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      options.groups_fd, 0);
	assert_true(groups != MAP_FAILED);
	r = th_start(run, &options, peers, limits);
	close(options.groups_fd);
	natra_close(n);
	if (r < 0)
		fail_msg("%s", natra_error(run->n));
}

void th_close_member(struct progrun *run)
{
	munmap(groups, MAP_SIZE);
	th_close(run);
}

struct th_result th_send_tcp(struct progrun *run, size_t len)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, 1, 0, len);
	th_send(run, &p, NULL, &r);
	return r;
}
