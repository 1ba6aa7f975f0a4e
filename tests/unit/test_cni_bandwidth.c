/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests read rates and bursts that runtimes really send, and that operators
 * write. */
#include "cni_input.h"

#include "bandwidth.h"

#define RUNTIME(bandwidth) "\"runtimeConfig\":{\"bandwidth\":" bandwidth "}"
#define MBIT10             10000000ULL

static int read_conf(struct settings *s, const struct conf *conf,
		     struct failure *failure)
{
	struct asker asker = {
		.pod = "",
		.bandwidth = json_get(json_get(conf->json, "runtimeConfig"),
				      "bandwidth"),
	};

	return bandwidth_read(s, conf->json, &asker, n, failure);
}

static int read_bandwidth(const char *members, enum precedence precedence,
			  struct natra_policy *policy, struct failure *failure)
{
	struct settings settings = {
		.policy = NATRA_INIT(settings.policy),
		.precedence = precedence,
	};
	struct conf conf = conf_with(members);
	int r;

	r = read_conf(&settings, &conf, failure);
	*policy = settings.policy;
	conf_free(&conf);
	return r;
}

/* Rates are in bit/s, bursts in bits; 0 is "not limited" and "the default". */
struct limits {
	uint64_t in, in_burst, out, out_burst;
};

static void expect(const char *members, enum precedence precedence,
		   struct limits want)
{
	struct natra_policy p = NATRA_INIT(p);
	struct failure failure = {0};

	if (read_bandwidth(members, precedence, &p, &failure))
		fail_msg("%s: %s", members, failure.msg);
	if (p.ingress_rate_bits_per_sec != want.in ||
	    p.ingress_burst_bits != want.in_burst ||
	    p.egress_rate_bits_per_sec != want.out ||
	    p.egress_burst_bits != want.out_burst)
		fail_msg("%s (%d): %llu/%llu %llu/%llu", members, precedence,
			 (unsigned long long)p.ingress_rate_bits_per_sec,
			 (unsigned long long)p.ingress_burst_bits,
			 (unsigned long long)p.egress_rate_bits_per_sec,
			 (unsigned long long)p.egress_burst_bits);
}

/* If the operator sets no burst, the library chooses it. */
TH_TEST(runtimes_are_understood_as_they_are)
{
	static const struct {
		const char *bandwidth;
		struct limits want;
	} cases[] = {
		/* containerd sends the names of a Go struct without tags. */
		{"{\"IngressRate\":10000000,\"IngressBurst\":4294967295,"
		 "\"EgressRate\":0,\"EgressBurst\":0}",
		 {MBIT10, 0, 0, 0}},
		{"{\"IngressRate\":0,\"IngressBurst\":0,"
		 "\"EgressRate\":10000000,\"EgressBurst\":4294967295}",
		 {0, 0, MBIT10, 0}},
		{"{\"IngressRate\":10000000,\"IngressBurst\":4294967295,"
		 "\"EgressRate\":10000000,\"EgressBurst\":4294967295}",
		 {MBIT10, 0, MBIT10, 0}},
		/* CRI-O sends these bursts, the second one before its #4348. */
		{"{\"ingressRate\":10000000,\"ingressBurst\":34359738359,"
		 "\"egressRate\":10000000,\"egressBurst\":34359738359}",
		 {MBIT10, 0, MBIT10, 0}},
		{"{\"ingressRate\":10000000,\"ingressBurst\":34359738360,"
		 "\"egressRate\":0,\"egressBurst\":0}",
		 {MBIT10, 0, 0, 0}},
		/* dockershim and cri-dockerd leave out what is not set. */
		{"{\"ingressRate\":10000000,\"ingressBurst\":2147483647}",
		 {MBIT10, 0, 0, 0}},
		/* The kubelet of 2018 sent this. */
		{"{\"ingressRate\":10000,\"ingressBurst\":0}",
		 {10000, 0, 0, 0}},
		/* Multus passes the user's own numbers. */
		{"{\"ingressRate\":10000000,\"ingressBurst\":8000000,"
		 "\"egressRate\":5000000,\"egressBurst\":0}",
		 {MBIT10, 8000000, 5000000, 0}},
		/* cnitool sends this. */
		{"{\"egressBurst\":1000000,\"egressRate\":10000000,"
		 "\"ingressBurst\":1000000,\"ingressRate\":10000000}",
		 {MBIT10, 1000000, MBIT10, 1000000}},
		{"{\"IngressRate\":0,\"IngressBurst\":0,\"EgressRate\":0,"
		 "\"EgressBurst\":0}",
		 {0, 0, 0, 0}},
		/* A placeholder burst without a rate sets no limit either. */
		{"{\"IngressRate\":0,\"IngressBurst\":4294967295}",
		 {0, 0, 0, 0}},
		{"{}", {0, 0, 0, 0}},
		{"null", {0, 0, 0, 0}},
	};
	char members[512];

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		(void)snprintf(members, sizeof(members), RUNTIME("%s"),
			       cases[i].bandwidth);
		for (int p = 0; p < PRECEDENCE_MAX; p++)
			expect(members, (enum precedence)p, cases[i].want);
	}
	expect("\"runtimeConfig\":null", PRECEDENCE_STATIC,
	       (struct limits){0, 0, 0, 0});
	expect("\"runtimeConfig\":{}", PRECEDENCE_RUNTIME,
	       (struct limits){0, 0, 0, 0});
}

TH_TEST(bursts_from_2_31_on_are_placeholders_of_a_runtime)
{
	static const struct {
		const char *burst;
		uint64_t by_runtime, by_conf;
	} cases[] = {
		{"0", 0, 0},
		{"null", 0, 0},
		{"1", 1, 1},
		{"7", 7, 7},
		{"8", 8, 8},
		{"9", 9, 9},
		{"8000000", 8000000, 8000000},
		{"2147483646", 2147483646, 2147483646},
		{"2147483647", 0, 2147483647},
		{"2147483648", 0, 2147483648},
		{"4294967295", 0, 4294967295},
		{"34359738359", 0, 34359738359},
		{"34359738360", 0, 34359738360},
		{"1099511627776", 0, 1099511627776},
		{"9223372036854775808", 0, 9223372036854775808ULL},
		{"1e300", 0, 18446744073709551615ULL},
	};
	char members[256];

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		(void)snprintf(
			members, sizeof(members),
			RUNTIME("{\"egressRate\":10000000,\"egressBurst\":%s}"),
			cases[i].burst);
		expect(members, PRECEDENCE_STATIC,
		       (struct limits){0, 0, MBIT10, cases[i].by_runtime});
		(void)snprintf(members, sizeof(members),
			       "\"egressRate\":10000000,\"egressBurst\":%s",
			       cases[i].burst);
		expect(members, PRECEDENCE_STATIC,
		       (struct limits){0, 0, MBIT10, cases[i].by_conf});
	}
}

TH_TEST(quantities_are_taken_in_both_places)
{
	static const char members[] =
		"\"egressRate\":\"10M\",\"ingressRate\":\"2P\","
		"\"ingressBurst\":\"8M\"";
	char runtime[256];

	(void)snprintf(runtime, sizeof(runtime), RUNTIME("{%s}"), members);
	expect(members, PRECEDENCE_STATIC,
	       (struct limits){NATRA_RATE_MAX_BITS_PER_SEC, 8000000, MBIT10,
			       0});
	expect(runtime, PRECEDENCE_STATIC,
	       (struct limits){NATRA_RATE_MAX_BITS_PER_SEC, 8000000, MBIT10,
			       0});
}

/* The cases combine configuration and runtime in all three orders of
 * precedence. */
TH_TEST(precedence_chooses_where_both_say_something)
{
	static const struct {
		const char *conf;
		const char *runtime;
		struct limits want[PRECEDENCE_MAX];
	} cases[] = {
		/* The runtime's rate is lower. */
		{"\"ingressRate\":9000000,\"ingressBurst\":800",
		 "\"ingressRate\":4000000,\"ingressBurst\":1600",
		 {{9000000, 800, 0, 0},
		  {4000000, 1600, 0, 0},
		  {4000000, 800, 0, 0}}},
		{"\"ingressRate\":9000000",
		 "\"ingressRate\":8999999,\"ingressBurst\":2000000000",
		 {{9000000, 0, 0, 0},
		  {8999999, 2000000000, 0, 0},
		  {8999999, 4500000, 0, 0}}},
		/* The configuration's rate is lower. */
		{"\"ingressRate\":3000000,\"ingressBurst\":800",
		 "\"ingressRate\":4000000,\"ingressBurst\":1600",
		 {{3000000, 800, 0, 0},
		  {4000000, 1600, 0, 0},
		  {3000000, 800, 0, 0}}},
		/* The rates are equal: the operator's burst counts, unless the
		 * runtime takes precedence. */
		{"\"ingressRate\":4000000,\"ingressBurst\":800",
		 "\"ingressRate\":4000000,\"ingressBurst\":1600",
		 {{4000000, 800, 0, 0},
		  {4000000, 1600, 0, 0},
		  {4000000, 800, 0, 0}}},
		/* A burst comes from the same place as its rate, but the lowest is no
		 * longer than the configuration's. */
		{"\"ingressRate\":9000000,\"ingressBurst\":800",
		 "\"ingressRate\":4000000,\"ingressBurst\":4294967295",
		 {{9000000, 800, 0, 0},
		  {4000000, 0, 0, 0},
		  {4000000, 800, 0, 0}}},
		/* Each direction is decided by itself. */
		{"\"ingressRate\":9000000,\"egressRate\":1000000",
		 "\"ingressRate\":4000000,\"egressRate\":2000000",
		 {{9000000, 0, 1000000, 0},
		  {4000000, 0, 2000000, 0},
		  {4000000, 0, 1000000, 0}}},
		{"\"ingressRate\":9000000",
		 "\"IngressRate\":0,\"EgressRate\":2000000",
		 {{9000000, 0, 0, 0},
		  {9000000, 0, 2000000, 0},
		  {9000000, 0, 2000000, 0}}},
		/* One of the four keys hides all of the runtime's, as in
		 * upstream's plugin. */
		{"\"egressBurst\":0",
		 "\"ingressRate\":4000000,\"egressRate\":2000000",
		 {{0, 0, 0, 0},
		  {4000000, 0, 2000000, 0},
		  {4000000, 0, 2000000, 0}}},
		{"\"ingressRate\":0",
		 "\"ingressRate\":4000000",
		 {{0, 0, 0, 0}, {4000000, 0, 0, 0}, {4000000, 0, 0, 0}}},
		/* A null hides nothing, because it counts as absent. */
		{"\"ingressRate\":null",
		 "\"ingressRate\":4000000",
		 {{4000000, 0, 0, 0}, {4000000, 0, 0, 0}, {4000000, 0, 0, 0}}},
		{"\"ingressRate\":9000000",
		 "\"ingressRate\":null",
		 {{9000000, 0, 0, 0}, {9000000, 0, 0, 0}, {9000000, 0, 0, 0}}},
	};
	char members[512];

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		(void)snprintf(members, sizeof(members), "%s," RUNTIME("{%s}"),
			       cases[i].conf, cases[i].runtime);
		for (int p = 0; p < PRECEDENCE_MAX; p++)
			expect(members, (enum precedence)p, cases[i].want[p]);
	}
}

TH_TEST(a_bad_value_is_named_with_its_key)
{
	static const struct {
		const char *members;
		const char *key;
		const char *value;
	} cases[] = {
		{"\"ingressRate\":\"10X\"", "ingressRate", "'10X'"},
		{"\"ingressRate\":-1", "ingressRate", "-1"},
		{"\"egressRate\":true", "egressRate", "true"},
		{"\"ingressBurst\":\"x\",\"ingressRate\":5000", "ingressBurst",
		 "'x'"},
		{"\"egressBurst\":-8,\"egressRate\":5000", "egressBurst", "-8"},
		{"\"ingressBurst\":5000", "ingressBurst is 5000",
		 "if burst is set, rate must also be set"},
		{"\"egressBurst\":5000,\"ingressRate\":5000",
		 "egressBurst is 5000",
		 "if burst is set, rate must also be set"},
		{RUNTIME("{\"IngressBurst\":8000}"),
		 "runtimeConfig.bandwidth.ingressBurst",
		 "if burst is set, rate must also be set"},
		{RUNTIME("{\"IngressRate\":-500}"),
		 "runtimeConfig.bandwidth.ingressRate", "-500"},
		{RUNTIME("{\"EgressRate\":\"x\"}"),
		 "runtimeConfig.bandwidth.egressRate", "'x'"},
		{RUNTIME("[]"), "runtimeConfig.bandwidth", "[]"},
		{"\"shapedSubnets\":\"10.0.0.0/8\"", "shapedSubnets",
		 "'10.0.0.0/8'"},
		{"\"shapedSubnets\":[\"10.0.0.0/8\",\"10.0.0.0\"]",
		 "shapedSubnets", "'10.0.0.0'"},
		{"\"unshapedSubnets\":[\"10.0.0.0/33\"]", "unshapedSubnets",
		 "'10.0.0.0/33'"},
		{"\"unshapedSubnets\":[8]", "unshapedSubnets", "8"},
		{RUNTIME("{\"shapedSubnets\":[\"x\"]}"),
		 "runtimeConfig.bandwidth.shapedSubnets", "'x'"},
		{"\"unshapedSubnets\":[\"10.0.0.0/8\"],"
		 "\"shapedSubnets\":[\"11.0.0.0/8\"]",
		 "shapedSubnets", "unshapedSubnets"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct natra_policy p = NATRA_INIT(p);
		struct failure failure = {0};

		if (read_bandwidth(cases[i].members, PRECEDENCE_STATIC, &p,
				   &failure) != CNI_BAD_CONFIG)
			fail_msg("%s", cases[i].members);
		says(&failure, cases[i].members, cases[i].key, cases[i].value);
	}
}

TH_TEST(what_is_hidden_is_not_judged)
{
	struct natra_policy p = NATRA_INIT(p);
	struct failure failure = {0};

	expect("\"ingressRate\":5000," RUNTIME("{\"ingressRate\":\"x\"}"),
	       PRECEDENCE_STATIC, (struct limits){5000, 0, 0, 0});
	assert_int_equal(read_bandwidth("\"ingressRate\":5000," RUNTIME(
						"{\"ingressRate\":\"x\"}"),
					PRECEDENCE_LOWEST, &p, &failure),
			 CNI_BAD_CONFIG);
}

/* Checks which subnets are read: one or none of each kind. */
static void expect_subnets(const char *members, enum precedence precedence,
			   const char *shaped, const char *unshaped)
{
	struct settings s = {
		.policy = NATRA_INIT(s.policy),
		.precedence = precedence,
	};
	struct failure failure = {0};
	struct conf conf = conf_with(members);

	if (read_conf(&s, &conf, &failure))
		fail_msg("%s: %s", members, failure.msg);
	assert_int_equal(s.policy.shaped_subnets_len, shaped ? 1 : 0);
	assert_int_equal(s.policy.unshaped_subnets_len, unshaped ? 1 : 0);
	if (shaped)
		assert_string_equal(s.policy.shaped_subnets[0], shaped);
	if (unshaped)
		assert_string_equal(s.policy.unshaped_subnets[0], unshaped);
	assert_int_equal(natra_policy_check(n, &s.policy), 0);
	conf_free(&conf);
}

#define CONF_SUBNETS    "\"shapedSubnets\":[\"10.0.0.0/8\"]"
#define RUNTIME_SUBNETS "\"unshapedSubnets\":[\"fd00::/8\"]"

TH_TEST(subnets_come_from_one_place)
{
	for (int i = 0; i < PRECEDENCE_MAX; i++) {
		enum precedence p = (enum precedence)i;
		bool runtime = p == PRECEDENCE_RUNTIME;

		expect_subnets("\"x\":1", p, NULL, NULL);
		expect_subnets(CONF_SUBNETS, p, "10.0.0.0/8", NULL);
		expect_subnets(RUNTIME("{" RUNTIME_SUBNETS "}"), p, NULL,
			       "fd00::/8");
		expect_subnets(CONF_SUBNETS
			       "," RUNTIME("{" RUNTIME_SUBNETS "}"),
			       p, runtime ? NULL : "10.0.0.0/8",
			       runtime ? "fd00::/8" : NULL);
		/* The configuration's subnets apply to the runtime's limits,
		 * too. */
		expect_subnets(CONF_SUBNETS
			       "," RUNTIME("{\"IngressRate\":10000000}"),
			       p, "10.0.0.0/8", NULL);
		/* A key that hides the runtime's rates also hides its
		 * subnets. */
		expect_subnets(
			"\"egressRate\":5000," RUNTIME("{" RUNTIME_SUBNETS "}"),
			p, NULL, p == PRECEDENCE_STATIC ? NULL : "fd00::/8");
	}
	/* An empty list in the configuration counts as none. */
	expect_subnets("\"SHAPEDSUBNETS\":[],\"unshapedSubnets\":[]",
		       PRECEDENCE_STATIC, NULL, NULL);
	expect_subnets("\"shapedSubnets\":[]," RUNTIME_SUBNETS,
		       PRECEDENCE_STATIC, NULL, "fd00::/8");
	expect_subnets("\"shapedSubnets\":null," RUNTIME_SUBNETS,
		       PRECEDENCE_STATIC, NULL, "fd00::/8");
}

TH_TEST(subnets_are_bounded)
{
	static char text[64 * 1024];

	for (int excess = 0; excess < 2; excess++) {
		struct settings s = {.policy = NATRA_INIT(s.policy)};
		struct failure failure = {0};
		struct conf conf;
		size_t len;
		int r;

		len = (size_t)snprintf(text, sizeof(text), "%s",
				       "{\"cniVersion\":\"1.0.0\",\"name\":"
				       "\"n\",\"unshapedSubnets\":[");
		for (int i = 0; i < NATRA_SUBNETS_MAX + excess; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s\"10.%d.%d.0/24\"",
						i ? "," : "", i / 256, i % 256);
		(void)snprintf(text + len, sizeof(text) - len, "]}");
		conf = conf_of(text);
		r = read_conf(&s, &conf, &failure);
		assert_int_equal(r, excess ? CNI_BAD_CONFIG : 0);
		if (excess)
			says(&failure, "subnets", "unshapedSubnets", "1025");
		conf_free(&conf);
	}
}

TH_MAIN(setup, teardown)
