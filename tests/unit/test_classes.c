/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check classes as text, what a policy may have of them, and their limits. */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/class_check.h"
#include "policy/classes.h"
#include "policy/fields.h"
#include "policy_of.h"

static struct natra_class *parse(const char *text,
				 const struct natra_class *base)
{
	struct natra_class *class = NULL;
	const char *item = NULL;

	assert_int_equal(natra_parse_class(text, base, &class, &item), 0);
	assert_null(item);
	assert_int_equal(class->sz, sizeof(*class));
	return class;
}

TH_TEST(text_is_read)
{
	struct natra_class *c =
		parse("cluster=10.0.0.0/8,ingress-rate=1G,fd00::/8,"
		      "egress-rate=10M,dscp=46,dscp=8-9",
		      NULL);

	assert_string_equal(c->name, "cluster");
	assert_int_equal(c->ingress_rate_bits_per_sec, 1000000000);
	assert_int_equal(c->egress_rate_bits_per_sec, 10000000);
	assert_true(c->dscps ==
		    (UINT64_C(1) << 46 | UINT64_C(1) << 8 | UINT64_C(1) << 9));
	assert_int_equal(c->subnets_len, 2);
	assert_string_equal(c->subnets[0], "10.0.0.0/8");
	assert_string_equal(c->subnets[1], "fd00::/8");
	free(c);
	c = parse("bare", NULL);
	assert_string_equal(c->name, "bare");
	assert_int_equal(c->subnets_len, 0);
	free(c);
	c = parse("dscps=dscp=0,dscp=63", NULL);
	assert_true(c->dscps == (UINT64_C(1) | UINT64_C(1) << 63));
	free(c);
}

TH_TEST(text_keeps_what_it_leaves_out)
{
	struct natra_class *base = parse(
		"a=10.0.0.0/8,11.0.0.0/8,ingress-rate=1M,egress-rate=2M,dscp=5",
		NULL);
	struct natra_class *c = parse("a=ingress-rate=3M", base);

	assert_int_equal(c->ingress_rate_bits_per_sec, 3000000);
	assert_int_equal(c->egress_rate_bits_per_sec, 2000000);
	assert_true(c->dscps == UINT64_C(1) << 5);
	assert_int_equal(c->subnets_len, 2);
	assert_string_equal(c->subnets[1], "11.0.0.0/8");
	free(c);
	c = parse("a=12.0.0.0/8,dscp=6,egress-rate=unlimited", base);
	assert_int_equal(c->subnets_len, 1);
	assert_string_equal(c->subnets[0], "12.0.0.0/8");
	assert_true(c->dscps == UINT64_C(1) << 6);
	assert_int_equal(c->ingress_rate_bits_per_sec, 1000000);
	assert_int_equal(c->egress_rate_bits_per_sec, 0);
	free(c);
	c = parse("a=none,dscp=none", base);
	assert_int_equal(c->subnets_len, 0);
	assert_true(c->dscps == 0);
	free(c);
	free(base);
}

TH_TEST(bad_text_is_refused)
{
	static const struct {
		const char *text, *item;
		int r;
	} rows[] = {
		{"a=ingress-rate=fast", "ingress-rate=fast", -EINVAL},
		{"a=egress-rate=10m", "egress-rate=10m", -ERANGE},
		{"a=dscp=64", "dscp=64", -ERANGE},
		{"a=dscp=-1", "dscp=-1", -EINVAL},
		{"a=dscp=9-8", "dscp=9-8", -EINVAL},
		{"a=dscp=1x", "dscp=1x", -EINVAL},
		{"a=dscp=", "dscp=", -EINVAL},
		{"a=10.0.0.0/8,,ingress-rate=1M", ",ingress-rate=1M", -EINVAL},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct natra_class *c = NULL;
		const char *item = NULL;

		assert_int_equal(
			natra_parse_class(rows[i].text, NULL, &c, &item),
			rows[i].r);
		assert_null(c);
		assert_string_equal(item, rows[i].item);
	}
	assert_int_equal(natra_parse_class(NULL, NULL, NULL, NULL), -EINVAL);
}

TH_TEST(base_has_all_its_subnets)
{
	static const char *const none[] = {"10.0.0.0/8", NULL};
	struct natra_class base = {.sz = sizeof(base), .subnets_len = 2};
	struct natra_class *c = NULL;

	assert_int_equal(natra_parse_class("a", &base, &c, NULL), -EINVAL);
	base.subnets = none;
	assert_int_equal(natra_parse_class("a", &base, &c, NULL), -EINVAL);
	assert_null(c);
	base.subnets_len = 1;
	assert_int_equal(natra_parse_class("a", &base, &c, NULL), 0);
	free(c);
}

static const char *const v4[] = {"10.0.0.0/8", "10.1.2.3/8"};
static const char *const v4_again[] = {"10.9.0.0/16", "10.255.0.0/8"};
static const char *const v6[] = {"fd00::/8"};
static const char *const bad[] = {"10.0.0.0"};

static struct natra_class make(const char *name, const char *const *subnets,
			       size_t len)
{
	return (struct natra_class){
		.sz = sizeof(struct natra_class),
		.name = name,
		.subnets = subnets,
		.subnets_len = len,
	};
}

/* Fails unless the library says this of a policy's lists; NULL stands for none of it. */
static void judged(const struct natra_policy *p, const char *text)
{
	cleanup_subnets struct subnets subnets = {0};
	char error[256] = "";
	int r = policy_check(p, error, sizeof(error));

	if (r == 0)
		r = subnets_read(p, &subnets);
	if (r == 0)
		r = subnets_check(&subnets, error, sizeof(error));
	assert_int_equal(r, text ? -EINVAL : 0);
	if (text && strcmp(error, text) != 0)
		fail_msg("'%s', not '%s'", error, text);
}

static void refused(const struct natra_class *list, size_t len,
		    const char *text)
{
	struct natra_policy p = policy_of(1000000, 1000000);

	p.classes = list;
	p.classes_len = len;
	judged(&p, text);
}

/* Returns one block more than there may be. */
static const char *const *many(void)
{
	static char texts[NATRA_SUBNETS_MAX + 1][24];
	static const char *blocks[NATRA_SUBNETS_MAX + 1];

	for (unsigned int i = 0; i < TH_LEN(blocks); i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "172.%u.%u.0/24",
			       i / 256, i % 256);
		blocks[i] = texts[i];
	}
	return blocks;
}

TH_TEST(what_a_policy_may_have)
{
	struct natra_class list[NATRA_CLASSES_MAX + 1] = {
		make("a", v4, 2), make("b.1_x-Y", v6, 1), make("c", NULL, 0)};

	refused(list, 3, NULL);
	refused(list, 0, NULL);
	refused(list, NATRA_CLASSES_MAX + 1, "classes: 9 are more than 8");
	list[1].name = "a";
	refused(list, 2, "classes: 'a' is there twice");
	list[1].name = "a b";
	refused(list, 2,
		"classes: 'a b' is not a name of 1 to 31 letters, digits, '.', '_' and '-'");
	list[1].name = "12345678901234567890123456789012";
	refused(list, 2,
		"classes: '12345678901234567890123456789012' is not a name of 1 to 31 letters, digits, '.', '_' and '-'");
	list[1].name = "b";
	list[1].subnets = v4_again;
	list[1].subnets_len = 2;
	refused(list, 2, "classes: '10.0.0.0/8' is in 'a' and in 'b'");
	list[1].subnets_len = 1;
	refused(list, 2, NULL);
	list[1].subnets = bad;
	refused(list, 2, "classes: '10.0.0.0' of 'b' is not a CIDR block");
	list[1].subnets_len = 0;
	list[0].dscps = UINT64_C(1) << 46;
	list[2].dscps = UINT64_C(3) << 45;
	refused(list, 3, "classes: DSCP 46 is in 'a' and in 'c'");
	list[2].dscps = UINT64_C(1) << 45;
	list[2].egress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC + 1;
	refused(list, 3,
		"classes: egress_rate_bits_per_sec of 'c': 1000000000000001 is over 1P");
	list[2].egress_rate_bits_per_sec = 0;
	list[1].subnets = many();
	list[1].subnets_len = NATRA_SUBNETS_MAX - 1;
	refused(list, 3, NULL);
	list[1].subnets_len++;
	refused(list, 3, "classes: 1025 subnets are more than 1024");
	list[1].subnets_len++;
	refused(list, 3, "classes: 1025 subnets are more than 1024");
}

TH_TEST(lists_stand_beside_classes)
{
	struct natra_class list[] = {make("a", v4, 2)};
	struct natra_policy p = policy_of(1000000, 0);

	p.classes = list;
	p.classes_len = 1;
	p.unshaped_subnets = v6;
	p.unshaped_subnets_len = 1;
	judged(&p, NULL);
	p.unshaped_subnets = v4_again;
	judged(&p, NULL);
	p.unshaped_subnets_len = 2;
	judged(&p, "classes: '10.0.0.0/8' is in 'unshaped_subnets' and in 'a'");
	p.shaped_subnets = v4;
	p.shaped_subnets_len = 1;
	p.unshaped_subnets_len = 0;
	judged(&p, "classes: '10.0.0.0/8' is in 'shaped_subnets' and in 'a'");
	list[0].subnets = v6;
	list[0].subnets_len = 1;
	judged(&p, NULL);
	p.shaped_subnets = many();
	p.shaped_subnets_len = NATRA_SUBNETS_MAX;
	judged(&p, "classes: 1025 subnets are more than 1024");
}

/* What is in a class with a rate is of the group as well, and what is in one without a
 * rate is not. */
TH_TEST(classes_are_of_the_group)
{
	struct natra_class list[] = {make("a", v4, 2), make("b", v6, 1)};
	struct natra_policy p = policy_of(1000000, 1000000);
	cleanup_subnets struct subnets subnets = {0};

	list[0].ingress_rate_bits_per_sec = 50000000;
	p.classes = list;
	p.classes_len = 2;
	p.group[0] = 'g';
	p.group_weight = 2;
	judged(&p, NULL);
	assert_int_equal(subnets_read(&p, &subnets), 0);
	for (size_t i = 0; i < 3; i++) {
		for (int leg = LEG_INGRESS; leg <= LEG_EGRESS; leg++) {
			const struct natra_limits l = classes_limits(
				&p, &subnets, i, (enum leg)leg, false);
			const bool limited =
				i == 0 || (i == 1 && leg == LEG_INGRESS);

			assert_int_equal(l.member.share != 0, limited);
			assert_int_equal(l.rate.mult != 0, limited);
		}
	}
}

TH_TEST(each_has_the_limits_of_its_rates)
{
	struct natra_class list[] = {make("a", v4, 2), make("b", v6, 1)};
	struct natra_policy p = policy_of(10000000, 20000000);
	struct subnets subnets = {0};
	struct natra_policy alone;
	struct natra_limits l;

	list[0].ingress_rate_bits_per_sec = 50000000;
	list[0].egress_rate_bits_per_sec = 1000000;
	p.classes = list;
	p.classes_len = 2;
	p.fast_pass = NATRA_FAST_PASS_OFF;
	p.egress_packet_rate_per_sec = 1000;
	assert_int_equal(subnets_read(&p, &subnets), 0);
	assert_int_equal(subnets.classes[0].len, 1);

	alone = policy_of(50000000, 1000000);
	alone.fast_pass = NATRA_FAST_PASS_OFF;
	alone.egress_packet_rate_per_sec = 1000;
	for (int leg = 0; leg < LEG_MAX; leg++) {
		const struct natra_limits want =
			policy_limits_of(&alone, (enum leg)leg, true, 0);

		l = classes_limits(&p, &subnets, 1, (enum leg)leg, true);
		assert_memory_equal(&l, &want, sizeof(l));
	}
	l = classes_limits(&p, &subnets, 2, LEG_EGRESS, true);
	assert_int_equal(l.rate.mult, 0);
	assert_true(classes_limit(&p, &subnets, true));
	/* What is not limited needs the longest GSO packets, and of two rates the
	 * higher one. */
	assert_int_equal(classes_fastest(&p, &subnets).egress_rate_bits_per_sec,
			 0);
	subnets.classes[1].egress_rate_bits_per_sec = 30000000;
	assert_int_equal(classes_fastest(&p, &subnets).egress_rate_bits_per_sec,
			 30000000);
	subnets.kind = SUBNETS_UNSHAPED;
	assert_int_equal(classes_fastest(&p, &subnets).egress_rate_bits_per_sec,
			 0);
	subnets.kind = SUBNETS_SHAPED;
	assert_int_equal(classes_fastest(&p, &subnets).egress_rate_bits_per_sec,
			 0);
	subnets.kind = SUBNETS_NONE;
	p.ingress_rate_bits_per_sec = 0;
	assert_true(classes_limit(&p, &subnets, false));
	subnets.classes[0].ingress_rate_bits_per_sec = 0;
	assert_false(classes_limit(&p, &subnets, false));
	subnets_free(&subnets);
}

/* A pod cannot multiply the burst that it may have by the number of its classes. */
TH_TEST(classes_have_the_burst_of_a_ceiling_together)
{
	static const struct {
		uint64_t ceiling, asked, has;
	} rows[] = {
		{0, 0, 0},
		{0, 1000000, 1000000},
		{0, 40000000, 25000000},
		{8000000, 0, 4000000},
		{8000000, 1000000, 1000000},
		{8000000, 8000000, 4000000},
		{9, 0, 8},
	};
	const struct natra_class list[] = {
		{.name = "a", .egress_rate_bits_per_sec = 40000000}};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct natra_policy ceilings = policy_of(0, 100000000);
		struct natra_policy p = ceilings;

		ceilings.egress_burst_bits = rows[i].ceiling;
		p.egress_burst_bits = rows[i].asked;
		p.classes = list;
		p.classes_len = TH_LEN(list);
		assert_true(policy_lower_to_classes(&p, &ceilings));
		assert_int_equal(p.egress_rate_bits_per_sec, 60000000);
		assert_int_equal(p.egress_burst_bits, rows[i].has);
		assert_int_equal(p.ingress_burst_bits, 0);
	}
}

TH_MAIN(NULL, NULL)
