/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check where natra's program runs among those of others on a hook,
 * and that natra leaves what belongs to others. */
#include "one_pod.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OTHER    "other"
#define END      "host-end"
#define LINE_MAX 512

static void attach(enum natra_attach_mode mode)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);

	policy.attach_mode = mode;
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, ID, NULL));
}

/* Adds a filter to a hook of the host side with priority 1 and handle 1, as some
 * owners of filters do. */
static void add_clsact_filter(enum bpf_tc_attach_point attach_point)
{
	struct bpf_tc_hook hook = {
		.sz = sizeof(hook),
		.ifindex = (int)if_nametoindex(NODE_SIDE),
		.attach_point = attach_point,
	};
	struct bpf_tc_opts opts = {
		.sz = sizeof(opts),
		.prog_fd = rig_load_pass(OTHER),
		.priority = 1,
		.handle = 1,
	};

	rig_sh("tc qdisc add dev " NODE_SIDE " clsact 2>/dev/null || :");
	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
	(void)close(opts.prog_fd);
}

/* The packets that enter the host side are the pod's egress. */
static void add_clsact_other(void)
{
	add_clsact_filter(BPF_TC_INGRESS);
}

/* Collects the programs on the pod's egress, in the order in which they run. */
struct chain {
	struct natra_neighbour entry[4]; /* without its strings */
	bool is_other[4], is_filter_of_node_side[4];
	size_t len;
};

static int note(void *arg, const struct natra_neighbour *entry)
{
	struct chain *chain = arg;

	if (entry->direction != NATRA_DIRECTION_EGRESS)
		return 0;
	assert_true(chain->len < 4);
	assert_int_equal(entry->position, chain->len);
	chain->is_other[chain->len] = strcmp(entry->prog_name, OTHER) == 0;
	chain->is_filter_of_node_side[chain->len] =
		strcmp(entry->ifname, NODE_SIDE) == 0 &&
		strcmp(entry->hook, "clsact") == 0;
	chain->entry[chain->len++] = *entry;
	return 0;
}

static struct chain chain_now(void)
{
	struct chain chain = {.len = 0};

	OK(natra_foreach_neighbour(n, ID, note, &chain));
	assert_int_equal(chain.len, 2);
	return chain;
}

static void is_natra_first(const struct chain *chain)
{
	assert_true(chain->entry[0].is_ours);
	assert_true(chain->is_other[1]);
	assert_false(chain->entry[1].is_ours);
	assert_false(chain->entry[0].is_before_ours);
	assert_false(chain->entry[1].is_before_ours);
}

static int stop(void *arg, const struct natra_neighbour *entry)
{
	(void)entry;
	++*(unsigned int *)arg;
	return 7;
}

TH_TEST(natra_goes_in_front_of_who_is_first)
{
	struct chain chain;
	unsigned int calls = 0;

	GIVES(-ENOENT, natra_foreach_neighbour(n, ID, stop, &calls));
	assert_int_equal(calls, 0);
	add_clsact_other();
	attach(NATRA_ATTACH_MODE_CLSACT_HOSTSIDE);
	GIVES(7, natra_foreach_neighbour(n, ID, stop, &calls));
	assert_int_equal(calls, 1);
	chain = chain_now();
	is_natra_first(&chain);
	assert_true(chain.is_filter_of_node_side[0]);
	/* Packets that enter the host side leave the pod. */
	assert_true(chain.entry[0].hook_is_ingress);
	assert_true(chain.entry[0].is_on_host);
	assert_int_equal(chain.entry[0].priority, 1);
	assert_true(chain.entry[0].handle >= 0x1000);
}

TH_TEST(who_comes_later_finds_the_first_place_free)
{
	struct chain chain;

	attach(NATRA_ATTACH_MODE_CLSACT_HOSTSIDE);
	add_clsact_other();
	chain = chain_now();
	assert_true(chain.is_other[0]);
	assert_true(chain.entry[0].is_before_ours);
	assert_true(chain.entry[1].is_ours);
	assert_false(chain.entry[1].is_before_ours);
	assert_int_equal(chain.entry[1].priority, 2);
	assert_true(chain.entry[1].handle >= 0x1000);
	/* When natra is attached again, it comes first, and nothing is limited twice. */
	attach(NATRA_ATTACH_MODE_CLSACT_HOSTSIDE);
	chain = chain_now();
	is_natra_first(&chain);
}

static int count_sides(void *arg, const struct natra_neighbour *entry)
{
	unsigned int *sides = arg;

	if (entry->is_ours)
		sides[entry->is_on_host]++;
	return 0;
}

/* A pod may name its interface like the host's, and may move it away: neither hides the host
 * side. */
TH_TEST(host_side_is_told_from_the_pods)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	unsigned int sides[2] = {0};

	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	target.ifname = NODE_SIDE;
	rig_sh("ip -n " POD " link set eth0 down &&"
	       "ip -n " POD " link set eth0 name " NODE_SIDE);
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_foreach_neighbour(n, ID, count_sides, sides));
	assert_int_equal(sides[false], 2);
	assert_int_equal(sides[true], 1);
	/* The kernel tells that an interface is gone where it has TCX. */
	rig_sh("ip netns add far && ip -n " POD " link set " NODE_SIDE
	       " netns far");
	GIVES(rig_has_tcx() ? -ENODEV : 0,
	      natra_foreach_neighbour(n, ID, count_sides, sides));
	assert_int_equal(sides[false], 2);
	assert_int_equal(sides[true], 2);
	rig_sh("ip -n far link set " NODE_SIDE " netns " POD " name eth0 &&"
	       "ip netns del far");
}

TH_TEST(tcx_program_runs_before_others)
{
	int ifindex = (int)if_nametoindex(NODE_SIDE), fd = rig_load_pass(OTHER),
	    link;
	struct chain chain;

	if (!rig_has_tcx()) {
		(void)close(fd);
		skip();
	}
	link = bpf_link_create(fd, ifindex, BPF_TCX_INGRESS, NULL);
	assert_true(link >= 0);
	(void)close(fd);
	attach(NATRA_ATTACH_MODE_TCX_HOSTSIDE);
	chain = chain_now();
	is_natra_first(&chain);
	(void)close(link);
}

/* The owner of the clsact qdisc may be about to use it. */
TH_TEST(empty_clsact_of_another_stays)
{
	rig_sh("tc qdisc add dev " NODE_SIDE " clsact");
	attach(NATRA_ATTACH_MODE_CLSACT_HOSTSIDE);
	rig_detach(n, ID);
	rig_sh("tc qdisc show dev " NODE_SIDE " | grep -q 'qdisc clsact'");
	rig_sh("tc -n " POD " qdisc add dev eth0 clsact");
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	rig_detach(n, ID);
	rig_sh("tc -n " POD " qdisc show dev eth0 | grep -q 'qdisc clsact'");
}

/* A pod makes a filter of another kind there, so that natra's cannot be made: another mode, or an
 * error that says so, and the host side is not left out for it. */
TH_TEST(filter_in_its_place_is_no_end)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 0);

	rig_sh("tc -n " POD " qdisc add dev eth0 clsact");
	for (int priority = 1; priority <= 2; priority++)
		rig_sh("tc -n " POD
		       " filter add dev eth0 ingress protocol ip prio %d u32"
		       " match u32 0 0",
		       priority);
	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	GIVES(-EOPNOTSUPP, natra_attach(n, &target, &policy, NULL));
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_QDISC);
	says(n, "no place for natra's filter", "clsact");
	/* Without TCX this is what becomes of it. */
	policy.attach_mode = NATRA_ATTACH_MODE_AUTO;
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, ID, NULL));
	rig_detach(n, ID);
}

/* Attaches beside a filter on the host side, twice, of which the second call keeps all. */
static void holds_in_the_pod_alone(void)
{
	struct natra_stats before = NATRA_INIT(before);
	struct natra_stats after = NATRA_INIT(after);
	struct natra_info info;

	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	info = rig_query(n, ID);
	assert_int_equal(info.mode, NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	assert_true(info.ingress_prog_id && info.egress_prog_id);
	assert_int_equal(info.host_prog_id, 0);
	pod_send(&pod, 5);
	OK(natra_stats(n, ID, &before));
	assert_true(before.ingress.mice.packets >= 5);
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	OK(natra_stats(n, ID, &after));
	assert_true(after.ingress.mice.packets >= before.ingress.mice.packets);
	assert_int_equal(rig_query(n, ID).ingress_prog_id,
			 info.ingress_prog_id);
}

/* On the host side ingress is judged besides, where there is a place. */
TH_TEST(host_side_without_a_place_is_left_out)
{
	rig_sh("tc qdisc add dev " NODE_SIDE " clsact");
	rig_sh("tc filter add dev " NODE_SIDE
	       " egress protocol ip prio 2 u32 match u32 0 0");
	holds_in_the_pod_alone();
	/* The place is taken when it is free. */
	rig_sh("tc filter del dev " NODE_SIDE " egress prio 2");
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	assert_true(rig_query(n, ID).host_prog_id);
	rig_detach(n, ID);
	rig_sh("tc filter add dev " NODE_SIDE
	       " egress protocol ip prio 2 u32 match u32 0 0");
	holds_in_the_pod_alone();
	rig_detach(n, ID);
	rig_sh("tc filter show dev " NODE_SIDE " egress | grep -q u32");
	rig_sh("tc qdisc del dev " NODE_SIDE " clsact");
}

/* The filters of a block are those of all its interfaces. */
TH_TEST(host_side_with_a_shared_block_is_left_out)
{
	rig_sh("tc qdisc add dev " NODE_SIDE " egress_block 7 clsact &&"
	       "ip link add beside type veth peer name beside2 &&"
	       "tc qdisc add dev beside egress_block 7 clsact");
	holds_in_the_pod_alone();
	rig_detach(n, ID);
	rig_sh("! tc filter show block 7 | grep -q natra");
	rig_sh("ip link del beside");
}

/* natra's filter goes to the place of what is in front, if that is BPF. */
TH_TEST(host_side_with_a_place_in_front_is_used)
{
	rig_sh("tc qdisc add dev " NODE_SIDE " clsact");
	rig_sh("tc filter add dev " NODE_SIDE
	       " egress protocol ip prio 2 u32 match u32 0 0");
	add_clsact_filter(BPF_TC_EGRESS);
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	assert_true(rig_query(n, ID).host_prog_id);
}

static void pod_has_no_clsact(void)
{
	rig_sh("! tc -n " POD " qdisc show dev eth0 | grep -q 'qdisc clsact'");
}

/* A sandbox such as Kata's wants the place for an `ingress` qdisc of its own. */
TH_TEST(own_clsact_goes_with_the_limits_of_the_pod)
{
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	/* Another generation takes it over. */
	rig_sh("tc -n " POD " qdisc del dev eth0 root 2>/dev/null || :");
	rig_sh("tc -n " POD " filter del dev eth0 egress");
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	rig_detach(n, ID);
	pod_has_no_clsact();
	rig_sh("tc -n " POD " qdisc add dev eth0 ingress &&"
	       "tc -n " POD " qdisc del dev eth0 ingress");
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	attach(NATRA_ATTACH_MODE_CLSACT_HOSTSIDE);
	pod_has_no_clsact();
	/* A filter of another's keeps it. */
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	rig_sh("tc -n " POD " filter add dev eth0 egress protocol ip prio 9 u32"
	       " match u32 0 0");
	rig_detach(n, ID);
	rig_sh("tc -n " POD " filter show dev eth0 egress | grep -q u32");
}

/* What a pod with very many filters on its own interface shows. */
struct crowd {
	size_t entries, before, ours;
};

static int count_crowd(void *arg, const struct natra_neighbour *entry)
{
	struct crowd *crowd = arg;

	crowd->entries++;
	crowd->before += entry->is_before_ours;
	crowd->ours += entry->is_ours;
	return 0;
}

static void add_filters(int priority, int filters)
{
	rig_sh("for i in $(seq %d); do echo filter add dev eth0 egress protocol ip"
	       " prio %d u32 match u32 $i 0xffffffff at 16; done |"
	       " tc -n " POD " -b -",
	       filters, priority);
}

static struct crowd crowd_now(void)
{
	struct crowd crowd = {0};

	OK(natra_foreach_neighbour(n, ID, count_crowd, &crowd));
	return crowd;
}

/* The pod makes a thousand filters in front of natra's, and as many behind it. All calls find
 * natra's own filter, and look at few of the others. */
TH_TEST(very_many_filters_are_not_all_read)
{
	struct crowd crowd;

	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	add_filters(100, 1000);
	crowd = crowd_now();
	assert_in_range(crowd.entries, 2, 200);
	assert_int_equal(crowd.before, 0);
	assert_int_equal(crowd.ours, 3);
	add_filters(1, 1000);
	crowd = crowd_now();
	assert_in_range(crowd.entries, 2, 200);
	assert_in_range(crowd.before, 1, 200);
	assert_int_equal(crowd.ours, 3);
	OK(natra_check(n, ID, NULL));
	/* Attaching anew and detaching find it, too. */
	attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE);
	rig_detach(n, ID);
	rig_sh("! tc -n " POD " filter show dev eth0 egress | grep -q natra");
}

static void is_not_found_here(const struct natra_policy *policy)
{
	struct natra_target target = pod_target(&pod, ID);

	target.ifname = "eth1";
	GIVES(-EOPNOTSUPP, natra_attach(n, &target, policy, NULL));
	says(n, "eth1", "peer");
}

/*
 * The peer of eth1 is in another namespace, where it has an index that a veth
 * of the node has, too. The node's veth is first a peer of this pod's eth2, and
 * then one whose peer, in a third namespace, has the index of eth1.
 */
TH_TEST(stranger_with_the_index_of_the_peer_is_left_alone)
{
	struct natra_policy policy = policy_of(10, 20);

	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	rig_sh("ip netns add far && ip -n far link add peer1 index 771 type veth"
	       " peer name eth1 index 772 netns " POD " &&"
	       "ip link add own index 771 type veth peer name eth2 netns " POD);
	is_not_found_here(&policy);
	rig_sh("ip link del own && ip netns add third &&"
	       "ip link add own index 771 type veth"
	       " peer name eth2 index 772 netns third");
	is_not_found_here(&policy);
	rig_sh("! tc qdisc show dev own | grep -q clsact");
	rig_sh("ip link del own && ip netns del third && ip netns del far");
}

static void keep_warning(void *arg, enum natra_log_level level,
			 const char *line)
{
	if (level == NATRA_LOG_WARN)
		(void)snprintf(arg, LINE_MAX, "%s", line);
}

/* Attaches to one end of the veth as `id`, while the other one has limits of `beside`. */
static void warns_of(const char *beside, const char *id, const char *ifname)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_target target = pod_target(&pod, id);
	struct natra_policy policy = policy_of(10, 20);
	char line[LINE_MAX] = "";
	struct natra *logged;

	target.ifname = ifname;
	target.netns = strcmp(ifname, NODE_SIDE) == 0 ? NULL : pod.path;
	opts.bpffs_path = BPFFS;
	opts.log_fn = keep_warning;
	opts.log_arg = line;
	assert_int_equal(natra_open(&logged, &opts), 0);
	assert_int_equal(natra_attach(logged, &target, &policy, NULL), 0);
	if (beside)
		assert_non_null(strstr(line, beside));
	else
		assert_string_equal(line, "");
	natra_close(logged);
}

/* What the node sends into the pod goes out of the host's end. */
TH_TEST(both_ends_of_a_veth_have_limits)
{
	struct natra_stats stats = NATRA_INIT(stats);

	warns_of(NULL, END, NODE_SIDE);
	pod_send(&pod, 5);
	assert_int_equal(natra_stats(n, END, &stats), 0);
	assert_true(stats.egress.mice.packets >= 5);
	warns_of("has the limits of '" END "'", ID, "eth0");
	rig_detach(n, END);
	warns_of("has the limits of '" ID "'", END, NODE_SIDE);
	rig_detach(n, END);
}

static bool has_fq(void)
{
	struct natra_features features = NATRA_INIT(features);

	OK(natra_probe(n, &features));
	return features.fq;
}

/* Attaches to one end of the veth, where the kernel has fq. */
static void attach_paced(const char *id, const char *ifname)
{
	struct natra_target target = pod_target(&pod, id);
	struct natra_policy policy = policy_of(10, 0);

	if (strcmp(ifname, NODE_SIDE) == 0) {
		target.ifname = ifname;
		target.netns = NULL;
		policy = policy_of(0, 20);
	} else {
		policy.ingress_mode = NATRA_INGRESS_MODE_PACE;
	}
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, id, NULL));
}

/* An interface has one fq, which holds the packets of whoever is attached there, by TCX or clsact. */
TH_TEST(fq_goes_with_the_last_who_needs_it)
{
	static const char *const ids[] = {ID, END};
	static const char *const at[] = {"eth0", NODE_SIDE};

	if (!has_fq())
		skip();
	for (int first = 0; first < 2; first++) {
		attach_paced(ids[first], at[first]);
		attach_paced(ids[!first], at[!first]);
		assert_true(rig_query(n, END).fq_is_ours);
		assert_true(rig_query(n, ID).host_fq_is_ours);
		rig_detach(n, ids[first]);
		OK(natra_check(n, ids[!first], NULL));
		rig_detach(n, ids[!first]);
		rig_sh("! tc qdisc show dev " NODE_SIDE " | grep -w fq");
	}
}

/* The filter has no place, which shows when fq is there. */
TH_TEST(fq_of_another_stays_where_an_attach_fails)
{
	struct natra_target target = pod_target(&pod, END);
	struct natra_policy policy = policy_of(10, 20);

	if (!has_fq())
		skip();
	attach_paced(ID, "eth0");
	target.ifname = NODE_SIDE;
	target.netns = NULL;
	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	rig_sh("tc qdisc add dev " NODE_SIDE " clsact 2>/dev/null || :");
	rig_sh("tc filter add dev " NODE_SIDE
	       " ingress protocol ip prio 2 u32 match u32 0 0");
	GIVES(-EOPNOTSUPP, natra_attach(n, &target, &policy, NULL));
	says(n, "no place for natra's filter", "clsact");
	OK(natra_check(n, ID, NULL));
	rig_detach(n, ID);
	rig_sh("! tc qdisc show dev " NODE_SIDE " | grep -w fq");
}

POD_MAIN()
