/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

#define ALL (ENV_CONTAINERID | ENV_NETNS | ENV_IFNAME)

static const char *const names[] = {
	"CNI_COMMAND", "CNI_CONTAINERID",    "CNI_NETNS", "CNI_IFNAME",
	"CNI_ARGS",    "CNI_NETNS_OVERRIDE", "CNI_PATH"};

static int clean(void **state)
{
	for (size_t i = 0; i < TH_LEN(names); i++)
		assert_int_equal(unsetenv(names[i]), 0);
	return 0;
}

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

TH_TEST(missing_variables_are_named)
{
	static const struct {
		unsigned int needs;
		const char *set;
		const char *msg; /* NULL: success */
	} cases[] = {
		{ALL, NULL, "[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME]"},
		{ALL, "CNI_NETNS", "[CNI_CONTAINERID,CNI_IFNAME]"},
		{ENV_CONTAINERID | ENV_IFNAME, "CNI_IFNAME",
		 "[CNI_CONTAINERID]"},
		{ENV_PATH, NULL, "[CNI_PATH]"},
		{ENV_PATH, "CNI_PATH", NULL},
		{ENV_CONTAINERID, "CNI_CONTAINERID", NULL},
		{0, NULL, NULL},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		struct env env;
		int r;

		(void)clean(state);
		if (cases[i].set)
			set(cases[i].set, "x");
		/* A variable that is set but empty counts as not set. */
		else
			set("CNI_CONTAINERID", "");
		env = env_read();
		r = env_check(&env, cases[i].needs, &failure);
		assert_int_equal(r, cases[i].msg ? CNI_BAD_ENVIRONMENT : 0);
		if (cases[i].msg) {
			assert_non_null(strstr(failure.msg, cases[i].msg));
			assert_non_null(strstr(failure.msg, "missing"));
		}
	}
}

TH_TEST(names_are_those_of_the_specification)
{
	static const struct {
		const char *variable;
		const char *value;
		bool ok;
	} cases[] = {
		{"CNI_CONTAINERID", "a", true},
		{"CNI_CONTAINERID", "0", true},
		{"CNI_CONTAINERID", "A-b_c.9", true},
		{"CNI_CONTAINERID", "zZ9", true},
		{"CNI_CONTAINERID", "Z", true},
		{"CNI_CONTAINERID", "a..", true},
		{"CNI_CONTAINERID", ".a", false},
		{"CNI_CONTAINERID", "-a", false},
		{"CNI_CONTAINERID", "_a", false},
		{"CNI_CONTAINERID", "a/b", false},
		{"CNI_CONTAINERID", "a b", false},
		{"CNI_CONTAINERID", "a\nb", false},
		{"CNI_CONTAINERID", "a\xc3\xa9", false},
		{"CNI_IFNAME", "eth0", true},
		{"CNI_IFNAME", "123456789012345", true},
		{"CNI_IFNAME", "1234567890123456", false},
		{"CNI_IFNAME", "...", true},
		{"CNI_IFNAME", "..", false},
		{"CNI_IFNAME", ".", false},
		{"CNI_IFNAME", "a/b", false},
		{"CNI_IFNAME", "a:b", false},
		{"CNI_IFNAME", "a b", false},
		{"CNI_IFNAME", "a\tb", false},
		{"CNI_IFNAME", "a\vb", false},
		{"CNI_IFNAME", "eth0\n", false},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		struct env env;
		int r;

		(void)clean(state);
		set("CNI_CONTAINERID", "id");
		set("CNI_IFNAME", "eth0");
		set(cases[i].variable, cases[i].value);
		env = env_read();
		r = env_check(&env, ENV_CONTAINERID | ENV_IFNAME, &failure);
		if (r != (cases[i].ok ? 0 : CNI_BAD_ENVIRONMENT))
			fail_msg("%s=%s: %d", cases[i].variable, cases[i].value,
				 r);
		if (r)
			assert_non_null(strstr(failure.msg, cases[i].variable));
	}
}

TH_TEST(what_a_command_does_not_need_is_not_judged)
{
	struct failure failure = {0};
	struct env env;

	set("CNI_CONTAINERID", "../..");
	set("CNI_IFNAME", "a/b");
	env = env_read();
	assert_int_equal(env_check(&env, 0, &failure), 0);
}

TH_TEST(the_pod_is_in_the_arguments)
{
	static const struct {
		const char *args;
		const char *pod;
	} cases[] = {
		{"", ""},
		{"K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0", "shop/web-0"},
		/* containerd and CRI-O send these keys, in any order. */
		{"K8S_POD_UID=u;IgnoreUnknown=1;K8S_POD_NAMESPACE=default;"
		 "K8S_POD_NAME=basic;K8S_POD_INFRA_CONTAINER_ID=dc46",
		 "default/basic"},
		{"K8S_POD_NAME=basic;K8S_POD_NAMESPACE=default",
		 "default/basic"},
		{"K8S_POD_NAME=only", ""},
		{"K8S_POD_NAMESPACE=only", ""},
		{"K8S_POD_NAMESPACE=;K8S_POD_NAME=x", ""},
		{"XK8S_POD_NAMESPACE=a;K8S_POD_NAMES=b", ""},
		{"K8S_POD_NAMESPACE=a;K8S_POD_NAME=b=c", "a/b=c"},
		{"K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_NAME=c", "a/c"},
		{";;K8S_POD_NAMESPACE=a;;;K8S_POD_NAME=b;", "a/b"},
		{"nonsense", ""},
		{"=;=;==;", ""},
		{"K8S_POD_NAMESPACE", ""},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		char pod[64];

		env_pod(cases[i].args, pod, sizeof(pod));
		assert_string_equal(pod, cases[i].pod);
	}
}

TH_TEST(a_pod_of_any_length_fits)
{
	char args[1024], pod[NATRA_NAME_MAX + 1];

	/* These are the longest names that Kubernetes allows. */
	(void)snprintf(args, sizeof(args),
		       "K8S_POD_NAMESPACE=%063d;K8S_POD_NAME=%0253d", 0, 0);
	env_pod(args, pod, sizeof(pod));
	assert_int_equal(strlen(pod), NATRA_NAME_MAX);
	assert_int_equal(pod[63], '/');
}

TH_TEST(the_plugins_own_netns_is_refused)
{
	static const struct {
		const char *netns;
		const char *override;
		int result;
	} cases[] = {
		{"/proc/self/ns/net", "", CNI_BAD_NETNS},
		{"/proc/self/ns/net", "0", CNI_BAD_NETNS},
		{"/proc/self/ns/net", "yes", CNI_BAD_NETNS},
		{"/proc/self/ns/net", "1", 0},
		{"/proc/self/ns/net", "TRUE", 0},
		{"/proc/self/ns/net", "true", 0},
		{"/proc/self/ns/mnt", "", 0},
		{"/nosuch", "", 0},
		{"", "", 0},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		struct env env;

		(void)clean(state);
		set("CNI_NETNS", cases[i].netns);
		set("CNI_NETNS_OVERRIDE", cases[i].override);
		env = env_read();
		if (env_check_not_own_netns(&env, &failure) != cases[i].result)
			fail_msg("%s %s", cases[i].netns, cases[i].override);
	}
}

TH_TEST(what_is_no_netns_is_named)
{
	static const struct {
		const char *netns;
		int result;
	} cases[] = {
		{"/proc/self/ns/net", 0},
		{"/nosuch/netns", CNI_BAD_NETNS},
		{"/etc/passwd", CNI_BAD_NETNS},
		{"/etc", CNI_BAD_NETNS},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		struct env env = {.netns = cases[i].netns};

		assert_int_equal(env_check_netns(&env, &failure),
				 cases[i].result);
		if (cases[i].result)
			assert_non_null(strstr(failure.msg, cases[i].netns));
	}
}

TH_MAIN_EACH(clean, NULL)
