/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check what a second attach keeps, and that an attach that fails
 * changes nothing. */
#include "one_pod.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct natra_info attach(const struct natra_policy *policy,
				const char *network, const char *label)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_info info;

	target.network = network;
	target.label = label;
	OK(natra_attach(n, &target, policy, NULL));
	info = rig_query(n, ID);
	OK(natra_check(n, ID, policy));
	return info;
}

TH_TEST(new_names_are_told)
{
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info first = attach(&policy, "net-1", "shop/web-0");
	struct natra_info info = attach(&policy, "net-2", "shop/web-1");

	assert_int_equal(info.ingress_prog_id, first.ingress_prog_id);
	assert_string_equal(info.network, "net-2");
	assert_string_equal(info.label, "shop/web-1");
}

TH_TEST(new_direction_gets_its_program)
{
	struct natra_policy in = policy_of(10, 0), both = policy_of(10, 20);
	struct natra_info info = attach(&in, NULL, NULL);

	assert_int_equal(info.egress_prog_id, 0);
	info = attach(&both, NULL, NULL);
	assert_true(info.egress_prog_id != 0);
	assert_true(info.ingress_prog_id != 0);
}

/* A change may leave out the settings that cannot change while attached. */
TH_TEST(change_without_what_is_fixed_keeps_it)
{
	struct natra_policy policy = policy_of(10, 20),
			    rates = policy_of(30, 40);
	struct natra_info info;

	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	policy.sli = NATRA_SLI_ON;
	(void)attach(&policy, NULL, NULL);
	OK(natra_configure(n, ID, &rates));
	info = rig_query(n, ID);
	assert_int_equal(info.policy.attach_mode,
			 NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	assert_int_equal(info.policy.edt_pacing, NATRA_EDT_PACING_OFF);
	assert_int_equal(info.policy.sli, NATRA_SLI_ON);
	assert_int_equal(info.policy.ingress_rate_bits_per_sec, 30 * MBIT);
	OK(natra_check(n, ID, &rates));
}

/* Departure times cannot be used where somebody else has put a qdisc. natra
 * notices that only when the attachment is half made. */
static void refused(void)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(30, 40);
	char *before = rig_state();

	policy.edt_pacing = NATRA_EDT_PACING_ON;
	GIVES(-EBUSY, natra_attach(n, &target, &policy, NULL));
	says(n, "pfifo", NULL);
	rig_same_state(before);
	free(before);
}

TH_TEST(failed_attach_leaves_all_as_it_was)
{
	struct natra_policy policy = policy_of(10, 20);

	rig_sh("tc -n " POD " qdisc add dev eth0 root handle 7: pfifo");
	refused();
	assert_int_equal(rig_pins(), 0);
	(void)attach(&policy, NULL, NULL);
	refused();
	assert_int_equal(natra_check(n, ID, &policy), 0);
	rig_sh("tc -n " POD " qdisc show dev eth0 root | grep -q 'pfifo 7:'");
}

/* Gets the name of the only engine, which is made of the program's options. */
static void engine_name(char *ret_name, size_t size)
{
	glob_t found;

	assert_int_equal(glob(BPFFS "/natra/abi*/engine_*", 0, NULL, &found),
			 0);
	assert_int_equal(found.gl_pathc, 1);
	(void)snprintf(ret_name, size, "%s", found.gl_pathv[0]);
	globfree(&found);
}

/* Where ingress is not limited, nothing paces it. */
TH_TEST(ingress_mode_counts_with_ingress_only)
{
	struct natra_policy policy = policy_of(0, 20);
	char before[192], after[192];

	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	(void)attach(&policy, NULL, NULL);
	engine_name(before, sizeof(before));
	rig_detach(n, ID);
	policy.ingress_mode = NATRA_INGRESS_MODE_PACE;
	(void)attach(&policy, NULL, NULL);
	engine_name(after, sizeof(after));
	assert_string_equal(after, before);
}

/* A direction whose program only measured connections gets the queue that its limit asks
 * for, or an error where the kernel has none, as an attach would. */
TH_TEST(first_limit_beside_sli)
{
	struct natra_policy policy = policy_of(10, 0);
	int r;

	policy.sli = NATRA_SLI_ON;
	policy.edt_pacing = NATRA_EDT_PACING_ON;
	(void)attach(&policy, NULL, NULL);
	policy.egress_rate_bits_per_sec = 10 * MBIT;
	r = KEPT(natra_configure(n, ID, &policy));
	assert_true(r == 0 ? rig_query(n, ID).edt_active : r == -EOPNOTSUPP);

	/* In other modes the program is attached anew, because the host's side comes to it. */
	policy = policy_of(0, 10);
	policy.sli = NATRA_SLI_ON;
	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	policy.ingress_mode = NATRA_INGRESS_MODE_PACE;
	(void)attach(&policy, NULL, NULL);
	policy.ingress_rate_bits_per_sec = 10 * MBIT;
	r = KEPT(natra_configure(n, ID, &policy));
	assert_true(r == 0 ? rig_query(n, ID).pace_active : r == -EOPNOTSUPP);
}

/* With its program missing, the stub on the hook lets every packet pass. */
TH_TEST(missing_program_is_told)
{
	struct natra_policy policy = policy_of(10, 20);

	(void)attach(&policy, NULL, NULL);
	rig_sh("rm -r " BPFFS "/natra/abi*/engine_*");
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, "program", "gone");
}

POD_MAIN()
