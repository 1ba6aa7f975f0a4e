/* SPDX-License-Identifier: BSD-2-Clause */
/* Pods join groups that come and go meanwhile: the library's calls are replaced. */
#include "cni_input.h"

#include <errno.h>

#include "groups.h"
#include "../../src/policy/fields.h"
#include "wanted.h"

#define BLUE                                                                   \
	"\"logFile\":\"\",\"group\":{\"name\":\"blue\",\"ingressRate\":\"1G\"}"

static struct natra *n;
static struct log quiet = LOG_INIT;

/* What the library does. */
static struct {
	int set, sets;
	int missed; /* so often the group is gone when it is looked for */
	int moves;  /* so often it has another number when it is looked for */
	uint32_t number;
	uint32_t in; /* the group that the pod has been attached to last */
	int attaches;
	const struct natra_group_info *group; /* NULL: there is none */
	const char *error;
	char removed[64];
} fake;

int __wrap_natra_group_set(struct natra *handle,
			   const struct natra_group_info *group);
int __wrap_natra_group_remove(struct natra *handle, const char *name);
int __wrap_natra_find_group(struct natra *handle, const char *name,
			    uint32_t *ret_number);
int __wrap_natra_foreach_group(struct natra *handle, natra_group_fn fn,
			       void *arg);
const char *__wrap_natra_error(const struct natra *handle);

int __wrap_natra_group_set(struct natra *handle,
			   const struct natra_group_info *group)
{
	(void)handle;
	/* Else GC would leave it when its members have gone. */
	assert_int_equal(group->automatic, 1);
	fake.sets++;
	return fake.set;
}

int __wrap_natra_find_group(struct natra *handle, const char *name,
			    uint32_t *ret_number)
{
	(void)handle;
	(void)name;
	if (fake.missed-- > 0)
		return -ENOENT;
	if (fake.moves-- > 0)
		fake.number++;
	*ret_number = fake.number;
	return 0;
}

int __wrap_natra_group_remove(struct natra *handle, const char *name)
{
	(void)handle;
	(void)snprintf(fake.removed, sizeof(fake.removed), "%s", name);
	return 0;
}

int __wrap_natra_foreach_group(struct natra *handle, natra_group_fn fn,
			       void *arg)
{
	(void)handle;
	return fake.group ? fn(arg, fake.group) : 0;
}

const char *__wrap_natra_error(const struct natra *handle)
{
	(void)handle;
	return fake.error ? fake.error : "";
}

static int setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.number = 7;
	return natra_open(&n, NULL);
}

static int teardown(void **state)
{
	(void)state;
	natra_close(n);
	return 0;
}

static const struct asker shop = {.pod = "shop/a"};

static int read_conf(struct settings *s, const char *text, struct conf *conf,
		     struct failure *failure)
{
	*conf = conf_of(text);
	return wanted_read(s, conf->json, &shop, n, &quiet, failure);
}

static void a_group_that_went_is_made_again(void **state)
{
	struct failure failure = {0};
	struct settings s;
	struct conf conf;

	(void)state;
	fake.missed = 2;
	assert_int_equal(read_conf(&s, CONF(BLUE), &conf, &failure), 0);
	assert_int_equal(s.policy.group, 7);
	assert_int_equal(fake.sets, 3);
	conf_free(&conf);
	/* It does not go on for ever. */
	fake.missed = 1000;
	assert_true(read_conf(&s, CONF(BLUE), &conf, &failure) > 0);
	conf_free(&conf);
}

static void the_next_group_has_other_rates(void **state)
{
	static const char text[] =
		CONF("\"group\":{\"name\":\"blue\"},\"groupWeight\":3,"
		     "\"egressPacketRate\":5,\"ingressPacketRate\":9");
	const struct natra_group_info in = {
		.sz = sizeof(in),
		.name = "blue",
		.number = 3,
		.ingress_rate_bits_per_sec = 5,
	};
	const struct natra_group_info out = {
		.sz = sizeof(out),
		.name = "blue",
		.number = 4,
		.egress_rate_bits_per_sec = 5,
	};
	struct failure failure = {0};
	struct settings s;
	struct conf conf;

	(void)state;
	fake.group = &in;
	assert_int_equal(read_conf(&s, text, &conf, &failure), 0);
	assert_int_equal(s.policy.group, 3);
	assert_true(s.policy.ingress_rate_bits_per_sec ==
		    NATRA_RATE_MAX_BITS_PER_SEC);
	assert_int_equal(s.policy.egress_rate_bits_per_sec, 0);
	assert_int_equal(s.policy.egress_packet_rate_per_sec, 5);
	assert_int_equal(s.policy.ingress_packet_rate_per_sec, 9);
	/* Another one has its name by now. */
	fake.group = &out;
	assert_int_equal(groups_join(&s, &shop, n, &quiet, &failure), 0);
	assert_int_equal(s.policy.group, 4);
	assert_int_equal(s.policy.ingress_rate_bits_per_sec, 0);
	assert_true(s.policy.egress_rate_bits_per_sec ==
		    NATRA_RATE_MAX_BITS_PER_SEC);
	assert_int_equal(s.policy.egress_packet_rate_per_sec, 5);
	/* There is none any more, so that nothing is left to limit. */
	fake.group = NULL;
	assert_int_equal(groups_join(&s, &shop, n, &quiet, &failure), 0);
	assert_int_equal(s.policy.group, 0);
	assert_int_equal(s.policy.group_weight, 0);
	assert_int_equal(s.policy.egress_packet_rate_per_sec, 0);
	assert_false(policy_has_limits(&s.policy));
	conf_free(&conf);
}

static void a_failure_names_the_group_once(void **state)
{
	static const struct {
		const char *error, *msg;
	} cases[] = {
		{"there are 256 groups already",
		 "group 'blue': there are 256 groups already"},
		{"group 'blue': too much", "group 'blue': too much"},
		{"group 'node': too much",
		 "group 'blue': group 'node': too much"},
		{"", "group 'blue': Numerical result out of range"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure = {0};
		struct settings s;
		struct conf conf;

		fake.set = -ERANGE;
		fake.error = cases[i].error;
		assert_int_equal(read_conf(&s, CONF(BLUE), &conf, &failure),
				 CNI_NOT_SHAPED);
		assert_string_equal(failure.msg, cases[i].msg);
		conf_free(&conf);
	}
}

static int attach(void *arg, const struct natra_policy *policy)
{
	(void)arg;
	fake.attaches++;
	fake.in = policy->group;
	return 0;
}

/* Another tenant's group may have the number when the pod is attached. */
static void a_pod_is_in_its_own_group_or_in_none(void **state)
{
	static const char carries_on[] =
		CONF(BLUE ",\"egressRate\":5,\"onError\":\"continue\"");
	struct failure failure = {0};
	struct settings s;
	struct conf conf = conf_of(CONF(BLUE ",\"egressRate\":5"));
	struct groups_attach a = {
		&s, &shop, n, &quiet, &failure, attach, NULL,
	};

	(void)state;
	assert_int_equal(wanted_read(&s, conf.json, &shop, n, &quiet, &failure),
			 0);
	fake.moves = 1;
	assert_int_equal(groups_attach(&a), 0);
	assert_int_equal(fake.in, 8);
	assert_int_equal(fake.attaches, 2);
	/* It does not go on for ever. */
	fake.moves = 1000;
	assert_int_equal(groups_attach(&a), CNI_TRY_AGAIN);
	assert_non_null(strstr(failure.msg, "group 'blue'"));
	assert_int_equal(fake.in, 0);
	assert_int_equal(s.policy.ingress_rate_bits_per_sec, 0);
	assert_int_equal(s.policy.egress_rate_bits_per_sec, 5);
	conf_free(&conf);
	fake.moves = 0;
	assert_int_equal(read_conf(&s, carries_on, &conf, &failure), 0);
	fake.moves = 1000;
	assert_int_equal(groups_attach(&a), 0);
	assert_int_equal(fake.in, 0);
	conf_free(&conf);
	/* An error of joining it again leaves the pod in none, too. */
	fake.moves = 0;
	conf = conf_of(CONF(BLUE));
	assert_int_equal(wanted_read(&s, conf.json, &shop, n, &quiet, &failure),
			 0);
	fake.moves = 1;
	fake.set = -ERANGE;
	assert_int_equal(groups_attach(&a), CNI_NOT_SHAPED);
	assert_int_equal(fake.in, 0);
	conf_free(&conf);
}

/* GC does not know the pods that have ended, nor the configuration that made a group. */
static void gc_removes_what_was_made_for_members(void **state)
{
	static const struct {
		uint32_t members, automatic;
		bool goes;
	} cases[] = {{0, 1, true}, {1, 1, false}, {0, 0, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct natra_group_info group = {
			.sz = sizeof(group),
			.name = "blue",
			.ingress_rate_bits_per_sec = 5,
			.members = cases[i].members,
			.automatic = cases[i].automatic,
		};

		fake.group = &group;
		fake.removed[0] = '\0';
		assert_int_equal(groups_sweep(n, &quiet), cases[i].goes);
		assert_string_equal(fake.removed, cases[i].goes ? "blue" : "");
	}
}

/* ADD would fail for these each time, so that STATUS has to refuse them. */
static void what_the_library_refuses_is_no_key(void **state)
{
	static const struct {
		const char *group, *msg;
	} cases[] = {
		{"\"name\":\"a\",\"parent\":\"p\",\"ingressRate\":5,\"floor\":6",
		 "group.floor: 6 is over ingressRate"},
		{"\"name\":\"a\",\"parent\":\"p\",\"egressRate\":\"5M\",\"floor\":\"6M\"",
		 "group.floor: '6M' is over egressRate"},
		{"\"name\":\"a\",\"parent\":\"p\",\"ingressRate\":7,\"egressRate\":5,\"floor\":6",
		 "group.floor: 6 is over egressRate"},
		{"\"name\":\"p\",\"parent\":\"p\",\"ingressRate\":5",
		 "group.parent: 'p' is the group itself"},
		{"\"name\":\"a\\u0001\",\"ingressRate\":5", "control"},
		{"\"name\":\"a\",\"parent\":\"\\u007f\",\"ingressRate\":5",
		 "control"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure = {0};
		struct settings s;
		struct conf conf;
		char text[256];

		(void)snprintf(text, sizeof(text), CONF("\"group\":{%s}"),
			       cases[i].group);
		conf = conf_of(text);
		assert_int_equal(
			wanted_read_keys(&s, conf.json, &shop, n, &failure),
			CNI_BAD_CONFIG);
		says(&failure, text, "group.", cases[i].msg);
		conf_free(&conf);
	}
}

/* doctor reads what a pod should have, and its manual says that it changes nothing. */
static void who_looks_makes_no_group(void **state)
{
	const struct natra_group_info blue = {
		.sz = sizeof(blue),
		.name = "blue",
		.number = 3,
		.egress_rate_bits_per_sec = 5,
	};
	struct failure failure = {0};
	struct settings s;
	struct conf conf = conf_of(CONF(BLUE));

	(void)state;
	assert_int_equal(wanted_look(&s, conf.json, &shop, n, &quiet, &failure),
			 0);
	assert_int_equal(s.policy.group, GROUP_UNKNOWN);
	assert_string_equal(s.group_name, "blue");
	assert_true(s.policy.ingress_rate_bits_per_sec ==
		    NATRA_RATE_MAX_BITS_PER_SEC);
	/* One that is there gets the configuration's rates with the next pod. */
	fake.group = &blue;
	assert_int_equal(wanted_look(&s, conf.json, &shop, n, &quiet, &failure),
			 0);
	assert_int_equal(s.policy.group, 3);
	assert_true(s.policy.ingress_rate_bits_per_sec ==
		    NATRA_RATE_MAX_BITS_PER_SEC);
	assert_int_equal(s.policy.egress_rate_bits_per_sec, 0);
	assert_int_equal(fake.sets, 0);
	conf_free(&conf);
}

/* As everywhere, the last of several counts. */
static void keys_that_are_there_twice(void **state)
{
	struct failure failure = {0};
	struct settings s;
	struct conf conf;

	(void)state;
	assert_int_equal(
		read_conf(&s,
			  CONF("\"group\":{\"name\":\"blue\",\"egressRate\":5,"
			       "\"EgressRate\":\"1M\"}"),
			  &conf, &failure),
		0);
	assert_int_equal(s.group.egress_rate_bits_per_sec, 1000000);
	conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_group_that_went_is_made_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_group_has_other_rates,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_failure_names_the_group_once,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_pod_is_in_its_own_group_or_in_none, setup, teardown),
		cmocka_unit_test_setup_teardown(
			gc_removes_what_was_made_for_members, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_the_library_refuses_is_no_key, setup, teardown),
		cmocka_unit_test_setup_teardown(who_looks_makes_no_group, setup,
						teardown),
		cmocka_unit_test_setup_teardown(keys_that_are_there_twice,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
