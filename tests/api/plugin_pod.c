/* SPDX-License-Identifier: BSD-2-Clause */
#include "plugin_pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIP 77

char *state_before;

char *node_state(void)
{
	static const char command[] =
		"tc qdisc show | sed -E 's/ (refcnt|direct_packets_stat) [0-9]+//g';"
		"tc filter show dev " HOST " ingress 2>/dev/null;"
		"ip -o link show | cut -d: -f2; true";
	char *text = calloc(1, 65536);
	FILE *f = popen(command, "r");

	assert_non_null(text);
	assert_non_null(f);
	assert_true(fread(text, 1, 65535, f) < 65535);
	(void)pclose(f);
	assert_non_null(strstr(text, HOST));
	return text;
}

void same_node_state(const char *expected)
{
	char *now = node_state();

	assert_string_equal(now, expected);
	free(now);
}

int plugin_begin(void **state)
{
	(void)state;
	rig_reset();
	n = rig_open();
	pod = pod_make("old");
	state_before = node_state();
	return 0;
}

int plugin_end(void **state)
{
	(void)state;
	free(state_before);
	pod_remove(&pod);
	rig_sh("for i in $(ip -o link show type ifb | cut -d: -f2); do"
	       " ip link del $i; done");
	natra_close(n);
	return 0;
}

void add_tbf(void)
{
	rig_sh("tc qdisc add dev " HOST " root handle 1: " TBF);
}

void add_htb(const char *dev, const char *rate, const char *defcls)
{
	/* The ceiling has to be twice the rate, and as many packets may wait
	 * as with the plugin. */
	rig_sh("r=%s; ip link set %s txqueuelen 1000 &&"
	       "tc qdisc add dev %s root handle 1: htb default %s &&"
	       "tc class add dev %s parent 1: classid 1:30 htb rate ${r}kbit"
	       " ceil $((2 * r))kbit burst 1600 cburst 1600 && "
	       "tc class add dev %s parent 1: classid 1:1 htb rate 800gbit",
	       rate, dev, dev, defcls, dev, dev);
}

void add_ifb(const char *name)
{
	rig_sh("ip link add %s type ifb && ip link set %s up &&"
	       "tc qdisc add dev %s root handle 1: " TBF,
	       name, name, name);
}

void add_redirect(const char *ifb, const char *flowid)
{
	rig_sh("tc filter add dev " HOST
	       " parent ffff: protocol all prio 1 u32 match u32 0 0"
	       " flowid %s action mirred egress redirect dev %s",
	       flowid, ifb);
}

void add_ingress(const char *ifb)
{
	add_ifb(ifb);
	rig_sh("tc qdisc add dev " HOST " ingress");
	add_redirect(ifb, "1:1");
}

struct natra_leftovers find(void)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, NULL);

	if (KEPT(natra_find_leftovers(n, &target, &leftovers)) < 0)
		fail_msg("%s", natra_error(n));
	assert_string_equal(leftovers.host_ifname, HOST);
	assert_int_equal(leftovers.sz, sizeof(leftovers));
	return leftovers;
}

void remove_all(void)
{
	struct natra_target target = pod_target(&pod, NULL);

	if (KEPT(natra_remove_leftovers(n, &target)) < 0)
		fail_msg("%s", natra_error(n));
}

void assert_none(void)
{
	struct natra_leftovers l = find();

	assert_false(l.limits_ingress);
	assert_false(l.limits_egress);
	assert_string_equal(l.ifb_ifname, "");
}

static void require(const char *what, const char *command)
{
	if (system(command) == 0)
		return;
	printf("skip: this kernel has no %s\n", what);
	exit(SKIP);
}

void plugin_enter(void)
{
	rig_enter();
	require("ifb", "ip link add try0 type ifb && ip link del try0");
	require("tbf",
		"tc qdisc add dev lo root " TBF " && tc qdisc del dev lo root");
	require("htb",
		"tc qdisc add dev lo root htb && tc qdisc del dev lo root");
	require("u32 and mirred",
		"tc qdisc add dev lo ingress && tc filter add dev lo"
		" parent ffff: u32 match u32 0 0 action mirred egress redirect"
		" dev lo && tc qdisc del dev lo ingress");
}
