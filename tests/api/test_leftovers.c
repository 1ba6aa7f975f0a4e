/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests build with tc what upstream's bandwidth plugin leaves;
 * tests/cni/upstream.py runs the plugin itself. */
#include "rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIP        77
#define HOST        "h-old"
#define TBF         "tbf rate 10mbit burst 64k latency 25ms"
#define IFB         "bwp148cdf1cc030"
#define WARNING_MAX 256

static struct natra *n;
static struct pod pod;
static char *before;

/* Returns the node's qdiscs, ingress filters and links, without reference counts and
 * htb's count of packets, which the kernel sends now and then. */
static char *node_state(void)
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

static void same_node_state(const char *expected)
{
	char *now = node_state();

	assert_string_equal(now, expected);
	free(now);
}

static int begin(void **state)
{
	(void)state;
	rig_reset();
	n = rig_open();
	pod = pod_make("old");
	before = node_state();
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(before);
	pod_remove(&pod);
	rig_sh("for i in $(ip -o link show type ifb | cut -d: -f2); do"
	       " ip link del $i; done");
	natra_close(n);
	return 0;
}

static void add_tbf(void)
{
	rig_sh("tc qdisc add dev " HOST " root handle 1: " TBF);
}

static void add_ifb(const char *name)
{
	rig_sh("ip link add %s type ifb && ip link set %s up &&"
	       "tc qdisc add dev %s root handle 1: " TBF,
	       name, name, name);
}

static void add_redirect(const char *ifb, const char *flowid)
{
	rig_sh("tc filter add dev " HOST
	       " parent ffff: protocol all prio 1 u32 match u32 0 0"
	       " flowid %s action mirred egress redirect dev %s",
	       flowid, ifb);
}

static void add_ingress(const char *ifb)
{
	add_ifb(ifb);
	rig_sh("tc qdisc add dev " HOST " ingress");
	add_redirect(ifb, "1:1");
}

static struct natra_leftovers find(void)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, NULL);

	if (KEPT(natra_find_leftovers(n, &target, &leftovers)) < 0)
		fail_msg("%s", natra_error(n));
	assert_string_equal(leftovers.host_ifname, HOST);
	assert_int_equal(leftovers.sz, sizeof(leftovers));
	return leftovers;
}

static void remove_all(void)
{
	struct natra_target target = pod_target(&pod, NULL);

	if (KEPT(natra_remove_leftovers(n, &target)) < 0)
		fail_msg("%s", natra_error(n));
}

static void assert_none(void)
{
	struct natra_leftovers l = find();

	assert_false(l.tbf);
	assert_false(l.ingress_redirect);
	assert_string_equal(l.ifb_ifname, "");
}

/* Checks that the leftovers of others are neither found nor touched. */
static void assert_not_the_plugins(void)
{
	char *state = node_state();

	assert_none();
	remove_all();
	same_node_state(state);
	free(state);
}

static void nothing_there(void **state)
{
	(void)state;
	assert_not_the_plugins();
}

static void both_directions(void **state)
{
	struct natra_leftovers l;

	(void)state;
	add_tbf();
	add_ingress(IFB);
	l = find();
	assert_true(l.tbf);
	assert_true(l.ingress_redirect);
	assert_string_equal(l.ifb_ifname, IFB);
	remove_all();
	same_node_state(before);
	assert_none();
	remove_all();
}

static void one_direction(void **state)
{
	struct natra_leftovers l;

	(void)state;
	add_tbf();
	l = find();
	assert_true(l.tbf);
	assert_false(l.ingress_redirect);
	remove_all();
	same_node_state(before);
	add_ingress(IFB);
	l = find();
	assert_false(l.tbf);
	assert_true(l.ingress_redirect);
	remove_all();
	same_node_state(before);
}

static void names_of_other_makers(void **state)
{
	static const char *const names[] = {"bwcali0123456", "9a0f", "bwp"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		add_ingress(names[i]);
		assert_string_equal(find().ifb_ifname, names[i]);
		remove_all();
		same_node_state(before);
	}
}

/* The plugin's DEL removes only the ifb: the redirect then drops every
 * packet. */
static void redirect_without_its_ifb(void **state)
{
	struct natra_leftovers l;

	(void)state;
	add_ingress(IFB);
	rig_sh("ip link del " IFB);
	l = find();
	assert_true(l.ingress_redirect);
	assert_string_equal(l.ifb_ifname, "");
	remove_all();
	same_node_state(before);
}

static void qdiscs_of_others(void **state)
{
	static const char *const roots[] = {
		("handle 7: " TBF),
		"handle 1: pfifo",
		"handle 1: htb default 1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
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

static void redirects_of_others(void **state)
{
	(void)state;
	rig_sh("tc qdisc add dev " HOST " ingress");
	add_ifb("ifb-mine");
	add_redirect("ifb-mine", "1:1");
	assert_not_the_plugins();
	rig_sh("tc filter del dev " HOST " parent ffff:");
	/* This name is as long as those of an old plugin, and it is the one
	 * that the kernel gives to its first ifb. */
	add_ifb("ifb0");
	add_redirect("ifb0", "1:1");
	assert_not_the_plugins();
	rig_sh("tc filter del dev " HOST " parent ffff:");
	/* The plugin's name is not enough: the device must be an ifb. */
	rig_sh("ip link add bwp0 type veth peer name bwp1");
	add_redirect("bwp0", "1:1");
	assert_not_the_plugins();
	rig_sh("tc filter del dev " HOST " parent ffff: && ip link del bwp0");
	add_ifb(IFB);
	add_redirect(IFB, "1:2");
	assert_not_the_plugins();
	rig_sh("tc filter del dev " HOST " parent ffff:");
	rig_sh("tc filter add dev " HOST
	       " parent ffff: protocol all prio 1 u32 match u32 0 0"
	       " flowid 1:1 action mirred egress mirror dev " IFB);
	assert_not_the_plugins();
	rig_sh("tc filter del dev " HOST " parent ffff:");
	rig_sh("tc filter add dev " HOST
	       " parent ffff: protocol all prio 1 u32 match u32 0 0"
	       " flowid 1:1 action mirred ingress redirect dev " IFB);
	assert_not_the_plugins();
	rig_sh("tc filter del dev " HOST " parent ffff:");
	rig_sh("tc filter add dev " HOST
	       " parent ffff: protocol all prio 1 u32 match u32 0 0"
	       " flowid 1:1");
	assert_not_the_plugins();
}

/* The qdisc stays if it has another owner's filter, before or behind the
 * plugin's. */
static void ingress_is_shared(void **state)
{
	char *mine;

	(void)state;
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

static void by_the_id_of_an_attachment(void **state)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, "web");
	struct natra_target by_id = NATRA_INIT(by_id);
	struct natra_policy policy = policy_of(10, 20);

	(void)state;
	by_id.id = "web";
	assert_int_equal(KEPT(natra_find_leftovers(n, &by_id, &leftovers)),
			 -ENOENT);
	says(n, "web", NULL);
	assert_int_equal(KEPT(natra_remove_leftovers(n, &by_id)), -ENOENT);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	add_ingress(IFB);
	assert_int_equal(KEPT(natra_find_leftovers(n, &by_id, &leftovers)), 0);
	assert_true(leftovers.tbf);
	assert_string_equal(leftovers.ifb_ifname, IFB);
	/* natra's own programs and the leftovers do not affect each other. */
	assert_int_equal(KEPT(natra_remove_leftovers(n, &by_id)), 0);
	assert_none();
	assert_int_equal(KEPT(natra_check(n, "web", &policy)), 0);
	assert_int_equal(natra_detach(n, &target), 0);
}

/* Lets some kB wait in a tbf, which takes seconds or less than 0.1 s. */
static void fill(const char *dev, const char *rate)
{
	rig_sh("tc qdisc change dev %s root handle 1: tbf rate %s burst 1600"
	       " limit 64k",
	       dev, rate);
	device_send(dev, 200);
}

static void fill_with_peak(unsigned int bytes_per_sec)
{
	rig_sh("tc qdisc change dev " HOST " root handle 1: tbf rate 8kbit"
	       " burst 1600 limit 64k mtu 1600 peakrate %ubps",
	       bytes_per_sec);
	device_send(HOST, 200);
}

static int drain(const char *id)
{
	struct natra_target target = pod_target(&pod, id);

	return KEPT(natra_drain_leftovers(n, &target));
}

/* Nothing is changed if nothing waits, or not for long. */
static void nothing_to_drain(void **state)
{
	char *mine;

	(void)state;
	assert_int_equal(drain(NULL), 0);
	add_tbf();
	add_ingress(IFB);
	for (int i = 0; i < 2; i++) {
		if (i)
			fill(HOST, "1mbit");
		assert_int_equal(find().waiting_ms, 0);
		mine = node_state();
		assert_int_equal(drain(NULL), 0);
		same_node_state(mine);
		free(mine);
	}
}

/* Both queues empty themselves without a loss, soon although little follows, and the
 * rates stay. */
static void queues_drain(void **state)
{
	struct timespec begin, end;

	(void)state;
	add_tbf();
	add_ingress(IFB);
	fill(IFB, "8kbit");
	assert_in_range(find().waiting_ms, 2000, 60000);
	fill(HOST, "8kbit");
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	if (drain(NULL) < 0)
		fail_msg("%s", natra_error(n));
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - begin.tv_sec, 0, 3);
	rig_sh("for i in " HOST " " IFB "; do tc -s qdisc show dev $i root |"
	       " tr '\\n' ' ' | grep -q 'tbf 1: .*rate 8Kbit .*dropped 0,"
	       ".* backlog 0b' || exit 1; done");
	assert_int_equal(find().waiting_ms, 0);
	remove_all();
	assert_none();
}

/* Each queue counts by itself. */
static void one_queue_drains(void **state)
{
	(void)state;
	add_tbf();
	add_ingress(IFB);
	fill(HOST, "8kbit");
	assert_int_equal(drain(NULL), 0);
	rig_sh("tc -s qdisc show dev " HOST " root | grep -q 'backlog 0b'");
	assert_int_equal(find().waiting_ms, 0);
}

/* Starts a process that stops while it lets "web" drain. */
static pid_t stop_while_it_drains(void)
{
	int status, tries = 0;
	pid_t pid;

	fill(HOST, "8kbit");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(drain("web") < 0);
	while (natra_check(n, "web", NULL) == 0 && tries++ < 500)
		(void)usleep(1000);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void kill_it(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* natra's own limits would drop what waits. They hold again afterwards, and if the process
 * is killed, before the plugin's go. */
static void own_limits_do_not_hold_meanwhile(void **state)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);
	struct natra_stats stats = NATRA_INIT(stats);

	(void)state;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	fill(HOST, "8kbit");
	if (drain("web") < 0)
		fail_msg("%s", natra_error(n));
	assert_int_equal(natra_stats(n, "web", &stats), 0);
	assert_in_range(stats.ingress.unlimited.packets, 100, 200);
	assert_int_equal(natra_check(n, "web", &policy), 0);

	kill_it(stop_while_it_drains());
	assert_int_equal(KEPT(natra_check(n, "web", NULL)), -EBADE);
	says(n, "limits", NULL);
	assert_int_equal(KEPT(natra_remove_leftovers(n, &target)), 0);
	assert_int_equal(natra_check(n, "web", &policy), 0);
	assert_int_equal(natra_detach(n, &target), 0);
}

static void collect_garbage(void)
{
	size_t removed;

	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, &removed)), 0);
	assert_int_equal(removed, 0);
}

/* Whoever is killed while the queues drain leaves no limits once somebody has removed the
 * plugin's by hand. A process that still drains is let be. */
static void gc_gives_limits_back_after_a_kill(void **state)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);
	pid_t pid;

	(void)state;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	pid = stop_while_it_drains();
	collect_garbage();
	assert_int_equal(KEPT(natra_check(n, "web", NULL)), -EBADE);
	kill_it(pid);
	rig_sh("tc qdisc del dev " HOST " root");
	assert_int_equal(KEPT(natra_check(n, "web", NULL)), -EBADE);
	collect_garbage();
	assert_int_equal(KEPT(natra_check(n, "web", &policy)), 0);
	assert_int_equal(natra_detach(n, &target), 0);
}

/* A bucket is filled three times only: whoever cannot remove the limits tries again. */
static void buckets_are_filled_some_times(void **state)
{
	(void)state;
	add_tbf();
	fill(HOST, "8kbit");
	for (unsigned int i = 1; i <= 3; i++) {
		assert_int_equal(drain(NULL), 0);
		assert_int_equal(find().waiting_ms, 0);
		/* What was in the bucket is used, and packets wait again. tc
		 * would print only the first digits of natra's peak rate. */
		fill_with_peak(i * 250000007U);
	}
	assert_int_equal(drain(NULL), 0);
	assert_in_range(find().waiting_ms, 2000, 60000);
}

/* A peak rate that somebody has given to the plugin's tbf says nothing about how often it
 * was filled. */
static void peak_rates_of_others(void **state)
{
	static const unsigned int gbit[] = {6, 10};

	(void)state;
	add_tbf();
	for (size_t i = 0; i < sizeof(gbit) / sizeof(gbit[0]); i++) {
		fill_with_peak(gbit[i] * 125000000U);
		assert_in_range(find().waiting_ms, 2000, 60000);
		assert_int_equal(drain(NULL), 0);
		assert_int_equal(find().waiting_ms, 0);
	}
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
	assert_int_equal(KEPT(natra_attach(talking, &target, &policy, NULL)),
			 0);
	assert_int_equal(natra_detach(talking, &target), 0);
	natra_close(talking);
	return line;
}

static void attaching_warns(void **state)
{
	static const char start[] =
		"limits of the bandwidth plugin on '" HOST "' hold as well:";
	char expected[WARNING_MAX];

	(void)state;
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
}

static void no_host_side(void **state)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, NULL);

	(void)state;
	add_tbf();
	rig_sh("ip -n old link add here type veth peer name too");
	target.ifname = "here";
	memset(leftovers.host_ifname, 'x', sizeof(leftovers.host_ifname));
	assert_int_equal(KEPT(natra_find_leftovers(n, &target, &leftovers)), 0);
	assert_string_equal(leftovers.host_ifname, "");
	assert_false(leftovers.tbf);
	assert_string_equal(natra_error(n), "");
	assert_int_equal(KEPT(natra_remove_leftovers(n, &target)), 0);
	assert_true(find().tbf);
}

static void bad_calls(void **state)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	struct natra_target target = pod_target(&pod, NULL);

	(void)state;
	assert_int_equal(natra_find_leftovers(NULL, &target, &leftovers),
			 -EINVAL);
	assert_int_equal(KEPT(natra_find_leftovers(n, NULL, &leftovers)),
			 -EINVAL);
	says(n, "target", NULL);
	assert_int_equal(KEPT(natra_find_leftovers(n, &target, NULL)), -EINVAL);
	says(n, "ret_leftovers", NULL);
	target.ifname = NULL;
	assert_int_equal(KEPT(natra_find_leftovers(n, &target, &leftovers)),
			 -EINVAL);
	says(n, "ifname", "id");
	target.ifname = "eth9";
	assert_int_equal(KEPT(natra_find_leftovers(n, &target, &leftovers)),
			 -ENODEV);
	says(n, "eth9", NULL);
	assert_int_equal(KEPT(natra_remove_leftovers(n, &target)), -ENODEV);
	assert_int_equal(KEPT(natra_drain_leftovers(n, &target)), -ENODEV);
	assert_int_equal(natra_drain_leftovers(NULL, &target), -EINVAL);
	target.ifname = "eth0";
	target.netns = "nosuch";
	assert_int_equal(KEPT(natra_find_leftovers(n, &target, &leftovers)),
			 -ENOENT);
	says(n, "nosuch", NULL);
}

static void require(const char *what, const char *command)
{
	if (system(command) == 0)
		return;
	printf("skip: this kernel has no %s\n", what);
	exit(SKIP);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_there),
		CASE(both_directions),
		CASE(one_direction),
		CASE(names_of_other_makers),
		CASE(redirect_without_its_ifb),
		CASE(qdiscs_of_others),
		CASE(redirects_of_others),
		CASE(ingress_is_shared),
		CASE(nothing_to_drain),
		CASE(queues_drain),
		CASE(one_queue_drains),
		CASE(own_limits_do_not_hold_meanwhile),
		CASE(gc_gives_limits_back_after_a_kill),
		CASE(buckets_are_filled_some_times),
		CASE(peak_rates_of_others),
		CASE(by_the_id_of_an_attachment),
		CASE(attaching_warns),
		CASE(no_host_side),
		CASE(bad_calls),
	};

	rig_enter();
	require("ifb", "ip link add try0 type ifb && ip link del try0");
	require("tbf",
		"tc qdisc add dev lo root " TBF " && tc qdisc del dev lo root");
	require("u32 and mirred",
		"tc qdisc add dev lo ingress && tc filter add dev lo"
		" parent ffff: u32 match u32 0 0 action mirred egress redirect"
		" dev lo && tc qdisc del dev lo ingress");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
