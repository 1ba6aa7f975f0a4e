/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check that the programs judge a member by its group and by the parent of that
 * (natra_groups.bpf.h). How members share is in tests/unit/test_groups.c. */
#include "cm.h"

#include <bpf/bpf.h>
#include <stdlib.h>

#include "members.h"
#include "natra_groups.h"
#include "policy/group_limits.h"
#include "util/cleanup.h"

#define LEN  1000
#define RATE 8000000ULL /* 1000 ns a byte */
#define HOUR (3600 * TH_SECOND)

static struct progrun run;
static struct natra_limits limits;
static bool held;

static void load_member(enum stub_kind kind, uint64_t floor,
			const struct th_peers *peers)
{
	limits = th_limits();
	limits.rate = policy_rate(1000000000, 125000000 / 2);
	limits.ramp_mult = UINT64_MAX / limits.rate.burst_ns;
	limits.max_delay_ns = 2 * TH_SECOND;
	limits.unfelt_delay_ns = 2 * TH_SECOND;
	limits.target_ns = UINT64_MAX;
	if (kind != STUB_EDT)
		limits.max_overdraft_ns = 10 * TH_MS;
	limits.member = policy_part(1, floor);
	held = kind == STUB_EDT;
	th_load_member(&run, kind, peers, &limits);
	th_write_group(TH_GROUP, RATE, 0);
	th_write_group(TH_PARENT, RATE, 0);
}

TH_STEP(load_rx, load_member(STUB_RX, 0, NULL))
TH_STEP(load_tx, load_member(STUB_TX, 0, NULL))
TH_STEP(load_edt, load_member(STUB_EDT, 0, NULL))
TH_STEP(load_rx_floor, load_member(STUB_RX, RATE / 2, NULL))
TH_STEP(load_edt_floor, load_member(STUB_EDT, RATE / 2, NULL))

/* Peers of IPv4 are in a class, and those of IPv6 in one without a rate, or exempt. */
#define LIMITED 1
#define FREE    2

static void load_classes(enum stub_kind kind, bool is_exempt)
{
	static const char *const v4[] = {"0.0.0.0/0"};
	static const char *const v6[] = {"::/0"};
	static const struct natra_limits none;
	const struct natra_class list[] = {
		{.name = "limited", .subnets = v4, .subnets_len = 1},
		{.name = "free", .subnets = v6, .subnets_len = !is_exempt},
	};
	struct natra_policy policy = NATRA_INIT(policy);
	cleanup_subnets struct subnets subnets = {0};
	struct slot slot;

	policy.classes = list;
	policy.classes_len = TH_LEN(list);
	policy.unshaped_subnets = v6;
	policy.unshaped_subnets_len = is_exempt;
	assert_int_equal(subnets_read(&policy, &subnets), 0);
	load_member(kind, 0, &(struct th_peers){.subnets = &subnets});
	slot = slot_of_class(&run.slot, FREE);
	assert_int_equal(slot_set_limits(run.n, &slot, &none), 0);
}

TH_STEP(load_rx_classes, load_classes(STUB_RX, false))
TH_STEP(load_edt_classes, load_classes(STUB_EDT, false))
TH_STEP(load_rx_exempt, load_classes(STUB_RX, true))
TH_STEP(load_edt_exempt, load_classes(STUB_EDT, true))
TH_STEP(unload, th_close_member(&run))

static struct natra_member member(void)
{
	return th_read_state(&run).member;
}

/* Lets the group and its member be so far ahead. */
static void set_ahead(struct natra_group *group, struct natra_member *of,
		      uint64_t ahead_ns)
{
	const uint64_t at_ns = th_now() + ahead_ns;

	group->fair.tat_ns = at_ns;
	group->fair.latest_ns = at_ns;
	of->clock_ns = at_ns;
}

static void set_member_ahead(uint64_t ahead_ns)
{
	struct natra_state s = th_read_state(&run);

	set_ahead(th_group_at(TH_GROUP), &s.member, ahead_ns);
	th_write_state(&run, &s);
}

static struct th_result send(void)
{
	return th_send_tcp(&run, LEN);
}

TH_TEST_AFTER(packets_are_charged_to_the_group, load_rx, load_tx, load_edt)
{
	const uint64_t before = th_now();
	struct th_result r;

	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	assert_int_equal(th_group_at(TH_GROUP)->charged.bytes, LEN);
	/* A burst is 0.5 s. */
	assert_in_range(th_group_at(TH_GROUP)->fair.tat_ns,
			before - TH_SECOND / 2 + LEN * 1000ULL,
			th_now() - TH_SECOND / 2 + LEN * 1000ULL);
	assert_int_not_equal(member().clock_ns, 0);
	assert_int_equal(member().floor_ns, 0);
	assert_int_equal(th_group_at(TH_PARENT)->charged.packets, 0);
}

static uint64_t send_marked(uint64_t mark)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, 1, 0, LEN);
	th_send(&run, &p, &(struct th_context){.group_mark = mark}, &r);
	return r.group_mark;
}

/* While two attachments judge each packet, one charges the groups, and both their member. */
TH_TEST_AFTER(groups_are_charged_once_while_a_member_is_replaced, load_rx,
	      load_tx, load_edt)
{
	const uint64_t owner = 1, before = UINT64_C(5) << 32 | 7;
	const int fd = run.slot.config_fd;
	struct natra_config config;

	th_write_group(TH_GROUP, RATE, TH_PARENT);
	assert_int_equal(send_marked(owner), 0);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
	assert_int_equal(th_group_at(TH_PARENT)->charged.packets, 0);
	assert_int_not_equal(member().clock_ns, 0);
	assert_int_equal(send_marked(before), before);
	assert_int_equal(th_group_at(TH_PARENT)->charged.packets, 1);
	assert_int_equal(bpf_map_lookup_elem(fd, &run.slot.index, &config), 0);
	config.replaces = before;
	bpf_map_update_elem(fd, &run.slot.index, &config, BPF_ANY);
	assert_int_equal(send_marked(0), before);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 2);
}

/* What is dropped for the group's sake is charged nowhere. */
TH_TEST_AFTER(packets_over_the_group_go_nowhere, load_rx, load_tx, load_edt)
{
	const uint64_t tat_ns = th_tat(&run);
	struct natra_group before;
	struct th_result r;

	set_member_ahead(held ? 3 * TH_SECOND : TH_SECOND);
	before = *th_group_at(TH_GROUP);
	r = send();
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	assert_int_equal(r.counter, held ? NATRA_COUNT_DROPPED_HORIZON
					 : NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(th_tat(&run), tat_ns);
	assert_int_equal(th_group_at(TH_GROUP)->fair.tat_ns,
			 before.fair.tat_ns);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
}

TH_TEST(packets_depart_when_the_group_lets_them)
{
	uint64_t at_ns;
	struct th_result r;

	set_member_ahead(TH_SECOND);
	at_ns = th_group_at(TH_GROUP)->fair.tat_ns;
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, at_ns);
	assert_int_equal(th_group_at(TH_GROUP)->fair.tat_ns,
			 at_ns + LEN * 1000ULL);
	/* The next one is behind it. */
	r = send();
	assert_int_equal(r.tstamp, at_ns + LEN * 1000ULL);
}

/* A packet is refused that would take time far ahead while others are there, since fq gives none back. */
TH_TEST(no_packet_takes_the_next_second_of_others)
{
	struct natra_group *g = th_group_at(TH_GROUP);

	g->last_member = 1;
	g->met_ns = th_now() - TH_SECOND;
	set_member_ahead(TH_SECOND);
	assert_int_equal(send().counter, NATRA_COUNT_DROPPED_HORIZON);
	/* When others have just come, that may be what the member has sent before. */
	g->met_since = (uint32_t)(th_now() >> NATRA_FAIR_TICK_SHIFT);
	set_member_ahead(TH_SECOND);
	assert_int_equal(send().counter, NATRA_COUNT_PACED);
	g->met_since -= (3 * TH_SECOND) >> NATRA_FAIR_TICK_SHIFT;
	g->last_member = 1;
	g->met_ns = th_now() - TH_SECOND;
	set_member_ahead(TH_SECOND);
	assert_int_equal(send().counter, NATRA_COUNT_DROPPED_HORIZON);
	set_member_ahead(50 * TH_MS);
	assert_int_equal(send().counter, NATRA_COUNT_PACED);
	/* That one has made the member the last one, and of others there is no sign any more. */
	g->met_ns = th_now() - 18 * TH_SECOND;
	set_member_ahead(TH_SECOND);
	assert_int_equal(send().counter, NATRA_COUNT_PACED);
}

/* Packets of all members wait there, so half of the longest delay, 1 s, is the target. */
TH_TEST(a_long_wait_for_the_group_is_marked)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, 1, 2, LEN); /* ECT(0) */
	set_member_ahead(900 * TH_MS);
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	set_member_ahead(1200 * TH_MS);
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
}

/* The pod's own turn counts if that is later. */
TH_TEST(packets_depart_when_their_own_limit_lets_them)
{
	uint64_t at_ns;
	struct th_result r;

	set_member_ahead(100 * TH_MS);
	at_ns = th_now() + TH_SECOND;
	th_set_tat(&run, at_ns);
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, at_ns);
}

TH_TEST_AFTER(nobody_waits_within_its_floor, load_rx_floor, load_edt_floor)
{
	struct th_result r;

	set_member_ahead(TH_SECOND);
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	assert_in_range(member().floor_ns, 1, th_now());
	/* Over its floor it waits like others. */
	set_member_ahead(TH_SECOND);
	{
		struct natra_state s = th_read_state(&run);

		s.member.floor_ns = s.member.clock_ns;
		th_write_state(&run, &s);
	}
	r = send();
	assert_int_not_equal(r.counter, NATRA_COUNT_ADMITTED);
}

TH_TEST_AFTER(parent_judges_as_well, load_rx, load_tx, load_edt)
{
	struct th_result r;

	th_write_group(TH_GROUP, RATE, TH_PARENT);
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	assert_int_equal(th_group_at(TH_PARENT)->charged.packets, 1);
	set_ahead(th_group_at(TH_PARENT), &th_group_at(TH_GROUP)->member,
		  held ? 3 * TH_SECOND : TH_SECOND);
	r = send();
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	assert_int_equal(th_group_at(TH_PARENT)->charged.packets, 1);
	/* A group without a rate of this direction hands on to its parent. */
	th_write_group(TH_GROUP, 0, TH_PARENT);
	r = send();
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	th_group_at(TH_PARENT)->fair = (struct natra_fair){0};
	th_group_at(TH_GROUP)->member = (struct natra_member){0};
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	assert_int_equal(th_group_at(TH_PARENT)->charged.packets, 2);
}

TH_TEST_AFTER(others_are_no_members, load_rx, load_tx, load_edt)
{
	struct th_result r;

	limits.member = (struct natra_membership){0};
	th_set_limits(&run, &limits);
	set_member_ahead(HOUR);
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
}

/* A mouse passes; if it is charged, the group is charged, too. */
TH_TEST_AFTER(mice_pass, load_rx, load_tx, load_edt)
{
	uint64_t at_ns;
	struct th_result r;

	limits.enter_units = 1000;
	limits.leave_units = 125;
	limits.pass = NATRA_PASS_FREE;
	th_set_limits(&run, &limits);
	set_member_ahead(held ? 3 * TH_SECOND : TH_SECOND);
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
	limits.pass = NATRA_PASS_STRICT;
	limits.mice = limits.rate;
	limits.mice_mult = limits.rate.mult;
	th_set_limits(&run, &limits);
	set_member_ahead(held ? 1900 * TH_MS : 50 * TH_MS);
	at_ns = th_group_at(TH_GROUP)->fair.tat_ns;
	th_group_at(TH_GROUP)->fair.latest_ns = 0;
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	/* What it is ahead of now is no overdraft. */
	assert_int_equal(th_group_at(TH_GROUP)->fair.latest_ns, at_ns);
}

/* Mice that are charged go first, but not without limit. */
TH_TEST_AFTER(strict_mice_over_the_group_go_nowhere, load_rx, load_tx, load_edt)
{
	struct th_result r;

	limits.enter_units = 1000;
	limits.leave_units = 125;
	limits.pass = NATRA_PASS_STRICT;
	limits.mice = limits.rate;
	limits.mice_mult = limits.rate.mult;
	th_set_limits(&run, &limits);
	set_member_ahead(held ? 3 * TH_SECOND : TH_SECOND);
	r = send();
	assert_int_equal(r.counter, held ? NATRA_COUNT_DROPPED_HORIZON
					 : NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
}

/* A flow that is a mouse to its pod may be heavy for its group. The group's rate is low
 * here, so that an emulated CPU, too, sends faster than that. */
TH_TEST_AFTER(large_flows_of_the_group_are_no_mice, load_rx, load_tx, load_edt)
{
	struct th_result r;

	limits.enter_units = 1 << 20;
	limits.leave_units = 1 << 17;
	limits.pass = NATRA_PASS_FREE;
	th_set_limits(&run, &limits);
	th_write_group(TH_GROUP, RATE / 10, 0);
	r = send();
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	/* A tenth of a second of the group's rate is 10 of these packets. */
	assert_int_equal(th_group_at(TH_GROUP)->limits[0].enter_units,
			 10000 / 64);
	for (int i = 0; i < 100 && r.counter == NATRA_COUNT_MICE; i++)
		r = send();
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
}

/* A member without a rate is unlimited until its group, or the parent of that, has one. */
TH_TEST_AFTER(members_are_limited_by_their_group_alone, load_rx, load_tx,
	      load_edt)
{
	limits.by_group = 1;
	th_set_limits(&run, &limits);
	th_write_group(TH_GROUP, 0, 0);
	set_member_ahead(HOUR);
	assert_int_equal(send().counter, NATRA_COUNT_UNLIMITED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
	th_write_group(TH_GROUP, RATE, 0);
	assert_int_equal(send().verdict, TC_ACT_SHOT);
	th_group_at(TH_GROUP)->limits[0] = group_limits(
		&(struct natra_group_given){.parent = TH_PARENT},
		&(struct natra_group_given){.rate_bits_per_sec = {RATE, RATE}},
		true);
	set_ahead(th_group_at(TH_PARENT), &th_group_at(TH_GROUP)->member, HOUR);
	assert_int_equal(send().verdict, TC_ACT_SHOT);
	th_write_group(TH_GROUP, 0, 0);
	assert_int_equal(send().counter, NATRA_COUNT_UNLIMITED);
	limits.by_group = 0;
	th_set_limits(&run, &limits);
	assert_int_equal(send().counter, NATRA_COUNT_ADMITTED);
}

TH_TEST_AFTER(changed_limits_hold_at_once, load_rx, load_tx, load_edt)
{
	const struct natra_group_given given = {
		.rate_bits_per_sec = {RATE / 10, RATE / 10}};
	struct natra_group *group = th_group_at(TH_GROUP);
	uint64_t tat_ns;

	(void)send();
	group->limits[1] = group_limits(&given, NULL, true);
	group->active = 1;
	tat_ns = group->fair.tat_ns;
	if (tat_ns < th_now() - TH_SECOND / 2)
		tat_ns = th_now() - TH_SECOND / 2;
	(void)send();
	assert_in_range(group->fair.tat_ns, tat_ns + LEN * 10000ULL,
			th_now() - TH_SECOND / 2 + LEN * 11000ULL + TH_SECOND);
}

static enum natra_counter send_in_class(void (*make)(struct packet *p,
						     uint16_t source,
						     uint8_t tos, size_t len),
					uint32_t class)
{
	struct th_result r;
	struct packet p;

	make(&p, 1, 0, LEN);
	th_look_at_class(&run, class);
	th_send(&run, &p, NULL, &r);
	th_look_at_class(&run, 0);
	return r.counter;
}

/* A packet of a class is charged to the class, and to the group by the clock of the whole
 * attachment: what one class has taken, the others have not. */
TH_TEST_AFTER(classes_are_charged_as_one_member, load_rx_classes,
	      load_edt_classes)
{
	assert_int_equal(send_in_class(packet_make_tcp4, LIMITED),
			 NATRA_COUNT_ADMITTED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
	assert_int_equal(th_group_at(TH_GROUP)->charged.bytes, LEN);
	assert_int_not_equal(member().clock_ns, 0);
	assert_int_equal(th_tat(&run), 0);
	th_look_at_class(&run, LIMITED);
	assert_int_equal(member().clock_ns, 0);
	assert_int_not_equal(th_tat(&run), 0);
	th_look_at_class(&run, 0);
	set_member_ahead(held ? 3 * TH_SECOND : TH_SECOND);
	assert_int_equal(send_in_class(packet_make_tcp4, LIMITED),
			 held ? NATRA_COUNT_DROPPED_HORIZON
			      : NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 1);
}

static void passes_the_group(uint32_t class)
{
	set_member_ahead(HOUR);
	assert_int_equal(send_in_class(packet_make_tcp6, class),
			 NATRA_COUNT_UNLIMITED);
	assert_int_equal(th_group_at(TH_GROUP)->charged.packets, 0);
}

TH_TEST_AFTER(classes_without_a_rate_pass_the_group, load_rx_classes,
	      load_edt_classes)
{
	passes_the_group(FREE);
}

TH_TEST_AFTER(exempt_peers_pass_the_group, load_rx_exempt, load_edt_exempt)
{
	passes_the_group(0);
}

TH_BPF_MAIN(load_edt, unload)
