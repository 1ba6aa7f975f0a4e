/* SPDX-License-Identifier: BSD-2-Clause */
/* The codes tell apart what has one errno. test_leftovers.c and test_locks.c have those
 * that need more than one pod. */
#include "one_pod.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void attach(void)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 10);

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
}

#define FAILS(call, errno_, code)                                              \
	do {                                                                   \
		GIVES(-(errno_), call);                                        \
		assert_int_equal(natra_error_code(n), code);                   \
	} while (0)

TH_TEST(what_is_absent)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 10);
	struct natra_group_info group = NATRA_INIT(group);
	struct natra_info info = NATRA_INIT(info);
	struct natra_stats stats = NATRA_INIT(stats);
	char id[NATRA_ID_MAX + 1];

	FAILS(natra_query(n, ID, &info), ENOENT, NATRA_CODE_NOT_ATTACHED);
	FAILS(natra_configure(n, ID, &policy), ENOENT, NATRA_CODE_NOT_ATTACHED);
	FAILS(natra_find(n, &target, id, sizeof(id)), ENOENT,
	      NATRA_CODE_NOT_ATTACHED);
	target.netns = "/nonexistent";
	FAILS(natra_attach(n, &target, &policy, NULL), ENOENT,
	      NATRA_CODE_NO_NETNS);
	target.netns = pod.path;
	(void)snprintf(policy.group, sizeof(policy.group), "nobody");
	FAILS(natra_attach(n, &target, &policy, NULL), ENOENT,
	      NATRA_CODE_NO_GROUP);
	group.name = "child";
	group.parent = "none";
	group.egress_rate_bits_per_sec = MBIT;
	FAILS(natra_group_set(n, &group), ENOENT, NATRA_CODE_NO_GROUP);
	attach();
	assert_int_equal(natra_error_code(n), NATRA_CODE_NONE);
	FAILS(natra_configure(n, ID, &policy), ENOENT, NATRA_CODE_NO_GROUP);
	FAILS(natra_class_stats(n, ID, "none", &stats), ENOENT,
	      NATRA_CODE_NO_CLASS);
}

static bool is_tcx(int mode)
{
	return mode == NATRA_ATTACH_MODE_TCX_PODSIDE ||
	       mode == NATRA_ATTACH_MODE_TCX_HOSTSIDE;
}

static void other_id_is_refused(const struct natra_target *own,
				const struct natra_policy *policy)
{
	struct natra_target target = pod_target(&pod, "other");
	const bool is_hostside =
		policy->attach_mode == NATRA_ATTACH_MODE_TCX_HOSTSIDE ||
		policy->attach_mode == NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;

	assert_int_equal(natra_attach(n, own, policy, NULL), 0);
	for (int mode = 0; mode < NATRA_ATTACH_MODE_MAX; mode++) {
		/* Without a limit of ingress nothing of it is on the host side. */
		struct natra_policy other = policy_of(0, 10);

		other.attach_mode = (enum natra_attach_mode)mode;
		FAILS(natra_attach(n, &target, &other, NULL), EBUSY,
		      NATRA_CODE_OTHER_ID);
		says(n, is_hostside ? "'" NODE_SIDE "'" : "'eth0'", ID);
	}
	assert_int_equal(natra_record_unshaped(n, &target, policy, "test"),
			 -EBUSY);
	/* The own one is no other. */
	assert_int_equal(natra_attach(n, own, policy, NULL), 0);
	rig_detach(n, ID);
}

TH_TEST(what_is_in_the_way)
{
	struct natra_target own = pod_target(&pod, ID);
	struct natra_target target = pod_target(&pod, "other");
	struct natra_policy policy = policy_of(10, 10);

	attach();
	FAILS(natra_attach(n, &target, &policy, NULL), EBUSY,
	      NATRA_CODE_OTHER_ID);
	rig_detach(n, ID);
	/* Whichever of them has programs on the host side alone, or in the pod alone. */
	for (int mode = NATRA_ATTACH_MODE_AUTO + 1;
	     mode < NATRA_ATTACH_MODE_MAX; mode++) {
		policy.attach_mode = (enum natra_attach_mode)mode;
		if (!is_tcx(mode) || rig_has_tcx())
			other_id_is_refused(&own, &policy);
	}
}

TH_TEST(what_cannot_be_configured)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 10);

	attach();
	policy.sli = NATRA_SLI_ON;
	FAILS(natra_configure(n, ID, &policy), EINVAL, NATRA_CODE_FIXED);
	policy.sli = NATRA_SLI_MAX;
	FAILS(natra_configure(n, ID, &policy), EINVAL, NATRA_CODE_FIELD);
	policy = policy_of(10, 10);
	OK(natra_check(n, ID, &policy));
	rig_detach(n, ID);
	policy.sli = NATRA_SLI_OFF;
	assert_int_equal(natra_record_unshaped(n, &target, &policy, "test"), 0);
	FAILS(natra_configure(n, ID, &policy), EOPNOTSUPP, NATRA_CODE_UNSHAPED);
	FAILS(natra_check(n, ID, NULL), EBADE, NATRA_CODE_UNSHAPED);
}

static void differs(const struct natra_policy *policy, enum natra_code code,
		    const char *what, const char *values)
{
	FAILS(natra_check(n, ID, policy), EBADE, code);
	says(n, what, values);
	/* The texts begin with the same name, but for the word "class". */
	assert_memory_equal(natra_error_about(n),
			    strncmp(what, "class ", 6) ? what : what + 6,
			    strlen(natra_error_about(n)));
	assert_int_equal(natra_error_about(n)[0] != 0, code != NATRA_CODE_NONE);
}

/* natra_check tells in what an attachment differs from a policy, and what there is. */
TH_TEST(what_differs_is_named)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_class class = NATRA_INIT(class);

	class.name = "far";
	class.dscps = 1;
	policy.classes = &class;
	policy.classes_len = 1;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	OK(natra_check(n, ID, &policy));
	class.dscps = 2;
	differs(&policy, NATRA_CODE_CLASSES_DIFFER, "class far: ", ID);
	/* Limits come first: with others the classes are set as well. */
	policy.egress_rate_bits_per_sec = 5000000;
	differs(&policy, NATRA_CODE_LIMITS_DIFFER, "egress_rate_bits_per_sec: ",
		"'" ID "' has 20000000, not 5000000");
	policy = policy_of(10, 20);
	differs(&policy, NATRA_CODE_CLASSES_DIFFER, "classes: ", "1, not 0");
	policy.fast_pass = NATRA_FAST_PASS_STRICT;
	differs(&policy, NATRA_CODE_LIMITS_DIFFER,
		"fast_pass: ", "free, not strict");
	policy = policy_of(10, 20);
	policy.sli = NATRA_SLI_ON;
	differs(&policy, NATRA_CODE_LIMITS_DIFFER, "sli: ", "off, not on");
	/* The threshold that is the default of ingress is not that of egress. */
	policy = policy_of(10, 20);
	policy.heavy_hitter_threshold_bytes = 125000;
	differs(&policy, NATRA_CODE_LIMITS_DIFFER,
		"heavy_hitter_threshold_bytes: ", "0, not 125000");
}

/* A difference from the policy is told beside one of the kernel, which has no code. */
TH_TEST(what_differs_beside_the_kernel)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);

	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("nsenter --net=%s tc filter del dev eth0 egress", pod.path);
	differs(&policy, NATRA_CODE_NONE, "is not on the clsact", NULL);
	policy.egress_rate_bits_per_sec++;
	differs(&policy, NATRA_CODE_LIMITS_DIFFER, "egress_rate_bits_per_sec",
		"20000001");
	policy = policy_of(10, 20);
	policy.attach_mode = NATRA_ATTACH_MODE_TCX_HOSTSIDE;
	FAILS(natra_configure(n, ID, &policy), EINVAL, NATRA_CODE_FIXED);
	says(n, "attach_mode: ", "clsact-podside, not tcx-hostside");
}

/* A direction without a rate is not limited any more, and goes on to count. */
TH_TEST(configure_without_rates)
{
	struct natra_policy policy = policy_of(0, 20);
	struct natra_stats stats = NATRA_INIT(stats);

	attach();
	OK(natra_configure(n, ID, &policy));
	pod_send(&pod, 10);
	assert_int_equal(natra_stats(n, ID, &stats), 0);
	assert_int_equal(stats.ingress.unlimited.packets, 10);
	policy = policy_of(0, 0);
	OK(natra_configure(n, ID, &policy));
	OK(natra_check(n, ID, &policy));
	pod_send(&pod, 10);
	assert_int_equal(natra_stats(n, ID, &stats), 0);
	assert_int_equal(stats.ingress.unlimited.packets, 20);
}

/* Detaching what is not there succeeds, and says so. */
TH_TEST(detach_tells_what_it_did)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 10);

	OK(natra_detach(n, &target));
	attach();
	GIVES(1, natra_detach(n, &target));
	assert_string_equal(natra_error(n), "");
	OK(natra_detach(n, &target));
	assert_int_equal(natra_record_unshaped(n, &target, &policy, "test"), 0);
	GIVES(1, natra_detach(n, &target));
	target.netns = "/nonexistent";
	OK(natra_detach(n, &target));
}

/* The name of an interface stands for the default id, not for one that somebody gave. */
TH_TEST(detach_by_name_removes_no_other_id)
{
	struct natra_target target = pod_target(&pod, NULL);
	struct natra_policy policy = policy_of(10, 10);

	attach();
	GIVES(-EBUSY, natra_detach(n, &target));
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_ID);
	says(n, "'eth0'", ID);
	assert_int_equal(natra_check(n, ID, NULL), 0);
	rig_detach(n, ID);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("ip -n " POD " link set eth0 down &&"
	       "ip -n " POD " link set eth0 name wan0");
	target.ifname = "wan0";
	GIVES(1, natra_detach(n, &target));
}

/* A code is of the last error only, also of one whose text nobody formats. */
TH_TEST(codes_are_of_the_last_call)
{
	struct natra_group_info group = NATRA_INIT(group);
	struct natra_policy policy = policy_of(10, 10);
	struct natra_info info = NATRA_INIT(info);

	policy.sli = NATRA_SLI_MAX;
	FAILS(natra_query(n, ID, &info), ENOENT, NATRA_CODE_NOT_ATTACHED);
	FAILS(natra_policy_check(n, &policy), EINVAL, NATRA_CODE_FIELD);
	FAILS(natra_query(n, ID, &info), ENOENT, NATRA_CODE_NOT_ATTACHED);
	FAILS(natra_group_set(n, &group), EINVAL, NATRA_CODE_FIELD);
	FAILS(natra_query(n, ID, &info), ENOENT, NATRA_CODE_NOT_ATTACHED);
	FAILS(natra_query(n, NULL, &info), EINVAL, NATRA_CODE_FIELD);
	assert_int_equal(natra_error_code(NULL), NATRA_CODE_NONE);
}

TH_TEST(codes_have_names)
{
	assert_string_equal(natra_code_name(NATRA_CODE_NONE), "");
	for (unsigned int i = 1; i < NATRA_CODE_MAX; i++) {
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(
				natra_code_name((enum natra_code)i),
				natra_code_name((enum natra_code)j));
	}
	assert_null(natra_code_name(NATRA_CODE_MAX));
}

POD_MAIN()
