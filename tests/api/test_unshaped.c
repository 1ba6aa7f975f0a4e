/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check the record that says that an interface runs without
 * limits. */
#include "one_pod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASON "fq: no such qdisc"

static char *before;

static int begin(void **state)
{
	(void)one_pod_begin(state);
	before = rig_state();
	return 0;
}

/* Checks that nothing of the record is left, whoever removed it. */
static int end(void **state)
{
	rig_same_state(before);
	free(before);
	assert_int_equal(rig_pins(), 0);
	return one_pod_end(state);
}

static int record(const char *id)
{
	struct natra_target target = pod_target(&pod, id);
	struct natra_policy policy = policy_of(10, 20);

	target.network = "net-1";
	target.label = "shop/web-0";
	return KEPT(natra_record_unshaped(n, &target, &policy, REASON));
}

static int tell(void *arg, const struct natra_info *info)
{
	assert_string_equal(((struct natra_info *)arg)->id, "");
	*(struct natra_info *)arg = *info;
	return 0;
}

static void assert_told(const struct natra_info *info)
{
	assert_true(info->unshaped);
	assert_string_equal(info->id, ID);
	assert_string_equal(info->ifname, "eth0");
	assert_string_equal(info->reason, REASON);
	assert_string_equal(info->network, "net-1");
	assert_string_equal(info->label, "shop/web-0");
	assert_int_equal(info->mode, NATRA_MODE_AUTO);
	assert_int_equal(info->policy.ingress_rate_bits_per_sec, 10 * MBIT);
	assert_int_equal(info->policy.egress_rate_bits_per_sec, 20 * MBIT);
	assert_int_equal(info->ingress_prog_id, 0);
	assert_int_equal(info->egress_prog_id, 0);
	assert_false(info->interface_gone);
	assert_false(info->edt_active);
}

static void record_is_told(void **state)
{
	struct natra_info info = NATRA_INIT(info);
	struct natra_target target = pod_target(&pod, NULL);
	char id[NATRA_ID_MAX + 1];

	(void)state;
	assert_int_equal(record(ID), 0);
	info = rig_query(n, ID);
	assert_told(&info);
	info = (struct natra_info)NATRA_INIT(info);
	assert_int_equal(KEPT(natra_foreach_attachment(n, tell, &info)), 0);
	assert_told(&info);
	assert_int_equal(KEPT(natra_find(n, &target, id)), 0);
	assert_string_equal(id, ID);
	rig_detach(n, ID);
}

static int no_entry(void *arg, const struct natra_neighbour *entry)
{
	(void)arg;
	(void)entry;
	fail_msg("called");
	return 0;
}

static void nothing_is_limited(void **state)
{
	static const struct natra_direction_stats zero;
	struct natra_policy policy = policy_of(10, 20);
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_flow flow;
	size_t len = 1;

	(void)state;
	assert_int_equal(record(ID), 0);
	pod_send(&pod, 5);
	memset(&stats.ingress, 0x5a, sizeof(stats.ingress));
	assert_int_equal(KEPT(natra_stats(n, ID, &stats)), 0);
	assert_memory_equal(&stats.ingress, &zero, sizeof(zero));
	assert_memory_equal(&stats.egress, &zero, sizeof(zero));
	assert_int_equal(
		KEPT(natra_top(n, ID, NATRA_DIRECTION_EGRESS, &flow, &len)), 0);
	assert_int_equal(len, 0);
	assert_int_equal(KEPT(natra_foreach_neighbour(n, ID, no_entry, NULL)),
			 0);
	assert_int_equal(KEPT(natra_check(n, ID, NULL)), -EBADE);
	says(n, ID, REASON);
	assert_int_equal(KEPT(natra_check(n, ID, &policy)), -EBADE);
	says(n, ID, REASON);
	assert_int_equal(KEPT(natra_configure(n, ID, &policy)), -EOPNOTSUPP);
	says(n, ID, REASON);
	rig_detach(n, ID);
}

/* The record changes nothing of the interface, and can be written again. */
static void record_again(void **state)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(30, 0);
	unsigned int pins;

	(void)state;
	assert_int_equal(record(ID), 0);
	pins = rig_pins();
	assert_int_equal(KEPT(natra_record_unshaped(n, &target, &policy,
						    "another reason")),
			 0);
	assert_int_equal(rig_pins(), pins);
	assert_string_equal(rig_query(n, ID).reason, "another reason");
	assert_int_equal(rig_query(n, ID).policy.egress_rate_bits_per_sec, 0);
	rig_detach(n, ID);
}

static void attach_replaces_it(void **state)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info;

	(void)state;
	assert_int_equal(record(ID), 0);
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)), 0);
	info = rig_query(n, ID);
	assert_false(info.unshaped);
	assert_true(info.ingress_prog_id != 0);
	assert_int_equal(KEPT(natra_check(n, ID, &policy)), 0);

	/* The other way round, a live attachment does not become unshaped. */
	assert_int_equal(record(ID), 0);
	assert_false(rig_query(n, ID).unshaped);
	assert_int_equal(rig_query(n, ID).ingress_prog_id,
			 info.ingress_prog_id);
	assert_int_equal(KEPT(natra_check(n, ID, &policy)), 0);
	rig_detach(n, ID);
}

/* This is the use of the call: an attach fails, and the record remains. */
static void failed_attach_then_record(void **state)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	char error[512];

	(void)state;
	policy.ingress_mode = NATRA_INGRESS_MODE_PACE;
	policy.attach_mode = NATRA_MODE_TCX_PODSIDE;
	rig_sh("tc qdisc add dev " NODE_SIDE " root handle 7: pfifo");
	assert_true(KEPT(natra_attach(n, &target, &policy, NULL)) < 0);
	(void)snprintf(error, sizeof(error), "%s", natra_error(n));
	assert_int_equal(KEPT(natra_record_unshaped(n, &target, &policy,
						    natra_error(n))),
			 0);
	assert_int_equal(strncmp(rig_query(n, ID).reason, error, 200), 0);
	assert_true(KEPT(natra_attach(n, &target, &policy, NULL)) < 0);
	assert_true(rig_query(n, ID).unshaped);
	rig_detach(n, ID);
	rig_sh("tc qdisc del dev " NODE_SIDE " root");
}

static void interface_gone_is_garbage(void **state)
{
	size_t removed = 0;

	(void)state;
	assert_int_equal(record(ID), 0);
	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, &removed)), 0);
	assert_int_equal(removed, 0);
	rig_sh("ip -n " POD " link del eth0");
	assert_true(rig_query(n, ID).interface_gone);
	assert_int_equal(KEPT(natra_check(n, ID, NULL)), -ENODEV);
	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, &removed)), 0);
	assert_int_equal(removed, 1);
	assert_int_equal(KEPT(natra_check(n, ID, NULL)), -ENOENT);
	free(before);
	before = rig_state();
}

static void gc_of_its_network(void **state)
{
	static const char *const keep[] = {ID};
	size_t removed = 0;

	(void)state;
	assert_int_equal(record(ID), 0);
	assert_int_equal(KEPT(natra_gc(n, "net-1", keep, 1, &removed)), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(KEPT(natra_gc(n, "net-1", NULL, 0, &removed)), 0);
	assert_int_equal(removed, 1);
}

/* The interface is limited under another id, so it is not unshaped. */
static void limited_by_another_id(void **state)
{
	struct natra_target target = pod_target(&pod, "other");
	struct natra_policy policy = policy_of(10, 20);
	char id[NATRA_ID_MAX + 1];

	(void)state;
	/* Directories may be walked in the order of their age or against it, so
	 * one record is older and one is newer. */
	assert_int_equal(record("other"), 0);
	assert_int_equal(record("a-record"), 0);
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)), 0);
	assert_int_equal(record(ID), -EBUSY);
	says(n, "other", "eth0");
	/* The owner is the id that limits the interface, whichever record comes
	 * first. */
	target.id = NULL;
	assert_int_equal(KEPT(natra_find(n, &target, id)), 0);
	assert_string_equal(id, "other");
	rig_detach(n, "other");
	assert_int_equal(KEPT(natra_find(n, &target, id)), 0);
	assert_string_equal(id, "a-record");
	rig_detach(n, "a-record");
}

/* What it should have may not be known. */
static void a_record_needs_no_rate(void **state)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = NATRA_INIT(policy);

	(void)state;
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)),
			 -EINVAL);
	says(n, "group", "at least one");
	assert_int_equal(
		KEPT(natra_record_unshaped(n, &target, &policy, "not known")),
		0);
	assert_true(rig_query(n, ID).unshaped);
	assert_int_equal(rig_query(n, ID).policy.egress_rate_bits_per_sec, 0);
	rig_detach(n, ID);
}

/* The id has limits on another pod's interface, which is not to lose them without a word. */
static void limits_of_another_interface_stay(void **state)
{
	struct pod second = pod_make("bare-2");
	struct natra_target target = pod_target(&second, ID);
	struct natra_policy policy = policy_of(10, 20);

	(void)state;
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)), 0);
	assert_int_equal(record(ID), -EBADE);
	says(n, "another netns", ID);
	assert_false(rig_query(n, ID).unshaped);
	pod_remove(&second);
	assert_int_equal(record(ID), 0);
	assert_true(rig_query(n, ID).unshaped);
	rig_detach(n, ID);
}

static void bad_calls_record_nothing(void **state)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	char longest[600];

	(void)state;
	assert_int_equal(natra_record_unshaped(NULL, &target, &policy, REASON),
			 -EINVAL);
	assert_int_equal(KEPT(natra_record_unshaped(n, NULL, &policy, REASON)),
			 -EINVAL);
	says(n, "target", NULL);
	assert_int_equal(KEPT(natra_record_unshaped(n, &target, NULL, REASON)),
			 -EINVAL);
	says(n, "policy", NULL);
	assert_int_equal(KEPT(natra_record_unshaped(n, &target, &policy, NULL)),
			 -EINVAL);
	says(n, "reason", NULL);
	assert_int_equal(KEPT(natra_record_unshaped(n, &target, &policy, "")),
			 -EINVAL);
	says(n, "reason", NULL);
	policy.ingress_rate_bits_per_sec = UINT64_MAX;
	assert_int_equal(
		KEPT(natra_record_unshaped(n, &target, &policy, REASON)),
		-EINVAL);
	says(n, "ingress_rate_bits_per_sec", NULL);
	policy = policy_of(10, 20);
	target.ifname = "eth9";
	assert_int_equal(
		KEPT(natra_record_unshaped(n, &target, &policy, REASON)),
		-ENODEV);
	says(n, "eth9", NULL);
	target = pod_target(&pod, ID);
	target.netns = "nosuch";
	assert_int_equal(
		KEPT(natra_record_unshaped(n, &target, &policy, REASON)),
		-ENOENT);
	assert_int_equal(rig_pins(), 0);

	/* A reason of any length and content is stored as one line. */
	target = pod_target(&pod, ID);
	memset(longest, 'x', sizeof(longest));
	longest[3] = '\n';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(
		KEPT(natra_record_unshaped(n, &target, &policy, longest)), 0);
	assert_int_equal(strlen(rig_query(n, ID).reason), 255);
	assert_null(strchr(rig_query(n, ID).reason, '\n'));
	rig_detach(n, ID);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(record_is_told),
		CASE(nothing_is_limited),
		CASE(record_again),
		CASE(attach_replaces_it),
		CASE(failed_attach_then_record),
		CASE(interface_gone_is_garbage),
		CASE(gc_of_its_network),
		CASE(limited_by_another_id),
		CASE(a_record_needs_no_rate),
		CASE(limits_of_another_interface_stay),
		CASE(bad_calls_record_nothing),
	};

	rig_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
