/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check subnets in the life of an attachment. */
#include "one_pod.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const given[] = {"10.78.3.2/8", "2001:db8::/32",
				    "10.0.0.0/8"};
static const char *const same[] = {"2001:db8:5::1/32", "10.255.0.0/8"};
static const char *const other[] = {"10.0.0.0/8", "2001:db8::/33"};

static struct natra_policy shaped(const char *const *blocks, size_t len)
{
	struct natra_policy policy = policy_of(10, 20);

	policy.shaped_subnets = blocks;
	policy.shaped_subnets_len = len;
	return policy;
}

static struct natra_policy unshaped(const char *const *blocks, size_t len)
{
	struct natra_policy policy = policy_of(10, 20);

	policy.unshaped_subnets = blocks;
	policy.unshaped_subnets_len = len;
	return policy;
}

struct blocks {
	char text[8][64];
	size_t len;
	int result;
};

static int note(void *arg, const char *cidr)
{
	struct blocks *blocks = arg;

	assert_true(blocks->len < 8);
	(void)snprintf(blocks->text[blocks->len++], sizeof(blocks->text[0]),
		       "%s", cidr);
	return blocks->result;
}

TH_TEST(what_was_given_is_told)
{
	struct natra_policy policy = shaped(given, 3);
	struct blocks blocks = {.len = 0};
	struct natra_info info;

	GIVES(-ENOENT, natra_foreach_subnet(n, ID, note, &blocks));
	says(n, ID, NULL);
	assert_int_equal(attach_pod(&policy), 0);
	info = rig_query(n, ID);
	assert_int_equal(info.policy.shaped_subnets_len, 2);
	assert_int_equal(info.policy.unshaped_subnets_len, 0);
	assert_null(info.policy.shaped_subnets);
	assert_null(info.effective.shaped_subnets);
	OK(natra_foreach_subnet(n, ID, note, &blocks));
	assert_int_equal(blocks.len, 2);
	assert_string_equal(blocks.text[0], "10.0.0.0/8");
	assert_string_equal(blocks.text[1], "2001:db8::/32");
	blocks = (struct blocks){.result = 9};
	GIVES(9, natra_foreach_subnet(n, ID, note, &blocks));
	assert_int_equal(blocks.len, 1);
	assert_int_equal(natra_foreach_subnet(n, ID, NULL, NULL), -EINVAL);
	says(n, "fn", NULL);
}

/* Other blocks are changed in place. The attachment is replaced if the kind of list differs,
 * or whether there is a list. */
TH_TEST(other_subnets_change_it)
{
	const struct {
		struct natra_policy policy;
		bool in_place;
	} steps[] = {
		{shaped(given, 3), false},   {shaped(other, 2), true},
		{unshaped(other, 2), false}, {unshaped(other, 1), true},
		{policy_of(10, 20), false},  {shaped(other, 1), false},
	};
	uint32_t before = 0;

	for (size_t i = 0; i < TH_LEN(steps); i++) {
		struct natra_info info;

		assert_int_equal(attach_pod(&steps[i].policy), 0);
		info = rig_query(n, ID);
		assert_int_equal(info.ingress_prog_id == before,
				 steps[i].in_place);
		before = info.ingress_prog_id;
		assert_int_equal(natra_check(n, ID, &steps[i].policy), 0);
	}
}

/* Returns the packets into the pod that are exempt. */
static uint64_t exempt(void)
{
	struct natra_stats stats = NATRA_INIT(stats);

	OK(natra_stats(n, ID, &stats));
	return stats.ingress.unlimited.packets;
}

/* The programs and counters stay, and the next packet is judged by the new list. */
TH_TEST(configure_changes_them)
{
	static const char *const peer[] = {"10.78.0.0/16"};
	static const char *const nobody[] = {"192.0.2.0/24"};
	struct natra_policy policy = unshaped(nobody, 1);
	struct blocks blocks = {.len = 0};
	struct natra_info before, after;

	assert_int_equal(attach_pod(&policy), 0);
	before = rig_query(n, ID);
	pod_send(&pod, 10);
	assert_int_equal(exempt(), 0);
	policy = unshaped(peer, 1);
	OK(natra_configure(n, ID, &policy));
	pod_send(&pod, 10);
	assert_int_equal(exempt(), 10);
	after = rig_query(n, ID);
	assert_int_equal(after.ingress_prog_id, before.ingress_prog_id);
	assert_int_equal(natra_foreach_subnet(n, ID, note, &blocks), 0);
	assert_int_equal(blocks.len, 1);
	assert_string_equal(blocks.text[0], "10.78.0.0/16");
	OK(natra_check(n, ID, &policy));
	/* Another kind of list takes an attach. */
	policy = shaped(nobody, 1);
	OK(natra_configure(n, ID, &policy));
	/* Those by which IPv6 finds neighbours are exempt as well. */
	assert_in_range(exempt(), 0, 9);
	pod_send(&pod, 10);
	assert_in_range(exempt(), 10, 19);
	OK(natra_check(n, ID, &policy));
}

static int count_class(void *arg, const struct natra_class *class)
{
	(void)class;
	++*(int *)arg;
	return 0;
}

/* Each list stays if a change names only the other one, and is told as what it is. */
TH_TEST(they_stand_beside_classes)
{
	static const char *const peer[] = {"10.78.0.0/16"};
	static const char *const lan[] = {"10.0.0.0/8"};
	struct natra_class class = {
		.sz = sizeof(class),
		.name = "lan",
		.ingress_rate_bits_per_sec = MBIT,
		.subnets = lan,
		.subnets_len = 1,
	};
	struct natra_policy policy = unshaped(peer, 1);
	struct natra_stats stats = NATRA_INIT(stats);
	struct blocks blocks = {.len = 0};
	struct natra_info info;
	int classes = 0;

	policy.classes = &class;
	policy.classes_len = 1;
	assert_int_equal(attach_pod(&policy), 0);
	pod_send(&pod, 10);
	assert_int_equal(exempt(), 10);
	assert_int_equal(natra_class_stats(n, ID, "lan", &stats), 0);
	assert_int_equal(stats.ingress.unlimited.packets, 0);
	info = rig_query(n, ID);
	assert_int_equal(info.policy.unshaped_subnets_len, 1);
	assert_int_equal(info.policy.classes_len, 1);
	assert_int_equal(natra_foreach_class(n, ID, count_class, &classes), 0);
	assert_int_equal(classes, 1);
	assert_int_equal(natra_foreach_subnet(n, ID, note, &blocks), 0);
	assert_int_equal(blocks.len, 1);

	policy = unshaped(other, 2);
	GIVES(-EINVAL, natra_configure(n, ID, &policy));
	says(n, "'10.0.0.0/8'", "'lan'");
	policy = unshaped(given + 1, 1);
	OK(natra_configure(n, ID, &policy));
	pod_send(&pod, 10);
	assert_int_equal(exempt(), 10);
	assert_int_equal(natra_class_stats(n, ID, "lan", &stats), 0);
	assert_int_equal(stats.ingress.mice.packets, 10);
	policy = policy_of(10, 20);
	policy.classes = &class;
	policy.classes_len = 1;
	class.ingress_rate_bits_per_sec = 2 * MBIT;
	OK(natra_configure(n, ID, &policy));
	policy.unshaped_subnets = given + 1;
	policy.unshaped_subnets_len = 1;
	OK(natra_check(n, ID, &policy));
	policy.unshaped_subnets = peer;
	GIVES(-EBADE, natra_check(n, ID, &policy));
}

TH_TEST(configure_keeps_them)
{
	struct natra_policy policy = unshaped(given, 3);
	struct blocks blocks = {.len = 0};
	struct natra_info info;

	policy.egress_rate_bits_per_sec = 0;
	assert_int_equal(attach_pod(&policy), 0);

	/* These changes name no subnets, then the same ones, then those of a
	 * query. */
	policy = policy_of(30, 0);
	OK(natra_configure(n, ID, &policy));
	policy = unshaped(same, 2);
	policy.egress_rate_bits_per_sec = 0;
	OK(natra_configure(n, ID, &policy));
	info = rig_query(n, ID);
	info.policy.ingress_rate_bits_per_sec = 40 * MBIT;
	OK(natra_configure(n, ID, &info.policy));
	OK(natra_check(n, ID, &info.policy));

	/* A direction that is limited now gets the subnets, too. */
	policy = policy_of(40, 50);
	OK(natra_configure(n, ID, &policy));
	info = rig_query(n, ID);
	assert_true(info.egress_prog_id != 0);
	assert_int_equal(info.policy.unshaped_subnets_len, 2);
	assert_int_equal(natra_foreach_subnet(n, ID, note, &blocks), 0);
	assert_int_equal(blocks.len, 2);
	assert_string_equal(blocks.text[1], "2001:db8::/32");

	/* What another process had read before they changed. */
	info.policy.unshaped_subnets_len = 3;
	GIVES(-EINVAL, natra_configure(n, ID, &info.policy));
	says(n, "unshaped_subnets", "3");
	info.policy.unshaped_subnets_len = 0;
	info.policy.shaped_subnets_len = 2;
	GIVES(-EINVAL, natra_configure(n, ID, &info.policy));
	says(n, "shaped_subnets", "2");
	policy = unshaped(same, 2);
	policy.ingress_rate_bits_per_sec = 40 * MBIT;
	policy.egress_rate_bits_per_sec = 50 * MBIT;
	OK(natra_check(n, ID, &policy));
}

TH_TEST(check_compares_them)
{
	struct natra_policy policy = shaped(given, 3);

	assert_int_equal(attach_pod(&policy), 0);
	OK(natra_check(n, ID, NULL));
	policy = shaped(same, 2);
	OK(natra_check(n, ID, &policy));
	policy = shaped(other, 2);
	GIVES(-EBADE, natra_check(n, ID, &policy));
	says(n, ID, "subnets: ");
	policy = unshaped(same, 2);
	GIVES(-EBADE, natra_check(n, ID, &policy));
	says(n, ID, "subnets: ");
	policy = policy_of(10, 20);
	GIVES(-EBADE, natra_check(n, ID, &policy));
	says(n, ID, "subnets: ");
}

TH_TEST(check_misses_the_pin)
{
	struct natra_policy policy = shaped(given, 3);
	struct blocks blocks = {.len = 0};
	struct natra_info info;
	char path[600];

	assert_int_equal(attach_pod(&policy), 0);
	info = rig_query(n, ID);
	(void)snprintf(path, sizeof(path), "%s/subnets", info.pin_path);
	assert_int_equal(unlink(path), 0);
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, "subnets", NULL);
	GIVES(-ENOENT, natra_foreach_subnet(n, ID, note, &blocks));
	says(n, "subnets", ID);
	/* Attaching again repairs it. */
	assert_int_equal(attach_pod(&policy), 0);
	OK(natra_check(n, ID, &policy));
}

POD_MAIN()
