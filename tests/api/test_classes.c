/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check classes of peers in the life of an attachment. The pod's peer is
 * 10.78.N.1. */
#include "one_pod.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const peer[] = {"10.78.0.0/16", "2001:db8::/32"};
static const char *const others[] = {"192.0.2.77/24", "10.78.255.0/24"};

static struct natra_class make(const char *name, const char *const *subnets,
			       size_t len, uint64_t in_mbit, uint64_t out_mbit)
{
	return (struct natra_class){
		.sz = sizeof(struct natra_class),
		.name = name,
		.subnets = subnets,
		.subnets_len = len,
		.ingress_rate_bits_per_sec = in_mbit * MBIT,
		.egress_rate_bits_per_sec = out_mbit * MBIT,
	};
}

/* The classes that cases begin with, and their policy. */
static struct natra_class list[2];

static struct natra_policy begin(void)
{
	struct natra_policy policy = policy_of(10, 20);

	list[0] = make("near", peer, 2, 100, 200);
	list[1] = make("far", others, 2, 1, 0);
	list[1].dscps = UINT64_C(1) << 46;
	policy.classes = list;
	policy.classes_len = 2;
	return policy;
}

struct told {
	char text[512];
	int result;
};

static int tell(void *arg, const struct natra_class *c)
{
	struct told *told = arg;
	size_t len = strlen(told->text);

	len += (size_t)snprintf(
		told->text + len, sizeof(told->text) - len, "%s %llu %llu %llx",
		c->name, (unsigned long long)c->ingress_rate_bits_per_sec,
		(unsigned long long)c->egress_rate_bits_per_sec,
		(unsigned long long)c->dscps);
	for (size_t i = 0; i < c->subnets_len; i++)
		len += (size_t)snprintf(told->text + len,
					sizeof(told->text) - len, " %s",
					c->subnets[i]);
	(void)snprintf(told->text + len, sizeof(told->text) - len, "; ");
	return told->result;
}

static void are_told(const char *text)
{
	struct told told = {.result = 0};

	OK(natra_foreach_class(n, ID, tell, &told));
	assert_string_equal(told.text, text);
}

#define BEGUN                                                                  \
	"near 100000000 200000000 0 10.78.0.0/16 2001:db8::/32; "              \
	"far 1000000 0 400000000000 10.78.255.0/24 192.0.2.0/24; "

TH_TEST(what_was_given_is_told)
{
	struct natra_policy policy = begin();
	struct told told = {.result = 7};
	struct natra_info info;

	assert_int_equal(natra_foreach_class(n, ID, tell, &told), -ENOENT);
	assert_int_equal(attach_pod(&policy), 0);
	info = rig_query(n, ID);
	assert_int_equal(info.policy.classes_len, 2);
	assert_null(info.policy.classes);
	assert_int_equal(info.policy.ingress_rate_bits_per_sec, 10 * MBIT);
	are_told(BEGUN);
	assert_int_equal(natra_foreach_class(n, ID, tell, &told), 7);
	assert_int_equal(natra_foreach_class(n, ID, NULL, NULL), -EINVAL);
	says(n, "fn", NULL);
}

/* Returns the packets into the pod that a class has counted; NULL stands for the rest. */
static uint64_t counted(const char *name)
{
	struct natra_stats stats = NATRA_INIT(stats);
	int r = name ? KEPT(natra_class_stats(n, ID, name, &stats))
		     : KEPT(natra_stats(n, ID, &stats));

	if (r < 0)
		fail_msg("%s", natra_error(n));
	return stats.ingress.mice.packets + stats.ingress.admitted.packets +
	       stats.ingress.unlimited.packets +
	       stats.ingress.dropped_rate.packets;
}

struct counts {
	char names[64];
	uint64_t packets[2];
	size_t len;
	int result;
};

static int count(void *arg, const struct natra_class *class,
		 const struct natra_stats *stats)
{
	struct counts *counts = arg;
	const size_t at = strlen(counts->names);

	(void)snprintf(counts->names + at, sizeof(counts->names) - at,
		       "%s %llu %zu; ", class->name,
		       (unsigned long long)class->ingress_rate_bits_per_sec,
		       class->subnets_len);
	counts->packets[counts->len++ % 2] = stats->ingress.mice.packets;
	return counts->result;
}

TH_TEST(each_counts_its_own)
{
	struct natra_policy policy = begin();
	struct natra_stats stats = NATRA_INIT(stats);
	struct counts counts = {.len = 0};
	uint64_t rest;

	GIVES(-ENOENT, natra_foreach_class_stats(n, ID, count, &counts));
	assert_int_equal(attach_pod(&policy), 0);
	rest = counted(NULL);
	pod_send(&pod, 30);
	assert_int_equal(counted("near"), 30);
	assert_int_equal(counted("far"), 0);
	assert_true(counted(NULL) - rest < 30);
	assert_int_equal(natra_class_stats(n, ID, "fart", &stats), -ENOENT);
	says(n, ID, "'fart'");
	assert_int_equal(natra_class_stats(n, ID, NULL, &stats), -EINVAL);

	OK(natra_foreach_class_stats(n, ID, count, &counts));
	assert_string_equal(counts.names, "near 100000000 0; far 1000000 0; ");
	assert_int_equal(counts.packets[0], 30);
	assert_int_equal(counts.packets[1], 0);
	counts.result = 7;
	GIVES(7, natra_foreach_class_stats(n, ID, count, &counts));
	assert_int_equal(counts.len, 3);
	assert_int_equal(natra_foreach_class_stats(n, ID, NULL, NULL), -EINVAL);
	says(n, "fn", NULL);
}

TH_TEST(top_has_the_flows_of_all)
{
	struct natra_policy policy = begin();
	struct natra_flow flows[4];
	size_t len = 4;

	policy.fast_pass = NATRA_FAST_PASS_OFF;
	assert_int_equal(attach_pod(&policy), 0);
	pod_send(&pod, 5);
	OK(natra_top(n, ID, NATRA_DIRECTION_INGRESS, flows, &len));
	/* The rest may have flows, such as those by which IPv6 finds neighbours. */
	assert_true(len >= 1);
	while (flows[len - 1].ip_version != 4 && len > 1)
		len--;
	assert_int_equal(flows[len - 1].packets, 5);
	assert_int_equal(flows[len - 1].dport, 9);
}

/* The change of a list is live: programs and counters stay, and the next packet is
 * judged by the new one. */
TH_TEST(configure_changes_them)
{
	struct natra_policy policy = begin();
	struct natra_info before, after;

	assert_int_equal(attach_pod(&policy), 0);
	before = rig_query(n, ID);
	pod_send(&pod, 10);
	list[0].subnets = others;
	list[1].subnets = peer;
	list[1].subnets_len = 1;
	list[1].ingress_rate_bits_per_sec = 7 * MBIT;
	list[1].dscps = 1;
	OK(natra_configure(n, ID, &policy));
	after = rig_query(n, ID);
	assert_int_equal(after.ingress_prog_id, before.ingress_prog_id);
	assert_int_equal(after.egress_prog_id, before.egress_prog_id);
	pod_send(&pod, 20);
	assert_int_equal(counted("near"), 10);
	assert_int_equal(counted("far"), 20);
	are_told("near 100000000 200000000 0 10.78.255.0/24 192.0.2.0/24; "
		 "far 7000000 0 1 10.78.0.0/16; ");
	OK(natra_check(n, ID, NULL));
	OK(natra_check(n, ID, &policy));

	/* Without classes, and as natra_query reports them, they stay. */
	policy = policy_of(11, 22);
	OK(natra_configure(n, ID, &policy));
	after = rig_query(n, ID);
	OK(natra_configure(n, ID, &after.policy));
	OK(natra_check(n, ID, &after.policy));
	assert_int_equal(after.ingress_prog_id, before.ingress_prog_id);
	assert_int_equal(counted("far"), 20);
}

/* What a process has read before another one changed the classes. */
TH_TEST(a_stale_policy_is_refused)
{
	struct natra_policy policy = begin(), stale;
	char *before;

	assert_int_equal(attach_pod(&policy), 0);
	before = rig_state();
	stale = rig_query(n, ID).policy;
	for (stale.classes_len = 0; stale.classes_len < 4;
	     stale.classes_len++) {
		if (stale.classes_len == 2 || !stale.classes_len)
			continue;
		GIVES(-EINVAL, natra_configure(n, ID, &stale));
		says(n, "classes", "there are 2");
	}
	OK(natra_check(n, ID, &policy));
	rig_same_state(before);
	free(before);
}

/* While the bandwidth plugin's queue drains into the pod, the limits of classes do not hold
 * either, and those of the other direction do. */
TH_TEST(a_drain_lifts_them)
{
	static const char *const all[] = {"0.0.0.0/0"};
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = begin();
	struct natra_stats stats = NATRA_INIT(stats);

	list[0] = make("all", all, 1, 1, 1);
	policy.classes_len = 1;
	assert_int_equal(attach_pod(&policy), 0);
	rig_sh("tc qdisc add dev " NODE_SIDE
	       " root handle 1: tbf rate 8kbit burst 1600 limit 64k");
	device_send(NODE_SIDE, 200);
	OK(natra_drain_leftovers(n, &target));
	assert_int_equal(natra_class_stats(n, ID, "all", &stats), 0);
	assert_in_range(stats.backstop.unlimited.packets, 100, 200);
	assert_int_equal(stats.egress.unlimited.packets, 0);
	OK(natra_check(n, ID, &policy));
}

/* Other names take other slots, so the interface is attached again. */
TH_TEST(other_names_replace_it)
{
	struct natra_policy policy = begin();

	assert_int_equal(attach_pod(&policy), 0);
	pod_send(&pod, 10);
	list[0].name = "nearer";
	OK(natra_configure(n, ID, &policy));
	assert_int_equal(counted("nearer"), 0);
	pod_send(&pod, 10);
	assert_int_equal(counted("nearer"), 10);
	policy.classes_len = 1;
	assert_int_equal(attach_pod(&policy), 0);
	OK(natra_check(n, ID, &policy));
	policy.classes_len = 0;
	GIVES(-EBADE, natra_check(n, ID, &policy));
	assert_int_equal(attach_pod(&policy), 0);
	are_told("");
	OK(natra_check(n, ID, &policy));
}

/* Without any limit it stays attached, and has what the next one needs. */
TH_TEST(an_empty_list_takes_them_away)
{
	struct natra_policy policy = begin(), none = NATRA_INIT(none);
	struct natra_info before, after;
	struct natra_stats stats = NATRA_INIT(stats);
	bool has_edt;

	assert_int_equal(attach_pod(&policy), 0);
	has_edt = rig_query(n, ID).edt_active;
	none.classes = list;
	OK(natra_configure(n, ID, &none));
	are_told("");
	OK(natra_upgrade(n, ID));
	OK(natra_check(n, ID, &none));
	pod_send(&pod, 10);
	assert_int_equal(natra_stats(n, ID, &stats), 0);
	assert_int_equal(stats.ingress.unlimited.packets, 10);
	before = rig_query(n, ID);
	assert_true(before.edt_active == has_edt);
	policy.classes = NULL;
	policy.classes_len = 0;
	OK(natra_configure(n, ID, &policy));
	after = rig_query(n, ID);
	assert_int_equal(after.egress_prog_id, before.egress_prog_id);
	assert_int_equal(after.ingress_prog_id, before.ingress_prog_id);
	OK(natra_check(n, ID, &policy));
}

/* An attach with the same names keeps the programs, and changes the rest live. */
TH_TEST(attach_keeps_the_programs)
{
	struct natra_policy policy = begin();
	struct natra_info before, after;

	assert_int_equal(attach_pod(&policy), 0);
	before = rig_query(n, ID);
	list[0].egress_rate_bits_per_sec = 5 * MBIT;
	assert_int_equal(attach_pod(&policy), 0);
	after = rig_query(n, ID);
	assert_int_equal(after.ingress_prog_id, before.ingress_prog_id);
	are_told("near 100000000 5000000 0 10.78.0.0/16 2001:db8::/32; "
		 "far 1000000 0 400000000000 10.78.255.0/24 192.0.2.0/24; ");
	OK(natra_upgrade(n, ID));
	assert_int_equal(rig_query(n, ID).ingress_prog_id,
			 before.ingress_prog_id);
	OK(natra_check(n, ID, &policy));
}

/* A direction is limited if a class has a rate for it. */
TH_TEST(classes_alone_are_enough)
{
	struct natra_policy policy = begin();
	struct natra_info info;

	policy.ingress_rate_bits_per_sec = 0;
	policy.egress_rate_bits_per_sec = 0;
	list[0].egress_rate_bits_per_sec = 0;
	assert_int_equal(attach_pod(&policy), 0);
	info = rig_query(n, ID);
	assert_true(info.ingress_prog_id != 0);
	assert_int_equal(info.egress_prog_id, 0);
	list[0].egress_rate_bits_per_sec = 3 * MBIT;
	OK(natra_configure(n, ID, &policy));
	info = rig_query(n, ID);
	assert_true(info.egress_prog_id != 0);
	OK(natra_check(n, ID, &policy));
}

TH_TEST(check_compares_them)
{
	struct natra_policy policy = begin();
	struct natra_info info;
	char path[600];

	assert_int_equal(attach_pod(&policy), 0);
	OK(natra_check(n, ID, &policy));
	list[1].ingress_rate_bits_per_sec++;
	GIVES(-EBADE, natra_check(n, ID, &policy));
	policy = begin();
	list[0].subnets_len = 1;
	GIVES(-EBADE, natra_check(n, ID, &policy));
	policy = policy_of(10, 20);
	GIVES(-EBADE, natra_check(n, ID, &policy));

	/* The pins are compared with what programs use. */
	info = rig_query(n, ID);
	(void)snprintf(path, sizeof(path), "%s/classes", info.pin_path);
	rig_replace_pin(path, BPF_MAP_TYPE_ARRAY, 768 * NATRA_CLASSES_MAX, 1,
			0);
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, "limits", NULL);
	assert_int_equal(unlink(path), 0);
	GIVES(-EBADE, natra_check(n, ID, NULL));
	policy = begin();
	assert_int_equal(attach_pod(&policy), 0);
	OK(natra_check(n, ID, &policy));
	are_told(BEGUN);
}

TH_TEST(bad_ones_are_refused)
{
	struct natra_policy policy = begin();
	char *before = rig_state();

	list[1].name = "near";
	assert_int_equal(attach_pod(&policy), -EINVAL);
	says(n, "classes", "'near' is there twice");
	policy = begin();
	list[1].sz--;
	assert_int_equal(attach_pod(&policy), -EINVAL);
	says(n, "classes.sz", NULL);
	policy = begin();
	policy.classes = NULL;
	assert_int_equal(attach_pod(&policy), -EINVAL);
	says(n, "classes", "NULL");
	policy = begin();
	policy.ingress_rate_bits_per_sec = policy.egress_rate_bits_per_sec = 0;
	list[0] = make("near", peer, 2, 0, 0);
	policy.classes_len = 1;
	assert_int_equal(attach_pod(&policy), -EINVAL);
	says(n, "at least one", NULL);
	rig_same_state(before);
	free(before);
}

/* Attachments share banks, and give back all slots that they had. */
TH_TEST(slots_are_given_back)
{
	struct natra_policy policy = begin();
	unsigned int pins = 0;

	for (int i = 0; i < 12; i++) {
		struct natra_info info;

		list[0].name = i % 2 ? "near" : "nearer";
		assert_int_equal(attach_pod(&policy), 0);
		info = rig_query(n, ID);
		assert_int_equal(info.policy.classes_len, 2);
		/* The second attach may need a second bank. */
		if (i == 2)
			pins = rig_pins();
		if (i > 2)
			assert_true(rig_pins() <= pins);
	}
}

TH_TEST(a_record_alone_has_them)
{
	struct natra_policy policy = begin();
	struct natra_target target = pod_target(&pod, ID);

	OK(natra_record_unshaped(n, &target, &policy, "no reason"));
	are_told(BEGUN);
	assert_int_equal(attach_pod(&policy), 0);
	are_told(BEGUN);
}

TH_TEST(in_every_mode)
{
	struct natra_policy policy = begin();

	for (int m = NATRA_ATTACH_MODE_TCX_PODSIDE; m < NATRA_ATTACH_MODE_MAX;
	     m++) {
		if (!rig_has_tcx() && (m == NATRA_ATTACH_MODE_TCX_PODSIDE ||
				       m == NATRA_ATTACH_MODE_TCX_HOSTSIDE))
			continue;
		policy.attach_mode = (enum natra_attach_mode)m;
		assert_int_equal(attach_pod(&policy), 0);
		OK(natra_check(n, ID, &policy));
		pod_send(&pod, 3);
		assert_int_equal(counted("near"), 3);
	}
}

static _Atomic bool ends;

/* Gives the attachment a class and takes it away, in turn. */
static void *change_again(void *arg)
{
	struct natra *other = rig_open();
	int *result = arg;

	for (unsigned int i = 0; !ends && *result == 0; i++) {
		struct natra_policy policy = begin();

		policy.classes_len = i & 1;
		*result = natra_configure(other, ID, &policy);
	}
	natra_close(other);
	return NULL;
}

static int count_class(void *arg, const struct natra_class *c,
		       const struct natra_stats *stats)
{
	unsigned int *count = arg;

	(void)c;
	(void)stats;
	++*count;
	return 0;
}

/* A walk while classes come and go tells of those of one moment, or of none. */
TH_TEST(a_walk_beside_changes_does_not_fail)
{
	struct natra_policy policy = begin();
	const time_t until = time(NULL) + 4;
	unsigned int none = 0, one = 0;
	pthread_t thread;
	int result = 0, r = 0;

	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(pthread_create(&thread, NULL, change_again, &result),
			 0);
	while (r == 0 && (time(NULL) < until ||
			  ((!none || !one) && time(NULL) < until + 20))) {
		unsigned int count = 0;

		r = natra_foreach_class_stats(n, ID, count_class, &count);
		none += count == 0;
		one += count == 1;
	}
	ends = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(result, 0);
	if (r)
		fail_msg("%d: %s", r, natra_error(n));
	assert_true(none && one);
}

POD_MAIN()
