/* SPDX-License-Identifier: BSD-2-Clause */
/* What was carried and not judged, by the looks of several processes. */
#include "cm.h"

#include "attach/bypass.h"
#include "attach/classes.h"
#include "state/carried.h"

#define MB      UINT64_C(1000000)
#define S_NS    UINT64_C(1000000000)
#define BEGIN_S 100

struct wire {
	struct natra_carried record;
	struct carried_look look;
};

/* A look, `seconds` after the first, at what the counters have now. */
static uint32_t look_at(struct wire *wire, uint64_t seconds)
{
	struct carried_share share;

	wire->look.time_ns = (BEGIN_S + seconds) * S_NS;
	share = carried_compare(&wire->record, &wire->look);
	return carried_percent(&share);
}

/* Packets of 1500 bytes pass. */
static void pass(struct wire *wire, uint64_t carried, uint64_t judged)
{
	wire->look.bytes += carried;
	wire->look.packets += carried / 1500;
	wire->look.judged_before += judged;
	wire->look.judged_after += judged;
}

static uint32_t last(const struct wire *wire)
{
	struct carried_share share = carried_last(&wire->record);

	return carried_percent(&share);
}

TH_TEST(test_share)
{
	struct wire wire = {.look = {.bytes = 77 * MB, .judged_after = 3}};

	/* What was carried before the first look is nobody's. */
	assert_int_equal(look_at(&wire, 0), 0);
	pass(&wire, 10 * MB, 10 * MB);
	assert_int_equal(look_at(&wire, 1), 0);
	pass(&wire, 10 * MB, 0);
	assert_in_range(look_at(&wire, 2), 48, 50);
	assert_in_range(last(&wire), 48, 50);
	pass(&wire, 180 * MB, 180 * MB);
	assert_int_equal(look_at(&wire, 3), 0);
}

TH_TEST(test_window)
{
	struct wire wire = {0};

	(void)look_at(&wire, 0);
	pass(&wire, 100 * MB, 100 * MB);
	assert_int_equal(look_at(&wire, 11), 0);
	/* What passed in the window before does not hide this. */
	pass(&wire, 2 * MB, 0);
	assert_in_range(look_at(&wire, 12), 98, 100);
	/* A pod without traffic tells nothing new, however long that lasts. */
	assert_in_range(look_at(&wire, 500), 98, 100);
	pass(&wire, 100000, 100000);
	assert_in_range(look_at(&wire, 501), 98, 100);
	pass(&wire, 5 * MB, 5 * MB);
	assert_int_equal(look_at(&wire, 502), 0);
}

TH_TEST(test_little)
{
	struct wire wire = {0};

	(void)look_at(&wire, 0);
	pass(&wire, MB, 0);
	assert_int_equal(look_at(&wire, 20), 0);
	/* Less than a twentieth. */
	pass(&wire, 99 * MB, 96 * MB);
	assert_int_equal(look_at(&wire, 40), 0);
	/* A tag and a checksum for each of many small packets. */
	wire.look.bytes += 68 * MB;
	wire.look.packets += MB;
	wire.look.judged_after += 60 * MB;
	wire.look.judged_before += 60 * MB;
	assert_int_equal(look_at(&wire, 60), 0);
}

/* What waited behind the hook when the window began is carried in it. */
TH_TEST(test_waiting)
{
	struct wire wire = {0};

	pass(&wire, 0, 30 * MB);
	wire.look.waiting_bytes = 30 * MB;
	(void)look_at(&wire, 0);
	wire.look.waiting_bytes = 0;
	pass(&wire, 30 * MB, 0);
	assert_int_equal(look_at(&wire, 11), 0);
	pass(&wire, 30 * MB, 0);
	assert_in_range(look_at(&wire, 12), 98, 100);
}

/* Packets that pass while a look is taken are of both windows. */
TH_TEST(test_reading)
{
	struct wire wire = {0};

	wire.look.judged_after = 20 * MB;
	(void)look_at(&wire, 0);
	wire.look.judged_before = 20 * MB;
	pass(&wire, 20 * MB, 0);
	assert_int_equal(look_at(&wire, 11), 0);
}

TH_TEST(test_back)
{
	struct wire wire = {.look = {.bytes = 4000 * MB, .packets = 3 * MB}};

	pass(&wire, 0, 100 * MB);
	(void)look_at(&wire, 0);
	/* The counter had 32 bits, or its driver was loaded again. */
	wire.look.bytes = 200 * MB;
	assert_int_equal(look_at(&wire, 11), 0);
	pass(&wire, 5 * MB, 5 * MB);
	assert_int_equal(look_at(&wire, 12), 0);
	/* The slot has begun again. */
	wire.look.judged_before = wire.look.judged_after = 0;
	assert_int_equal(look_at(&wire, 23), 0);
	pass(&wire, 5 * MB, 0);
	assert_in_range(look_at(&wire, 24), 98, 100);
}

/* A process was killed while it wrote. */
TH_TEST(test_killed)
{
	struct wire wire = {0};

	(void)look_at(&wire, 0);
	pass(&wire, 50 * MB, 0);
	wire.record.time_ns = 0;
	assert_int_equal(look_at(&wire, 11), 0);
	pass(&wire, 50 * MB, 50 * MB);
	assert_int_equal(look_at(&wire, 12), 0);
}

/* Behind a pacer the backstop judges, too, but does not charge the pacer's group. */
TH_TEST(test_backstop_of_a_group)
{
	static const bool limits[] = {true, false},
			  not_ingress[] = {false, true};
	struct record record = {
		.leg = {[LEG_INGRESS].hook = RECORD_HOOK_CLSACT,
			[LEG_HOST].hook = RECORD_HOOK_CLSACT},
		.limits =
			{[LEG_INGRESS].rate.mult = 1, [LEG_HOST].rate.mult = 1},
	};

	assert_int_equal(bypass_direction(&record, LEG_INGRESS, limits),
			 NATRA_DIRECTION_INGRESS);
	record.limits[LEG_HOST].member.group = 1;
	assert_int_equal(bypass_direction(&record, LEG_INGRESS, limits),
			 NATRA_DIRECTION_MAX);
	assert_int_equal(bypass_direction(&record, LEG_HOST, limits),
			 NATRA_DIRECTION_INGRESS);
	/* A group without this rate leaves the pod's own, which the backstop holds. */
	assert_int_equal(bypass_direction(&record, LEG_INGRESS, not_ingress),
			 NATRA_DIRECTION_INGRESS);
	record.leg[LEG_HOST].hook = RECORD_HOOK_NONE;
	assert_int_equal(bypass_direction(&record, LEG_INGRESS, limits),
			 NATRA_DIRECTION_INGRESS);
}

/* A member without a rate of its own has the group's, as far as the group has any. */
TH_TEST(test_rates_of_a_group_alone)
{
	static const bool not_ingress[] = {false, true};
	struct natra_policy policy = NATRA_INIT(policy);
	struct record record = {
		.leg = {[LEG_INGRESS].hook = RECORD_HOOK_TCX,
			[LEG_EGRESS].hook = RECORD_HOOK_TCX,
			[LEG_HOST].hook = RECORD_HOOK_TCX},
	};
	const struct subnets none = {0};

	(void)snprintf(policy.group, sizeof(policy.group), "tenant");
	for (int leg = 0; leg < LEG_MAX; leg++)
		classes_leg_limits(&record, (enum leg)leg, 1, &policy, &none,
				   &record.limits[leg]);
	assert_int_equal(bypass_direction(&record, LEG_INGRESS, not_ingress),
			 NATRA_DIRECTION_MAX);
	assert_int_equal(bypass_direction(&record, LEG_HOST, not_ingress),
			 NATRA_DIRECTION_MAX);
	assert_int_equal(bypass_direction(&record, LEG_EGRESS, not_ingress),
			 NATRA_DIRECTION_EGRESS);
	/* Its own rate of packets holds whatever the group has. */
	policy.ingress_packet_rate_per_sec = 100;
	classes_leg_limits(&record, LEG_HOST, 1, &policy, &none,
			   &record.limits[LEG_HOST]);
	assert_int_equal(bypass_direction(&record, LEG_HOST, not_ingress),
			 NATRA_DIRECTION_INGRESS);
}

/* If two legs judge a direction, the one that missed less counts. */
TH_TEST(test_two_legs)
{
	const struct carried_share all = {.bytes = 10 * MB},
				   none = {10 * MB, 10 * MB};
	struct bypass bypass = {0};

	bypass_add(&bypass, LEG_INGRESS, &none);
	bypass_add(&bypass, LEG_EGRESS, &none);
	bypass_add(&bypass, LEG_HOST, &all);
	assert_int_equal(
		carried_percent(&bypass.share[NATRA_DIRECTION_INGRESS]), 0);
	assert_int_equal(carried_percent(&bypass.share[NATRA_DIRECTION_EGRESS]),
			 100);
}

TH_MAIN(NULL, NULL)
