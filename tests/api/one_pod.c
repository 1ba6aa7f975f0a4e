/* SPDX-License-Identifier: BSD-2-Clause */
#include "one_pod.h"

#include <stdio.h>

struct natra *n;
struct pod pod;

int one_pod_begin(void **state)
{
	(void)state;
	rig_reset();
	n = rig_open();
	pod = pod_make(POD);
	/* The kernel sends packets of its own by IPv6. */
	rig_sh("echo 1 >/proc/sys/net/ipv6/conf/" NODE_SIDE "/disable_ipv6 &&"
	       "nsenter --net=%s sh -c"
	       " 'echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6'",
	       pod.path);
	return 0;
}

int one_pod_end(void **state)
{
	(void)state;
	rig_end(n, &pod, (const char *const[]){ID}, 1);
	return 0;
}

int attach_pod(const struct natra_policy *policy)
{
	struct natra_target target = pod_target(&pod, ID);

	return KEPT(natra_attach(n, &target, policy, NULL));
}

struct natra_group_info group_of(const char *name, uint64_t mbit)
{
	struct natra_group_info group = NATRA_INIT(group);

	group.name = name;
	group.ingress_rate_bits_per_sec = mbit * MBIT;
	group.egress_rate_bits_per_sec = mbit * MBIT;
	return group;
}

void make_group(const char *name, uint64_t mbit)
{
	const struct natra_group_info group = group_of(name, mbit);

	OK(natra_group_set(n, &group));
}

void remove_group(const char *name)
{
	assert_true(KEPT(natra_group_remove(n, name)) >= 0);
}

void enter_group(struct natra_policy *policy, const char *name)
{
	(void)snprintf(policy->group, sizeof(policy->group), "%s", name);
}

struct natra_policy member_of(const char *name)
{
	struct natra_policy policy = policy_of(10, 20);

	enter_group(&policy, name);
	return policy;
}
