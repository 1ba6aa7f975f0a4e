/* SPDX-License-Identifier: BSD-2-Clause */
#include "env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "../tools/common/name.h"

#define OWN_NETNS "/proc/self/ns/net"

/* The kernel's IFNAMSIZ, which counts the terminator. */
#define IFNAME_SIZE 16

static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

struct env env_read(void)
{
	const char *override = get("CNI_NETNS_OVERRIDE");

	return (struct env){
		.command = get("CNI_COMMAND"),
		.container_id = get("CNI_CONTAINERID"),
		.netns = get("CNI_NETNS"),
		.ifname = get("CNI_IFNAME"),
		.args = get("CNI_ARGS"),
		.netns_override = strcmp(override, "1") == 0 ||
				  strcasecmp(override, "true") == 0,
	};
}

static int check_present(const struct env *env, unsigned int needs,
			 struct failure *failure)
{
	const struct {
		unsigned int bit;
		const char *name;
		const char *value;
	} variables[] = {
		{ENV_CONTAINERID, "CNI_CONTAINERID", env->container_id},
		{ENV_NETNS, "CNI_NETNS", env->netns},
		{ENV_IFNAME, "CNI_IFNAME", env->ifname},
		{ENV_PATH, "CNI_PATH", get("CNI_PATH")},
	};
	char missing[128] = "";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (!(needs & variables[i].bit) || variables[i].value[0])
			continue;
		len += (size_t)snprintf(missing + len, sizeof(missing) - len,
					"%s%s", len ? "," : "",
					variables[i].name);
	}
	if (!len)
		return 0;
	return failure_set(failure, CNI_BAD_ENVIRONMENT,
			   "required env variables [%s] missing", missing);
}

static int check_ifname(const char *ifname, struct failure *failure)
{
	if (strlen(ifname) >= IFNAME_SIZE) {
		(void)failure_set(failure, CNI_BAD_ENVIRONMENT,
				  "CNI_IFNAME: interface name is too long");
		failure_add_details(
			failure,
			"interface name should be less than %d characters",
			IFNAME_SIZE);
		return CNI_BAD_ENVIRONMENT;
	}
	if (strcmp(ifname, ".") == 0 || strcmp(ifname, "..") == 0)
		return failure_set(failure, CNI_BAD_ENVIRONMENT,
				   "CNI_IFNAME: interface name is . or ..");
	if (ifname[strcspn(ifname, "/: \t\n\v\f\r")])
		return failure_set(
			failure, CNI_BAD_ENVIRONMENT,
			"CNI_IFNAME: interface name contains / or : or whitespace characters");
	return 0;
}

int env_check(const struct env *env, unsigned int needs,
	      struct failure *failure)
{
	int r = check_present(env, needs, failure);

	if (r)
		return r;
	if ((needs & ENV_CONTAINERID) && name_wrong(env->container_id)) {
		(void)failure_set(
			failure, CNI_BAD_ENVIRONMENT,
			"CNI_CONTAINERID: invalid characters in containerID");
		failure_add_details(failure, "%s", env->container_id);
		return CNI_BAD_ENVIRONMENT;
	}
	return needs & ENV_IFNAME ? check_ifname(env->ifname, failure) : 0;
}

/* Returns the value of a key in "K=V;K=V", which is not terminated; NULL if
 * there is none. If a key is given twice, the last value counts, as in plugins
 * written in Go. */
static const char *find_arg(const char *args, const char *key, size_t *ret_len)
{
	size_t key_len = strlen(key);
	const char *found = NULL;

	while (*args) {
		size_t len = strcspn(args, ";");

		if (len > key_len + 1 && strncmp(args, key, key_len) == 0 &&
		    args[key_len] == '=') {
			*ret_len = len - key_len - 1;
			found = args + key_len + 1;
		}
		args += len;
		args += *args == ';';
	}
	return found;
}

void env_pod(const char *args, char *ret_pod, size_t size)
{
	size_t namespace_len = 0, name_len = 0;
	const char *namespace =
		find_arg(args, "K8S_POD_NAMESPACE", &namespace_len);
	const char *name = find_arg(args, "K8S_POD_NAME", &name_len);

	ret_pod[0] = '\0';
	if (namespace && name)
		(void)snprintf(ret_pod, size, "%.*s/%.*s", (int)namespace_len,
			       namespace, (int)name_len, name);
}

int env_check_not_own_netns(const struct env *env, struct failure *failure)
{
	struct stat own, st;

	if (env->netns_override || !env->netns[0] ||
	    stat(OWN_NETNS, &own) < 0 || stat(env->netns, &st) < 0 ||
	    st.st_ino != own.st_ino || st.st_dev != own.st_dev)
		return 0;
	return failure_set(
		failure, CNI_BAD_NETNS,
		"plugin's netns and netns from CNI_NETNS should not be the same");
}

int env_check_netns(const struct env *env, struct failure *failure)
{
	struct stat own, st;

	if (stat(env->netns, &st) < 0)
		return failure_set(failure, CNI_BAD_NETNS,
				   "CNI_NETNS: '%s': %s", env->netns,
				   strerror(errno));
	/* The files of all namespaces are in one file system, nsfs. */
	if (stat(OWN_NETNS, &own) == 0 && st.st_dev != own.st_dev)
		return failure_set(failure, CNI_BAD_NETNS,
				   "CNI_NETNS: '%s' is not a network namespace",
				   env->netns);
	return 0;
}
