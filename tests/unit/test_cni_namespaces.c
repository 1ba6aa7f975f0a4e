/* SPDX-License-Identifier: BSD-2-Clause */
/* What the file of namespaces gives a pod: which rule counts, what a maximum bounds whatever the
 * pod's annotations say, and what is refused by name. */
#include "cni_input.h"

#include "../../src/policy/fields.h"
#include "wanted.h"

static struct log quiet = LOG_INIT;

#define FILE_TEXT                                                              \
	"{\"shop\": {\"default\": {\"ingressRate\": \"10M\"},"                 \
	" \"max\": {\"ingressRate\": \"20M\", \"egressRate\": \"100M\","       \
	" \"egressPacketRate\": \"10k\"},"                                     \
	" \"fastPass\": \"strict\", \"allowAnnotations\": ["                   \
	"\"fast-pass\", \"egress-burst\", \"classes\", \"fast-pass-share\","   \
	"\"egress-packet-rate\", \"heavy-hitter-threshold\","                  \
	"\"kubernetes.io/egress-bandwidth\"]},"                                \
	" \"shop-*\": {\"max\": {\"egressRate\": \"5M\"}},"                    \
	" \"sh*\": {\"max\": {\"egressRate\": \"6M\"}},"                       \
	" \"*\": {\"default\": {\"egressRate\": \"7M\"}}}"

struct pod {
	struct settings settings;
	struct conf conf;
	cJSON *file;
};

/* Reads what a pod gets. */
static void read_pod(struct pod *pod, const char *name, const char *keys,
		     const struct natra_annotation *annotations, size_t len)
{
	struct asker asker = {.pod = name, .on_error = ON_ERROR_CONTINUE};
	struct namespaces_error error = {""};
	struct failure failure = {0};

	*pod = (struct pod){.conf = conf_of(keys)};
	assert_int_equal(namespaces_parse(FILE_TEXT, &pod->file, &error), 0);
	asker.namespaces = pod->file;
	asker.bandwidth = json_get(json_get(pod->conf.json, "runtimeConfig"),
				   "bandwidth");
	asker.annotations.annotations = annotations;
	asker.annotations.annotations_len = len;
	assert_int_equal(wanted_read(&pod->settings, pod->conf.json, &asker, n,
				     &quiet, &failure),
			 0);
}

static void end(struct pod *pod)
{
	settings_free(&pod->settings);
	conf_free(&pod->conf);
	cJSON_Delete(pod->file);
}

TH_TEST(the_most_specific_rule_counts)
{
	const struct {
		const char *pod;
		uint64_t in, out;
	} rows[] = {
		{"shop/a", 10000000, 100000000}, {"shop-x/a", 0, 5000000},
		{"shopping/a", 0, 6000000},      {"sh/a", 0, 6000000},
		{"other/a", 0, 7000000},         {"", 0, 7000000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pod pod;

		read_pod(&pod, rows[i].pod, CONF("\"logFile\":\"\""), NULL, 0);
		assert_int_equal(pod.settings.policy.ingress_rate_bits_per_sec,
				 rows[i].in);
		assert_int_equal(pod.settings.policy.egress_rate_bits_per_sec,
				 rows[i].out);
		/* None of them has asked for more. */
		assert_string_equal(pod.settings.lowered.text, "");
		end(&pod);
	}
}

/* Such a node has lost its maximums. */
TH_TEST(a_file_that_is_required_is_missed)
{
	const struct {
		const char *keys;
		int code;
	} rows[] = {
		{CONF("\"requireNamespaces\":true"), CNI_TRY_AGAIN},
		{CONF("\"requireNamespaces\":true,\"onError\":\"continue\""),
		 0},
		{CONF("\"requireNamespaces\":false"), 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct asker asker = {.pod = "shop/a"};
		struct conf conf = conf_of(rows[i].keys);
		struct settings settings;
		struct failure failure = {0};

		assert_int_equal(wanted_read(&settings, conf.json, &asker, n,
					     &quiet, &failure),
				 rows[i].code);
		if (rows[i].code)
			assert_string_equal(failure.msg,
					    NAMESPACES_FILE ": is not there");
		settings_free(&settings);
		conf_free(&conf);
	}
}

/* Each value is one by which a pod tried to get past its maximum. */
TH_TEST(a_maximum_holds_whatever_annotations_say)
{
	const struct natra_annotation rows[] = {
		{"kubernetes.io/egress-bandwidth", "1G"},
		{"kubernetes.io/egress-bandwidth", "1P"},
		{"kubernetes.io/egress-bandwidth", "0"},
		{"kubernetes.io/egress-bandwidth", ""},
		{"kubernetes.io/egress-bandwidth", "10m"},
		{"kubernetes.io/egress-bandwidth", "fast"},
		{"natra.io/egress-burst", "100G"},
		{"natra.io/egress-burst", "-1"},
		{"natra.io/egress-packet-rate", "1000000"},
		{"natra.io/fast-pass", "free"},
		{"natra.io/fast-pass", "Strict"},
		{"natra.io/fast-pass-share", "1000"},
		{"natra.io/heavy-hitter-threshold", "100G"},
		{"natra.io/classes", "all=0.0.0.0/0"},
		{"natra.io/classes", "all=0.0.0.0/0,ingress-rate=1M"},
		{"natra.io/classes",
		 "all=0.0.0.0/0,ingress-rate=1G,egress-rate=1G"},
		{"natra.io/classes", "all=0.0.0.0/0,egress-rate=99M;b=::/0,"
				     "ingress-rate=1M,egress-rate=1M"},
		{"natra.io/classes", "all"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct natra_policy *p;
		struct pod pod;

		read_pod(&pod, "shop/a", CONF("\"logFile\":\"\""), &rows[i], 1);
		for (int plain = 0; plain < 2; plain++) {
			p = plain ? &pod.settings.plain : &pod.settings.policy;
			assert_int_equal(p->egress_rate_bits_per_sec,
					 100000000);
			assert_int_equal(p->ingress_rate_bits_per_sec,
					 10000000);
			assert_int_equal(p->egress_burst_bits, 0);
			assert_int_equal(p->egress_packet_rate_per_sec, 10000);
			assert_int_equal(p->fast_pass, NATRA_FAST_PASS_STRICT);
			assert_int_equal(p->fast_pass_share_percent, 0);
			assert_int_equal(p->heavy_hitter_threshold_bytes, 0);
			assert_int_equal(p->classes_len, 0);
		}
		end(&pod);
	}
}

/* The rule says nothing of the fast pass, and the configuration is strict. */
TH_TEST(a_maximum_bounds_the_share_where_the_configuration_is_strict)
{
	const struct natra_annotation more = {"natra.io/fast-pass-share",
					      "1000"};
	struct pod pod;

	read_pod(&pod, "shop-x/a",
		 CONF("\"fastPass\":\"strict\",\"fastPassShare\":50,"
		      "\"allowAnnotations\":[\"fast-pass-share\"]"),
		 &more, 1);
	assert_int_equal(pod.settings.policy.egress_rate_bits_per_sec, 5000000);
	assert_int_equal(pod.settings.policy.fast_pass, NATRA_FAST_PASS_STRICT);
	assert_int_equal(pod.settings.policy.fast_pass_share_percent, 50);
	end(&pod);
}

/* What is below the maximum stays: also a burst of its own, and classes, whose rates are taken off
 * that of all others. */
TH_TEST(less_than_the_maximum_is_given)
{
	const struct natra_annotation asked[] = {
		{"kubernetes.io/egress-bandwidth", "90M"},
		{"natra.io/egress-burst", "1M"},
		{"natra.io/fast-pass", "off"},
		{"natra.io/classes",
		 "in=10.0.0.0/8,ingress-rate=5M,egress-rate=40M"},
	};
	struct pod pod;

	read_pod(&pod, "shop/a", CONF("\"logFile\":\"\""), asked, 4);
	assert_int_equal(pod.settings.policy.egress_rate_bits_per_sec,
			 60000000);
	assert_int_equal(pod.settings.policy.ingress_rate_bits_per_sec,
			 10000000);
	assert_int_equal(pod.settings.policy.egress_burst_bits, 1000000);
	assert_int_equal(pod.settings.policy.fast_pass, NATRA_FAST_PASS_OFF);
	assert_int_equal(pod.settings.policy.classes_len, 1);
	end(&pod);
}

/* The configuration's rate holds where it is lower; where it is higher nobody has asked for it.
 * Its classes are the administrator's, and stay. */
TH_TEST(the_configuration_is_bound_too)
{
	const struct natra_annotation asked[] = {
		{"natra.io/egress-burst", "40M"}};
	struct pod pod;

	read_pod(&pod, "shop/a",
		 CONF("\"logFile\":\"\",\"ingressRate\":\"200M\","
		      "\"egressRate\":\"1G\",\"groupFloor\":\"150M\","
		      "\"group\":{\"name\":\"g\",\"egressRate\":\"1G\"},"
		      "\"classes\":[{\"name\":\"c\",\"subnets\":"
		      "[\"10.0.0.0/8\"]}]"),
		 asked, 1);
	assert_int_equal(pod.settings.policy.ingress_rate_bits_per_sec,
			 20000000);
	assert_int_equal(pod.settings.policy.egress_rate_bits_per_sec,
			 100000000);
	assert_int_equal(pod.settings.policy.egress_burst_bits, 40000000);
	assert_int_equal(pod.settings.policy.group_floor_bits_per_sec,
			 20000000);
	assert_int_equal(pod.settings.policy.classes_len, 1);
	assert_string_equal(pod.settings.lowered.text, "");
	end(&pod);
}

/* A burst that was chosen for a rate far above the maximum lets a pod send no more than half a
 * second of the maximum at once. */
TH_TEST(a_burst_of_the_configuration_is_bound)
{
	const struct {
		const char *burst;
		uint64_t bits;
	} rows[] = {{"5G", 50000000}, {"51M", 50000000}, {"40M", 40000000}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char keys[160];
		struct pod pod;

		(void)snprintf(keys, sizeof(keys),
			       CONF("\"logFile\":\"\",\"egressRate\":\"10G\","
				    "\"egressBurst\":\"%s\""),
			       rows[i].burst);
		read_pod(&pod, "shop/a", keys, NULL, 0);
		assert_int_equal(pod.settings.policy.egress_rate_bits_per_sec,
				 100000000);
		assert_int_equal(pod.settings.policy.egress_burst_bits,
				 rows[i].bits);
		assert_string_equal(pod.settings.lowered.text, "");
		end(&pod);
	}
}

/* What a pod has asked for in a direction that the configuration leaves alone. */
TH_TEST(a_rate_of_the_runtime_is_told)
{
	struct pod pod;

	read_pod(&pod, "shop/a",
		 CONF("\"logFile\":\"\",\"precedence\":\"lowest\","
		      "\"egressRate\":\"1G\",\"runtimeConfig\":{\"bandwidth\":"
		      "{\"ingressRate\":50000000}}"),
		 NULL, 0);
	assert_int_equal(pod.settings.policy.ingress_rate_bits_per_sec,
			 20000000);
	assert_int_equal(pod.settings.policy.egress_rate_bits_per_sec,
			 100000000);
	assert_non_null(strstr(pod.settings.lowered.text, "50000000 is over"));
	end(&pod);
}

TH_TEST(more_than_the_maximum_is_told)
{
	const struct natra_annotation asked[] = {
		{"kubernetes.io/egress-bandwidth", "200M"}};
	struct pod pod;

	read_pod(&pod, "shop/a", CONF("\"logFile\":\"\""), asked, 1);
	assert_string_equal(pod.settings.lowered.text,
			    "kubernetes.io/egress-bandwidth: 200000000 is over "
			    "the maximum of the namespace, which holds");
	end(&pod);
}

TH_TEST(what_is_wrong_is_named)
{
	static const char *const rows[][3] = {
		{"[]", "is not an object", ""},
		{"{\"a\":", "is not JSON at byte", ""},
		{"{\"A\":{}}", "'A'", "name of a namespace"},
		{"{\"*-a\":{}}", "'*-a'", "name of a namespace"},
		{"{\"\":{}}", "''", "name of a namespace"},
		{"{\"a\":5}", "'a'", "5 is not an object"},
		{"{\"a\":{\"Max\":{}}}", "'a': Max", "no key"},
		{"{\"a\":{\"max\":5}}", "'a': max: 5", "object"},
		{"{\"a\":{\"max\":{\"egressRate\":\"fast\"}}}",
		 "'a': max.egressRate: 'fast'", "is not a rate"},
		{"{\"a\":{\"max\":{\"egressRate\":0}}}", "max.egressRate: 0",
		 "rate"},
		{"{\"a\":{\"max\":{\"egressrate\":\"1M\"}}}", "egressrate",
		 "not a key"},
		{"{\"a\":{\"max\":{\"egressBurst\":\"1M\"}}}",
		 "max.egressBurst: '1M'", "rate of its direction"},
		{"{\"a\":{\"default\":{\"egressBurst\":\"1M\"}}}",
		 "default.egressBurst", "not the key of a rate"},
		{"{\"a\":{\"default\":{\"egressRate\":\"2M\"},"
		 "\"max\":{\"egressRate\":\"1M\"}}}",
		 "default.egressRate: '2M'", "over the maximum"},
		{"{\"a\":{\"fastPass\":true}}", "fastPass: true", "strict"},
		{"{\"a\":{\"allowAnnotations\":\"x\"}}",
		 "allowAnnotations: 'x'", "list"},
		{"{\"a\":{\"allowAnnotations\":[\"x\"]}}",
		 "allowAnnotations: 'x'", "knows"},
		{"{\"a\":{},\"b\":{\"fastPass\":\"no\"}}", "'b'", "'no'"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct namespaces_error error = {""};
		cJSON *file = NULL;

		if (namespaces_parse(rows[i][0], &file, &error) == 0 ||
		    !strstr(error.text, rows[i][1]) ||
		    !strstr(error.text, rows[i][2]))
			fail_msg("%s: %s", rows[i][0], error.text);
		assert_null(file);
		assert_null(strchr(error.text, '\n'));
	}
}

TH_MAIN_EACH(setup, teardown)
