/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check that a group hears of its members' small flows that are free
 * (natra_over.bpf.h). When the limit is exceeded is in tests/unit/test_over.c. */
#include "cm.h"

#include "members.h"
#include "natra_groups.h"
#include "natra_over.h"
#include "util/cleanup.h"

#define LEN   1000
#define RATE  8000000ULL
#define UNITS 100000 /* no flow here is heavy */

static struct progrun run;

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
	struct natra_group *group = th_group_at(number);

	th_write_group(number, RATE, parent);
	group->limits[0].enter_units = UNITS;
	group->limits[0].over = (struct natra_over_limits){4 * LEN, LEN};
	group->charged.bytes = 8 * LEN;
}

static void load(enum stub_kind kind)
{
	struct natra_limits limits = th_limits();

	limits.enter_units = UNITS;
	limits.leave_units = UNITS / 8;
	limits.pass = NATRA_PASS_FREE;
	limits.over = (struct natra_over_limits){1000 * LEN, 1000 * LEN};
	limits.member = policy_part(1, 0);
	th_load_member(&run, kind, NULL, &limits);
	make_group(TH_GROUP, TH_PARENT);
	make_group(TH_PARENT, 0);
}

TH_STEP(load_rx, load(STUB_RX))
TH_STEP(load_edt, load(STUB_EDT))
TH_STEP(unload, th_close_member(&run))

/* The window may have been longer than it ought to be, by what the packet has taken. */
static void assert_told(uint32_t number, uint64_t sent, uint64_t took_ns)
{
	const struct natra_over *over = &th_group_at(number)->over;
	const uint64_t window_ns = 1ULL << NATRA_WINDOW_SHIFT;

	assert_int_equal(over->uncharged, sent * LEN);
	assert_in_range(over->percent,
			(sent + 8) * 24 * window_ns / (window_ns + took_ns),
			(sent + 8) * 26);
	assert_int_equal(over->phase, NATRA_OVER_TOLD);
}

/* What passes without a charge is over the limit of the group and of its parent, and not over
 * the member's own. */
TH_TEST_AFTER(free_flows_are_told_of_their_group, load_rx, load_edt)
{
	uint64_t sent = 0, begin_ns;
	struct natra_state s;

	assert_int_equal(th_send_tcp(&run, LEN).counter, NATRA_COUNT_MICE);
	s = th_read_state(&run);
	assert_int_equal(s.over.uncharged, 0);
	end_window(&s.over);
	s.over.phase = NATRA_OVER_UNDER;
	s.over.debt = 0;
	th_write_state(&run, &s);
	/* Each CPU looks by its own 16th packet. */
	do {
		begin_ns = th_now();
		end_window(&th_group_at(TH_GROUP)->over);
		end_window(&th_group_at(TH_PARENT)->over);
		assert_int_equal(th_send_tcp(&run, LEN).counter,
				 NATRA_COUNT_MICE);
		sent++;
	} while (!th_group_at(TH_PARENT)->over.uncharged && sent < 100);
	assert_told(TH_GROUP, sent, th_now() - begin_ns);
	assert_told(TH_PARENT, sent, th_now() - begin_ns);
	s = th_read_state(&run);
	assert_int_equal(s.over.over_ns, 0);
	assert_int_equal(s.events_reported, 2);
}

TH_BPF_MAIN(NULL, unload)
