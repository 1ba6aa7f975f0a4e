/* SPDX-License-Identifier: BSD-2-Clause */
/* A hook of an OCI runtime such as crun or runc: it limits a container by its
 * annotations when that is made, and removes the limits when it was deleted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "../../src/policy/environment.h"
#include "../../src/policy/fields.h"
#include "../common/annotations.h"
#include "../common/memory.h"
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

#define POD_NAMESPACE     "io.kubernetes.pod.namespace"
#define POD_NAME          "io.kubernetes.pod.name"
#define SANDBOX_NAMESPACE "io.kubernetes.cri.sandbox-namespace"
#define SANDBOX_ID        "io.kubernetes.cri.sandbox-id"

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
 * journal has it as well: beside the lines of podman, conmon or dockerd. A journal that
 * hangs must not keep the container from starting, so this does not wait as syslog(3) does. */
static void tell_journal(const char *what, const char *text)
{
	const struct sockaddr_un journal = {AF_UNIX, "/dev/log"};
	char line[2 * SAID_MAX + 64];
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int len = snprintf(line, sizeof(line), "<%d>natractl[%d]: hook: %s: %s",
			   LOG_DAEMON | LOG_ERR, (int)getpid(), what, text);

	if (fd < 0)
		return;
	(void)sendto(fd, line, (size_t)len, MSG_NOSIGNAL,
		     (const struct sockaddr *)&journal, sizeof(journal));
	(void)close(fd);
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

static bool hook_fails(const struct cli *cli)
{
	const char *value = cli->opts.value[OPT_ON_ERROR];

	return value && strcmp(value, "fail") == 0;
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
	s->annotations = (cJSON *)json_get_exact(s->json, "annotations");
	if (!s->container_id[0] || !s->status[0])
		return say("stdin",
			   "is not the state of a container (id, status)");
	size = snprintf(s->id, sizeof(s->id), ID_PREFIX "%s/%s",
			s->container_id, ifname);
	if (size < 0 || (size_t)size >= sizeof(s->id))
		return say("id", "is too long");
	return 0;
}

/* Takes the annotations that are no strings out, and says what each of them is. Returns whether
 * there was one. */
static bool drop_others(struct state *s)
{
	cJSON *item, *next;
	bool found = false;

	if (s->annotations && !cJSON_IsObject(s->annotations)) {
		(void)say("annotations", "is not an object");
		s->annotations = NULL;
		return true;
	}
	for (item = s->annotations ? s->annotations->child : NULL; item;
	     item = next) {
		next = item->next;
		if (json_text(item) || cJSON_IsNull(item))
			continue;
		(void)say(item->string, "is not a string");
		cJSON_Delete(cJSON_DetachItemViaPointer(s->annotations, item));
		found = true;
	}
	return found;
}

/* Puts what the container asks for into the policy. A wrong value fails, or does not count. */
static int annotate(const struct cli *cli, const struct state *s,
		    struct natra_annotations *asked,
		    struct natra_policy *policy, struct natra_class **ret)
{
	int r = natra_policy_annotate(cli->n, policy, asked, ret);

	if (r == 0)
		return 0;
	r = say(s->container_id, natra_error(cli->n));
	asked->skip_bad = true;
	return !hook_fails(cli) && natra_policy_annotate(cli->n, policy, asked,
							 ret) == 0
		       ? 0
		       : r;
}

/* The limits of a container, and its rates alone. */
struct wanted {
	struct natra_policy policy, rates;
	struct natra_class *classes;
};

/* What the namespace of a container's pod has. The second one is that of another namespace, of which
 * its annotations speak as well. */
struct rules {
	cJSON *file;
	struct namespace_rule of[2];
	bool are_two;
};

/* Lowers what the container has to the maximum of its namespace. */
static void lower(const struct natra_policy *conf,
		  const struct namespace_rule *rule, struct wanted *wanted,
		  struct namespace_note *note)
{
	struct natra_policy limits;

	if (!namespace_limits(rule, conf, &limits))
		return;
	namespace_lower(&limits, true, &wanted->policy, note);
	namespace_lower(&limits, false, &wanted->rates, note);
}

/* Returns the annotations that the namespace allows, and besides them Kubernetes' rates, which count
 * in each namespace, as by the plugin. */
static const char **allowed_by(const struct namespace_rule *rule,
			       size_t *ret_len)
{
	const char **of_rule = namespace_allowed(rule, ret_len);
	const char **texts = memory_new(sizeof(*texts) * (*ret_len + 2));

	for (size_t i = 0; i < *ret_len; i++)
		texts[i] = of_rule[i];
	texts[(*ret_len)++] = ANNOTATION_INGRESS;
	texts[(*ret_len)++] = ANNOTATION_EGRESS;
	free((void *)of_rule);
	return texts;
}

/* Reads what the container asks for, which may be anything: the person who runs it may choose
 * its limits, up to the maximum of its namespace. In a direction for which no annotation has a
 * rate, that of the options holds. Of one that names two namespaces no annotation counts, and it
 * has the lower of both maximums. */
static int read_limits(const struct cli *cli, struct state *s,
		       const struct rules *rules, struct wanted *wanted)
{
	const struct namespace_rule *rule = &rules->of[0];
	const struct natra_policy conf = wanted->policy;
	struct natra_annotations asked = NATRA_INIT(asked);
	struct namespace_note note = {""};
	int r;

	if (drop_others(s) && hook_fails(cli))
		return EXIT_FAILURE;
	for (size_t i = 0; i < 2; i++)
		namespace_fill(&rules->of[i], &wanted->policy);
	(void)annotations_add(&asked, s->annotations, NULL);
	asked.allow_all = !rule->has_allowed && !rules->are_two;
	if (rule->has_allowed && !rules->are_two)
		asked.allowed = allowed_by(rule, &asked.allowed_len);
	r = annotate(cli, s, &asked, &wanted->policy, &wanted->classes);
	wanted->rates.ingress_rate_bits_per_sec =
		wanted->policy.ingress_rate_bits_per_sec;
	wanted->rates.egress_rate_bits_per_sec =
		wanted->policy.egress_rate_bits_per_sec;
	for (size_t i = 0; r == 0 && i < 2; i++)
		lower(&conf, &rules->of[i], wanted, &note);
	/* That it names two namespaces was said. */
	if (note.text[0] && !rules->are_two)
		(void)say(s->container_id, note.text);
	free((void *)asked.allowed);
	annotations_free(&asked);
	return r;
}

/* Finds the namespaces of the container's pod; "" if it is no pod's. containerd writes the one of
 * the sandbox over the annotations of the pod that it passes on, and CRI-O the one of the pod, which
 * is a label of the kubelet's. The other one may be a tenant's then, and which runtime this is
 * nothing says that a tenant cannot write. */
static int find_namespaces(const struct cli *cli, const struct state *s,
			   const char *ret[2])
{
	const char *sandbox = text_at(s->annotations, SANDBOX_NAMESPACE);
	const char *pod = text_at(s->annotations, POD_NAMESPACE);

	ret[0] = sandbox[0] ? sandbox : pod;
	ret[1] = pod[0] ? pod : sandbox;
	if (strcmp(ret[0], ret[1]) == 0)
		return 0;
	(void)say(
		s->container_id, POD_NAMESPACE
		": differs from the namespace of the sandbox: the lower maximum holds");
	return hook_fails(cli) ? EXIT_FAILURE : 0;
}

/* Finds what the namespace of the container's pod has, which the runtime names; a container
 * that is no pod's has what "*" has. */
static int find_rules(const struct cli *cli, const struct state *s,
		      struct rules *ret)
{
	const char *path = cli->opts.value[OPT_NAMESPACES];
	const char *names[2];
	struct namespaces_error error = {"is not there"};
	int r;

	if (!path)
		return 0;
	r = find_namespaces(cli, s, names);
	if (r)
		return r;
	ret->are_two = strcmp(names[0], names[1]) != 0;
	r = namespaces_load(path, &ret->file, &error);
	for (size_t i = 0; r == 0 && ret->file && i < 2 && (!i || ret->are_two);
	     i++) {
		char pod[NATRA_NAME_MAX + 1];

		(void)snprintf(pod, sizeof(pod), "%s/", names[i]);
		r = namespaces_find(ret->file, pod, &ret->of[i], &error);
	}
	return r < 0 || !ret->file ? say(path, error.text) : 0;
}

/* Finds the network namespace, and whether it is the host's: such a container has no interface of
 * its own, so its limits would be those of the whole machine. It starts without any, also with
 * --on-error fail, because rates of the hook's args are meant for each container of a node. */
static int find_netns(struct state *s, bool *ret_is_host)
{
	struct stat own, its;

	if (json_u64(json_get_exact(s->json, "pid"), &s->pid) < 0 || !s->pid ||
	    s->pid > PID_MAX)
		return say(s->container_id, "pid: is not that of a process");
	pid_netns((uint32_t)s->pid, s->netns);
	if (stat(s->netns, &its) < 0 || stat(OWN_NETNS, &own) < 0)
		return say(s->netns, strerror(errno));
	*ret_is_host = its.st_dev == own.st_dev && its.st_ino == own.st_ino;
	if (*ret_is_host)
		(void)say(s->container_id,
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

/* Values that are possible by themselves may not go together: nobody is to get rid of a limit by
 * that. */
static int attach_what_can_be(const struct cli *cli, const struct state *s,
			      const struct natra_target *target,
			      struct wanted *wanted)
{
	const bool has_more = !policy_same(&wanted->policy, &wanted->rates);
	int r = attach_by_environment(cli, s, target, &wanted->policy);

	if (r && has_more && !hook_fails(cli) &&
	    policy_has_limits(&wanted->rates))
		r = attach_by_environment(cli, s, target, &wanted->rates);
	return r;
}

static int attach(const struct cli *cli, struct state *s, const char *ifname,
		  const struct natra_policy *options)
{
	struct natra_target target = NATRA_INIT(target);
	struct wanted wanted = {.policy = *options,
				.rates = NATRA_INIT(wanted.rates)};
	struct rules rules = {.file = NULL};
	bool is_host = false;
	int r = find_rules(cli, s, &rules);

	if (r == 0)
		r = read_limits(cli, s, &rules, &wanted);
	if (r == 0 && policy_has_limits(&wanted.policy)) {
		r = find_netns(s, &is_host);
		target.id = s->id;
		target.ifname = ifname;
		target.netns = s->netns;
		if (r == 0 && !is_host)
			r = attach_what_can_be(cli, s, &target, &wanted);
	}
	free(wanted.classes);
	cJSON_Delete(rules.file);
	return r;
}

/* Returns whether a process is in a network namespace. */
static bool has_process(uint64_t netns_inode)
{
	char path[PID_NETNS_MAX];
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	bool found = false;
	struct stat st;

	while (!found && proc && (entry = readdir(proc))) {
		unsigned long pid = strtoul(entry->d_name, NULL, 10);

		if (!pid || pid > PID_MAX)
			continue;
		pid_netns((uint32_t)pid, path);
		found = stat(path, &st) == 0 && st.st_ino == netns_inode;
	}
	if (proc)
		(void)closedir(proc);
	return found;
}

static int detach_id(const struct cli *cli, const struct state *s,
		     const char *id)
{
	struct natra_target target = NATRA_INIT(target);
	int r;

	target.id = id;
	r = natra_detach(cli->n, &target);
	return r < 0 ? failed(cli, s, r) : 0;
}

struct leaving {
	const struct cli *cli;
	const struct state *s;
};

/* Removes what an earlier container has left to others that have ended by now. The CNI plugin's ids
 * begin so, too, if its network is named oci; then they have that network. */
static int detach_unused(void *arg, const struct natra_info *info)
{
	const struct leaving *leaving = arg;

	if (!info->network[0] &&
	    strncmp(info->id, ID_PREFIX, strlen(ID_PREFIX)) == 0 &&
	    (info->interface_gone || !has_process(info->netns_inode)))
		(void)detach_id(leaving->cli, leaving->s, info->id);
	return 0;
}

/* Containers may share a network namespace, and with it the interface and its limits: these
 * stay when the one for which they were made ends before the others. */
static int detach(const struct cli *cli, const struct state *s)
{
	struct natra_info info = NATRA_INIT(info);
	struct leaving leaving = {cli, s};
	int r = natra_query(cli->n, s->id, &info);

	if (r == -ENOENT)
		(void)natra_foreach_attachment(cli->n, detach_unused, &leaving);
	if (r == 0 && !info.interface_gone && has_process(info.netns_inode))
		return 0;
	return detach_id(cli, s, s->id);
}

/* Returns whether CRI-O or containerd says that a container is one of a pod. CRI-O's names of its own
 * (io.kubernetes.cri-o.) say nothing, because podman writes some of them for pods without Kubernetes. */
static bool is_of_kubernetes(const struct state *s)
{
	static const char *const names[] = {POD_NAMESPACE, POD_NAME,
					    SANDBOX_NAMESPACE, SANDBOX_ID};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (json_get_exact(s->annotations, names[i]))
			return true;
	}
	return false;
}

/* CRI-O reads the same directory of hooks as podman. The CNI plugin limits its pods, by what the
 * administrator allows, so that the hook would limit them twice, and by anything that they ask for: it
 * does only where it is told what the namespaces allow. */
static bool is_left_to_the_plugin(const struct cli *cli, const struct state *s)
{
	return !cli->opts.value[OPT_NAMESPACES] && is_of_kubernetes(s);
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
	if (r == 0 && !is_left_to_the_plugin(cli, &s))
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
