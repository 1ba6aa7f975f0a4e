/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests build with tc what upstream's bandwidth plugin leaves;
 * tests/cni/upstream.py runs the plugin itself. */
#include "plugin_pod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARNING_MAX 256

/* Checks that the leftovers of others are neither found nor touched. */
static void assert_not_the_plugins(void)
{
	char *state = node_state();

	assert_none();
	remove_all();
	same_node_state(state);
	free(state);
}

TH_TEST(nothing_there)
{
	assert_not_the_plugins();
}

TH_TEST(both_directions)
{
	struct natra_leftovers l;

	add_tbf();
	add_ingress(IFB);
	l = find();
	assert_true(l.limits_ingress);
	assert_true(l.limits_egress);
	assert_string_equal(l.ifb_ifname, IFB);
	remove_all();
	same_node_state(state_before);
	assert_none();
	remove_all();
}

/* Versions 1.5.0 and 1.5.1 have an htb, of which the default class depends on the
 * subnets, in place of each tbf. */
TH_TEST(htb_of_both_directions)
{
	static const char *const defaults[] = {"30", "1"};
	struct natra_leftovers l;

	for (size_t i = 0; i < 2; i++) {
		add_htb(HOST, "10000", defaults[i]);
		add_ingress(IFB);
		rig_sh("tc qdisc del dev " IFB " root");
		add_htb(IFB, "10000", defaults[i]);
		l = find();
		assert_true(l.limits_ingress);
		assert_true(l.is_htb);
		assert_true(l.limits_egress);
		assert_string_equal(l.ifb_ifname, IFB);
		remove_all();
		same_node_state(state_before);
		assert_none();
	}
	add_tbf();
	assert_false(find().is_htb);
}

TH_TEST(htbs_of_others)
{
	/* Each makes the plugin's htb another one's. */
	static const char *const changes[] = {
		"tc class change dev " HOST " parent 1: classid 1:30 htb"
		" rate 10mbit ceil 10mbit",
		"tc class change dev " HOST " parent 1: classid 1:30 htb"
		" rate 10mbit ceil 30mbit",
		"tc class change dev " HOST " parent 1: classid 1:30 htb"
		" rate 10mbit ceil 30mbit prio 1",
		"tc class change dev " HOST " parent 1: classid 1:1 htb"
		" rate 100gbit",
		"tc class change dev " HOST " parent 1: classid 1:1 htb"
		" rate 800gbit ceil 900gbit",
		"tc class add dev " HOST
		" parent 1: classid 1:2 htb rate 1mbit",
		"tc class add dev " HOST
		" parent 1:1 classid 1:2 htb rate 1mbit",
		"tc class del dev " HOST " classid 1:1",
		"tc class del dev " HOST " classid 1:30",
		"tc qdisc add dev " HOST " parent 1:30 handle 2: pfifo",
	};
	static const char *const roots[] = {
		"handle 2: htb default 30",
		"handle 1: htb default 31",
		"handle 1: htb default 30 r2q 20",
		"handle 1: htb default 30",
	};

	for (size_t i = 0; i < TH_LEN(changes); i++) {
		add_htb(HOST, "10000", "30");
		assert_true(find().is_htb);
		rig_sh("%s", changes[i]);
		assert_not_the_plugins();
		rig_sh("tc qdisc del dev " HOST " root");
	}
	for (size_t i = 0; i < TH_LEN(roots); i++) {
		rig_sh("tc qdisc add dev " HOST " root %s; h=%.1s;"
		       "tc class add dev " HOST " parent $h: classid $h:30 htb"
		       " rate 10mbit ceil 20mbit &&"
		       "tc class add dev " HOST " parent $h: classid $h:1 htb"
		       " rate %dgbit",
		       roots[i], roots[i] + strlen("handle "),
		       i == 3 ? 100 : 800);
		assert_not_the_plugins();
		rig_sh("tc qdisc del dev " HOST " root");
	}
}

TH_TEST(one_direction)
{
	struct natra_leftovers l;

	add_tbf();
	l = find();
	assert_true(l.limits_ingress);
	assert_false(l.limits_egress);
	remove_all();
	same_node_state(state_before);
	add_ingress(IFB);
	l = find();
	assert_false(l.limits_ingress);
	assert_true(l.limits_egress);
	remove_all();
	same_node_state(state_before);
}

TH_TEST(names_of_other_makers)
{
	static const char *const names[] = {"bwcali0123456", "9a0f", "bwp"};

	for (size_t i = 0; i < TH_LEN(names); i++) {
		add_ingress(names[i]);
		assert_string_equal(find().ifb_ifname, names[i]);
		remove_all();
		same_node_state(state_before);
	}
}

/* The plugin's DEL removes only the ifb: the redirect then drops every
 * packet. */
TH_TEST(redirect_without_its_ifb)
{
	struct natra_leftovers l;

	add_ingress(IFB);
	rig_sh("ip link del " IFB);
	l = find();
	assert_true(l.limits_egress);
	assert_string_equal(l.ifb_ifname, "");
	remove_all();
	same_node_state(state_before);
}

TH_TEST(qdiscs_of_others)
{
	static const char *const roots[] = {
		("handle 7: " TBF),
		"handle 1: pfifo",
		"handle 1: htb default 1",
	};

	for (size_t i = 0; i < TH_LEN(roots); i++) {
		rig_sh("tc qdisc add dev " HOST " root %s", roots[i]);
		assert_not_the_plugins();
		rig_sh("tc qdisc del dev " HOST " root");
	}
	rig_sh("tc qdisc add dev " HOST " ingress");
	assert_not_the_plugins();
	rig_sh("tc qdisc del dev " HOST " ingress");
	rig_sh("tc qdisc add dev " HOST " clsact");
	assert_not_the_plugins();
}

TH_TEST(redirects_of_others)
{
	/* Each is the end of a command that begins as the plugin's does. The name of the second is as long as those of an
	 * old plugin, and it is the one that the kernel gives to its first ifb; that of the
	 * third is not enough, because the device must be an ifb. */
	static const char *const others[] = {
		"1:1 action mirred egress redirect dev ifb-mine",
		"1:1 action mirred egress redirect dev ifb0",
		"1:1 action mirred egress redirect dev bwp0",
		"1:2 action mirred egress redirect dev " IFB,
		"1:1 action mirred egress mirror dev " IFB,
		"1:1 action mirred ingress redirect dev " IFB,
		"1:1",
	};

	rig_sh("tc qdisc add dev " HOST " ingress &&"
	       "ip link add bwp0 type veth peer name bwp1");
	add_ifb("ifb-mine");
	add_ifb("ifb0");
	add_ifb(IFB);
	for (size_t i = 0; i < TH_LEN(others); i++) {
		rig_sh("tc filter add dev " HOST " parent ffff: protocol all"
		       " prio 1 u32 match u32 0 0 flowid %s",
		       others[i]);
		assert_not_the_plugins();
		rig_sh("tc filter del dev " HOST " parent ffff:");
	}
	rig_sh("ip link del bwp0");
}

/* The qdisc stays if it has another owner's filter, before or behind the
 * plugin's. */
TH_TEST(ingress_is_shared)
{
	char *mine;

	for (int prio = 1; prio <= 5; prio += 4) {
		rig_sh("tc qdisc add dev " HOST " ingress");
		rig_sh("tc filter add dev " HOST
		       " parent ffff: protocol all prio %d u32"
		       " match ip dst 192.0.2.1 flowid 1:9",
		       prio);
		add_ifb("ifb-mine");
		mine = node_state();
		add_ifb(IFB);
		add_redirect(IFB, "1:1");
		assert_string_equal(find().ifb_ifname, IFB);
		remove_all();
		same_node_state(mine);
		assert_none();
		free(mine);
		rig_sh("tc qdisc del dev " HOST " ingress &&"
		       "ip link del ifb-mine");
	}
}

TH_TEST(by_the_id_of_an_attachment)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, "web");
	struct natra_target by_id = NATRA_INIT(by_id);
	struct natra_policy policy = policy_of(10, 20);

	by_id.id = "web";
	GIVES(-ENOENT, natra_find_leftovers(n, &by_id, &leftovers));
	says(n, "web", NULL);
	GIVES(-ENOENT, natra_remove_leftovers(n, &by_id));
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	add_ingress(IFB);
	OK(natra_find_leftovers(n, &by_id, &leftovers));
	assert_true(leftovers.limits_ingress);
	assert_string_equal(leftovers.ifb_ifname, IFB);
	/* natra's own programs and the leftovers do not affect each other. */
	OK(natra_remove_leftovers(n, &by_id));
	assert_none();
	OK(natra_check(n, "web", &policy));
	assert_int_equal(natra_detach(n, &target), 1);
}

/* Returns the code of attaching in this way, which must fail with `r`. */
static enum natra_code code_of(enum natra_attach_mode mode,
			       enum natra_ingress_mode ingress_mode, int r)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	char *state = node_state();

	policy.attach_mode = mode;
	policy.ingress_mode = ingress_mode;
	GIVES(r, natra_attach(n, &target, &policy, NULL));
	same_node_state(state);
	free(state);
	return natra_error_code(n);
}

/* Attaching says whether what is in its place is the plugin's. */
TH_TEST(in_the_place_of_clsact)
{
	const enum natra_attach_mode mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;

	add_ingress(IFB);
	assert_int_equal(code_of(mode, NATRA_INGRESS_MODE_POLICE, -EOPNOTSUPP),
			 NATRA_CODE_LEFTOVERS);
	/* The ingress qdisc stays for another filter. */
	rig_sh("tc filter add dev " HOST " parent ffff: protocol all prio 9 u32"
	       " match ip dst 192.0.2.1 flowid 1:9");
	assert_int_equal(code_of(mode, NATRA_INGRESS_MODE_POLICE, -EOPNOTSUPP),
			 NATRA_CODE_OTHER_QDISC);
	rig_sh("tc qdisc del dev " HOST " ingress; ip link del " IFB);
	rig_sh("tc qdisc add dev " HOST " ingress");
	assert_int_equal(code_of(mode, NATRA_INGRESS_MODE_POLICE, -EOPNOTSUPP),
			 NATRA_CODE_OTHER_QDISC);
	rig_sh("tc qdisc del dev " HOST " ingress");
}

TH_TEST(in_the_place_of_fq)
{
	struct natra_features features = NATRA_INIT(features);
	const enum natra_attach_mode mode = NATRA_ATTACH_MODE_AUTO;

	assert_int_equal(natra_probe(n, &features), 0);
	add_tbf();
	/* Where there is no fq, nothing would follow the plugin's. */
	assert_int_equal(code_of(mode, NATRA_INGRESS_MODE_PACE, -EBUSY),
			 features.fq ? NATRA_CODE_LEFTOVERS
				     : NATRA_CODE_OTHER_QDISC);
	rig_sh("tc qdisc replace dev " HOST " root handle 2: " TBF);
	assert_int_equal(code_of(mode, NATRA_INGRESS_MODE_PACE, -EBUSY),
			 NATRA_CODE_OTHER_QDISC);
	rig_sh("tc qdisc del dev " HOST " root");
}

static void keep_warning(void *arg, enum natra_log_level level,
			 const char *line)
{
	if (level == NATRA_LOG_WARN)
		(void)snprintf(arg, WARNING_MAX, "%s", line);
}

/* Returns the warning of a new attachment, or "". */
static const char *warning_of_attach(void)
{
	static char line[WARNING_MAX];
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *talking = NULL;

	line[0] = '\0';
	opts.bpffs_path = BPFFS;
	opts.log_fn = keep_warning;
	opts.log_arg = line;
	assert_int_equal(natra_open(&talking, &opts), 0);
	OK(natra_attach(talking, &target, &policy, NULL));
	assert_int_equal(natra_detach(talking, &target), 1);
	natra_close(talking);
	return line;
}

TH_TEST(attaching_warns)
{
	static const char start[] =
		"limits of the bandwidth plugin on '" HOST "' hold as well:";
	char expected[WARNING_MAX];

	assert_string_equal(warning_of_attach(), "");
	rig_sh("tc qdisc add dev " HOST " root handle 2: " TBF);
	assert_string_equal(warning_of_attach(), "");
	rig_sh("tc qdisc del dev " HOST " root");
	add_tbf();
	(void)snprintf(expected, sizeof(expected), "%s tbf", start);
	assert_string_equal(warning_of_attach(), expected);
	add_ingress(IFB);
	(void)snprintf(expected, sizeof(expected), "%s tbf redirect to " IFB,
		       start);
	assert_string_equal(warning_of_attach(), expected);
	rig_sh("tc qdisc del dev " HOST " root && ip link del " IFB);
	(void)snprintf(expected, sizeof(expected), "%s redirect to nowhere",
		       start);
	assert_string_equal(warning_of_attach(), expected);
	rig_sh("tc qdisc del dev " HOST " ingress");
	add_htb(HOST, "10000", "30");
	(void)snprintf(expected, sizeof(expected), "%s htb", start);
	assert_string_equal(warning_of_attach(), expected);
}

TH_TEST(no_host_side)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, NULL);

	add_tbf();
	rig_sh("ip -n old link add here type veth peer name too");
	target.ifname = "here";
	memset(leftovers.host_ifname, 'x', sizeof(leftovers.host_ifname));
	OK(natra_find_leftovers(n, &target, &leftovers));
	assert_string_equal(leftovers.host_ifname, "");
	assert_false(leftovers.limits_ingress);
	assert_string_equal(natra_error(n), "");
	OK(natra_remove_leftovers(n, &target));
	assert_true(find().limits_ingress);
}

TH_TEST(bad_calls)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, NULL);

	assert_int_equal(natra_find_leftovers(NULL, &target, &leftovers),
			 -EINVAL);
	GIVES(-EINVAL, natra_find_leftovers(n, NULL, &leftovers));
	says(n, "target", NULL);
	GIVES(-EINVAL, natra_find_leftovers(n, &target, NULL));
	says(n, "ret_leftovers", NULL);
	target.ifname = NULL;
	GIVES(-EINVAL, natra_find_leftovers(n, &target, &leftovers));
	says(n, "ifname", "id");
	target.ifname = "eth9";
	GIVES(-ENODEV, natra_find_leftovers(n, &target, &leftovers));
	says(n, "eth9", NULL);
	GIVES(-ENODEV, natra_remove_leftovers(n, &target));
	GIVES(-ENODEV, natra_drain_leftovers(n, &target));
	assert_int_equal(natra_drain_leftovers(NULL, &target), -EINVAL);
	target.ifname = "eth0";
	target.netns = "nosuch";
	GIVES(-ENOENT, natra_find_leftovers(n, &target, &leftovers));
	says(n, "nosuch", NULL);
}

int main(void)
{
	plugin_enter();
	return th_run_each(plugin_begin, plugin_end);
}
