/* SPDX-License-Identifier: BSD-2-Clause */
#include "cni_input.h"

#include "../../tools/common/annotations.h"
#include "command.h"

static int read_settings(const char *members, struct settings *s,
			 struct failure *failure)
{
	struct conf conf = conf_with(members);
	int r = settings_read(s, conf.json, n, failure);

	settings_free(s);
	conf_free(&conf);
	return r;
}

TH_TEST(nothing_is_all_defaults)
{
	static const struct natra_policy zero = NATRA_INIT(zero);
	struct failure failure = {0};
	struct settings s;

	assert_int_equal(read_settings("\"x\":1", &s, &failure), 0);
	assert_memory_equal(&s.policy, &zero, sizeof(zero));
	assert_int_equal(s.precedence, PRECEDENCE_STATIC);
	assert_false(s.continue_on_error);
	assert_false(s.replace_bandwidth);
	assert_int_equal(s.allowed_len, 0);
}

#define FIELD(name)                                                            \
	offsetof(struct settings, name), sizeof(((struct settings *)0)->name)

/* The table has every key; unit-fields has all words of each. */
static const struct {
	const char *members;
	size_t offset;
	size_t size;
	uint64_t value;
} good[] = {
	{"\"attachMode\":\"tcx-podside\"", FIELD(policy.attach_mode),
	 NATRA_ATTACH_MODE_TCX_PODSIDE},
	{"\"edtPacing\":\"off\"", FIELD(policy.edt_pacing),
	 NATRA_EDT_PACING_OFF},
	{"\"fastPass\":\"strict\"", FIELD(policy.fast_pass),
	 NATRA_FAST_PASS_STRICT},
	{"\"ingressPacketRate\":\"10k\"",
	 FIELD(policy.ingress_packet_rate_per_sec), 10000},
	{"\"egressConnectionRate\":100",
	 FIELD(policy.egress_connection_rate_per_sec), 100},
	{"\"fastPassShare\":1", FIELD(policy.fast_pass_share_percent), 1},
	{"\"ingressMode\":\"pace\"", FIELD(policy.ingress_mode),
	 NATRA_INGRESS_MODE_PACE},
	{"\"heavyHitterThreshold\":\"125k\"",
	 FIELD(policy.heavy_hitter_threshold_bytes), 125000},
	{"\"heavyHitterThreshold\":\"1Mi\"",
	 FIELD(policy.heavy_hitter_threshold_bytes), 1 << 20},
	{"\"sli\":\"on\"", FIELD(policy.sli), NATRA_SLI_ON},
	{"\"horizon\":\"1500ms\"", FIELD(policy.horizon_ns), 1500000000},
	{"\"paceLimit\":\"20ms\"", FIELD(policy.pace_limit_ns), 20000000},
	{"\"precedence\":\"static\"", FIELD(precedence), PRECEDENCE_STATIC},
	{"\"precedence\":\"runtime\"", FIELD(precedence), PRECEDENCE_RUNTIME},
	{"\"precedence\":\"lowest\"", FIELD(precedence), PRECEDENCE_LOWEST},
	{"\"onError\":\"fail\"", FIELD(continue_on_error), 0},
	{"\"onError\":\"continue\"", FIELD(continue_on_error), 1},
	{"\"replaceBandwidth\":true", FIELD(replace_bandwidth), 1},
	{"\"replaceBandwidth\":false", FIELD(replace_bandwidth), 0},
	{"\"requireNamespaces\":true", FIELD(require_namespaces), 1},
	{"\"allowAnnotations\":[]", FIELD(allowed_len), 0},
	{"\"logFile\":\"\"", FIELD(precedence), 0},
	{"\"logFile\":\"/x\"", FIELD(precedence), 0},
	{"\"logLevel\":\"debug\"", FIELD(precedence), 0},
	/* Keys match in any letter case, the last of several counts, null is
	 * absent. */
	{"\"EDTPACING\":\"on\"", FIELD(policy.edt_pacing), NATRA_EDT_PACING_ON},
	{"\"edtPacing\":\"on\",\"EdtPacing\":\"off\"", FIELD(policy.edt_pacing),
	 NATRA_EDT_PACING_OFF},
	{"\"edtPacing\":5,\"EdtPacing\":\"off\"", FIELD(policy.edt_pacing),
	 NATRA_EDT_PACING_OFF},
	{"\"edtPacing\":null", FIELD(policy.edt_pacing), NATRA_EDT_PACING_AUTO},
	{"\"onError\":null,\"horizon\":null,\"allowAnnotations\":null",
	 FIELD(policy.horizon_ns), 0},
};

TH_TEST(each_key_sets_its_field)
{
	for (size_t i = 0; i < TH_LEN(good); i++) {
		struct failure failure = {0};
		struct settings s;
		uint64_t value = 0;

		if (read_settings(good[i].members, &s, &failure))
			fail_msg("%s: %s", good[i].members, failure.msg);
		memcpy(&value, (char *)&s + good[i].offset, good[i].size);
		if (value != good[i].value)
			fail_msg("%s: %llu", good[i].members,
				 (unsigned long long)value);
	}
}

TH_TEST(a_bad_value_is_named_with_its_key)
{
	static const struct {
		const char *members;
		const char *key;
		const char *value;
	} cases[] = {
		{"\"attachMode\":\"tcx\"", "attachMode", "'tcx'"},
		{"\"attachMode\":[\"auto\"]", "attachMode", "[\"auto\"]"},
		{"\"edtPacing\":true", "edtPacing", "true"},
		{"\"EDTpacing\":\"x\"", "edtPacing", "'x'"},
		{"\"fastPassShare\":1001", "fastPassShare", "1001"},
		{"\"fastPassShare\":50.5", "fastPassShare", "50.5"},
		{"\"fastPassShare\":\"5k\"", "fastPassShare", "'5k'"},
		{"\"fastPassShare\":4294967297", "fastPassShare", "4294967297"},
		{"\"ingressPacketRate\":0", "ingressPacketRate", "0"},
		{"\"fastPass\":\"charged\"", "fastPass", "'charged'"},
		{"\"heavyHitterThreshold\":\"12x\"", "heavyHitterThreshold",
		 "'12x'"},
		{"\"horizon\":\"10s\"", "horizon", "'10s'"},
		{"\"paceLimit\":\"1h\"", "paceLimit", "'1h'"},
		{"\"precedence\":\"highest\"", "precedence", "'highest'"},
		{"\"onError\":\"ignore\"", "onError", "'ignore'"},
		{"\"onError\":false", "onError", "false"},
		{"\"replaceBandwidth\":\"true\"", "replaceBandwidth", "'true'"},
		{"\"requireNamespaces\":1", "requireNamespaces", "1"},
		{"\"allowAnnotations\":\"fast-pass\"", "allowAnnotations",
		 "'fast-pass'"},
		{"\"allowAnnotations\":[\"fast-pass\",\"x\"]",
		 "allowAnnotations", "'x'"},
		{"\"allowAnnotations\":[\"fast-pass\",7]", "allowAnnotations",
		 "7"},
		{"\"allowAnnotations\":[\"example.org/fast-pass\"]",
		 "allowAnnotations", "'example.org/fast-pass'"},
		{"\"logFile\":\"x.log\"", "logFile", "'x.log'"},
		{"\"logFile\":5", "logFile", "5"},
		{"\"logLevel\":\"trace\"", "logLevel", "'trace'"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		struct settings s;
		int r = read_settings(cases[i].members, &s, &failure);

		if (r != CNI_BAD_CONFIG)
			fail_msg("%s: %d", cases[i].members, r);
		says(&failure, cases[i].members, cases[i].key, cases[i].value);
		/* The message begins with the key. */
		assert_int_equal(strncmp(failure.msg, cases[i].key,
					 strlen(cases[i].key)),
				 0);
	}
}

TH_TEST(annotations_are_allowed_by_each_name)
{
	struct failure failure = {0};
	struct settings s;
	struct conf conf = conf_of(
		CONF("\"allowAnnotations\":[\"fast-pass\",\"natra.io/sli\","
		     "\"qos.projectcalico.org/ingressPacketRate\"]"));

	assert_int_equal(settings_read(&s, conf.json, n, &failure), 0);
	assert_true(settings_allow(&s, "natra.io/fast-pass"));
	assert_true(settings_allow(&s, "sli"));
	assert_true(settings_allow(&s, "ingress-packet-rate"));
	assert_false(settings_allow(&s, "classes"));
	settings_free(&s);
	conf_free(&conf);
}

TH_TEST(what_the_runtime_passes_on_is_checked)
{
	static const char *const texts[][2] = {
		{CONF("\"runtimeConfig\":[]"), "runtimeConfig: []"},
		{CONF("\"runtimeConfig\":{\"io.kubernetes.cri.pod-annotations\":5}"),
		 "runtimeConfig.io.kubernetes.cri.pod-annotations: 5"},
		{CONF("\"runtimeConfig\":{\"io.kubernetes.cri.pod-annotations\":"
		      "{\"a\":null,\"b\":8}}"),
		 "annotation b: 8"},
	};

	for (size_t i = 0; i < TH_LEN(texts); i++) {
		struct call call = {.conf = conf_of(texts[i][0])};

		assert_int_equal(call_read_asker(&call), CNI_BAD_CONFIG);
		says(&call.failure, texts[i][0], texts[i][1], "is not ");
		annotations_free(&call.asker.annotations);
		conf_free(&call.conf);
	}
}

TH_TEST(a_bad_log_setting_is_the_default_for_the_log)
{
	static const struct {
		const char *members;
		const char *file;
		enum natra_log_level level;
	} cases[] = {
		{"\"x\":1", "/var/log/natra-cni.log", NATRA_LOG_INFO},
		{"\"logFile\":\"/x\",\"logLevel\":\"debug\"", "/x",
		 NATRA_LOG_DEBUG},
		{"\"logFile\":\"\"", "", NATRA_LOG_INFO},
		{"\"logfile\":\"/x\",\"LOGLEVEL\":\"error\"", "/x",
		 NATRA_LOG_ERROR},
		{"\"logFile\":\"x\",\"logLevel\":\"warn\"",
		 "/var/log/natra-cni.log", NATRA_LOG_WARN},
		{"\"logFile\":[],\"logLevel\":{}", "/var/log/natra-cni.log",
		 NATRA_LOG_INFO},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct log_settings log;
		struct conf conf = conf_with(cases[i].members);

		log = settings_log(conf.json);
		assert_string_equal(log.file, cases[i].file);
		assert_int_equal(log.level, cases[i].level);
		conf_free(&conf);
	}
}

TH_MAIN(setup, teardown)
