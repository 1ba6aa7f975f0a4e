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
	assert_int_equal(info->mode, NATRA_ATTACH_MODE_AUTO);
	assert_int_equal(info->policy.ingress_rate_bits_per_sec, 10 * MBIT);
	assert_int_equal(info->policy.egress_rate_bits_per_sec, 20 * MBIT);
	assert_int_equal(info->ingress_prog_id, 0);
	assert_int_equal(info->egress_prog_id, 0);
	assert_false(info->interface_gone);
	assert_false(info->edt_active);
}

TH_TEST(record_is_told)
{
	struct natra_info info = NATRA_INIT(info);
	struct natra_target target = pod_target(&pod, NULL);
	char id[NATRA_ID_MAX + 1];

	assert_int_equal(record(ID), 0);
	info = rig_query(n, ID);
	assert_told(&info);
	info = (struct natra_info)NATRA_INIT(info);
	OK(natra_foreach_attachment(n, tell, &info));
	assert_told(&info);
	OK(natra_find(n, &target, id, sizeof(id)));
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

TH_TEST(nothing_is_limited)
{
	static const struct natra_direction_stats zero;
	struct natra_policy policy = policy_of(10, 20);
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_flow flow;
	size_t len = 1;

	assert_int_equal(record(ID), 0);
	pod_send(&pod, 5);
	memset(&stats.ingress, 0x5a, sizeof(stats.ingress));
	OK(natra_stats(n, ID, &stats));
	assert_memory_equal(&stats.ingress, &zero, sizeof(zero));
	assert_memory_equal(&stats.egress, &zero, sizeof(zero));
	OK(natra_top(n, ID, NATRA_DIRECTION_EGRESS, &flow, &len));
	assert_int_equal(len, 0);
	OK(natra_foreach_neighbour(n, ID, no_entry, NULL));
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, ID, REASON);
	GIVES(-EBADE, natra_check(n, ID, &policy));
	says(n, ID, REASON);
	GIVES(-EOPNOTSUPP, natra_configure(n, ID, &policy));
	says(n, ID, REASON);
	rig_detach(n, ID);
}

/* The record changes nothing of the interface, and can be written again. */
TH_TEST(record_again)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(30, 0);
	unsigned int pins;

	assert_int_equal(record(ID), 0);
	pins = rig_pins();
	OK(natra_record_unshaped(n, &target, &policy, "another reason"));
	assert_int_equal(rig_pins(), pins);
	assert_string_equal(rig_query(n, ID).reason, "another reason");
	assert_int_equal(rig_query(n, ID).policy.egress_rate_bits_per_sec, 0);
	rig_detach(n, ID);
}

TH_TEST(attach_replaces_it)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info;

	assert_int_equal(record(ID), 0);
	OK(natra_attach(n, &target, &policy, NULL));
	info = rig_query(n, ID);
	assert_false(info.unshaped);
	assert_true(info.ingress_prog_id != 0);
	OK(natra_check(n, ID, &policy));

	/* The other way round, a live attachment does not become unshaped. */
	assert_int_equal(record(ID), 0);
	assert_false(rig_query(n, ID).unshaped);
	assert_int_equal(rig_query(n, ID).ingress_prog_id,
			 info.ingress_prog_id);
	OK(natra_check(n, ID, &policy));
	rig_detach(n, ID);
}

/* This is the use of the call: an attach fails, and the record remains. */
TH_TEST(failed_attach_then_record)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	char error[512];

	policy.ingress_mode = NATRA_INGRESS_MODE_PACE;
	policy.attach_mode = NATRA_ATTACH_MODE_TCX_PODSIDE;
	rig_sh("tc qdisc add dev " NODE_SIDE " root handle 7: pfifo");
	assert_true(KEPT(natra_attach(n, &target, &policy, NULL)) < 0);
	(void)snprintf(error, sizeof(error), "%s", natra_error(n));
	OK(natra_record_unshaped(n, &target, &policy, natra_error(n)));
	assert_int_equal(strncmp(rig_query(n, ID).reason, error, 200), 0);
	assert_true(KEPT(natra_attach(n, &target, &policy, NULL)) < 0);
	assert_true(rig_query(n, ID).unshaped);
	rig_detach(n, ID);
	rig_sh("tc qdisc del dev " NODE_SIDE " root");
}

TH_TEST(interface_gone_is_garbage)
{
	size_t removed = 0;

	assert_int_equal(record(ID), 0);
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
	rig_sh("ip -n " POD " link del eth0");
	assert_true(rig_query(n, ID).interface_gone);
	GIVES(-ENODEV, natra_check(n, ID, NULL));
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 1);
	GIVES(-ENOENT, natra_check(n, ID, NULL));
	free(before);
	before = rig_state();
}

TH_TEST(gc_of_its_network)
{
	static const char *const keep[] = {ID};
	size_t removed = 0;

	assert_int_equal(record(ID), 0);
	OK(natra_gc(n, "net-1", keep, 1, &removed));
	assert_int_equal(removed, 0);
	OK(natra_gc(n, "net-1", NULL, 0, &removed));
	assert_int_equal(removed, 1);
}

/* The interface is limited under another id, so it is not unshaped. */
TH_TEST(limited_by_another_id)
{
	struct natra_target target = pod_target(&pod, "other");
	struct natra_policy policy = policy_of(10, 20);
	char id[NATRA_ID_MAX + 1];

	/* Directories may be walked in the order of their age or against it, so
	 * one record is older and one is newer. */
	assert_int_equal(record("other"), 0);
	assert_int_equal(record("a-record"), 0);
	OK(natra_attach(n, &target, &policy, NULL));
	assert_int_equal(record(ID), -EBUSY);
	says(n, "other", "eth0");
	/* The owner is the id that limits the interface, whichever record comes
	 * first. */
	target.id = NULL;
	OK(natra_find(n, &target, id, sizeof(id)));
	assert_string_equal(id, "other");
	rig_detach(n, "other");
	OK(natra_find(n, &target, id, sizeof(id)));
	assert_string_equal(id, "a-record");
	rig_detach(n, "a-record");
}

/* What it should have may not be known. */
TH_TEST(a_record_needs_no_rate)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = NATRA_INIT(policy);

	GIVES(-EINVAL, natra_attach(n, &target, &policy, NULL));
	says(n, "group", "at least one");
	OK(natra_record_unshaped(n, &target, &policy, "not known"));
	assert_true(rig_query(n, ID).unshaped);
	assert_int_equal(rig_query(n, ID).policy.egress_rate_bits_per_sec, 0);
	rig_detach(n, ID);
}

/* The id has limits on another pod's interface, which is not to lose them without a word. */
TH_TEST(limits_of_another_interface_stay)
{
	struct pod second = pod_make("bare-2");
	struct natra_target target = pod_target(&second, ID);
	struct natra_policy policy = policy_of(10, 20);

	OK(natra_attach(n, &target, &policy, NULL));
	assert_int_equal(record(ID), -EBADE);
	says(n, "another netns", ID);
	assert_false(rig_query(n, ID).unshaped);
	pod_remove(&second);
	assert_int_equal(record(ID), 0);
	assert_true(rig_query(n, ID).unshaped);
	rig_detach(n, ID);
}

TH_TEST(bad_calls_record_nothing)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	char longest[600];

	assert_int_equal(natra_record_unshaped(NULL, &target, &policy, REASON),
			 -EINVAL);
	GIVES(-EINVAL, natra_record_unshaped(n, NULL, &policy, REASON));
	says(n, "target", NULL);
	GIVES(-EINVAL, natra_record_unshaped(n, &target, NULL, REASON));
	says(n, "policy", NULL);
	GIVES(-EINVAL, natra_record_unshaped(n, &target, &policy, NULL));
	says(n, "reason", NULL);
	GIVES(-EINVAL, natra_record_unshaped(n, &target, &policy, ""));
	says(n, "reason", NULL);
	policy.ingress_rate_bits_per_sec = UINT64_MAX;
	GIVES(-EINVAL, natra_record_unshaped(n, &target, &policy, REASON));
	says(n, "ingress_rate_bits_per_sec", NULL);
	policy = policy_of(10, 20);
	target.ifname = "eth9";
	GIVES(-ENODEV, natra_record_unshaped(n, &target, &policy, REASON));
	says(n, "eth9", NULL);
	target = pod_target(&pod, ID);
	target.netns = "nosuch";
	GIVES(-ENOENT, natra_record_unshaped(n, &target, &policy, REASON));
	assert_int_equal(rig_pins(), 0);

	/* A reason of any length and content is stored as one line. */
	target = pod_target(&pod, ID);
	memset(longest, 'x', sizeof(longest));
	longest[3] = '\n';
	longest[sizeof(longest) - 1] = '\0';
	OK(natra_record_unshaped(n, &target, &policy, longest));
	assert_int_equal(strlen(rig_query(n, ID).reason), 255);
	assert_null(strchr(rig_query(n, ID).reason, '\n'));
	rig_detach(n, ID);
}

RIG_MAIN(begin, end)
