/* SPDX-License-Identifier: BSD-2-Clause */
/* A process in the pod puts another interface in the place of eth0, and lets natra attach
 * again: the limits stay where they are, and natra says so. */
#include "one_pod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INNER     "inner"
#define ELSEWHERE "/run/natra-api-netns"
/* No dummy: not every kernel has them. */
#define DECOY     "type veth peer name nobody"

static uint32_t ifindex;

static const enum natra_attach_mode modes[] = {
	NATRA_ATTACH_MODE_TCX_PODSIDE,
	NATRA_ATTACH_MODE_CLSACT_PODSIDE,
	NATRA_ATTACH_MODE_TCX_HOSTSIDE,
	NATRA_ATTACH_MODE_CLSACT_HOSTSIDE,
};

static int add_direction(void)
{
	struct natra_policy both = policy_of(10, 20);

	return KEPT(natra_configure(n, ID, &both));
}

static int upgrade(void)
{
	return KEPT(natra_upgrade(n, ID));
}

static int attach_with(enum natra_sli sli)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);

	policy.sli = sli;
	return KEPT(natra_attach(n, &target, &policy, NULL));
}

static int attach_for_sli(void)
{
	return attach_with(NATRA_SLI_ON);
}

static int attach_again(void)
{
	return attach_with(NATRA_SLI_OFF);
}

static int give_up(void)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 0);

	return KEPT(natra_record_unshaped(n, &target, &policy, "no reason"));
}

/* The ways in which natra attaches an id anew, or says that it has no limits. */
static int (*const causes[])(void) = {
	add_direction, upgrade, attach_for_sli, attach_again, give_up,
};

static void attach(enum natra_attach_mode mode)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 0);

	policy.attach_mode = mode;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	ifindex = rig_query(n, ID).ifindex;
	assert_int_equal(natra_check(n, ID, NULL), 0);
}

static void is_other(int r)
{
	assert_int_equal(r, -EBADE);
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_INTERFACE);
	says(n, "interface", ID);
}

/* Each cause is refused, and changes no program, qdisc or pin. */
static void nothing_is_moved(const char *words)
{
	for (size_t i = 0; i < TH_LEN(causes); i++) {
		char *before;

		if (words)
			rig_sh("ip -n " POD " link add eth0 %s", words);
		before = rig_state();
		is_other(KEPT(natra_check(n, ID, NULL)));
		is_other(causes[i]());
		rig_same_state(before);
		free(before);
		if (words)
			rig_sh("ip -n " POD " link del eth0");
	}
}

/* Checks that a TCX program, or one on the host side, limits what comes to eth0 where it is
 * now. */
static void still_limits(void)
{
	struct natra_stats before = NATRA_INIT(before),
			   after = NATRA_INIT(after);

	assert_int_equal(natra_stats(n, ID, &before), 0);
	pod_send(&pod, 5);
	assert_int_equal(natra_stats(n, ID, &after), 0);
	assert_true(after.ingress.mice.packets >=
		    before.ingress.mice.packets + 5);
}

static void each_mode(void (*test)(enum natra_attach_mode mode))
{
	for (size_t i = 0; i < TH_LEN(modes); i++) {
		if (!rig_has_tcx() &&
		    (modes[i] == NATRA_ATTACH_MODE_TCX_PODSIDE ||
		     modes[i] == NATRA_ATTACH_MODE_TCX_HOSTSIDE))
			continue;
		rig_sh("ip netns add " INNER);
		attach(modes[i]);
		test(modes[i]);
		rig_detach(n, ID);
		rig_sh("ip netns del " INNER);
		pod_remove(&pod);
		pod = pod_make(POD);
	}
}

static void move(void)
{
	rig_sh("ip -n " POD " link set eth0 netns " INNER " && ip -n " INNER
	       " link set eth0 up");
}

static void decoy_of_moved(enum natra_attach_mode mode)
{
	char words[64];

	(void)mode;
	move();
	(void)snprintf(words, sizeof(words), "index %u " DECOY, ifindex);
	nothing_is_moved(words);
	nothing_is_moved("index 4711 " DECOY);
	still_limits();
}

TH_TEST(decoy_takes_the_index_or_the_name)
{
	each_mode(decoy_of_moved);
}

/* Neither does natra_gc take it for gone, which would remove what stands on the host side. */
static void no_decoy(enum natra_attach_mode mode)
{
	size_t removed = 1;

	(void)mode;
	move();
	nothing_is_moved(NULL);
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
	still_limits();
}

TH_TEST(moved_interface_is_not_gone)
{
	each_mode(no_decoy);
}

static void hide_netns(void)
{
	rig_sh("touch " ELSEWHERE " && mount --bind %s " ELSEWHERE
	       " && umount -l %s && rm %s",
	       pod.path, pod.path, pod.path);
}

static void show_netns(void)
{
	rig_sh("touch %s && mount --bind " ELSEWHERE
	       " %s && umount -l " ELSEWHERE " && rm " ELSEWHERE,
	       pod.path, pod.path);
}

/* Some runtimes mount namespaces in a directory of their own, and begin a pod's processes later. */
static void mounted_elsewhere(enum natra_attach_mode mode)
{
	struct natra_target target = pod_target(&pod, ID);

	for (uint64_t way = 0; way < 2; way++) {
		struct natra_policy policy = policy_of(way * 10, !way * 20);
		size_t removed = 1;

		policy.attach_mode = mode;
		OK(natra_attach(n, &target, &policy, NULL));
		hide_netns();
		OK(natra_gc(n, NULL, NULL, 0, &removed));
		assert_int_equal(removed, 0);
		assert_false(rig_query(n, ID).interface_gone);
		show_netns();
	}
	still_limits();
}

TH_TEST(namespace_that_is_mounted_elsewhere_is_not_gone)
{
	each_mode(mounted_elsewhere);
}

/* Where the filters are is hidden from the detach, but their programs still run: as long as they do,
 * nobody else gets their slots. */
TH_TEST(detach_of_hidden_filters_is_refused)
{
	const struct natra_target target = {
		.sz = sizeof(target),
		.id = ID,
	};
	size_t removed = 1;
	char *before;

	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	hide_netns();
	before = rig_state();
	GIVES(-EBUSY, natra_detach(n, &target));
	says(n, "hidden", ID);
	/* Whoever says what is needed does not make it gone, either. */
	GIVES(-EBUSY, natra_gc(n, "", NULL, 0, &removed));
	rig_same_state(before);
	free(before);
	show_netns();
	OK(natra_check(n, ID, NULL));
	still_limits();
	assert_int_equal(KEPT(natra_detach(n, &target)), 1);
	assert_int_equal(rig_pins(), 0);
}

/* A namespace that has just gone is waited for. */
TH_TEST(detach_of_a_dying_namespace_succeeds)
{
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	(void)close(pod.fd);
	rig_sh("ip netns del " POD);
	rig_detach(n, ID);
	assert_int_equal(rig_pins(), 0);
	pod = pod_make(POD);
}

/* Whoever moves the interface may attach to it anew. */
static void same_one_elsewhere(enum natra_attach_mode mode)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);

	move();
	target.netns = "/run/netns/" INNER;
	policy.attach_mode = mode;
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, ID, NULL));
	still_limits();
}

TH_TEST(moved_interface_may_be_attached_anew)
{
	each_mode(same_one_elsewhere);
}

/* The other end of the decoy, too, is where that of eth0 is, by its index. */
static void decoy_with_peer(enum natra_attach_mode mode)
{
	(void)mode;
	move();
	rig_sh("ip netns add third && index=$(ip -o link show " NODE_SIDE
	       " | cut -d: -f1) && ip -n " POD
	       " link add eth0 index %u type veth"
	       " peer name far index $index netns third",
	       ifindex);
	nothing_is_moved(NULL);
	rig_sh("ip netns del third");
}

TH_TEST(decoy_has_the_same_peer_index)
{
	each_mode(decoy_with_peer);
}

/* Back in its namespace the interface has another index, which its links tell. */
static void comes_back(enum natra_attach_mode mode)
{
	move();
	rig_sh("ip -n " POD " link add eth0 index %u " DECOY " && ip -n " INNER
	       " link set eth0 netns " POD " name wan0 && ip -n " POD
	       " link set wan0 up",
	       ifindex);
	if (mode != NATRA_ATTACH_MODE_TCX_PODSIDE) {
		is_other(upgrade());
		is_other(attach_again());
		return;
	}
	OK(natra_check(n, ID, NULL));
	assert_true(rig_query(n, ID).ifindex != ifindex);
	assert_int_equal(add_direction(), 0);
	assert_int_equal(attach_for_sli(), 0);
	OK(natra_check(n, ID, NULL));
	rig_sh("ip netns exec " POD " bpftool net show dev wan0 |"
	       " grep -c natra_ | grep -qx 2");
	rig_sh("! ip netns exec " POD
	       " bpftool net show dev eth0 | grep natra_");
	still_limits();
}

TH_TEST(other_index_is_followed)
{
	each_mode(comes_back);
}

/* A filter that somebody has removed is put back on the same port only. */
TH_TEST(filter_is_put_back)
{
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	rig_sh("tc -n " POD " qdisc del dev eth0 clsact");
	GIVES(-EBADE, natra_check(n, ID, NULL));
	assert_int_equal(natra_error_code(n), NATRA_CODE_NONE);
	assert_int_equal(add_direction(), 0);
	OK(natra_check(n, ID, NULL));
}

/* The same id in another namespace, as when a runtime has forgotten to detach a pod. */
static void other_pod(enum natra_attach_mode mode)
{
	struct pod other = pod_make("other");
	struct natra_target target = pod_target(&other, ID);
	struct natra_policy policy = policy_of(10, 20);
	char *before = rig_state();

	(void)mode;
	is_other(KEPT(natra_attach(n, &target, &policy, NULL)));
	says(n, "another netns", ID);
	rig_same_state(before);
	free(before);
	OK(natra_check(n, ID, NULL));
	still_limits();
	rig_sh("ip link del " NODE_SIDE);
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, ID, NULL));
	rig_detach(n, ID);
	pod_remove(&other);
}

TH_TEST(another_pod_gets_the_id_when_the_first_is_gone)
{
	each_mode(other_pod);
}

/* Makes a record of an interface without limits, which no program follows. */
static void record_and_move(void)
{
	rig_sh("ip netns add " INNER);
	assert_int_equal(give_up(), 0);
	ifindex = rig_query(n, ID).ifindex;
	move();
}

/* Another interface has its index, and it is back under its name. */
TH_TEST(unshaped_one_is_found_by_its_port)
{
	record_and_move();
	rig_sh("ip -n " POD " link add other index %u " DECOY " && ip -n " INNER
	       " link set eth0 netns " POD " && ip -n " POD " link set eth0 up",
	       ifindex);
	assert_int_equal(attach_again(), 0);
	assert_true(rig_query(n, ID).ifindex != ifindex);
	OK(natra_check(n, ID, NULL));
	still_limits();
	rig_detach(n, ID);
	rig_sh("ip netns del " INNER);
}

/* Another one has its name, which gets no limits in its place until it does not exist any more:
 * then it was made anew. */
TH_TEST(decoy_of_an_unshaped_one)
{
	uint32_t decoy;

	record_and_move();
	for (int way = 0; way < 2; way++) {
		char *before;

		decoy = way ? 4711 : ifindex;
		rig_sh("ip -n " POD " link add eth0 index %u " DECOY, decoy);
		before = rig_state();
		is_other(attach_again());
		is_other(give_up());
		rig_same_state(before);
		free(before);
		assert_true(rig_query(n, ID).unshaped);
		if (!way)
			rig_sh("ip -n " POD " link del eth0");
	}
	rig_sh("ip link del " NODE_SIDE);
	assert_int_equal(attach_again(), 0);
	assert_int_equal(rig_query(n, ID).ifindex, decoy);
	OK(natra_check(n, ID, NULL));
	rig_detach(n, ID);
	rig_sh("ip netns del " INNER);
}

POD_MAIN()
