/* SPDX-License-Identifier: BSD-2-Clause */
/* Which group the policy is in, and what becomes of a pod that cannot join it: the
 * library's calls are replaced. */
#include "cni_input.h"

#include <errno.h>

#include "groups.h"
#include "../../src/policy/fields.h"
#include "wanted.h"

#define BLUE                                                                   \
	"\"logFile\":\"\",\"group\":{\"name\":\"blue\",\"ingressRate\":\"1G\"}"

#define GO_ON                                                                  \
	",\"onError\":\"continue\",\"allowAnnotations\":[\"fast-pass\"],"      \
	"\"egressRate\":\"9M\""
#define AUTOMATIC BLUE ",\"groupFloor\":\"2M\"" GO_ON
#define BY_HAND   "\"logFile\":\"\",\"group\":{\"name\":\"blue\"}" GO_ON

#define ACROSS "can be the same in two namespaces"

static struct log quiet = LOG_INIT;

/* What the library does. */
static struct {
	const struct natra_group_info *group; /* NULL: there is none */
	int results[4];                       /* of attaching */
	int attaches;
	char in[NATRA_GROUP_NAME_MAX + 1]; /* attached to last */
} fake;

int __wrap_natra_foreach_group(struct natra *handle, natra_group_fn fn,
			       void *arg)
{
	return fake.group ? fn(arg, fake.group) : 0;
}

enum natra_code __wrap_natra_error_code(const struct natra *handle);

/* Attaching fails with -ENOENT for the lack of a group only. */
enum natra_code __wrap_natra_error_code(const struct natra *handle)
{
	return fake.attaches && fake.results[fake.attaches - 1] == -ENOENT
		       ? NATRA_CODE_NO_GROUP
		       : NATRA_CODE_NONE;
}

static const struct asker shop = {.pod = "shop/a"};
static const struct natra_group_info blue = {
	.sz = sizeof(blue), .name = "blue", .egress_rate_bits_per_sec = 5};

static struct settings s;
static struct conf conf; /* that was read last */

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	return setup(state);
}

static void forget(void)
{
	settings_free(&s);
	s = (struct settings){0};
	conf_free(&conf);
	conf = (struct conf){0};
}

static int end(void **state)
{
	forget();
	return teardown(state);
}

/* Reads members of a configuration. */
static void read_conf(const char *members)
{
	struct failure failure = {0};

	forget();
	conf = conf_with(members);
	assert_int_equal(wanted_read(&s, conf.json, &shop, n, &quiet, &failure),
			 0);
}

/* Reads the configuration for another pod. */
static void read_asker(const struct asker *asker)
{
	struct failure failure = {0};

	settings_free(&s);
	assert_int_equal(wanted_read(&s, conf.json, asker, n, &quiet, &failure),
			 0);
}

/* Reads the configuration for a pod that has these annotations. */
static void read_asked(const struct natra_annotation *annotations, size_t len)
{
	struct asker asker = shop;

	asker.annotations.annotations = annotations;
	asker.annotations.annotations_len = len;
	read_asker(&asker);
}

static int attach(void *arg, const struct natra_policy *policy)
{
	memcpy(fake.in, policy->group, sizeof(fake.in));
	return fake.results[fake.attaches++];
}

static int attach_all(void)
{
	fake.attaches = 0;
	return groups_attach(&s, n, &quiet, attach, NULL);
}

/* With rates it is an automatic group, whatever others are called. */
TH_TEST(rates_make_a_group_automatic)
{
	struct natra_group_info other = blue;

	fake.group = &blue;
	read_conf(BLUE);
	assert_string_equal(s.policy.group, "blue");
	assert_int_equal(s.policy.group_is_automatic, 1);
	assert_int_equal(s.policy.automatic_group->ingress_rate_bits_per_sec,
			 1000000000);
	assert_int_equal(s.policy.ingress_rate_bits_per_sec, 0);
	assert_true(policy_has_limits(&s.policy));
	read_conf("\"group\":{\"name\":\"blue\"}");
	assert_string_equal(s.policy.group, "blue");
	assert_int_equal(s.policy.group_is_automatic, 0);
	assert_null(s.policy.automatic_group);
	other.automatic = 1;
	fake.group = &other;
	read_conf("\"group\":{\"name\":\"blue\"},\"groupWeight\":3,"
		  "\"egressPacketRate\":5");
	assert_string_equal(s.policy.group, "");
	assert_int_equal(s.policy.group_weight, 0);
	assert_int_equal(s.policy.egress_packet_rate_per_sec, 0);
	assert_string_equal(s.group_absence, "there is no group 'blue'");
	assert_false(policy_has_limits(&s.policy));
}

/* Another process may remove the group between the look and the attach. */
TH_TEST(a_group_that_went_is_left)
{
	fake.group = &blue;
	fake.results[0] = -ENOENT;
	read_conf("\"group\":{\"name\":\"blue\"},\"egressRate\":5");
	assert_int_equal(attach_all(), 0);
	assert_int_equal(fake.attaches, 2);
	assert_string_equal(fake.in, "");
	assert_int_equal(s.policy.egress_rate_bits_per_sec, 5);
	assert_string_equal(s.group_absence, "there is no group 'blue'");
}

TH_TEST(an_error_leaves_the_group_if_the_pod_goes_on)
{
	fake.results[0] = -ERANGE;
	read_conf(BLUE);
	assert_int_equal(attach_all(), -ERANGE);
	assert_string_equal(fake.in, "blue");
	read_conf(BLUE ",\"onError\":\"continue\",\"egressRate\":5");
	assert_int_equal(attach_all(), 0);
	assert_string_equal(fake.in, "");
	/* A pod that only a group of somebody else's limits has no limits then, which is an
	 * error. */
	fake.group = &blue;
	read_conf("\"group\":{\"name\":\"blue\"},\"onError\":\"continue\"");
	assert_int_equal(attach_all(), -ERANGE);
	assert_int_equal(fake.attaches, 1);
	/* What has nothing to do with the group does not take the pod out of it. */
	fake.results[0] = -EBUSY;
	read_conf(BLUE ",\"onError\":\"continue\",\"egressRate\":5");
	assert_int_equal(attach_all(), -EBUSY);
}

/* A pod loses its annotations only if attaching is possible without them. */
TH_TEST(annotations_stay_unless_they_are_at_fault)
{
	static const struct natra_annotation strict[] = {
		{"natra.io/fast-pass", "strict"}};
	static const struct {
		const char *keys;
		int results[TH_LEN(fake.results)];
		int attaches;
		bool is_kept, has_floor;
		const char *group;
	} cases[] = {
		{AUTOMATIC, {0}, 1, true, true, "blue"},
		{AUTOMATIC, {-EINVAL}, 2, false, true, "blue"},
		{AUTOMATIC, {-EINVAL, -ERANGE}, 3, true, false, "blue"},
		{AUTOMATIC,
		 {-ERANGE, -ERANGE, -EINVAL},
		 4,
		 false,
		 false,
		 "blue"},
		{AUTOMATIC, {-ENOENT}, 2, true, false, ""},
		{AUTOMATIC, {-EPERM, -EPERM}, 3, true, false, ""},
		{AUTOMATIC, {-ENOENT, -EINVAL}, 3, false, false, ""},
		{AUTOMATIC, {-ENOMEM}, 2, true, true, "blue"},
		{AUTOMATIC, {-EINTR}, 2, true, true, "blue"},
		{AUTOMATIC, {-EAGAIN}, 2, true, true, "blue"},
		{AUTOMATIC, {-EAGAIN, -EINVAL}, 3, false, true, "blue"},
		{BY_HAND, {-ENOENT}, 2, true, false, ""},
		{BY_HAND, {-ENOENT, -EINVAL}, 3, false, false, ""},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		memset(&fake, 0, sizeof(fake));
		memcpy(fake.results, cases[i].results, sizeof(fake.results));
		fake.group = &blue;
		forget();
		conf = conf_with(cases[i].keys);
		read_asked(strict, TH_LEN(strict));
		assert_int_equal(attach_all(), 0);
		if (fake.attaches != cases[i].attaches ||
		    strcmp(fake.in, cases[i].group) != 0 ||
		    strcmp(s.policy.group, cases[i].group) != 0 ||
		    (s.policy.group_floor_bits_per_sec != 0) !=
			    cases[i].has_floor ||
		    (s.policy.fast_pass == NATRA_FAST_PASS_STRICT) !=
			    cases[i].is_kept ||
		    (s.dropped[0] == '\0') != cases[i].is_kept)
			fail_msg("%zu: %d attaches, group '%s', '%s'", i,
				 fake.attaches, s.policy.group, s.dropped);
	}
}

/* A tenant chooses its annotations, of which the name of its group is made, and its rate, which
 * may be under its floor. */
TH_TEST(an_impossible_group_frees_no_pod)
{
	static const int refusals[] = {-EINVAL, -ERANGE, -EPERM};
	const struct natra_policy rates = {
		.sz = sizeof(rates), .ingress_rate_bits_per_sec = 1000000};
	const struct asker slow = {.pod = "shop/a", .rates = &rates};

	for (size_t i = 0; i < TH_LEN(refusals); i++) {
		memset(&fake, 0, sizeof(fake));
		fake.results[0] = refusals[i];
		read_conf(BLUE
			  ",\"onError\":\"continue\",\"ingressPacketRate\":7");
		assert_int_equal(attach_all(), 0);
		assert_string_equal(fake.in, "");
		assert_int_equal(s.policy.ingress_rate_bits_per_sec,
				 1000000000);
		assert_int_equal(s.policy.ingress_packet_rate_per_sec, 7);
	}
	memset(&fake, 0, sizeof(fake));
	fake.results[0] = -EINVAL;
	read_conf(BLUE ",\"onError\":\"continue\",\"groupFloor\":\"5M\"");
	read_asker(&slow);
	assert_int_equal(attach_all(), 0);
	assert_string_equal(fake.in, "blue");
	assert_int_equal(s.policy.group_floor_bits_per_sec, 0);
	assert_int_equal(s.policy.ingress_rate_bits_per_sec, 1000000);
}

/* The name becomes too long by an annotation, beside one that is a rate. */
TH_TEST(no_rate_takes_the_place_of_an_impossible_groups)
{
	char text[200];
	const struct natra_annotation annotations[] = {
		{"team", memset(text, 'x', sizeof(text) - 1)},
		{"kubernetes.io/ingress-bandwidth", "5G"},
	};
	const char *members =
		"\"logFile\":\"\",\"onError\":\"continue\",\"allowAnnotations\":"
		"[\"kubernetes.io/ingress-bandwidth\"],\"group\":{\"name\":"
		"\"{namespace}/{annotation:team}\",\"ingressRate\":\"1G\"}";

	text[sizeof(text) - 1] = '\0';
	conf = conf_with(members);
	read_asked(annotations, TH_LEN(annotations));
	assert_string_equal(s.policy.group, "");
	assert_int_equal(s.policy.ingress_rate_bits_per_sec, 1000000000);
}

/* With the precedence "lowest" the configuration has a ceiling for whatever pods ask for. */
TH_TEST(no_annotation_is_over_the_lowest)
{
	static const struct natra_annotation over[] = {
		{"kubernetes.io/ingress-bandwidth", "20M"},
		{"natra.io/ingress-burst", "1P"},
		{"natra.io/egress-burst", "1P"},
		{"natra.io/ingress-packet-rate", "1M"},
		{"natra.io/egress-connection-rate", "1M"},
		{"natra.io/heavy-hitter-threshold", "1P"},
		{"natra.io/fast-pass", "free"},
		{"natra.io/fast-pass-share", "1000"},
	};
	static const struct natra_annotation under[] = {
		{"natra.io/ingress-burst", "4k"},
		{"natra.io/egress-burst", "1M"},
		{"natra.io/ingress-packet-rate", "7"},
		{"natra.io/fast-pass", "off"},
		{"natra.io/horizon", "1s"},
	};
	const char *members =
		"\"logFile\":\"\",\"precedence\":\"lowest\",\"ingressRate\":\"10M\","
		"\"egressRate\":\"10M\",\"ingressBurst\":8000,\"ingressPacketRate\":9,"
		"\"egressConnectionRate\":9,\"heavyHitterThreshold\":5000,"
		"\"fastPass\":\"strict\",\"allowAnnotations\":[\"ingress-burst\","
		"\"egress-burst\",\"ingress-packet-rate\",\"egress-connection-rate\","
		"\"heavy-hitter-threshold\",\"fast-pass\",\"fast-pass-share\","
		"\"horizon\",\"kubernetes.io/ingress-bandwidth\"]";
	struct natra_policy plain;

	conf = conf_with(members);
	read_asked(NULL, 0);
	plain = s.policy;
	for (size_t i = 0; i < TH_LEN(over); i++) {
		read_asked(&over[i], 1);
		if (!policy_same(&s.policy, &plain))
			fail_msg("%s", over[i].name);
	}
	for (size_t i = 0; i < TH_LEN(under); i++) {
		read_asked(&under[i], 1);
		if (policy_same(&s.policy, &plain))
			fail_msg("%s", under[i].name);
	}
}

/* A limit of packets is a ceiling also where the pod brings the rate. */
TH_TEST(the_lowest_holds_beside_a_rate_of_the_pods)
{
	static const struct natra_annotation asked[] = {
		{"kubernetes.io/ingress-bandwidth", "20M"},
		{"natra.io/ingress-packet-rate", "1M"},
	};
	const char *members =
		"\"logFile\":\"\",\"precedence\":\"lowest\",\"ingressPacketRate\":9,"
		"\"allowAnnotations\":[\"ingress-packet-rate\","
		"\"kubernetes.io/ingress-bandwidth\"]";

	conf = conf_with(members);
	read_asked(asked, TH_LEN(asked));
	assert_int_equal(s.policy.ingress_rate_bits_per_sec, 20000000);
	assert_int_equal(s.policy.ingress_packet_rate_per_sec, 9);
}

/* The default of a key that the configuration lacks is its ceiling as well. */
TH_TEST(a_lower_threshold_than_the_default_is_the_lowest)
{
	static const struct natra_annotation lower = {
		"natra.io/heavy-hitter-threshold", "4000"};
	static const struct natra_annotation higher = {
		"natra.io/heavy-hitter-threshold", "1M"};
	const char *members =
		"\"logFile\":\"\",\"precedence\":\"lowest\",\"egressRate\":\"10M\","
		"\"allowAnnotations\":[\"heavy-hitter-threshold\"]";

	conf = conf_with(members);
	read_asked(&lower, 1);
	assert_int_equal(s.policy.heavy_hitter_threshold_bytes, 4000);
	read_asked(&higher, 1);
	assert_int_equal(s.policy.heavy_hitter_threshold_bytes, 0);
}

/* ADD would fail for these each time, so that STATUS has to refuse them. */
TH_TEST(what_the_library_refuses_is_no_key)
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
		/* The tenants "a" and "a-b" can both make "a-b-c", or any name. */
		{"\"name\":\"{namespace}-{annotation:x}\"", ACROSS},
		{"\"name\":\"{annotation:x}-{namespace}\"", ACROSS},
		{"\"name\":\"{annotation:x}{namespace}\"", ACROSS},
		{"\"name\":\"{annotation:x}/{namespace}/{annotation:y}\"",
		 ACROSS},
		{"\"name\":\"{annotation:x}\",\"ingressRate\":5", ACROSS},
		{"\"name\":\"a\",\"acrossNamespaces\":1",
		 "acrossNamespaces: 1 is not true or false"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		char text[256];

		(void)snprintf(text, sizeof(text), "\"group\":{%s}",
			       cases[i].group);
		forget();
		conf = conf_with(text);
		assert_int_equal(
			wanted_read_keys(&s, conf.json, &shop, n, &failure),
			CNI_BAD_CONFIG);
		says(&failure, text, "group.", cases[i].msg);
		s = (struct settings){0};
	}
}

/* STATUS refuses a floor over the configuration's rates, whatever becomes of a pod whose own rate is
 * under it. */
TH_TEST(a_floor_over_the_keys_is_refused)
{
	struct failure failure = {0};

	forget();
	conf = conf_with(BLUE ",\"onError\":\"continue\",\"groupFloor\":\"5M\","
			      "\"ingressRate\":\"5M\",\"egressRate\":\"4M\"");
	assert_int_equal(wanted_read_keys(&s, conf.json, &shop, n, &failure),
			 CNI_BAD_CONFIG);
	assert_string_equal(failure.msg,
			    "groupFloor: 5000000 is over egressRate");
}

/* A name is nobody else's if the namespace can be told from it, or if that is wanted. */
TH_TEST(names_are_kept_apart)
{
	static const char *const names[] = {
		"\"name\":\"{namespace}/{annotation:x}\"",
		"\"name\":\"a-{namespace}.{annotation:x}{annotation:y}\"",
		"\"name\":\"{annotation:x}-{annotation:y}/{namespace}-b\"",
		"\"name\":\"a-{namespace}-b\"",
		"\"name\":\"{annotation:x}\",\"acrossNamespaces\":true",
	};

	for (size_t i = 0; i < TH_LEN(names); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "\"group\":{%s}", names[i]);
		read_conf(text);
	}
}

TH_MAIN_EACH(begin, end)
