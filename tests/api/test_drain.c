/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests let pass what waits in the limits of upstream's bandwidth plugin. */
#include "plugin_pod.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000ULL

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
TH_TEST(nothing_to_drain)
{
	char *mine;

	assert_int_equal(drain(NULL), 0);
	add_tbf();
	add_ingress(IFB);
	for (int i = 0; i < 2; i++) {
		if (i)
			fill(HOST, "1mbit");
		assert_int_equal(find().waiting_ns, 0);
		mine = node_state();
		assert_int_equal(drain(NULL), 0);
		same_node_state(mine);
		free(mine);
	}
}

/* Both queues empty themselves without a loss, soon although little follows, and the
 * rates stay. */
TH_TEST(queues_drain)
{
	struct timespec begin, end;

	add_tbf();
	add_ingress(IFB);
	fill(IFB, "8kbit");
	assert_in_range(find().waiting_ns, 2000 * NS_PER_MS, 60000 * NS_PER_MS);
	fill(HOST, "8kbit");
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	if (drain(NULL) < 0)
		fail_msg("%s", natra_error(n));
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - begin.tv_sec, 0, 3);
	rig_sh("for i in " HOST " " IFB "; do tc -s qdisc show dev $i root |"
	       " tr '\\n' ' ' | grep -q 'tbf 1: .*rate 8Kbit .*dropped 0,"
	       ".* backlog 0b' || exit 1; done");
	assert_int_equal(find().waiting_ns, 0);
	remove_all();
	assert_none();
}

static void assert_htb(const char *dev, const char *class)
{
	rig_sh("tc class show dev %s | grep -q '^class htb 1:30 root %s'", dev,
	       class);
}

/* The class of an htb has its own rate again, and how often it was raised. */
TH_TEST(htbs_drain)
{
	add_htb(HOST, "10", "30");
	add_ingress(IFB);
	rig_sh("tc qdisc del dev " IFB " root");
	add_htb(IFB, "10", "1");
	rig_sh("tc filter add dev " IFB
	       " parent 1: protocol all prio 16 u32 match u32 0 0 flowid 1:30");
	for (unsigned int i = 1; i <= 4; i++) {
		char expected[64];

		device_send(HOST, 200);
		device_send(IFB, 200);
		assert_in_range(find().waiting_ns, 200 * NS_PER_MS,
				60000 * NS_PER_MS);
		assert_int_equal(drain(NULL), 0);
		(void)snprintf(expected, sizeof(expected),
			       "prio %u rate 10Kbit ceil 20Kbit",
			       i < 3 ? i : 3);
		assert_htb(HOST, expected);
		assert_htb(IFB, expected);
		if (i <= 3)
			assert_int_equal(find().waiting_ns, 0);
		else
			assert_in_range(find().waiting_ns, 100 * NS_PER_MS,
					60000 * NS_PER_MS);
	}
	rig_sh("for i in " HOST " " IFB "; do tc -s qdisc show dev $i root |"
	       " grep -q 'dropped 0,' || exit 1; done");
	remove_all();
	same_node_state(state_before);
}

/* Whoever is killed while an htb drains leaves its rate raised; it is still known as
 * the plugin's, with the rate that it had. The next drain gives it back, also if nothing
 * waits any more. */
TH_TEST(killed_while_an_htb_drains)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);
	int status;
	pid_t pid;

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_htb(HOST, "10", "30");
	device_send(HOST, 200);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(drain("web") < 0);
	for (int i = 0; find().waiting_ns && i < 5000; i++)
		(void)usleep(1000);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	rig_sh("tc class show dev " HOST " | grep 1:30 | grep -q 'rate 2Gbit'");
	assert_true(find().is_htb);
	assert_int_equal(drain("web"), 0);
	assert_htb(HOST, "prio 1 rate 10Kbit ceil 20Kbit");
	OK(natra_remove_leftovers(n, &target));
	assert_none();
	assert_int_equal(natra_check(n, "web", &policy), 0);
	assert_int_equal(natra_detach(n, &target), 1);
}

/* Each queue counts by itself. */
TH_TEST(one_queue_drains)
{
	add_tbf();
	add_ingress(IFB);
	fill(HOST, "8kbit");
	assert_int_equal(drain(NULL), 0);
	rig_sh("tc -s qdisc show dev " HOST " root | grep -q 'backlog 0b'");
	assert_int_equal(find().waiting_ns, 0);
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
	/* It fills the bucket after it has unlocked "web", for which others would wait. */
	while (find().waiting_ns && tries++ < 5000)
		(void)usleep(1000);
	GIVES(-EBADE, natra_check(n, "web", NULL));
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

/* Returns how many packets have passed while no limit held. */
static uint64_t unlimited(void)
{
	struct natra_stats stats = NATRA_INIT(stats);

	assert_int_equal(natra_stats(n, "web", &stats), 0);
	return stats.backstop.unlimited.packets;
}

/* natra's own limits would drop what waits. They hold again afterwards, and if the process
 * is killed, before the plugin's go. */
TH_TEST(own_limits_do_not_hold_meanwhile)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	fill(HOST, "8kbit");
	if (drain("web") < 0)
		fail_msg("%s", natra_error(n));
	assert_in_range(unlimited(), 100, 200);
	assert_int_equal(natra_check(n, "web", &policy), 0);

	kill_it(stop_while_it_drains());
	GIVES(-EBADE, natra_check(n, "web", NULL));
	says(n, "limits", NULL);
	OK(natra_remove_leftovers(n, &target));
	assert_int_equal(natra_check(n, "web", &policy), 0);
	assert_int_equal(natra_detach(n, &target), 1);
}

/* The limits are those of the interface, which may have got another name. */
TH_TEST(own_limits_do_not_hold_meanwhile_by_a_new_name)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);
	uint64_t before;

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	kill_it(stop_while_it_drains());
	rig_sh("ip -n old link set eth0 down &&"
	       "ip -n old link set eth0 name tap0 up");
	target.ifname = "tap0";
	GIVES(-EBADE, natra_check(n, "web", NULL));
	OK(natra_remove_leftovers(n, &target));
	assert_int_equal(natra_check(n, "web", &policy), 0);

	add_tbf();
	fill(HOST, "8kbit");
	before = unlimited();
	OK(natra_drain_leftovers(n, &target));
	assert_in_range(unlimited() - before, 100, 200);
	assert_int_equal(natra_check(n, "web", &policy), 0);
	assert_int_equal(natra_detach(n, &target), 1);
}

static void is_other(int r)
{
	assert_int_equal(r, -EBADE);
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_INTERFACE);
	says(n, "interface", "web");
}

/* A queue of another interface, in this namespace or in another, lifts no limits of this interface. */
TH_TEST(own_limits_hold_while_another_interface_is_meant)
{
	struct pod other = pod_make("other");
	struct natra_target target = pod_target(&pod, "web");
	struct natra_target wrong = pod_target(&other, "web");
	struct natra_leftovers found = NATRA_INIT(found);
	struct natra_policy policy = policy_of(10, 20);

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("tc qdisc add dev h-other root handle 1: " TBF);
	rig_sh("ip -n old link add eth1 type veth peer name nobody");
	fill("h-other", "8kbit");
	for (int i = 0; i < 2; i++) {
		is_other(KEPT(natra_drain_leftovers(n, &wrong)));
		is_other(KEPT(natra_find_leftovers(n, &wrong, &found)));
		is_other(KEPT(natra_remove_leftovers(n, &wrong)));
		is_other(KEPT(natra_attach(n, &wrong, &policy, NULL)));
		wrong = target;
		wrong.ifname = "eth1";
	}
	/* Another id means no limits of natra's. */
	wrong.id = "none";
	OK(natra_find_leftovers(n, &wrong, &found));
	assert_int_equal(natra_check(n, "web", &policy), 0);
	pod_remove(&other);
	assert_int_equal(natra_detach(n, &target), 1);
}

static void collect_garbage(void)
{
	size_t removed;

	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
}

/* A drain under limits that stay would take as long as these let it. */
TH_TEST(limits_that_cannot_be_lifted_are_told)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	fill(HOST, "8kbit");
	rig_sh("cd " BPFFS "/natra/abi*/engine_*/0 && mv programs kept &&"
	       " mkdir programs");
	assert_int_equal(drain("web"), -EACCES);
	says(n, "programs", NULL);
	rig_sh("cd " BPFFS "/natra/abi*/engine_*/0 && rmdir programs &&"
	       " mv kept programs");
	assert_int_equal(natra_check(n, "web", &policy), 0);
	assert_int_equal(natra_detach(n, &target), 1);
}

/* Whoever is killed while the queues drain leaves no limits once somebody has removed the
 * plugin's by hand. A process that still drains is let be. */
TH_TEST(gc_gives_limits_back_after_a_kill)
{
	struct natra_target target = pod_target(&pod, "web");
	struct natra_policy policy = policy_of(10, 20);
	pid_t pid;

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	add_tbf();
	pid = stop_while_it_drains();
	collect_garbage();
	GIVES(-EBADE, natra_check(n, "web", NULL));
	kill_it(pid);
	rig_sh("tc qdisc del dev " HOST " root");
	GIVES(-EBADE, natra_check(n, "web", NULL));
	collect_garbage();
	OK(natra_check(n, "web", &policy));
	assert_int_equal(natra_detach(n, &target), 1);
}

/* A bucket is filled three times only: whoever cannot remove the limits tries again. */
TH_TEST(buckets_are_filled_some_times)
{
	add_tbf();
	fill(HOST, "8kbit");
	for (unsigned int i = 1; i <= 3; i++) {
		assert_int_equal(drain(NULL), 0);
		assert_int_equal(find().waiting_ns, 0);
		/* What was in the bucket is used, and packets wait again. tc
		 * would print only the first digits of natra's peak rate. */
		fill_with_peak(i * 250000007U);
	}
	assert_int_equal(drain(NULL), 0);
	assert_in_range(find().waiting_ns, 2000 * NS_PER_MS, 60000 * NS_PER_MS);
}

/* A peak rate that somebody has given to the plugin's tbf says nothing about how often it
 * was filled. */
TH_TEST(peak_rates_of_others)
{
	static const unsigned int gbit[] = {6, 10};

	add_tbf();
	for (size_t i = 0; i < TH_LEN(gbit); i++) {
		fill_with_peak(gbit[i] * 125000000U);
		assert_in_range(find().waiting_ns, 2000 * NS_PER_MS,
				60000 * NS_PER_MS);
		assert_int_equal(drain(NULL), 0);
		assert_int_equal(find().waiting_ns, 0);
	}
}

int main(void)
{
	plugin_enter();
	return th_run_each(plugin_begin, plugin_end);
}
