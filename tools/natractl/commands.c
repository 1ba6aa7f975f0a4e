/* SPDX-License-Identifier: BSD-2-Clause */
#include "commands.h"

#include <string.h>

#include "group.h"
#include "limits.h"
#include "nearest.h"

const struct command commands[] = {
	{.spec = {.name = "attach",
		  .arg = "IFNAME",
		  .options = OPT_BIT(OPT_NETNS) | OPT_BIT(OPT_PID) |
			     OPT_BIT(OPT_ID) | OPT_BIT(OPT_NETWORK) |
			     OPT_BIT(OPT_LABEL) |
			     OPT_BIT(OPT_REPLACE_BANDWIDTH)},
	 .summary = "shape an interface, or replace how it is shaped",
	 .run = cmd_attach},
	{.spec = {.name = "set", .arg = "ID|POD"},
	 .summary = "change limits of an attachment; the others stay",
	 .run = cmd_set},
	{.spec = {.name = "detach",
		  .arg = "ID|POD|IFNAME",
		  .options = OPT_BIT(OPT_NETNS)},
	 .summary = "remove an attachment; with --netns, that of an interface",
	 .run = cmd_detach},
	{.spec = {.name = "list", .options = OPT_BIT(OPT_WIDE)},
	 .summary = "list all attachments, and what passes now",
	 .run = cmd_list},
	{.spec = {.name = "show", .arg = "ID|POD"},
	 .summary = "show all about one attachment",
	 .run = cmd_show},
	{.spec = {.name = "stats",
		  .arg = "ID|POD",
		  .arg_optional = true,
		  .options = OPT_BIT(OPT_WATCH)},
	 .summary = "show the counters of one or all attachments",
	 .run = cmd_stats},
	{.spec = {.name = "top",
		  .arg = "ID|POD",
		  .arg_optional = true,
		  .options = OPT_BIT(OPT_DIRECTION) | OPT_BIT(OPT_FLOWS) |
			     OPT_BIT(OPT_ONCE) | OPT_BIT(OPT_INTERVAL)},
	 .summary = "watch all pods; with a name, list its heavy flows",
	 .run = cmd_top},
	{.spec = {.name = "events",
		  .arg = "ID|POD",
		  .arg_optional = true,
		  .options = OPT_BIT(OPT_FOLLOW) | OPT_BIT(OPT_SINCE)},
	 .summary =
		 "show when flows became heavy, and packets began to be dropped",
	 .run = cmd_events},
	{.spec = {.name = "group",
		  .arg = "set|show|remove [NAME]...",
		  .options = OPT_BIT(OPT_PARENT)},
	 .summary = "let attachments share a rate",
	 .run = cmd_group},
	{.spec = {.name = "metrics",
		  .options = OPT_BIT(OPT_TEXTFILE) | OPT_BIT(OPT_VERDICTS) |
			     OPT_BIT(OPT_AGGREGATE)},
	 .summary = "write metrics for Prometheus",
	 .run = cmd_metrics,
	 .is_rare = true},
	{.spec = {.name = "probe"},
	 .summary = "show what this kernel can do",
	 .run = cmd_probe,
	 .is_rare = true},
	{.spec = {.name = "gc"},
	 .summary = "remove attachments whose interface does not exist",
	 .run = cmd_gc,
	 .is_rare = true},
	{.spec = {.name = "check", .arg = "ID|POD"},
	 .summary = "compare the kernel with what was set",
	 .run = cmd_check},
	{.spec = {.name = "upgrade",
		  .arg = "ID|POD...",
		  .arg_optional = true,
		  .options = OPT_BIT(OPT_CHECK)},
	 .summary = "let attachments run the programs of this version",
	 .run = cmd_upgrade,
	 .is_rare = true},
	{.spec = {.name = "doctor",
		  .arg = "POD",
		  .arg_optional = true,
		  .options = OPT_BIT(OPT_PLATFORM) | OPT_BIT(OPT_NET_DIR) |
			     OPT_BIT(OPT_BIN_DIR) | OPT_BIT(OPT_ROOT) |
			     OPT_BIT(OPT_RUNTIME_VERSION) | OPT_BIT(OPT_AGENT)},
	 .summary =
		 "say why a pod or all pods are not limited as they should be",
	 .run = cmd_doctor},
	{.spec = {.name = "hook",
		  .arg = "IFNAME",
		  .arg_optional = true,
		  .options = OPT_BIT(OPT_ON_ERROR) | OPT_BIT(OPT_NAMESPACES)},
	 .summary = "limit a container, as a hook of its OCI runtime",
	 .run = cmd_hook,
	 .is_rare = true},
	{.spec = {.name = "install",
		  .options = OPT_BIT(OPT_INSTALL_MODE) | OPT_BIT(OPT_PLATFORM) |
			     OPT_BIT(OPT_NET_DIR) | OPT_BIT(OPT_BIN_DIR) |
			     OPT_BIT(OPT_PLUGIN) | OPT_BIT(OPT_CONF) |
			     OPT_BIT(OPT_NETWORK) | OPT_BIT(OPT_ROOT) |
			     OPT_BIT(OPT_RUNTIME_VERSION) |
			     OPT_BIT(OPT_DRY_RUN)},
	 .summary = "put the CNI plugin into this node's chain",
	 .run = cmd_install},
	{.spec = {.name = "uninstall",
		  .options = OPT_BIT(OPT_PLATFORM) | OPT_BIT(OPT_NET_DIR) |
			     OPT_BIT(OPT_BIN_DIR) | OPT_BIT(OPT_ROOT) |
			     OPT_BIT(OPT_DRY_RUN) | OPT_BIT(OPT_FORCE)},
	 .summary = "remove what install put there",
	 .run = cmd_uninstall,
	 .is_rare = true},
	{.spec = {.name = "call"},
	 .summary = "call the library as requests in JSON on stdin say",
	 .run = cmd_call,
	 .is_rare = true},
	{.spec = {.name = "complete",
		  .arg = "WORD...",
		  .arg_optional = true,
		  .only_args = true},
	 .summary = "print what the last word can become, for a shell",
	 .run = cmd_complete,
	 .is_rare = true},
	{.spec = {.name = "help", .arg = "COMMAND", .arg_optional = true},
	 .summary = "show this help, or that of a command",
	 .run = cmd_help,
	 .is_rare = true},
	{.spec = {.name = "version"},
	 .summary = "show the version",
	 .run = cmd_version,
	 .is_rare = true},
};

const size_t commands_len = sizeof(commands) / sizeof(commands[0]);

uint64_t command_options(const struct command *command)
{
	uint64_t options = command->spec.options | OPTS_GLOBAL;

	/* Those for limits are not in the table of commands, because policy_fields says
	 * which of them `set` takes. */
	if (command->run == cmd_attach)
		options |= limits_options();
	else if (command->run == cmd_set)
		options |= limits_live_options();
	else if (command->run == cmd_group)
		options |= group_limit_options();
	else if (command->run == cmd_hook)
		options |= limits_rate_options();
	return options;
}

static void print_summary(FILE *file, const struct command *command)
{
	const int column = 24;
	const struct opts_spec *spec = &command->spec;
	int width = fprintf(file, "  %s", spec->name);

	if (spec->arg)
		width += fprintf(file, spec->arg_optional ? " [%s]" : " %s",
				 spec->arg);
	if (width >= column)
		width = -fprintf(file, "\n") + 1;
	fprintf(file, "%*s%s\n", column - width, "", command->summary);
}

void help_print(FILE *file, bool all)
{
	fputs("Usage: natractl [OPTION...] COMMAND [ARGUMENT...]\n\n"
	      "Limit the bandwidth of pods without hurting their small flows.\n"
	      "ingress goes into the pod, egress out of it. POD is namespace/name.\n"
	      "\nCommands:\n",
	      file);
	for (size_t i = 0; i < commands_len; i++) {
		if (all || !commands[i].is_rare)
			print_summary(file, &commands[i]);
	}
	if (!all) {
		fputs("\n`natractl help` shows the others, and `natractl help COMMAND` one.\n",
		      file);
		return;
	}
	fputs("\nOptions:\n", file);
	opts_help(OPTS_GLOBAL | OPT_BIT(OPT_VERSION));
}

void help_print_command(const struct command *command)
{
	const struct opts_spec *spec = &command->spec;

	printf("Usage: natractl %s [OPTION...]", spec->name);
	if (spec->arg)
		printf(spec->arg_optional ? " [%s]" : " %s", spec->arg);
	printf("\n\n%s\n\nOptions:\n", command->summary);
	opts_help(command_options(command));
}

const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < commands_len; i++) {
		if (strcmp(commands[i].spec.name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

const char *likely_command(const char *word)
{
	struct nearest nearest = {.word = word};

	for (size_t i = 0; i < commands_len; i++)
		nearest_add(&nearest, commands[i].spec.name);
	return nearest.name;
}
