/* SPDX-License-Identifier: BSD-2-Clause */
#include "opts.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/keys.h"
#include "../common/log.h"
#include "../common/name.h"

#define EXIT_USAGE 2
#define NS_PER_S   1000000000
#define ACCOUNT    "/var/run/secrets/kubernetes.io/serviceaccount"

/* Reads the value of an option. Returns NULL, or what is wrong with it. */
typedef const char *(*read_fn)(struct options *o, const char *value);

static const char *read_listen(struct options *o, const char *value)
{
	o->listen = value;
	return NULL;
}

static const char *read_no_page(struct options *o, const char *value)
{
	(void)value;
	o->no_page = true;
	return NULL;
}

static const char *read_metrics(struct options *o, const char *value)
{
	o->metrics = value;
	return NULL;
}

static const char *read_verdicts(struct options *o, const char *value)
{
	return families_read_verdicts(&o->families, value)
		       ? NULL
		       : "is not basic or all";
}

static const char *read_aggregate(struct options *o, const char *value)
{
	return families_read_aggregate(&o->families, value)
		       ? NULL
		       : "is not namespace";
}

static const char *read_log_level(struct options *o, const char *value)
{
	return log_read_level(value, &o->log_level);
}

static const char *check_path(const char *value)
{
	return value[0] == '/' ? NULL : "is not an absolute path";
}

static const char *read_bpffs(struct options *o, const char *value)
{
	o->bpffs = value;
	return check_path(value);
}

static const char *read_no_install(struct options *o, const char *value)
{
	(void)value;
	o->no_install = true;
	return NULL;
}

static const char *read_root(struct options *o, const char *value)
{
	o->install.root = value;
	return check_path(value);
}

static const char *read_mode(struct options *o, const char *value)
{
	return install_mode_parse(value, &o->install.mode)
		       ? NULL
		       : "is not auto, dropin, list or bandwidth";
}

static const char *read_platform(struct options *o, const char *value)
{
	const char *name;

	if (strcmp(value, "auto") == 0)
		return NULL;
	for (size_t n = 0; (name = install_platform(n)); n++) {
		if (strcmp(value, name) == 0) {
			o->install.platform = name;
			return NULL;
		}
	}
	return "is not auto, default, k3s, k3d, rke2, microk8s, gke or openshift";
}

static const char *read_net_dir(struct options *o, const char *value)
{
	o->install.net_dir = value;
	return check_path(value);
}

static const char *read_bin_dir(struct options *o, const char *value)
{
	o->install.bin_dir = value;
	return check_path(value);
}

static const char *read_network(struct options *o, const char *value)
{
	o->install.network = value;
	return name_wrong(value);
}

static const char *read_plugin(struct options *o, const char *value)
{
	o->install.plugin = value;
	return NULL;
}

static const char *read_conf(struct options *o, const char *value)
{
	return install_conf_add(o->conf, value);
}

static const char *read_runtime_version(struct options *o, const char *value)
{
	o->install.runtime_version = value;
	return install_check_runtime_version(value)
		       ? NULL
		       : "is not a version of containerd, CRI-O or Docker such as "
			 "containerd://2.1.0";
}

static const char *read_repairs(struct options *o, const char *value)
{
	return budget_parse(&o->repairs, value)
		       ? NULL
		       : "is not TIMES/SECONDS, 1 to 64 times";
}

static const char *read_groups(struct options *o, const char *value)
{
	o->groups = value;
	return check_path(value);
}

static const char *read_namespaces(struct options *o, const char *value)
{
	o->namespaces = value;
	/* Without the copy ADD cannot know the maximums of a pod. */
	cJSON_DeleteItemFromObject(o->conf, REQUIRE_NAMESPACES);
	cJSON_AddTrueToObject(o->conf, REQUIRE_NAMESPACES);
	return check_path(value);
}

static const char *read_no_pods(struct options *o, const char *value)
{
	(void)value;
	o->no_pods = true;
	return NULL;
}

static const char *read_no_adopt(struct options *o, const char *value)
{
	(void)value;
	o->no_adopt = true;
	return NULL;
}

static const char *read_replace(struct options *o, const char *value)
{
	(void)value;
	o->replace_bandwidth = true;
	return NULL;
}

static const char *read_edits(struct options *o, const char *value)
{
	static const char *const names[EDITS_RULES] = {
		[EDITS_ANY] = "any",
		[EDITS_LOWER] = "lower",
		[EDITS_NONE] = "none",
	};

	for (int i = 0; i < EDITS_RULES; i++) {
		if (strcmp(names[i], value) == 0) {
			o->edits = (enum edits_rule)i;
			return NULL;
		}
	}
	return "is not any, lower or none";
}

static const char *read_kubelet_socket(struct options *o, const char *value)
{
	o->live.kubelet_socket = value;
	return check_path(value);
}

static const char *parse_seconds(const char *value, uint64_t *ret_ms)
{
	uint64_t ns;

	/* natra_parse_time takes up to an hour. */
	if (natra_parse_time(value, &ns) < 0 || ns < NS_PER_S)
		return "is not a time from 1s to 3600s";
	*ret_ms = ns / 1000000;
	return NULL;
}

static const char *read_period(struct options *o, const char *value)
{
	return parse_seconds(value, &o->period_ms);
}

static const char *read_silence(struct options *o, const char *value)
{
	return parse_seconds(value, &o->live.silence_ms);
}

static const char *read_node(struct options *o, const char *value)
{
	o->live.node = value;
	return value[0] && name_wrong(value) ? "is not the name of a node"
					     : NULL;
}

static const char *read_api_server(struct options *o, const char *value)
{
	o->live.url = value;
	return strncmp(value, "https://", 8) == 0 ||
			       strncmp(value, "http://", 7) == 0
		       ? NULL
		       : "is not https://HOST:PORT";
}

static const char *read_token_file(struct options *o, const char *value)
{
	o->live.token_file = value;
	return value[0] ? check_path(value) : NULL;
}

static const char *read_ca_file(struct options *o, const char *value)
{
	o->live.ca_file = value;
	return value[0] ? check_path(value) : NULL;
}

static const char *read_help(struct options *o, const char *value)
{
	(void)value;
	o->show_help = true;
	return NULL;
}

static const char *read_version(struct options *o, const char *value)
{
	(void)value;
	o->show_version = true;
	return NULL;
}

static const struct {
	const char *name;
	const char *form; /* of its value; NULL: it has none */
	const char *help;
	read_fn read;
} table[] = {
	{"listen", "ADDRESS:PORT",
	 "serve probes, /metrics and, on loopback, a page (127.0.0.1:9810); \"\": do not",
	 read_listen},
	{"no-page", NULL, "serve no page", read_no_page},
	{"metrics", "ADDRESS:PORT", "serve /metrics here, too, or on unix:PATH",
	 read_metrics},
	{"verdicts", "NAMES", "five verdicts (basic) or eight (all)",
	 read_verdicts},
	{"aggregate", "namespace", "sums in place of pods in /metrics",
	 read_aggregate},
	{"log-level", "LEVEL", "error, warn, info or debug (info)",
	 read_log_level},
	{"bpffs", "PATH", "the bpffs to use (that of pid 1)", read_bpffs},
	{"no-install", NULL, "leave the runtime's directories alone",
	 read_no_install},
	{"root", "PATH", "the host's root directory (/)", read_root},
	{"mode", "MODE", "auto, dropin, list or bandwidth (auto)", read_mode},
	{"platform", "NAME", "whose directories to use (auto)", read_platform},
	{"net-dir", "PATH", "the runtime's directory of networks",
	 read_net_dir},
	{"bin-dir", "PATH", "the runtime's directory of plugins", read_bin_dir},
	{"network", "NAME", "the network to limit (the runtime's first)",
	 read_network},
	{"plugin", "FILE", "the plugin (natra beside natra-agent)",
	 read_plugin},
	{"conf", "KEY=VALUE", "a key of natra's configuration; repeat it",
	 read_conf},
	{"runtime-version", "VERSION", "such as containerd://2.1.0 (ask it)",
	 read_runtime_version},
	{"repairs", "TIMES/SECONDS",
	 "repair an installation at most this often (5/600)", read_repairs},
	{"groups", "FILE", "make the groups of this file, and follow it",
	 read_groups},
	{"namespaces", "FILE",
	 "defaults and maximums of namespaces; follow this file",
	 read_namespaces},
	{"no-pods", NULL, "load no programs and look at no running pods",
	 read_no_pods},
	{"no-adopt", NULL, "do not limit pods that run without limits",
	 read_no_adopt},
	{"replace-bandwidth", NULL,
	 "replace limits of the bandwidth plugin in running pods",
	 read_replace},
	{"period", "TIME", "look at the running pods this often (300s)",
	 read_period},
	{"node", "NAME", "follow the annotations of this node's pods",
	 read_node},
	{"edits", "WORD",
	 "what edits may do: any; lower a limit or add one (lower); none",
	 read_edits},
	{"api-server", "URL", "the API server (that of the pod)",
	 read_api_server},
	{"token-file", "FILE", "the token for it (that of the pod)",
	 read_token_file},
	{"ca-file", "FILE", "the CA of its certificate (that of the pod)",
	 read_ca_file},
	{"kubelet-socket", "PATH",
	 "ask the kubelet for pods there, not the API server",
	 read_kubelet_socket},
	{"silence", "TIME",
	 "ask the API server anew if it sends nothing for this long (130s)",
	 read_silence},
	{"help", NULL, "show this help", read_help},
	{"version", NULL, "show the version", read_version},
};

#define TABLE_LEN (sizeof(table) / sizeof(table[0]))

static int usage_error(const char *name, const char *value, const char *wrong)
{
	fprintf(stderr, "natra-agent: --%s: '%s': %s\n", name, value, wrong);
	return EXIT_USAGE;
}

static int read_all(struct options *o, int argc, char **argv)
{
	struct option longs[TABLE_LEN + 1] = {0};
	int c, at = 0;

	for (size_t i = 0; i < TABLE_LEN; i++) {
		longs[i].name = table[i].name;
		longs[i].has_arg =
			table[i].form ? required_argument : no_argument;
	}
	while ((c = getopt_long(argc, argv, "", longs, &at)) != -1) {
		const char *wrong;

		/* getopt_long has said what is wrong. */
		if (c != 0)
			return EXIT_USAGE;
		wrong = table[at].read(o, optarg);
		if (wrong)
			return usage_error(table[at].name, optarg, wrong);
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "natra-agent: takes no argument: '%s'\n", argv[optind]);
	return EXIT_USAGE;
}

/* Finds the API server as each pod can. */
static int find_api_server(struct options *o)
{
	const char *host = secure_getenv("KUBERNETES_SERVICE_HOST");
	const char *port = secure_getenv("KUBERNETES_SERVICE_PORT");
	bool is_v6 = host && strchr(host, ':');

	if (!o->live.node[0] || o->live.url[0])
		return 0;
	if (!host || !port) {
		fputs("natra-agent: --node: there is no API server: give "
		      "--api-server, or run in a pod\n",
		      stderr);
		return EXIT_USAGE;
	}
	(void)snprintf(o->url, sizeof(o->url), "https://%s%s%s:%s",
		       is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
	o->live.url = o->url;
	return 0;
}

int options_read(struct options *ret, int argc, char **argv)
{
	int r;

	*ret = (struct options){
		.listen = "127.0.0.1:9810",
		.metrics = "",
		.log_level = NATRA_LOG_INFO,
		.conf = cJSON_CreateObject(),
		.repairs = {.times = 5, .period_ms = 600000},
		.period_ms = 300000,
		.live = {.node = "",
			 .url = "",
			 .token_file = ACCOUNT "/token",
			 .ca_file = ACCOUNT "/ca.crt",
			 .kubelet_socket = "",
			 .silence_ms = 130000},
	};
	ret->install.conf = ret->conf;
	ret->install.is_own_kernel = true;
	r = read_all(ret, argc, argv);
	return r ? r : find_api_server(ret);
}

void options_free(struct options *o)
{
	cJSON_Delete(o->conf);
	o->conf = NULL;
}

void options_help(void)
{
	puts("Usage: natra-agent [OPTION...]\n\n"
	     "Keep natra installed on this node, and its pods limited.\n\n"
	     "Options:");
	for (size_t i = 0; i < TABLE_LEN; i++) {
		int width = printf("  --%s", table[i].name);

		if (table[i].form)
			width += printf(" %s", table[i].form);
		printf("%*s%s\n", width < 30 ? 30 - width : 1, "",
		       table[i].help);
	}
}
