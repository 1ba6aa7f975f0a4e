/* SPDX-License-Identifier: BSD-2-Clause */
/* A hook of an OCI runtime such as crun or runc: it limits a container by its
 * annotations when that is made, and removes the limits when it was deleted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "../../src/policy/environment.h"
#include "../../src/policy/fields.h"
#include "../common/annotations.h"
#include "../common/namespaces.h"
#include "../common/stream.h"
#include "../common/text.h"
#include "cli.h"
#include "limits.h"
#include "output.h"

#define IFNAME    "eth0"
#define OWN_NETNS "/proc/self/ns/net"
#define SAID_MAX  1024
#define ID_PREFIX "oci/"

/* What the runtime passes on stdin. The texts point into `json`. */
struct state {
	cJSON *json;
	const char *container_id, *status;
	cJSON *annotations;
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
	char *text = NULL;
	size_t len = 0;
	int size, r = stream_read_all(STDIN_FILENO, &text, &len);

	if (r < 0)
		return say("stdin", r == -EFBIG ? "is too long" : strerror(-r));
	s->json = cJSON_ParseWithLength(text, len);
	free(text);
	s->container_id = text_at(s->json, "id");
	s->status = text_at(s->json, "status");
	s->annotations =
		cJSON_GetObjectItemCaseSensitive(s->json, "annotations");
	if (!s->container_id[0] || !s->status[0])
		return say("stdin",
			   "is not the state of a container (id, status)");
	size = snprintf(s->id, sizeof(s->id), ID_PREFIX "%s/%s",
			s->container_id, ifname);
	if (size < 0 || (size_t)size >= sizeof(s->id))
		return say("id", "is too long");
	return 0;
}

/* Says of each annotation that is no text that it is none, and leaves it out. Returns how many
 * there were. */
static int drop_others(cJSON *annotations)
{
	cJSON *item = annotations ? annotations->child : NULL;
	int count = 0;

	while (item) {
		cJSON *next = item->next;

		if (!json_text(item) && !cJSON_IsNull(item)) {
			(void)say(item->string, "is not a string");
			cJSON_Delete(
				cJSON_DetachItemViaPointer(annotations, item));
			count++;
		}
		item = next;
	}
	return count;
}

/* Puts what the container asks for into the policy. A wrong value fails, or does not count. */
static int annotate(const struct cli *cli, const struct state *s,
		    struct natra_annotations *asked, bool fails,
		    struct natra_policy *policy, struct natra_class **ret)
{
	int r = natra_policy_annotate(cli->n, policy, asked, ret);

	if (r == 0)
		return 0;
	r = say(s->container_id, natra_error(cli->n));
	asked->skip_bad = true;
	return !fails && natra_policy_annotate(cli->n, policy, asked, ret) == 0
		       ? 0
		       : r;
}

/* The limits of a container, with what its annotations ask for and without. */
struct wanted {
	struct natra_policy policy, plain;
	struct natra_class *classes;
};

/* Reads what the container asks for, which may be anything: the person who runs it may choose
 * its limits, up to the maximum of its namespace. In a direction for which no annotation has a
 * rate, that of the options holds. */
static int read_limits(const struct cli *cli, const struct state *s,
		       const struct namespace_rule *rule, bool fails,
		       struct wanted *wanted)
{
	struct natra_annotations asked = NATRA_INIT(asked);
	struct natra_policy limits;
	const bool is_bound = namespace_limits(rule, &wanted->policy, &limits);
	struct namespace_note note = {""};
	int r = drop_others(s->annotations) && fails ? EXIT_FAILURE : 0;

	namespace_fill(rule, &wanted->policy);
	wanted->plain = wanted->policy;
	policy_fields_drop_alone(&wanted->plain);
	(void)annotations_add(&asked, s->annotations, NULL);
	asked.allow_all = !rule->has_allowed;
	if (rule->has_allowed)
		asked.allowed = namespace_allowed(rule, &asked.allowed_len);
	if (r == 0)
		r = annotate(cli, s, &asked, fails, &wanted->policy,
			     &wanted->classes);
	if (r == 0 && is_bound) {
		namespace_lower(&limits, true, &wanted->policy, &note);
		namespace_lower(&limits, false, &wanted->plain, &note);
	}
	if (r == 0 && note.text[0])
		(void)say(s->container_id, note.text);
	free((void *)asked.allowed);
	annotations_free(&asked);
	return r;
}

/* Finds what the namespace of the container's pod has, which the runtime names; a container
 * that is no pod's has what "*" has. */
static int find_rule(const struct cli *cli, const struct state *s,
		     cJSON **ret_file, struct namespace_rule *ret)
{
	const char *path = cli->opts.value[OPT_NAMESPACES];
	const char *namespace =
		text_at(s->annotations, "io.kubernetes.pod.namespace");
	struct namespaces_error error = {"is not there"};
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char pod[NATRA_NAME_MAX + 1];
	int r;

	*ret = (struct namespace_rule){.name = NULL};
	if (!path)
		return 0;
	if (!namespace[0])
	namespace =
		text_at(s->annotations, "io.kubernetes.cri.sandbox-namespace");
	(void)snprintf(pod, sizeof(pod), "%s/", namespace);
	r = namespaces_load(root, path, ret_file, &error);
	if (r == 0 && *ret_file)
		r = namespaces_find(*ret_file, pod, ret, &error);
	return r < 0 || !*ret_file ? say(path, error.text) : 0;
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
	const char *on_error = cli->opts.value[OPT_ON_ERROR];
	const bool fails = on_error && strcmp(on_error, "fail") == 0;
	struct natra_target target = NATRA_INIT(target);
	struct wanted wanted = {.policy = *options};
	struct namespace_rule rule;
	cleanup_json cJSON *file = NULL;
	int r = find_rule(cli, s, &file, &rule);

	if (r == 0)
		r = read_limits(cli, s, &rule, fails, &wanted);
	if (r == 0 && policy_has_limits(&wanted.policy)) {
		r = find_netns(s);
		target.id = s->id;
		target.ifname = ifname;
		target.netns = s->netns;
		if (r == 0)
			r = attach_by_environment(cli, s, &target,
						  &wanted.policy);
		/* Values that are possible by themselves may not go together: nobody is to get rid
		 * of a limit by that. */
		if (r && s->netns[0] && !fails &&
		    policy_has_limits(&wanted.plain) &&
		    memcmp(&wanted.policy, &wanted.plain,
			   sizeof(wanted.plain)) != 0)
			r = attach_by_environment(cli, s, &target,
						  &wanted.plain);
	}
	free(wanted.classes);
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
	const char *namespaces = cli->opts.value[OPT_NAMESPACES];
	struct natra_policy options = NATRA_INIT(options);
	struct state s = {0};
	int r = check_on_error(cli->opts.value[OPT_ON_ERROR]);

	if (r == 0 && namespaces && namespaces[0] != '/')
		r = usage_error(opts_name(OPT_NAMESPACES), namespaces,
				"is not an absolute path");
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
