/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests read the key `classes`. */
#include "cni_input.h"

#include "classes.h"
#include "../../src/policy/fields.h"

static int read_text(const char *members, struct settings *s, struct conf *conf,
		     struct failure *failure)
{
	*s = (struct settings){.policy = NATRA_INIT(s->policy)};
	*conf = conf_with(members);
	return classes_read(s, conf->json, n, failure);
}

TH_TEST(classes_are_read)
{
	struct failure failure = {0};
	struct settings s;
	struct conf conf;

	assert_int_equal(
		read_text(
			"\"classes\":[{\"name\":\"lan\",\"subnets\":"
			"[\"10.0.0.0/8\",\"fd00::/8\"],\"ingressRate\":\"1G\","
			"\"egressRate\":2000000},"
			"{\"name\":\"v\",\"dscps\":[0,46,63],\"subnets\":[]}]",
			&s, &conf, &failure),
		0);
	assert_int_equal(s.policy.classes_len, 2);
	assert_string_equal(s.policy.classes[0].name, "lan");
	assert_int_equal(s.policy.classes[0].subnets_len, 2);
	assert_string_equal(s.policy.classes[0].subnets[1], "fd00::/8");
	assert_int_equal(s.policy.classes[0].ingress_rate_bits_per_sec,
			 1000000000);
	assert_int_equal(s.policy.classes[0].egress_rate_bits_per_sec, 2000000);
	assert_true(s.policy.classes[1].dscps ==
		    (UINT64_C(1) | UINT64_C(1) << 46 | UINT64_C(1) << 63));
	assert_int_equal(s.policy.classes[1].egress_rate_bits_per_sec, 0);
	/* Their rates are enough for an attachment. */
	assert_true(policy_has_limits(&s.policy));
	conf_free(&conf);
	assert_int_equal(read_text("\"mtu\":1", &s, &conf, &failure), 0);
	assert_int_equal(s.policy.classes_len, 0);
	conf_free(&conf);
}

TH_TEST(wrong_ones_are_named)
{
	static const struct {
		const char *members, *text;
	} rows[] = {
		{"\"classes\":{}", "classes: {} is not a list of classes"},
		{"\"classes\":[1]", "classes[0].name: missing"},
		{"\"classes\":[{\"name\":\"a\"},{\"name\":7}]",
		 "classes[1].name: missing"},
		{"\"classes\":[{\"name\":\"a\",\"rate\":\"1M\"}]",
		 "classes[0].rate: '1M' is no key of a class"},
		{"\"classes\":[{\"name\":\"a\",\"ingressRate\":\"fast\"}]",
		 "classes[0].ingressRate: 'fast' is not a rate such as 10M"},
		{"\"classes\":[{\"name\":\"a\",\"egressRate\":-1}]",
		 "classes[0].egressRate: -1 is not a rate such as 10M"},
		{"\"classes\":[{\"name\":\"a\",\"dscps\":[64]}]",
		 "classes[0].dscps: 64 is not a number from 0 to 63"},
		{"\"classes\":[{\"name\":\"a\",\"dscps\":46}]",
		 "classes[0].dscps: 46 is not a list of numbers from 0 to 63"},
		{"\"classes\":[{\"name\":\"a\",\"subnets\":\"::/0\"}]",
		 "classes[0].subnets: '::/0' is not a list of CIDR blocks"},
		{"\"classes\":[{\"name\":\"a\",\"subnets\":[7]}]",
		 "classes[0].subnets: 7 is not a CIDR block"},
		{"\"classes\":[{\"name\":\"a\",\"subnets\":[\"10.0.0.0\"]}]",
		 "classes: '10.0.0.0' of 'a' is not a CIDR block"},
		{"\"classes\":[{\"name\":\"a\"},{\"name\":\"a\"}]",
		 "classes: 'a' is there twice"},
		{"\"classes\":[{},{},{},{},{},{},{},{},{}]",
		 "classes[0].name: missing"},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct failure failure = {0};
		struct settings s;
		struct conf conf;

		if (!read_text(rows[i].members, &s, &conf, &failure))
			fail_msg("%s is accepted", rows[i].members);
		assert_string_equal(failure.msg, rows[i].text);
		assert_int_equal(failure.code, CNI_BAD_CONFIG);
		conf_free(&conf);
	}
}

/* The texts of all lists are in one place. */
TH_TEST(they_leave_the_subnets)
{
	struct settings s = {.policy = NATRA_INIT(s.policy)};
	struct failure failure = {0};
	struct conf conf = conf_of(CONF(
		"\"classes\":[{\"name\":\"a\",\"subnets\":[\"fd00::/8\"]}]"));

	s.subnets[0] = "10.0.0.0/8";
	s.policy.unshaped_subnets = s.subnets;
	s.policy.unshaped_subnets_len = 1;
	assert_int_equal(classes_read(&s, conf.json, n, &failure), 0);
	assert_string_equal(s.policy.unshaped_subnets[0], "10.0.0.0/8");
	assert_string_equal(s.policy.classes[0].subnets[0], "fd00::/8");
	conf_free(&conf);
}

TH_MAIN(setup, teardown)
