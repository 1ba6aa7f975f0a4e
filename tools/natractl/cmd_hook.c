/* SPDX-License-Identifier: BSD-2-Clause */
/* A hook of an OCI runtime such as crun or runc: it limits a container by its
 * annotations when that is made, and removes the limits when it was deleted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "../../src/policy/environment.h"
#include "../../src/policy/fields.h"
#include "../pods/wish.h"
#include "../../cni/io.h"
#include "../../cni/field.h"
#include "cli.h"
#include "limits.h"
#include "output.h"

#define IFNAME      "eth0"
#define OWN_NETNS   "/proc/self/ns/net"
#define SAID_MAX    1024
#define ID_PREFIX   "oci/"
#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"

/* What the runtime passes on stdin. The texts point into `json`. */
struct state {
	cJSON *json;
	const char *container_id, *status;
	const cJSON *annotations;
	uint64_t pid; /* 0: there is no process any more */
	char id[NATRA_ID_MAX + 1];
	char netns[PID_NETNS_MAX];
};

/* Runtimes throw away what a hook says, unless it makes the container fail, so the
 * journal has it as well: beside the lines of podman, conmon or dockerd. */
static void tell_journal(const char *what, const char *text)
{
	openlog("natractl", LOG_PID, LOG_DAEMON);
	syslog(LOG_ERR, "hook: %s: %s", what, text);
	closelog();
}

/* Both texts may be those of whoever runs the container. */
static int say(const char *what, const char *text)
{
	char object[SAID_MAX], line[SAID_MAX];

	copy_text(object, sizeof(object), what);
	copy_text(line, sizeof(line), text);
	fprintf(stderr, "natractl: hook: %s: %s\n", object, line);
	tell_journal(object, line);
	return EXIT_FAILURE;
}

static const char *text_at(const cJSON *object, const char *key)
{
	const char *text = json_text(json_get_exact(object, key));

	return text ? text : "";
}

static int read_state(struct state *s, const char *ifname)
{
	struct failure failure = {0};
	char *text = NULL;
	size_t len = 0;
	int size, r = io_read_all(STDIN_FILENO, &text, &len, &failure);

	if (r)
		return say("stdin",
			   r == CNI_DECODE ? "is too long" : failure.msg);
	s->json = cJSON_ParseWithLength(text, len);
	cJSON_free(text);
	s->container_id = text_at(s->json, "id");
	s->status = text_at(s->json, "status");
	s->annotations = json_get_exact(s->json, "annotations");
	if (!s->container_id[0] || !s->status[0])
		return say("stdin",
			   "is not the state of a container (id, status)");
	size = snprintf(s->id, sizeof(s->id), ID_PREFIX "%s/%s",
			s->container_id, ifname);
	if (size < 0 || (size_t)size >= sizeof(s->id))
		return say("id", "is too long");
	return 0;
}

/* Rates up to 10^15 are exact in a double. */
static void add_rate(cJSON *element, const char *key, uint64_t bits_per_sec)
{
	if (bits_per_sec)
		cJSON_AddNumberToObject(element, key, (double)bits_per_sec);
}

/* Makes what the plugin's code reads in a pod: an element that lets annotations set
 * all. The person who runs a container may choose its limits. In a direction for which
 * no annotation has a rate, that of the options holds. */
static cJSON *make_list(const struct natra_policy *options)
{
	cJSON *list = cJSON_CreateObject(), *element = cJSON_CreateObject();
	cJSON *plugins = cJSON_AddArrayToObject(list, "plugins");
	cJSON *capabilities, *allowed;

	cJSON_AddItemToArray(plugins, element);
	cJSON_AddStringToObject(element, "type", "natra");
	cJSON_AddStringToObject(element, "precedence", "runtime");
	add_rate(element, "ingressRate", options->ingress_rate_bits_per_sec);
	add_rate(element, "egressRate", options->egress_rate_bits_per_sec);
	capabilities = cJSON_AddObjectToObject(element, "capabilities");
	cJSON_AddTrueToObject(capabilities, "bandwidth");
	cJSON_AddTrueToObject(capabilities, ANNOTATIONS);
	allowed = cJSON_AddArrayToObject(element, "allowAnnotations");
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const char *name = policy_field_annotation(&policy_fields[i]);

		if (name)
			cJSON_AddItemToArray(allowed, cJSON_CreateString(name));
	}
	cJSON_AddItemToArray(allowed, cJSON_CreateString(CLASSES_ANNOTATION));
	return list;
}

static int read_limits(const struct cli *cli, const struct state *s,
		       const struct natra_policy *options, struct wish *wish)
{
	struct cached cached = {
		.list = make_list(options),
		.network = "oci",
		.pod_namespace = "",
		.pod_name = "",
	};
	struct failure failure = {0};
	struct log log = LOG_INIT;
	cJSON *none = cJSON_CreateObject();
	int r = wish_read(wish, &cached, NULL,
			  s->annotations ? s->annotations : none, cli->n, &log,
			  &failure);

	cJSON_Delete(none);
	cJSON_Delete(cached.list);
	return r ? say(s->container_id, failure.msg) : 0;
}

/* Finds the network namespace. A container of the host's network has no interface of
 * its own: its limits would be those of the whole machine. */
static int find_netns(struct state *s)
{
	struct stat own, its;

	if (json_u64(json_get_exact(s->json, "pid"), &s->pid) < 0 || !s->pid ||
	    s->pid > PID_MAX)
		return say(s->container_id, "pid: is not that of a process");
	pid_netns((uint32_t)s->pid, s->netns);
	if (stat(s->netns, &its) < 0 || stat(OWN_NETNS, &own) < 0)
		return say(s->netns, strerror(errno));
	if (its.st_dev == own.st_dev && its.st_ino == own.st_ino)
		return say(s->container_id,
			   "it uses the host's network, which is not limited");
	return 0;
}

static int failed(const struct cli *cli, const struct state *s, int r)
{
	const char *text = natra_error(cli->n);

	return say(s->container_id, text[0] ? text : strerror(-r));
}

static int attach_by_environment(const struct cli *cli, const struct state *s,
				 const struct natra_target *target,
				 struct natra_policy *policy)
{
	char wrong[ENVIRONMENT_ERROR_MAX];
	int r;

	if (environment_read(policy, wrong, sizeof(wrong)) < 0)
		return say(s->container_id, wrong);
	r = natra_attach(cli->n, target, policy, NULL);
	return r < 0 ? failed(cli, s, r) : 0;
}

static int attach(const struct cli *cli, struct state *s, const char *ifname,
		  const struct natra_policy *options)
{
	struct natra_target target = NATRA_INIT(target);
	struct wish wish;
	int r = read_limits(cli, s, options, &wish);

	if (r == 0 && wanted_limits(&wish.settings.policy)) {
		r = find_netns(s);
		target.id = s->id;
		target.ifname = ifname;
		target.netns = s->netns;
		if (r == 0)
			r = attach_by_environment(cli, s, &target,
						  &wish.settings.policy);
	}
	wish_free(&wish);
	return r;
}

static int detach(const struct cli *cli, const struct state *s)
{
	struct natra_target target = NATRA_INIT(target);
	int r;

	target.id = s->id;
	r = natra_detach(cli->n, &target);
	return r < 0 ? failed(cli, s, r) : 0;
}

static int check_on_error(const char *value)
{
	if (!value || strcmp(value, "continue") == 0 ||
	    strcmp(value, "fail") == 0)
		return 0;
	return usage_error(opts_name(OPT_ON_ERROR), value,
			   "is not continue or fail");
}

int cmd_hook(struct cli *cli)
{
	const char *ifname = cli->opts.arg ? cli->opts.arg : IFNAME;
	struct natra_policy options = NATRA_INIT(options);
	struct state s = {0};
	int r = check_on_error(cli->opts.value[OPT_ON_ERROR]);

	if (r == 0 && cli->opts.arg)
		r = check_interface(cli);
	if (r == 0)
		r = limits_apply(cli, &options);
	if (r)
		return r;
	r = read_state(&s, ifname);
	if (r == 0)
		r = strcmp(s.status, "stopped") == 0
			    ? detach(cli, &s)
			    : attach(cli, &s, ifname, &options);
	cJSON_Delete(s.json);
	return r;
}

/* The options may be what is wrong, so this does not rely on their having been read. */
int hook_exit(int argc, char **argv, int r)
{
	if (r == EXIT_USAGE)
		tell_journal("arguments",
			     "are wrong, so no container is limited");
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--on-error=fail") == 0 ||
		    (strcmp(argv[i], "--on-error") == 0 && i + 1 < argc &&
		     strcmp(argv[i + 1], "fail") == 0))
			return r;
	}
	return EXIT_SUCCESS;
}
