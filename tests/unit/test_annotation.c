/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests read what a pod asks for by its annotations. */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/fields.h"

static struct natra *n;
static char lines[4096];
static int worst;      /* the level of the last line */
static int fails = -1; /* the call of calloc that fails; less than 0: none */

void *__real_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return fails >= 0 && fails-- == 0 ? NULL : __real_calloc(count, size);
}

static void log_fn(void *arg, enum natra_log_level level, const char *line)
{
	const size_t len = strlen(lines);

	worst = (int)level;
	(void)snprintf(lines + len, sizeof(lines) - len, "%s\n", line);
}

static int setup(void **state)
{
	struct natra_open_opts opts = NATRA_INIT(opts);

	opts.log_fn = log_fn;
	return natra_open(&n, &opts);
}

TH_STEP(teardown, natra_close(n))

static const struct natra_policy both = {
	.sz = sizeof(both),
	.ingress_rate_bits_per_sec = 10000000,
	.egress_rate_bits_per_sec = 20000000,
	.ingress_burst_bits = 1,
};

static struct natra_annotations all_of(const struct natra_annotation *list,
				       size_t len)
{
	return (struct natra_annotations){
		.sz = sizeof(struct natra_annotations),
		.annotations = list,
		.annotations_len = len,
		.allow_all = true,
	};
}

/* Forgets the classes and the lines of the call before. */
static int annotate(struct natra_policy *policy,
		    const struct natra_annotations *asked)
{
	static struct natra_class *classes;

	free(classes);
	classes = NULL;
	lines[0] = '\0';
	return natra_policy_annotate(n, policy, asked, &classes);
}

#define CALICO "qos.projectcalico.org/"

static const struct {
	struct natra_annotation list[2];
	const char *field;
	uint64_t value;
} good[] = {
	{{{"natra.io/ingress-burst", "8M"}}, "ingress_burst_bits", 8000000},
	{{{"natra.io/ingress-burst", "9"}}, "ingress_burst_bits", 9},
	/* The operator allows this value, so it is not taken for a
	 * placeholder. */
	{{{"natra.io/egress-burst", "4294967295"}},
	 "egress_burst_bits",
	 4294967295},
	{{{"natra.io/egress-burst", "1Mi"}}, "egress_burst_bits", 1048576},
	{{{"natra.io/fast-pass", "strict"}},
	 "fast_pass",
	 NATRA_FAST_PASS_STRICT},
	{{{"natra.io/fast-pass", "off"}}, "fast_pass", NATRA_FAST_PASS_OFF},
	{{{"natra.io/fast-pass-share", "150"}}, "fast_pass_share_percent", 150},
	{{{"natra.io/ingress-packet-rate", "10k"}},
	 "ingress_packet_rate_per_sec",
	 10000},
	{{{CALICO "egressPacketRate", "7k"}},
	 "egress_packet_rate_per_sec",
	 7000},
	/* natra's name counts, wherever it is. */
	{{{"natra.io/ingress-packet-rate", "1"},
	  {CALICO "ingressPacketRate", "2"}},
	 "ingress_packet_rate_per_sec",
	 1},
	{{{CALICO "ingressPacketRate", "2"},
	  {"natra.io/ingress-packet-rate", "1"}},
	 "ingress_packet_rate_per_sec",
	 1},
	{{{"natra.io/egress-connection-rate", "50"}},
	 "egress_connection_rate_per_sec",
	 50},
	{{{"natra.io/ingress-mode", "pace"}},
	 "ingress_mode",
	 NATRA_INGRESS_MODE_PACE},
	{{{"natra.io/heavy-hitter-threshold", "125k"}},
	 "heavy_hitter_threshold_bytes",
	 125000},
	{{{"natra.io/horizon", "50ms"}}, "horizon_ns", 50000000},
	{{{"natra.io/horizon", "9s"}}, "horizon_ns", 9000000000},
	{{{"natra.io/pace-limit", "5ms"}}, "pace_limit_ns", 5000000},
	{{{"natra.io/edt-pacing", "off"}}, "edt_pacing", NATRA_EDT_PACING_OFF},
	{{{"natra.io/sli", "on"}}, "sli", NATRA_SLI_ON},
	{{{"kubernetes.io/ingress-bandwidth", "1M"}},
	 "ingress_rate_bits_per_sec",
	 1000000},
	{{{CALICO "egressBandwidth", "1Gi"}},
	 "egress_rate_bits_per_sec",
	 1073741824},
	/* If a name comes twice, the last counts, and NULL counts as absent. */
	{{{"natra.io/edt-pacing", "on"}, {"natra.io/edt-pacing", "off"}},
	 "edt_pacing",
	 NATRA_EDT_PACING_OFF},
	{{{"natra.io/edt-pacing", "on"}, {"natra.io/edt-pacing", NULL}},
	 "edt_pacing",
	 NATRA_EDT_PACING_AUTO},
	/* The letter case of names matters, and pods write them in full. */
	{{{"Natra.io/edt-pacing", "off"}}, "edt_pacing", NATRA_EDT_PACING_AUTO},
	{{{"edt-pacing", "off"}}, "edt_pacing", NATRA_EDT_PACING_AUTO},
	{{{"natra.io/no-such", "off"}}, "ingress_burst_bits", 1},
};

TH_TEST(allowed_annotations_change_the_policy)
{
	for (size_t i = 0; i < TH_LEN(good); i++) {
		const struct natra_annotations asked =
			all_of(good[i].list, TH_LEN(good[i].list));
		const struct policy_field *field = policy_fields;
		struct natra_policy policy = both;
		uint64_t value;

		while (strcmp(field->name, good[i].field) != 0)
			field++;
		if (annotate(&policy, &asked))
			fail_msg("%s: %s", good[i].list[0].name,
				 natra_error(n));
		value = policy_field_get(field, &policy);
		if (value != good[i].value)
			fail_msg("%s: %llu", good[i].list[0].name,
				 (unsigned long long)value);
		assert_string_equal(lines, "");
	}
}

/* An entry of the list may have any name of a setting, and natra's without its prefix. */
TH_TEST(what_is_not_allowed_is_ignored_and_logged)
{
	static const struct natra_annotation list[] = {
		{"natra.io/fast-pass", "nonsense"},
		{"natra.io/edt-pacing", "off"},
		{CALICO "egressPacketRate", "5"},
		{"natra.io/ingress-packet-rate", "6"},
		{"natra.io/classes", "a=ingress-rate=1M"},
		{"kubernetes.io/ingress-bandwidth", "1M"},
	};
	static const char *const allowed[] = {"edt-pacing",
					      "natra.io/egress-packet-rate",
					      CALICO "ingressPacketRate"};
	struct natra_annotations asked = all_of(list, TH_LEN(list));
	struct natra_policy policy = both;

	asked.allow_all = false;
	asked.allowed = allowed;
	asked.allowed_len = TH_LEN(allowed);
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_int_equal(policy.fast_pass, NATRA_FAST_PASS_FREE);
	assert_int_equal(policy.edt_pacing, NATRA_EDT_PACING_OFF);
	assert_int_equal(policy.egress_packet_rate_per_sec, 5);
	assert_int_equal(policy.ingress_packet_rate_per_sec, 6);
	assert_int_equal(policy.classes_len, 0);
	assert_int_equal(policy.ingress_rate_bits_per_sec, 10000000);
	assert_string_equal(
		lines,
		"annotation natra.io/fast-pass is not in allowAnnotations: ignored\n"
		"annotation natra.io/classes is not in allowAnnotations: ignored\n");
	assert_int_equal(worst, NATRA_LOG_WARN);
}

TH_TEST(each_name_is_known)
{
	static const char *const unknown[] = {"edt", "natra.io/", "",
					      "ingress-bandwidth"};
	static const char *const known[] = {
		"kubernetes.io/ingress-bandwidth",
		"qos.projectcalico.org/egressBandwidth", "classes",
		"natra.io/classes", "group-floor"};
	struct natra_annotations asked = all_of(NULL, 0);
	struct natra_policy policy = both;
	char text[128];

	asked.allowed_len = TH_LEN(known);
	asked.allowed = known;
	assert_int_equal(annotate(&policy, &asked), 0);
	asked.allowed_len = 1;
	for (size_t i = 0; i < TH_LEN(unknown); i++) {
		asked.allowed = &unknown[i];
		assert_int_equal(annotate(&policy, &asked), -EINVAL);
		(void)snprintf(
			text, sizeof(text),
			"allowAnnotations: '%s' is not an annotation that natra knows",
			unknown[i]);
		assert_string_equal(natra_error(n), text);
	}
}

static const struct {
	struct natra_annotation one;
	const char *text;
} bad[] = {
	{{"natra.io/ingress-burst", "8x"},
	 "is not a number of bits such as 8M"},
	{{"natra.io/ingress-burst", "0"}, "is not a number of bits such as 8M"},
	{{"natra.io/egress-burst", "-1"}, "is not a number of bits such as 8M"},
	{{"natra.io/fast-pass", ""}, "is not free, strict or off"},
	{{"natra.io/fast-pass-share", "1001"},
	 "is not a percentage from 1 to 1000"},
	{{"natra.io/ingress-packet-rate", "2G"},
	 "is not a number from 1 to 10^9, such as 10k"},
	{{CALICO "ingressPacketRate", "x"},
	 "is not a number from 1 to 10^9, such as 10k"},
	{{"natra.io/ingress-mode", "x"}, "is not police or pace"},
	{{"natra.io/heavy-hitter-threshold", "big"},
	 "is not a size such as 125000 or 125k"},
	{{"natra.io/edt-pacing", "true"}, "is not auto, on or off"},
	{{"natra.io/horizon", "10"},
	 "is not a time from 1ns to 9s, such as 50ms"},
	{{"natra.io/horizon", "9001ms"},
	 "is not a time from 1ns to 9s, such as 50ms"},
	{{"natra.io/pace-limit", "10s"},
	 "is not a time from 1ns to 9s, such as 50ms"},
	{{"kubernetes.io/egress-bandwidth", "999"},
	 "is not a rate from 1k to 1P"},
	{{CALICO "ingressBandwidth", "fast"}, "is not a rate from 1k to 1P"},
	{{"natra.io/classes", ""}, "has no class"},
	{{"natra.io/classes", " ;"}, "has no class"},
	{{"natra.io/classes", "a=10.0.0.0"},
	 "classes: '10.0.0.0' of 'a' is not a CIDR block"},
	{{"natra.io/classes", "a=ingress-rate=fast"},
	 "'ingress-rate=fast' is not CIDR, ingress-rate=RATE, egress-rate=RATE or dscp=N"},
	{{"natra.io/classes", "a=ingress-rate=1M,dscp=64"},
	 "'dscp=64' is out of range"},
	{{"natra.io/classes", " lan = 10.0.0.0/8"},
	 "classes: 'lan ' is not a name of 1 to 31 letters, digits, '.', '_' and '-'"},
	{{"natra.io/classes", "a;a"}, "classes: 'a' is there twice"},
	{{"natra.io/classes", "a=dscp=1;b=dscp=0-3"},
	 "classes: DSCP 1 is in 'a' and in 'b'"},
	{{"natra.io/classes", "a;b;c;d;e;f;g;h;i"}, "has more classes than 8"},
};

/* Otherwise it is left out, and the policy is as if it were not there. */
TH_TEST(a_bad_value_fails_and_is_named)
{
	for (size_t i = 0; i < TH_LEN(bad); i++) {
		struct natra_annotations asked = all_of(&bad[i].one, 1);
		struct natra_policy policy = both;
		char text[256], line[sizeof(text) + 16];

		(void)snprintf(text, sizeof(text), "annotation %s: '%s': %s",
			       bad[i].one.name, bad[i].one.value, bad[i].text);
		(void)snprintf(line, sizeof(line), "%s: ignored\n", text);
		assert_int_equal(annotate(&policy, &asked), -EINVAL);
		assert_string_equal(natra_error(n), text);
		assert_string_equal(lines, "");
		asked.skip_bad = true;
		assert_int_equal(annotate(&policy, &asked), 0);
		assert_memory_equal(&policy, &both, sizeof(both));
		assert_string_equal(lines, line);
		assert_int_equal(worst, NATRA_LOG_ERROR);
	}
}

TH_TEST(a_long_value_is_cut)
{
	char value[100];
	const struct natra_annotation one = {"natra.io/sli", value};
	const struct natra_annotations asked = all_of(&one, 1);
	struct natra_policy policy = both;

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	value[3] = '\n';
	assert_int_equal(annotate(&policy, &asked), -EINVAL);
	assert_int_equal(natra_error_code(n), NATRA_CODE_ANNOTATION);
	assert_string_equal(natra_error_about(n), "natra.io/sli");
	assert_string_equal(
		natra_error(n),
		"annotation natra.io/sli: 'xxx?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'...: is not off or on");
}

/* What a caller's policy has for a direction that has no rate in the end is left out. */
TH_TEST(limits_need_a_rate_which_a_pod_may_ask_for)
{
	static const struct natra_annotation list[] = {
		{"natra.io/egress-burst", "8M"},
		{"natra.io/egress-packet-rate", "5"},
		{"kubernetes.io/egress-bandwidth", "1M"},
	};
	struct natra_annotations asked = all_of(list, TH_LEN(list));
	struct natra_policy policy = NATRA_INIT(policy);

	policy.ingress_packet_rate_per_sec = 7;
	policy.egress_connection_rate_per_sec = 8;
	policy.group_weight = NATRA_WEIGHT_MAX + 1;
	assert_int_equal(annotate(&policy, &asked), -EINVAL);
	assert_string_equal(natra_error(n), "group_weight: 65 is over 64");
	assert_string_equal(natra_error_about(n), "group_weight");
	policy.group_weight = 3;
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_int_equal(policy.egress_burst_bits, 8000000);
	assert_int_equal(policy.egress_packet_rate_per_sec, 5);
	assert_int_equal(policy.egress_connection_rate_per_sec, 8);
	assert_int_equal(policy.ingress_packet_rate_per_sec, 0);
	assert_int_equal(policy.group_weight, 0);
	assert_int_equal(natra_policy_check(n, &policy), 0);
	asked.annotations_len = 1;
	policy = (struct natra_policy)NATRA_INIT(policy);
	assert_int_equal(annotate(&policy, &asked), -EINVAL);
	assert_string_equal(
		natra_error(n),
		"annotation natra.io/egress-burst: '8M': if burst is set, rate must also be set");
}

/* Calico's bursts need no entry in the list of what is allowed, and may have one. */
TH_TEST(bursts_of_calico_are_ignored_once)
{
	static const struct natra_annotation list[] = {
		{CALICO "ingressPacketBurst", "5"},
		{CALICO "egressPacketBurst", "x"}};
	static const char *const allowed[] = {CALICO "egressPacketBurst"};
	struct natra_annotations asked = all_of(list, 2);
	struct natra_policy policy = both;

	asked.allow_all = false;
	asked.allowed = allowed;
	asked.allowed_len = 1;
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_memory_equal(&policy, &both, sizeof(both));
	assert_string_equal(
		lines,
		"annotation " CALICO
		"ingressPacketBurst: the burst is that of 0.1 s: ignored\n");
}

TH_TEST(a_part_in_a_group_needs_one)
{
	static const struct natra_annotation one = {"natra.io/group-weight",
						    "2"};
	const struct natra_annotations asked = all_of(&one, 1);
	struct natra_policy policy = both;

	assert_int_equal(annotate(&policy, &asked), 0);
	assert_int_equal(policy.group_weight, 0);
	assert_string_equal(
		lines,
		"annotation natra.io/group-weight: the pod is in no group: ignored\n");
	policy.group[0] = 'g';
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_int_equal(policy.group_weight, 2);
}

TH_TEST(a_pod_asks_for_classes)
{
	static const struct natra_annotation one = {
		"natra.io/classes",
		"lan=10.0.0.0/8, fd00::/8,\n ingress-rate=1G,egress-rate=2M ;\nv=dscp=46;"};
	const struct natra_annotations asked = all_of(&one, 1);
	const struct natra_class own = {.sz = sizeof(own), .name = "own"};
	struct natra_policy policy = both;

	policy.classes = &own;
	policy.classes_len = 1;
	assert_int_equal(annotate(&policy, &asked), 0);
	/* They stand in for those of the policy. */
	assert_int_equal(policy.classes_len, 2);
	assert_string_equal(policy.classes[0].name, "lan");
	assert_int_equal(policy.classes[0].subnets_len, 2);
	assert_string_equal(policy.classes[0].subnets[0], "10.0.0.0/8");
	assert_string_equal(policy.classes[0].subnets[1], "fd00::/8");
	assert_int_equal(policy.classes[0].ingress_rate_bits_per_sec,
			 1000000000);
	assert_int_equal(policy.classes[0].egress_rate_bits_per_sec, 2000000);
	assert_string_equal(policy.classes[1].name, "v");
	assert_true(policy.classes[1].dscps == UINT64_C(1) << 46);
	assert_int_equal(policy.classes[1].subnets_len, 0);
	assert_int_equal(natra_policy_check(n, &policy), 0);
}

/* The policy has one of them, and the pod asks for the other one. */
TH_TEST(classes_stand_beside_others)
{
	static const struct natra_annotation one = {"natra.io/classes",
						    "a=10.0.0.0/8"};
	static const char *const subnets[] = {"10.1.0.0/16", "10.0.0.0/8"};
	const struct natra_annotations asked = all_of(&one, 1);

	for (size_t i = 0; i < 2; i++) {
		struct natra_policy policy = both;

		policy.group[0] = 'g';
		policy.unshaped_subnets = subnets;
		policy.unshaped_subnets_len = 1 + i;
		assert_int_equal(annotate(&policy, &asked), i ? -EINVAL : 0);
		assert_int_equal(policy.classes_len, !i);
		if (i)
			assert_non_null(
				strstr(natra_error(n),
				       "is in 'unshaped_subnets' and in 'a'"));
	}
}

/* They are the caller's, which no pod can mend. */
TH_TEST(bad_lists_of_the_policy_are_no_annotations_fault)
{
	static const struct natra_annotation one = {"natra.io/classes",
						    "a=10.0.0.0/8"};
	static const char *const none[] = {NULL}, *const bad_block[] = {
							  "10.0.0.0"};
	static const struct {
		const char *const *list;
		const char *text;
	} rows[] = {
		{none, "shaped_subnets: '' is not a CIDR block"},
		{bad_block, "shaped_subnets: '10.0.0.0' is not a CIDR block"},
	};
	struct natra_annotations asked = all_of(&one, 1);

	for (size_t i = 0; i < 2 * TH_LEN(rows); i++) {
		struct natra_policy policy = both;

		asked.skip_bad = i % 2;
		policy.shaped_subnets = rows[i / 2].list;
		policy.shaped_subnets_len = 1;
		assert_int_equal(annotate(&policy, &asked), -EINVAL);
		assert_string_equal(natra_error(n), rows[i / 2].text);
		assert_int_equal(natra_error_code(n), NATRA_CODE_FIELD);
		assert_string_equal(natra_error_about(n), "shaped_subnets");
		assert_string_equal(lines, "");
		assert_null(policy.classes);
	}
}

TH_TEST(classes_of_the_policy_are_left_to_its_check)
{
	static const struct natra_annotation one = {"natra.io/classes", "a"};
	static const char *const none[] = {NULL};
	const struct natra_class own = {.sz = sizeof(own),
					.name = "own",
					.subnets = none,
					.subnets_len = 1};
	struct natra_annotations asked = all_of(&one, 0);
	struct natra_policy policy = both;

	policy.classes = &own;
	policy.classes_len = 1;
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_ptr_equal(policy.classes, &own);
	asked.annotations_len = 1;
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_string_equal(policy.classes[0].name, "a");
}

/* A value is not bad because there is no memory for it. */
TH_TEST(no_memory_is_no_annotations_fault)
{
	static const struct natra_annotation one = {"natra.io/classes",
						    "a=10.0.0.0/8"};
	static const char *const subnets[] = {"10.1.0.0/16"};
	struct natra_annotations asked = all_of(&one, 1);
	int r = -ENOMEM, failed = 0;

	asked.skip_bad = true;
	while (r == -ENOMEM) {
		struct natra_policy policy = both;

		policy.shaped_subnets = subnets;
		policy.shaped_subnets_len = 1;
		fails = failed;
		r = annotate(&policy, &asked);
		fails = -1;
		if (r == 0)
			break;
		failed++;
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(natra_error_code(n), NATRA_CODE_NONE);
		assert_string_equal(natra_error_about(n), "");
		assert_string_equal(
			natra_error(n),
			"read annotation natra.io/classes: Cannot allocate memory");
		assert_null(policy.classes);
	}
	assert_int_equal(r, 0);
	assert_true(failed > 3);
}

TH_TEST(input_is_checked)
{
	const struct natra_annotations none = all_of(NULL, 1);
	struct natra_annotations asked = all_of(NULL, 0);
	struct natra_policy policy = both;
	struct natra_class *classes;

	assert_int_equal(annotate(&policy, &none), -EINVAL);
	assert_int_equal(annotate(&policy, NULL), -EINVAL);
	assert_int_equal(annotate(NULL, &asked), -EINVAL);
	assert_int_equal(natra_policy_annotate(n, &policy, &asked, NULL),
			 -EINVAL);
	assert_int_equal(natra_policy_annotate(NULL, &policy, &asked, &classes),
			 -EINVAL);
	assert_int_equal(annotate(&policy, &asked), 0);
	assert_memory_equal(&policy, &both, sizeof(both));
}

TH_MAIN(setup, teardown)
