/* SPDX-License-Identifier: BSD-2-Clause */
/* After a call that succeeded natra_error() must be empty: it must return
 * neither the error of a previous call nor one of an attempt inside this
 * call. */
#include "one_pod.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOUNT_POINT "/run/netns/left"

static void fail_first(void)
{
	struct natra_info info = NATRA_INIT(info);

	assert_int_equal(natra_query(n, "no such id", &info), -ENOENT);
	says(n, "no such id", NULL);
}

static void expect_none(int r, const char *call)
{
	if (r < 0)
		fail_msg("%s: %d: %s", call, r, natra_error(n));
	if (natra_error(n)[0])
		fail_msg("%s succeeded and says '%s'", call, natra_error(n));
}

/* The call runs twice: first after another call has failed, then after
 * itself. */
#define SILENT(call)                                                           \
	do {                                                                   \
		fail_first();                                                  \
		expect_none(call, #call);                                      \
		expect_none(call, #call);                                      \
	} while (0)

static int no_info(void *arg, const struct natra_info *info)
{
	(void)arg;
	(void)info;
	return 0;
}

static int no_entry(void *arg, const struct natra_neighbour *entry)
{
	(void)arg;
	(void)entry;
	return 0;
}

static int no_cidr(void *arg, const char *cidr)
{
	(void)arg;
	(void)cidr;
	return 0;
}

TH_TEST(no_call_that_succeeds_has_one)
{
	struct natra_target target = pod_target(&pod, ID), other = target;
	struct natra_policy policy = policy_of(10, 20);
	struct natra_features features = NATRA_INIT(features);
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_info info = NATRA_INIT(info);
	struct natra_flow flows[4];
	char id[NATRA_ID_MAX + 1];
	size_t len = 4;

	other.id = "other";
	SILENT(natra_probe(n, &features));
	SILENT(natra_status(n));
	SILENT(natra_policy_check(n, &policy));
	SILENT(natra_record_unshaped(n, &target, &policy, "a test"));
	SILENT(natra_query(n, ID, &info));
	SILENT(natra_foreach_attachment(n, no_info, NULL));
	SILENT(natra_attach(n, &target, &policy, NULL));
	SILENT(natra_attach(n, &target, &policy, &info));
	SILENT(natra_record_unshaped(n, &target, &policy, "a test"));
	SILENT(natra_configure(n, ID, &policy));
	SILENT(natra_check(n, ID, NULL));
	SILENT(natra_check(n, ID, &policy));
	SILENT(natra_query(n, ID, &info));
	SILENT(natra_foreach_subnet(n, ID, no_cidr, NULL));
	SILENT(natra_find(n, &target, id, sizeof(id)));
	SILENT(natra_stats(n, ID, &stats));
	SILENT(natra_top(n, ID, NATRA_DIRECTION_EGRESS, flows, &len));
	SILENT(natra_foreach_neighbour(n, ID, no_entry, NULL));
	SILENT(natra_find_leftovers(n, &target, &leftovers));
	SILENT(natra_remove_leftovers(n, &target));
	SILENT(natra_foreach_attachment(n, no_info, NULL));
	SILENT(natra_gc(n, NULL, NULL, 0, NULL));
	SILENT(natra_detach(n, &other));
	SILENT(natra_detach(n, &target));
}

/* For other calls a missing namespace or interface is an error; for a detach it
 * is not. */
TH_TEST(what_is_not_missed_is_no_error)
{
	struct natra_target target = pod_target(&pod, ID);

	target.netns = "/nosuch/netns";
	SILENT(natra_detach(n, &target));
	target.id = NULL;
	SILENT(natra_detach(n, &target));
	/* The mount point of a namespace stays as an empty file. */
	rig_sh("touch " MOUNT_POINT);
	target.netns = MOUNT_POINT;
	SILENT(natra_detach(n, &target));
	target.netns = strrchr(MOUNT_POINT, '/') + 1;
	SILENT(natra_detach(n, &target));
	rig_sh("rm " MOUNT_POINT);
	target = pod_target(&pod, NULL);
	target.ifname = "nosuch0";
	SILENT(natra_detach(n, &target));
}

TH_TEST(what_was_tried_first_is_no_error)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info = NATRA_INIT(info);

	rig_sh("tc -n %s qdisc add dev eth0 root pfifo", pod.name);
	SILENT(natra_attach(n, &target, &policy, &info));
	assert_false(info.edt_active);
	SILENT(natra_detach(n, &target));
	/* First the record's interface is gone, then an interface of that name
	 * is back. */
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("ip link del h-%s", pod.name);
	SILENT(natra_query(n, ID, &info));
	assert_true(info.interface_gone);
	SILENT(natra_foreach_attachment(n, no_info, NULL));
	SILENT(natra_gc(n, NULL, NULL, 0, NULL));
}

static int refuses_info(void *arg, const struct natra_info *info)
{
	(void)info;
	return *(int *)arg;
}

static int refuses_stats(void *arg, const struct natra_info *info,
			 const struct natra_stats *stats)
{
	(void)stats;
	return refuses_info(arg, info);
}

static int refuses_entry(void *arg, const struct natra_neighbour *entry)
{
	(void)entry;
	return *(int *)arg;
}

static int refuses_cidr(void *arg, const char *cidr)
{
	(void)cidr;
	return *(int *)arg;
}

static int refuses_class(void *arg, const struct natra_class *class)
{
	(void)class;
	return *(int *)arg;
}

static int refuses_class_stats(void *arg, const struct natra_class *class,
			       const struct natra_stats *stats)
{
	(void)stats;
	return refuses_class(arg, class);
}

static int refuses_group(void *arg, const struct natra_group_info *group)
{
	(void)group;
	return *(int *)arg;
}

/* The walk ends with what the callback returned, of which the library knows no reason. */
#define ENDED(call, result)                                                    \
	do {                                                                   \
		fail_first();                                                  \
		assert_int_equal(call, result);                                \
		assert_string_equal(natra_error(n), "");                       \
		assert_string_equal(natra_error_about(n), "");                 \
		assert_int_equal(natra_error_code(n), NATRA_CODE_NONE);        \
	} while (0)

TH_TEST(what_a_callback_returned_has_none)
{
	const char *subnet = "10.0.0.0/8", *of_class = "10.1.0.0/16";
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_class class = NATRA_INIT(class);

	class.name = "peers";
	class.subnets = &of_class;
	class.subnets_len = 1;
	policy.classes = &class;
	policy.classes_len = 1;
	policy.unshaped_subnets = &subnet;
	policy.unshaped_subnets_len = 1;
	make_group("some", 10);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	for (int r = -ENOENT; r <= 1; r += ENOENT + 1) {
		ENDED(natra_foreach_attachment(n, refuses_info, &r), r);
		ENDED(natra_foreach_stats(n, refuses_stats, &r), r);
		ENDED(natra_foreach_neighbour(n, ID, refuses_entry, &r), r);
		ENDED(natra_foreach_subnet(n, ID, refuses_cidr, &r), r);
		ENDED(natra_foreach_class(n, ID, refuses_class, &r), r);
		ENDED(natra_foreach_class_stats(n, ID, refuses_class_stats, &r),
		      r);
		ENDED(natra_foreach_group(n, refuses_group, &r), r);
	}
	ENDED(natra_detach(n, &target), 1);
	remove_group("some");
}

POD_MAIN()
