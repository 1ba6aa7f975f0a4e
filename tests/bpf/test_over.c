/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check that a group hears of its members' small flows that are free
 * (natra_over.bpf.h). When the limit is exceeded is in tests/unit/test_over.c. */
#include "cm.h"

#include <sys/mman.h>

#include "natra_groups.h"
#include "natra_over.h"
#include "policy/group_limits.h"
#include "progrun.h"
#include "state/group_map.h"
#include "util/cleanup.h"

#define LEN      1000
#define MAP_SIZE (2 * NATRA_GROUPS * sizeof(struct natra_group))
#define GROUP    7 /* its number */
#define PARENT   9
#define RATE     8000000ULL
#define UNITS    100000 /* no flow here is heavy */

static struct progrun run;
static struct natra_group *groups;

static struct natra_group *group_at(uint32_t number)
{
	return &groups[natra_group_place(number, true) - 1];
}

/* Lets a window end in which there was a debt before. */
static void end_window(struct natra_over *over)
{
	over->time_ns = th_now() - (1ULL << NATRA_WINDOW_SHIFT);
	over->phase = NATRA_OVER_DEBT;
	over->debt = 1ULL << 40;
}

/* Makes a group whose limit is 4 packets in a window, of which 8 have been charged in this one. */
static void make_group(uint32_t number, uint32_t parent)
{
	const struct natra_group_given given = {
		.name = "g",
		.rate_bits_per_sec = {RATE, RATE},
		.parent = parent,
	};
	struct natra_group *group = group_at(number);

	group->limits[0] = group_limits(&given, NULL, true);
	group->limits[0].enter_units = UNITS;
	group->limits[0].over = (struct natra_over_limits){4 * LEN, LEN};
	group->charged.bytes = 8 * LEN;
	end_window(&group->over);
}

static int load(enum stub_kind kind)
{
	struct program_options options = {
		.kind = kind,
		.has_l2 = true,
		.has_groups = true,
	};
	struct natra_limits limits = th_limits();
	struct natra *n;

	limits.enter_units = UNITS;
	limits.leave_units = UNITS / 8;
	limits.pass = NATRA_PASS_FREE;
	limits.over = (struct natra_over_limits){1000 * LEN, 1000 * LEN};
	limits.member = policy_part(1, 0);
	policy_join(&limits.member, GROUP, true);
	assert_int_equal(natra_open(&n, NULL), 0);
	options.groups_fd = groups_make_map(n);
	assert_true(options.groups_fd >= 0);
	groups = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      options.groups_fd, 0);
	assert_true(groups != MAP_FAILED);
	make_group(GROUP, PARENT);
	make_group(PARENT, 0);
	assert_int_equal(th_start(&run, &options, NULL, &limits), 0);
	close(options.groups_fd);
	natra_close(n);
	return 0;
}

static int load_rx(void **state)
{
	(void)state;
	return load(STUB_RX);
}

static int load_edt(void **state)
{
	(void)state;
	return load(STUB_EDT);
}

static int unload(void **state)
{
	(void)state;
	munmap(groups, MAP_SIZE);
	th_close(&run);
	return 0;
}

static struct th_result send(void)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, 1, 0, LEN);
	th_send(&run, &p, NULL, &r);
	return r;
}

static void assert_told(uint32_t number, uint64_t sent)
{
	const struct natra_over *over = &group_at(number)->over;

	assert_int_equal(over->uncharged, sent * LEN);
	/* The window may have been longer than it ought to be. */
	assert_in_range(over->percent, (sent + 8) * 20, (sent + 8) * 26);
	assert_int_equal(over->phase, NATRA_OVER_TOLD);
}

/* What passes without a charge is over the limit of the group and of its parent, and not over
 * the member's own. */
static void free_flows_are_told_of_their_group(void **state)
{
	uint64_t sent = 0;
	size_t len;

	(void)state;
	assert_int_equal(send().counter, NATRA_COUNT_MICE);
	{
		cleanup_free struct natra_state *s = th_read_state(&run, &len);

		assert_int_equal(s->over.uncharged, 0);
		end_window(&s->over);
		s->over.phase = NATRA_OVER_UNDER;
		s->over.debt = 0;
		th_write_state(&run, s);
	}
	/* Each CPU looks by its own 16th packet. */
	do {
		assert_int_equal(send().counter, NATRA_COUNT_MICE);
		sent++;
	} while (!group_at(PARENT)->over.uncharged && sent < 100);
	assert_told(GROUP, sent);
	assert_told(PARENT, sent);
	{
		cleanup_free struct natra_state *s = th_read_state(&run, &len);

		assert_int_equal(s->over.over_ns, 0);
		assert_int_equal(s->events_reported, 2);
	}
}

int main(void)
{
#define CASE(kind)                                                             \
	{                                                                      \
#kind "_free_flows_are_told_of_their_group",                   \
			free_flows_are_told_of_their_group, load_##kind,       \
			unload, NULL                                           \
	}
	const struct CMUnitTest tests[] = {
		CASE(rx),
		CASE(edt),
	};

	th_require_bpf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
