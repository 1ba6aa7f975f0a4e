/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check which groups and members are refused, and the numbers of a member that the BPF
 * programs run on. How members share is in test_groups.c. */
#include "cm.h"

#include <errno.h>
#include <string.h>

#include "policy/group_check.h"
#include "policy/policy.h"
#include "policy_of.h"

#define MBIT 1000000ULL

static void assert_refused(const struct natra_group_info *group,
			   const char *what)
{
	char error[256] = "";

	assert_int_equal(group_check(group, error, sizeof(error)), -EINVAL);
	if (!strstr(error, what))
		fail_msg("'%s' does not say '%s'", error, what);
}

TH_TEST(bad_groups_are_refused)
{
	struct natra_group_info good = NATRA_INIT(good), bad;
	char name[NATRA_GROUP_NAME_MAX + 2], error[256];

	good.name = "team a";
	good.parent = "node";
	good.egress_rate_bits_per_sec = 10 * MBIT;
	good.weight = NATRA_WEIGHT_MAX;
	good.floor_bits_per_sec = 10 * MBIT;
	assert_int_equal(group_check(&good, error, sizeof(error)), 0);
#define BAD(member, value, what)                                               \
	do {                                                                   \
		bad = good;                                                    \
		bad.member = (value);                                          \
		assert_refused(&bad, what);                                    \
	} while (0)
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	BAD(name, NULL, "name: missing");
	BAD(name, "", "name: missing");
	BAD(name, name, "name: longer than 127");
	BAD(name, "a\nb", "name: has a control");
	BAD(parent, "", "parent: missing");
	BAD(egress_rate_bits_per_sec, 0, "at least one");
	BAD(egress_rate_bits_per_sec, NATRA_RATE_MAX_BITS_PER_SEC + 1,
	    "egress_rate_bits_per_sec: 1000000000000001");
	BAD(ingress_burst_bits, 7, "ingress_burst_bits: 7");
	BAD(weight, NATRA_WEIGHT_MAX + 1, "weight: 65");
	BAD(floor_bits_per_sec, 10 * MBIT + 1, "floor_bits_per_sec: 10000001");
	BAD(parent, NULL, "without a parent");
	good.weight = 0;
	BAD(parent, NULL, "floor_bits_per_sec: 10000000 without a parent");
}

static void assert_policy_refused(const struct natra_policy *p,
				  const char *what)
{
	char error[256] = "";

	assert_int_equal(policy_check(p, error, sizeof(error)), -EINVAL);
	if (!strstr(error, what))
		fail_msg("'%s' does not say '%s'", error, what);
}

TH_TEST(bad_members_are_refused)
{
	struct natra_policy p = policy_of(10 * MBIT, 20 * MBIT);
	struct natra_group_info limits = NATRA_INIT(limits);

	p.group_weight = 2;
	assert_policy_refused(&p, "group_weight: 2 without a group");
	memset(p.group, 'g', sizeof(p.group));
	assert_policy_refused(&p, "group: longer than 127 bytes");
	p.group[NATRA_GROUP_NAME_MAX] = '\0';
	p.group[3] = '\n';
	assert_policy_refused(&p, "group: has a control character");
	p.group[3] = 'g';
	p.group_is_automatic = true;
	p.automatic_group = &limits;
	assert_policy_refused(&p,
			      "automatic_group: ingress_rate_bits_per_sec, ");
	limits.ingress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC + 1;
	assert_policy_refused(&p,
			      "automatic_group: ingress_rate_bits_per_sec: ");
	limits.ingress_rate_bits_per_sec = 0;
	p.group[3] = '\n';
	assert_policy_refused(&p, "group: has a control character");
	p.group[3] = 'g';
	limits.egress_rate_bits_per_sec = 5;
	p.group_floor_bits_per_sec = 15 * MBIT;
	assert_policy_refused(&p, "is over ingress_rate_bits_per_sec");
	p.group_floor_bits_per_sec = 10 * MBIT;
	p.group_weight = 65;
	assert_policy_refused(&p, "group_weight: 65");
}

/* What a pacer has charged its backstop does not charge again. */
TH_TEST(backstop_is_no_member)
{
	struct natra_policy p = policy_of(10 * MBIT, 20 * MBIT);
	struct natra_limits l;

	p.group[0] = 'g';
	p.group_weight = 4;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.member.share, 65536 / 4);
	assert_int_equal(l.member.floor.mult, 0);
	policy_join(&l.member, 3, false);
	assert_int_equal(l.member.group, 5);
	policy_join(&l.member, 3, true);
	assert_int_equal(l.member.group, 6);
	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	l = policy_backstop(&p);
	policy_join(&l.member, 3, false);
	assert_int_equal(l.member.group, 0);
	l = policy_limits(&p, LEG_HOST, true);
	assert_int_equal(l.member.share, 65536 / 4);
}

TH_MAIN(NULL, NULL)
