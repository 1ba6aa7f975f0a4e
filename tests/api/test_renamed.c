/* SPDX-License-Identifier: BSD-2-Clause */
/* An attachment follows its interface and not the name: in a virtual machine's pod,
 * KubeVirt renames eth0 and gives a dummy that name, while the limits hold. */
#include "one_pod.h"

#include <errno.h>

#define RENAMED "eth0-nic"

static uint32_t ifindex;

static struct natra_target target(void)
{
	return pod_target(&pod, ID);
}

static void attach(const struct natra_target *t,
		   const struct natra_policy *policy)
{
	OK(natra_attach(n, t, policy, NULL));
}

/* Gives another interface the name; not every kernel has dummies. */
static void rename_link(void)
{
	rig_sh("ip -n " POD " link set eth0 down");
	rig_sh("ip -n " POD " link set eth0 name " RENAMED " up");
	rig_sh("ip -n " POD " link add eth0 up type dummy 2>/dev/null ||"
	       "ip -n " POD " link add eth0 up type veth peer name nobody");
}

static void attach_and_rename(uint64_t in_mbit, uint64_t out_mbit)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(in_mbit, out_mbit);

	attach(&t, &policy);
	ifindex = rig_query(n, ID).ifindex;
	rename_link();
	OK(natra_check(n, ID, NULL));
}

/* Returns the id on an interface of the pod, or -errno. */
static int find(const char *ifname, char *ret_id)
{
	struct natra_target t = target();

	t.id = NULL;
	t.ifname = ifname;
	return KEPT(natra_find(n, &t, ret_id, NATRA_ID_MAX + 1));
}

/* Checks that the limits are where packets come by, and not on the dummy. */
static void holds(const char *id)
{
	struct natra_stats before = NATRA_INIT(before),
			   after = NATRA_INIT(after);
	char found[NATRA_ID_MAX + 1];

	assert_int_equal(rig_query(n, id).ifindex, ifindex);
	OK(natra_check(n, id, NULL));
	assert_int_equal(find("eth0", found), -ENOENT);
	assert_int_equal(find(RENAMED, found), 0);
	assert_string_equal(found, id);
	assert_int_equal(natra_stats(n, id, &before), 0);
	pod_send(&pod, 5);
	assert_int_equal(natra_stats(n, id, &after), 0);
	assert_true(after.ingress.mice.packets >=
		    before.ingress.mice.packets + 5);
}

TH_TEST(new_direction)
{
	struct natra_policy both = policy_of(10, 20);

	attach_and_rename(10, 0);
	OK(natra_configure(n, ID, &both));
	holds(ID);
	assert_true(rig_query(n, ID).egress_prog_id != 0);
	OK(natra_upgrade(n, ID));
	holds(ID);
}

TH_TEST(attach_again)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(10, 20);

	attach_and_rename(10, 20);
	attach(&t, &policy);
	holds(ID);
	policy.sli = NATRA_SLI_ON;
	attach(&t, &policy);
	holds(ID);
	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	attach(&t, &policy);
	holds(ID);
}

TH_TEST(attach_after_a_failure)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(10, 20);

	OK(natra_record_unshaped(n, &t, &policy, "no reason"));
	ifindex = rig_query(n, ID).ifindex;
	rename_link();
	attach(&t, &policy);
	holds(ID);
}

/* Nobody may have taken the name. */
TH_TEST(attach_again_without_a_dummy)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(10, 20);

	attach_and_rename(10, 20);
	rig_sh("ip -n " POD " link del eth0");
	policy.sli = NATRA_SLI_ON;
	attach(&t, &policy);
	assert_int_equal(rig_query(n, ID).ifindex, ifindex);
}

TH_TEST(another_interface_when_it_is_gone)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(10, 20);

	attach_and_rename(10, 20);
	rig_sh("ip link del " NODE_SIDE);
	GIVES(-ENODEV, natra_configure(n, ID, &policy));
	attach(&t, &policy);
	assert_true(rig_query(n, ID).ifindex != ifindex);
}

TH_TEST(another_interface_by_its_own_name)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(10, 20);

	attach_and_rename(10, 20);
	t.id = "dummy";
	attach(&t, &policy);
	assert_true(rig_query(n, "dummy").ifindex != ifindex);
	assert_int_equal(rig_query(n, ID).ifindex, ifindex);
	GIVES(1, natra_detach(n, &t));
	OK(natra_check(n, ID, NULL));
}

TH_TEST(default_id)
{
	struct natra_target t = target();
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info = NATRA_INIT(info);

	t.id = NULL;
	OK(natra_attach(n, &t, &policy, &info));
	ifindex = info.ifindex;
	rename_link();
	policy.sli = NATRA_SLI_ON;
	attach(&t, &policy);
	holds(info.id);
	GIVES(1, natra_detach(n, &t));
	assert_int_equal(rig_pins(), 0);
	/* There is nothing any more, which is no error. */
	OK(natra_detach(n, &t));
}

TH_TEST(leftovers)
{
	struct natra_target t = target();
	struct natra_leftovers left = NATRA_INIT(left);

	attach_and_rename(10, 20);
	rig_sh("tc qdisc add dev " NODE_SIDE
	       " root handle 1: tbf rate 10mbit burst 64k latency 25ms");
	OK(natra_find_leftovers(n, &t, &left));
	assert_string_equal(left.host_ifname, NODE_SIDE);
	assert_true(left.limits_ingress);
	t.ifname = NULL;
	t.netns = NULL;
	OK(natra_remove_leftovers(n, &t));
	rig_sh("! tc qdisc show dev " NODE_SIDE " | grep -q tbf");
}

POD_MAIN()
