/* SPDX-License-Identifier: BSD-2-Clause */
#include "opts.h"

#include <stdio.h>
#include <string.h>

#include "nearest.h"
#include "output.h"

struct option {
	const char *name;
	char key;
	const char *metavar; /* NULL: a flag */
	const char *help;
};

/* The options that set a field of the policy stand in policy_fields. */
static const struct option table[OPT_MAX] = {
	[OPT_HELP] = {"--help", 'h', NULL, "show this help"},
	[OPT_VERSION] = {"--version", 0, NULL, "show the version"},
	[OPT_JSON] = {"--json", 'j', NULL, "print JSON"},
	[OPT_VERBOSE] = {"--verbose", 'v', NULL,
			 "log to stderr; twice: with details"},
	[OPT_BPFFS] = {"--bpffs", 0, "PATH", "bpffs mount (/sys/fs/bpf)"},
	[OPT_NETNS] = {"--netns", 0, "PATH|NAME",
		       "network namespace of the interface"},
	[OPT_PID] = {"--pid", 0, "PID", "network namespace of this process"},
	[OPT_ID] = {"--id", 0, "ID", "default: <netns inode>-<IFNAME>"},
	[OPT_NETWORK] = {"--network", 0, "NAME", "CNI network it belongs to"},
	[OPT_LABEL] = {"--label", 0, "TEXT", "free text shown by list"},
	[OPT_SHAPED_SUBNET] = {"--shaped-subnet", 0, "CIDR",
			       "limit these peers only (repeatable)"},
	[OPT_UNSHAPED_SUBNET] = {"--unshaped-subnet", 0, "CIDR",
				 "limit all but these peers (repeatable)"},
	[OPT_CLASS] = {"--class", 0,
		       "NAME=CIDR,...,ingress-rate=RATE,egress-rate=RATE",
		       "peers with limits of their own; also dscp=N "
		       "(repeatable)"},
	[OPT_GROUP_LIMITS] = {"--group-limits", 0,
			      "ingress-rate=RATE,egress-rate=RATE",
			      "the group is made with these, and goes with "
			      "its last member; also parent=NAME, weight=N, "
			      "floor=RATE"},
	[OPT_PARENT] = {"--parent", 0, "NAME",
			"the group that this one is a member of; none"},
	[OPT_REPLACE_BANDWIDTH] = {"--replace-bandwidth", 0, NULL,
				   "remove what the bandwidth plugin left"},
	[OPT_DIRECTION] = {"--direction", 0, "ingress|egress",
			   "only this direction"},
	[OPT_FLOWS] = {"--flows", 'n', "N",
		       "at most N flows per direction (10)"},
	[OPT_WATCH] = {"--watch", 'w', "SECONDS",
		       "show rates per interval until interrupted"},
	[OPT_TEXTFILE] = {"--textfile", 0, "FILE",
			  "write this file, for node_exporter"},
	[OPT_VERDICTS] = {"--verdicts", 0, "basic|all",
			  "five verdicts or eight (all)"},
	[OPT_AGGREGATE] = {"--aggregate", 0, "namespace",
			   "sums in place of pods"},
	[OPT_ONCE] = {"--once", 0, NULL, "print one table and end"},
	[OPT_WIDE] = {"--wide", 0, NULL, "show all of each id, and the mode"},
	[OPT_INTERVAL] = {"--interval", 0, "SECONDS",
			  "read the counters this often (2)"},
	[OPT_FOLLOW] = {"--follow", 'f', NULL, "go on until interrupted"},
	[OPT_SINCE] = {"--since", 0, "TIME",
		       "only events that are not older, such as 90s"},
	[OPT_INSTALL_MODE] = {"--mode", 0, "auto|dropin|list|bandwidth",
			      "the way into the chain (auto)"},
	[OPT_PLATFORM] = {"--platform", 0, "NAME",
			  "auto, default, k3s, k3d, rke2, microk8s, gke, "
			  "openshift"},
	[OPT_NET_DIR] = {"--net-dir", 0, "DIR",
			 "the runtime's lists (/etc/cni/net.d)"},
	[OPT_BIN_DIR] = {"--bin-dir", 0, "DIR",
			 "the runtime's plugins (/opt/cni/bin)"},
	[OPT_PLUGIN] = {"--plugin", 0, "FILE", "natra's plugin to install"},
	[OPT_CONF] = {"--conf", 0, "KEY=VALUE",
		      "a key of the plugin's configuration (repeatable)"},
	[OPT_ROOT] = {"--root", 0, "DIR", "where the host's root is (/)"},
	[OPT_RUNTIME_VERSION] =
		{"--runtime-version", 0, "TEXT",
		 "such as containerd://2.1.0, instead of asking"},
	[OPT_DRY_RUN] = {"--dry-run", 0, NULL,
			 "show what would be done, and do nothing"},
	[OPT_FORCE] = {"--force", 0, NULL,
		       "remove the plugin even if pods need it"},
	[OPT_AGENT] = {"--agent", 0, "ADDRESS:PORT",
		       "natra-agent has to answer here"},
	[OPT_NAMESPACES] = {"--namespaces", 0, "FILE",
			    "defaults and maximums of namespaces"},
	[OPT_ON_ERROR] = {"--on-error", 0, "continue|fail",
			  "what becomes of the container (continue)"},
	[OPT_CHECK] = {"--check", 0, NULL,
		       "say what an upgrade would do, and do nothing"},
};

const struct policy_field *opts_field(enum opt_id id)
{
	return id >= OPT_POLICY && id < OPT_SHAPED_SUBNET
		       ? &policy_fields[id - OPT_POLICY]
		       : NULL;
}

static struct option option(enum opt_id id)
{
	const struct policy_field *field = opts_field(id);

	return field ? (struct option){policy_field_option(field), 0,
				       policy_field_form(field), field->help}
		     : table[id];
}

const char *opts_name(enum opt_id id)
{
	return option(id).name;
}

const char *opts_metavar(enum opt_id id)
{
	return option(id).metavar;
}

void opts_help(uint64_t options)
{
	const int column = 34;

	for (int id = 0; id < OPT_MAX; id++) {
		const struct policy_field *field = opts_field(id);
		const struct option o = option(id);
		int width;

		if (!(options & OPT_BIT(id)))
			continue;
		width = printf("  %s", o.name);
		if (o.key && o.name[1] == '-')
			width += printf(", -%c", o.key);
		if (o.metavar)
			width += printf(" %s", o.metavar);
		if (width >= column) {
			putchar('\n');
			width = 0;
		}
		printf("%*s%s", column - width, "", o.help);
		if (field && field->otherwise)
			printf(" (%s)", field->otherwise);
		putchar('\n');
	}
}

int opts_number(const struct opts *opts, enum opt_id id, uint32_t max,
		uint32_t *ret_number)
{
	const char *text = opts->value[id];
	uint64_t number = 0;
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || text[digits] != '\0')
		return usage_error(opts_name(id), text, "is not a number");
	for (size_t i = 0; i < digits && number <= max; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	if (number < 1 || number > max)
		return usage_error(opts_name(id), text,
				   "is not between 1 and %u", max);
	*ret_number = (uint32_t)number;
	return 0;
}

int opts_check_text(const char *name, const char *value, uint32_t max)
{
	if (!value)
		return 0;
	if (value[0] == '\0')
		return usage_error(name, value, "is empty");
	if (strlen(value) > max)
		return usage_error(name, value, "is longer than %u bytes", max);
	return 0;
}

/* The words of the command line, of which `next` is the first one left. */
struct words {
	int argc;
	char **argv;
	int next;
};

static int add_subnet(struct opts *opts, enum opt_id id, const char *value)
{
	enum opt_id other = id == OPT_SHAPED_SUBNET ? OPT_UNSHAPED_SUBNET
						    : OPT_SHAPED_SUBNET;

	if (opts->value[other])
		return usage_error(opts_name(id), value,
				   "cannot stand beside %s", opts_name(other));
	if (opts->subnets_len == OPTS_SUBNETS_MAX)
		return usage_error(opts_name(id), value,
				   "is one more than the limit of %d",
				   OPTS_SUBNETS_MAX);
	opts->subnets[opts->subnets_len++] = value;
	return 0;
}

static int add_class(struct opts *opts, const char *value)
{
	if (opts->classes_len == NATRA_CLASSES_MAX)
		return usage_error(opts_name(OPT_CLASS), value,
				   "is one more than the limit of %d",
				   NATRA_CLASSES_MAX);
	opts->classes[opts->classes_len++] = value;
	return 0;
}

static int add_conf(struct opts *opts, const char *value)
{
	if (opts->conf_len == OPTS_CONF_MAX)
		return usage_error(opts_name(OPT_CONF), value,
				   "is one more than the limit of %d",
				   OPTS_CONF_MAX);
	opts->conf[opts->conf_len++] = value;
	return 0;
}

static int store(struct opts *opts, const struct opts_spec *spec,
		 enum opt_id id, const char *value)
{
	if (!(spec->options & OPT_BIT(id)))
		return usage_error(opts_name(id), NULL, "not an option of '%s'",
				   spec->name);
	if (id == OPT_VERBOSE)
		opts->verbosity++;
	if (id == OPT_SHAPED_SUBNET || id == OPT_UNSHAPED_SUBNET) {
		int r = add_subnet(opts, id, value);

		if (r)
			return r;
	}
	if (id == OPT_CLASS) {
		int r = add_class(opts, value);

		if (r)
			return r;
	}
	if (id == OPT_CONF) {
		int r = add_conf(opts, value);

		if (r)
			return r;
	}
	opts->value[id] = value;
	return 0;
}

/* `inline_value` is the value in the same word; NULL if that has none. */
static int take_value(struct opts *opts, const struct opts_spec *spec,
		      struct words *w, enum opt_id id, const char *inline_value)
{
	if (!inline_value) {
		if (w->next == w->argc)
			return usage_error(opts_name(id), NULL,
					   "needs a value (%s)",
					   opts_metavar(id));
		inline_value = w->argv[w->next++];
	}
	return store(opts, spec, id, inline_value);
}

int opts_find(const struct opts_spec *spec, const char *word, size_t len)
{
	int found = OPT_MAX;

	for (int id = 0; id < OPT_MAX; id++) {
		const char *name = opts_name(id);

		if (strlen(name) == len && strncmp(name, word, len) == 0 &&
		    (found == OPT_MAX || spec->options & OPT_BIT(id)))
			found = id;
	}
	return found;
}

static int unknown_option(const struct opts_spec *spec, const char *word,
			  size_t len)
{
	char name[64];
	struct nearest nearest = {.word = name};

	(void)snprintf(name, sizeof(name), "%.*s", (int)len, word);
	for (int id = 0; id < OPT_MAX; id++) {
		if (spec->options & OPT_BIT(id))
			nearest_add(&nearest, opts_name(id));
	}
	return nearest.name
		       ? usage_error(word, NULL, "unknown option (is it %s?)",
				     nearest.name)
		       : usage_error(word, NULL, "unknown option");
}

static int take_long(struct opts *opts, const struct opts_spec *spec,
		     struct words *w)
{
	const char *word = w->argv[w->next++];
	size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;

	int id = opts_find(spec, word, len);

	if (id == OPT_MAX)
		return unknown_option(spec, word, len);
	if (opts_metavar(id))
		return take_value(opts, spec, w, id, value);
	if (value)
		return usage_error(opts_name(id), value,
				   "is not expected here");
	return store(opts, spec, id, "");
}

static int find_key(char key)
{
	for (int id = 0; id < OPT_MAX; id++) {
		if (table[id].key == key)
			return id;
	}
	return OPT_MAX;
}

static int take_short(struct opts *opts, const struct opts_spec *spec,
		      struct words *w)
{
	const char *word = w->argv[w->next++];

	for (const char *key = word + 1; *key; key++) {
		int r, id = find_key(*key);

		if (id == OPT_MAX)
			/* cppcheck-suppress varFuncNullUB ; not a variadic one */
			return usage_error((const char[]){'-', *key, '\0'},
					   NULL, "unknown option");
		if (opts_metavar(id))
			return take_value(opts, spec, w, id,
					  key[1] ? key + 1 : NULL);
		r = store(opts, spec, id, "");
		if (r)
			return r;
	}
	return 0;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

static int take_option(struct opts *opts, const struct opts_spec *spec,
		       struct words *w)
{
	if (w->argv[w->next][1] == '-')
		return take_long(opts, spec, w);
	return take_short(opts, spec, w);
}

int opts_parse_global(struct opts *opts, int argc, char **argv, int *ret_next)
{
	static const struct opts_spec spec = {
		.name = "natractl",
		.options = OPTS_GLOBAL | OPT_BIT(OPT_VERSION),
	};
	struct words w = {.argc = argc, .argv = argv, .next = 1};

	while (w.next < argc && is_option(argv[w.next])) {
		int r;

		if (strcmp(argv[w.next], "--") == 0) {
			w.next++;
			break;
		}
		r = take_option(opts, &spec, &w);
		if (r)
			return r;
	}
	*ret_next = w.next;
	return 0;
}

static int take_arg(struct opts *opts, const struct opts_spec *spec,
		    struct words *w)
{
	const char *word = w->argv[w->next++];

	if (!spec->arg || opts->args_len == OPTS_ARGS_MAX ||
	    (opts->arg && !strstr(spec->arg, "...")))
		return usage_error(spec->name, word,
				   "is one argument too many");
	opts->args[opts->args_len++] = word;
	opts->arg = opts->args[0];
	return 0;
}

int opts_parse(struct opts *opts, const struct opts_spec *spec, int argc,
	       char **argv)
{
	struct words w = {.argc = argc, .argv = argv};
	bool only_args = spec->only_args;

	while (w.next < argc) {
		int r = 0;

		if (only_args || !is_option(argv[w.next])) {
			r = take_arg(opts, spec, &w);
		} else if (strcmp(argv[w.next], "--") == 0) {
			only_args = true;
			w.next++;
		} else {
			r = take_option(opts, spec, &w);
		}
		if (r)
			return r;
	}
	if (opts->value[OPT_HELP])
		return 0;
	if (spec->arg && !spec->arg_optional && !opts->arg)
		return usage_error(spec->name, NULL, "%s is missing",
				   spec->arg);
	return 0;
}
