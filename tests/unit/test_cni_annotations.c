/* SPDX-License-Identifier: BSD-2-Clause */
#include "cni_input.h"

#include <stdlib.h>
#include <unistd.h>

#include "annotations.h"
#include "field.h"

#define ANNOTATIONS(members)                                                   \
	CONF("\"runtimeConfig\":{\"io.kubernetes.cri.pod-annotations\":"       \
	     "" members "}")
#define ALL_ALLOWED (~0U)

static char log_path[] = "/tmp/natra-test-cni-annotations-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(log_path);

	(void)state;
	if (fd >= 0)
		(void)close(fd);
	return fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(log_path);
}

/* Returns what was logged since the last call. */
static char *logged(void)
{
	static char text[4096];
	FILE *f = fopen(log_path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	(void)fclose(f);
	assert_int_equal(truncate(log_path, 0), 0);
	return text;
}

static const struct natra_policy both = {
	.sz = sizeof(both),
	.ingress_rate_bits_per_sec = 10000000,
	.egress_rate_bits_per_sec = 20000000,
	.ingress_burst_bits = 1,
};

static int read_annotations(const char *text, struct settings settings,
			    struct natra_policy *policy,
			    struct failure *failure)
{
	struct log log = LOG_INIT;
	struct conf conf = conf_of(text);
	int r;

	log.path = log_path;
	log.level = NATRA_LOG_INFO;
	r = annotations_read(policy, &settings, &conf, &log, failure);
	log_close(&log);
	conf_free(&conf);
	return r;
}

#define FIELD(name)                                                            \
	offsetof(struct natra_policy, name),                                   \
		sizeof(((struct natra_policy *)0)->name)

static const struct {
	const char *members;
	size_t offset;
	size_t size;
	uint64_t value;
} good[] = {
	{"{\"natra.io/ingress-burst\":\"8M\"}", FIELD(ingress_burst_bits),
	 8000000},
	{"{\"natra.io/ingress-burst\":\"9\"}", FIELD(ingress_burst_bits), 9},
	/* The operator allows this value, so it is not taken for a
	 * placeholder. */
	{"{\"natra.io/egress-burst\":\"4294967295\"}", FIELD(egress_burst_bits),
	 4294967295},
	{"{\"natra.io/egress-burst\":\"1Mi\"}", FIELD(egress_burst_bits),
	 1048576},
	{"{\"natra.io/fast-pass\":\"charged\"}", FIELD(fast_pass),
	 NATRA_FAST_PASS_CHARGED},
	{"{\"natra.io/fast-pass\":\"off\"}", FIELD(fast_pass),
	 NATRA_FAST_PASS_OFF},
	{"{\"natra.io/fast-pass\":\"guarded\"}", FIELD(fast_pass),
	 NATRA_FAST_PASS_GUARDED},
	{"{\"natra.io/fast-pass-guard\":\"2M\"}",
	 FIELD(fast_pass_guard_bits_per_sec), 2000000},
	{"{\"natra.io/ingress-packet-rate\":\"10k\"}",
	 FIELD(ingress_packet_rate_per_sec), 10000},
	{"{\"qos.projectcalico.org/egressPacketRate\":\"7k\"}",
	 FIELD(egress_packet_rate_per_sec), 7000},
	{"{\"natra.io/ingress-packet-rate\":\"1\","
	 "\"qos.projectcalico.org/ingressPacketRate\":\"2\"}",
	 FIELD(ingress_packet_rate_per_sec), 1},
	{"{\"natra.io/egress-connection-rate\":\"50\"}",
	 FIELD(egress_connection_rate_per_sec), 50},
	{"{\"natra.io/ingress-mode\":\"pace\"}", FIELD(ingress_mode),
	 NATRA_INGRESS_MODE_PACE},
	{"{\"natra.io/heavy-hitter-threshold\":\"125k\"}",
	 FIELD(heavy_hitter_threshold_bytes), 125000},
	{"{\"natra.io/horizon\":\"50ms\"}", FIELD(horizon_ns), 50000000},
	{"{\"natra.io/horizon\":\"9s\"}", FIELD(horizon_ns), 9000000000},
	{"{\"natra.io/pace-limit\":\"5ms\"}", FIELD(pace_limit_ns), 5000000},
	{"{\"natra.io/edt-pacing\":\"off\"}", FIELD(edt_pacing), NATRA_EDT_OFF},
	{"{\"natra.io/sli\":\"on\"}", FIELD(sli), NATRA_SLI_ON},
	/* If a name comes twice, the last counts, and null counts as absent. */
	{"{\"natra.io/edt-pacing\":\"on\",\"x\":1,"
	 "\"natra.io/edt-pacing\":\"off\"}",
	 FIELD(edt_pacing), NATRA_EDT_OFF},
	{"{\"natra.io/edt-pacing\":null}", FIELD(edt_pacing), NATRA_EDT_AUTO},
	/* The letter case of annotations' names matters. */
	{"{\"Natra.io/edt-pacing\":\"off\"}", FIELD(edt_pacing),
	 NATRA_EDT_AUTO},
	{"{\"edt-pacing\":\"off\"}", FIELD(edt_pacing), NATRA_EDT_AUTO},
	{"{}", FIELD(ingress_burst_bits), 1},
	{"null", FIELD(ingress_burst_bits), 1},
};

static void allowed_annotations_change_the_policy(void **state)
{
	const struct settings settings = {.allowed_annotations = ALL_ALLOWED};

	(void)state;
	for (size_t i = 0; i < TH_LEN(good); i++) {
		struct natra_policy policy = both;
		struct failure failure = {0};
		uint64_t value = 0;
		char text[512];

		(void)snprintf(text, sizeof(text), ANNOTATIONS("%s"),
			       good[i].members);
		if (read_annotations(text, settings, &policy, &failure))
			fail_msg("%s: %s", text, failure.msg);
		memcpy(&value, (char *)&policy + good[i].offset, good[i].size);
		if (value != good[i].value)
			fail_msg("%s: %llu", text, (unsigned long long)value);
		assert_string_equal(logged(), "");
	}
}

static void what_is_not_allowed_is_ignored_and_logged(void **state)
{
	static const char text[] =
		ANNOTATIONS("{\"natra.io/fast-pass\":\"nonsense\","
			    "\"natra.io/edt-pacing\":\"off\"}");
	struct natra_policy policy = both;
	struct failure failure = {0};
	struct settings settings = {
		.allowed_annotations = field_annotation_bit("edt-pacing"),
	};
	char *lines;

	(void)state;
	assert_int_equal(read_annotations(text, settings, &policy, &failure),
			 0);
	assert_int_equal(policy.fast_pass, NATRA_FAST_PASS_FREE);
	assert_int_equal(policy.edt_pacing, NATRA_EDT_OFF);
	lines = logged();
	assert_non_null(strstr(lines, "natra.io/fast-pass"));
	assert_non_null(strstr(lines, "level=info"));
	assert_null(strstr(lines, "edt-pacing"));
}

static const struct {
	const char *members;
	const char *name;
	const char *value;
} bad[] = {
	{"{\"natra.io/ingress-burst\":\"8x\"}", "natra.io/ingress-burst",
	 "'8x'"},
	{"{\"natra.io/ingress-burst\":\"0\"}", "natra.io/ingress-burst", "'0'"},
	{"{\"natra.io/egress-burst\":\"-1\"}", "natra.io/egress-burst", "'-1'"},
	{"{\"natra.io/egress-burst\":8000}", "natra.io/egress-burst", "8000"},
	{"{\"natra.io/fast-pass\":\"\"}", "natra.io/fast-pass", "''"},
	{"{\"natra.io/fast-pass\":[]}", "natra.io/fast-pass", "[]"},
	{"{\"natra.io/fast-pass-guard\":\"0\"}", "natra.io/fast-pass-guard",
	 "'0'"},
	{"{\"natra.io/fast-pass-guard\":\"2P\"}", "natra.io/fast-pass-guard",
	 "'2P'"},
	{"{\"natra.io/ingress-packet-rate\":\"2G\"}",
	 "natra.io/ingress-packet-rate", "'2G'"},
	{"{\"qos.projectcalico.org/ingressPacketRate\":\"x\"}",
	 "qos.projectcalico.org/ingressPacketRate", "'x'"},
	{"{\"natra.io/ingress-mode\":\"x\"}", "natra.io/ingress-mode", "'x'"},
	{"{\"natra.io/heavy-hitter-threshold\":\"big\"}",
	 "natra.io/heavy-hitter-threshold", "'big'"},
	{"{\"natra.io/edt-pacing\":\"true\"}", "natra.io/edt-pacing", "'true'"},
	{"{\"natra.io/horizon\":\"10\"}", "natra.io/horizon", "'10'"},
	{"{\"natra.io/horizon\":\"9001ms\"}", "natra.io/horizon", "9s"},
	{"{\"natra.io/pace-limit\":\"10s\"}", "natra.io/pace-limit", "9s"},
};

static void a_bad_value_fails_and_is_named(void **state)
{
	const struct settings settings = {.allowed_annotations = ALL_ALLOWED};

	(void)state;
	for (size_t i = 0; i < TH_LEN(bad); i++) {
		struct natra_policy policy = both;
		struct failure failure = {0};
		char text[512];

		(void)snprintf(text, sizeof(text), ANNOTATIONS("%s"),
			       bad[i].members);
		assert_int_equal(
			read_annotations(text, settings, &policy, &failure),
			CNI_BAD_CONFIG);
		says(&failure, text, bad[i].name, bad[i].value);
	}
}

static void a_bad_value_is_logged_with_on_error_continue(void **state)
{
	const struct settings settings = {
		.allowed_annotations = ALL_ALLOWED,
		.continue_on_error = true,
	};

	(void)state;
	for (size_t i = 0; i < TH_LEN(bad); i++) {
		struct natra_policy policy = both;
		struct failure failure = {0};
		char text[512], *lines;

		(void)snprintf(text, sizeof(text), ANNOTATIONS("%s"),
			       bad[i].members);
		assert_int_equal(
			read_annotations(text, settings, &policy, &failure), 0);
		assert_string_equal(failure.msg, "");
		assert_memory_equal(&policy, &both, sizeof(both));
		lines = logged();
		assert_non_null(strstr(lines, bad[i].name));
		assert_non_null(strstr(lines, bad[i].value));
		assert_non_null(strstr(lines, "level=error"));
	}
}

static void a_burst_needs_a_rate(void **state)
{
	const struct settings settings = {.allowed_annotations = ALL_ALLOWED};
	struct natra_policy policy = both;
	struct failure failure = {0};

	(void)state;
	policy.egress_rate_bits_per_sec = 0;
	assert_int_equal(
		read_annotations(
			ANNOTATIONS("{\"natra.io/egress-burst\":\"8M\"}"),
			settings, &policy, &failure),
		CNI_BAD_CONFIG);
	says(&failure, "egress-burst", "natra.io/egress-burst",
	     "if burst is set, rate must also be set");
	assert_int_equal(
		read_annotations(
			ANNOTATIONS("{\"natra.io/ingress-burst\":\"8M\"}"),
			settings, &policy, &failure),
		0);
}

static void annotations_must_be_an_object(void **state)
{
	static const char *const texts[] = {
		ANNOTATIONS("[]"), ANNOTATIONS("\"natra.io/edt-pacing=off\""),
		CONF("\"runtimeConfig\":[]")};
	const struct settings settings = {.continue_on_error = true};

	(void)state;
	for (size_t i = 0; i < TH_LEN(texts); i++) {
		struct natra_policy policy = both;
		struct failure failure = {0};

		assert_int_equal(
			read_annotations(texts[i], settings, &policy, &failure),
			CNI_BAD_CONFIG);
		says(&failure, texts[i], "runtimeConfig", "is not an object");
	}
}

/* Calico's bursts need no entry in the list of what is allowed, and may have one. */
static void bursts_of_calico_are_ignored_once(void **state)
{
	struct settings settings = {
		.allowed_annotations = field_annotation_bit(
			"qos.projectcalico.org/egressPacketBurst"),
	};
	struct natra_policy policy = both;
	struct failure failure = {0};
	const char *line;

	(void)state;
	assert_int_equal(settings.allowed_annotations, FIELD_IGNORED_BIT);
	assert_int_equal(
		read_annotations(
			ANNOTATIONS(
				"{\"qos.projectcalico.org/ingressPacketBurst\":\"5\","
				"\"qos.projectcalico.org/egressPacketBurst\":\"x\"}"),
			settings, &policy, &failure),
		0);
	assert_memory_equal(&policy, &both, sizeof(both));
	line = strstr(logged(), "ingressPacketBurst: the burst is");
	assert_non_null(line);
	assert_null(strstr(line, "egressPacketBurst"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_of_calico_are_ignored_once),
		cmocka_unit_test(allowed_annotations_change_the_policy),
		cmocka_unit_test(what_is_not_allowed_is_ignored_and_logged),
		cmocka_unit_test(a_bad_value_fails_and_is_named),
		cmocka_unit_test(a_bad_value_is_logged_with_on_error_continue),
		cmocka_unit_test(a_burst_needs_a_rate),
		cmocka_unit_test(annotations_must_be_an_object),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
