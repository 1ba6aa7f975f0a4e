/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/memory.h"
#include "cli.h"
#include "group.h"
#include "limits.h"
#include "output.h"

struct command {
	struct opts_spec spec;
	const char *summary;
	int (*run)(struct cli *cli);
};

static const struct command commands[] = {
	{{"attach", "IFNAME", false,
	  OPT_BIT(OPT_NETNS) | OPT_BIT(OPT_PID) | OPT_BIT(OPT_ID) |
		  OPT_BIT(OPT_NETWORK) | OPT_BIT(OPT_LABEL) |
		  OPT_BIT(OPT_REPLACE_BANDWIDTH)},
	 "shape an interface, or replace how it is shaped",
	 cmd_attach},
	{{"set", "ID", false, 0},
	 "change limits of an attachment; the others stay",
	 cmd_set},
	{{"detach", "ID|IFNAME", false, OPT_BIT(OPT_NETNS)},
	 "remove an attachment; with --netns, that of an interface",
	 cmd_detach},
	{{"list", NULL, false, 0}, "list all attachments", cmd_list},
	{{"show", "ID", false, 0}, "show all about one attachment", cmd_show},
	{{"stats", "ID", true, OPT_BIT(OPT_WATCH)},
	 "show the counters of one or all attachments",
	 cmd_stats},
	{{"top", "ID", true,
	  OPT_BIT(OPT_DIRECTION) | OPT_BIT(OPT_FLOWS) | OPT_BIT(OPT_ONCE) |
		  OPT_BIT(OPT_INTERVAL)},
	 "watch all pods; with ID, list its heavy flows",
	 cmd_top},
	{{"events", "ID|POD", true, OPT_BIT(OPT_FOLLOW) | OPT_BIT(OPT_SINCE)},
	 "show when flows became heavy, and packets began to be dropped",
	 cmd_events},
	{{"group", "set|show|remove [NAME]...", false, OPT_BIT(OPT_PARENT)},
	 "let attachments share a rate",
	 cmd_group},
	{{"metrics", NULL, false,
	  OPT_BIT(OPT_TEXTFILE) | OPT_BIT(OPT_VERDICTS) |
		  OPT_BIT(OPT_AGGREGATE)},
	 "write metrics for Prometheus",
	 cmd_metrics},
	{{"probe", NULL, false, 0}, "show what this kernel can do", cmd_probe},
	{{"gc", NULL, false, 0},
	 "remove attachments whose interface does not exist",
	 cmd_gc},
	{{"check", "ID", false, 0},
	 "compare the kernel with what was set",
	 cmd_check},
	{{"upgrade", "ID...", true, 0},
	 "let attachments run the programs of this version",
	 cmd_upgrade},
	{{"doctor", "POD", true,
	  OPT_BIT(OPT_PLATFORM) | OPT_BIT(OPT_NET_DIR) | OPT_BIT(OPT_BIN_DIR) |
		  OPT_BIT(OPT_ROOT) | OPT_BIT(OPT_RUNTIME_VERSION) |
		  OPT_BIT(OPT_AGENT)},
	 "say why a pod or all pods are not limited as they should be",
	 cmd_doctor},
	{{"hook", "IFNAME", true, OPT_BIT(OPT_ON_ERROR)},
	 "limit a container, as a hook of its OCI runtime",
	 cmd_hook},
	{{"install", NULL, false,
	  OPT_BIT(OPT_INSTALL_MODE) | OPT_BIT(OPT_PLATFORM) |
		  OPT_BIT(OPT_NET_DIR) | OPT_BIT(OPT_BIN_DIR) |
		  OPT_BIT(OPT_PLUGIN) | OPT_BIT(OPT_CONF) |
		  OPT_BIT(OPT_NETWORK) | OPT_BIT(OPT_ROOT) |
		  OPT_BIT(OPT_RUNTIME_VERSION) | OPT_BIT(OPT_DRY_RUN)},
	 "put the CNI plugin into this node's chain",
	 cmd_install},
	{{"uninstall", NULL, false,
	  OPT_BIT(OPT_PLATFORM) | OPT_BIT(OPT_NET_DIR) | OPT_BIT(OPT_BIN_DIR) |
		  OPT_BIT(OPT_ROOT) | OPT_BIT(OPT_DRY_RUN) |
		  OPT_BIT(OPT_FORCE)},
	 "remove what install put there",
	 cmd_uninstall},
	{{"call", NULL, false, 0},
	 "call the library as requests in JSON on stdin say",
	 cmd_call},
	{{"version", NULL, false, 0}, "show the version", cmd_version},
};

static const size_t commands_len = sizeof(commands) / sizeof(commands[0]);

static void show_help(void)
{
	puts("Usage: natractl [OPTION...] COMMAND [ARGUMENT...]\n\n"
	     "Limit the bandwidth of pods without hurting their small flows.\n"
	     "ingress goes into the pod, egress out of it.\n\nCommands:");
	for (size_t i = 0; i < commands_len; i++) {
		const struct opts_spec *spec = &commands[i].spec;
		int width = printf("  %s", spec->name);

		if (spec->arg)
			width += printf(spec->arg_optional ? " [%s]" : " %s",
					spec->arg);
		printf("%*s%s\n", 20 - width, "", commands[i].summary);
	}
	puts("\nOptions:");
	opts_help(OPTS_GLOBAL | OPT_BIT(OPT_VERSION));
}

/* Returns all options of a command. Those for limits are not in the table of
 * commands, because policy_fields says which of them `set` takes. */
static uint64_t options_of(const struct command *command)
{
	uint64_t options = command->spec.options | OPTS_GLOBAL;

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

static void show_command_help(const struct command *command)
{
	const struct opts_spec *spec = &command->spec;

	printf("Usage: natractl %s [OPTION...]", spec->name);
	if (spec->arg)
		printf(spec->arg_optional ? " [%s]" : " %s", spec->arg);
	printf("\n\n%s\n\nOptions:\n", command->summary);
	opts_help(options_of(command));
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < commands_len; i++) {
		if (strcmp(commands[i].spec.name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static void log_line(void *arg, enum natra_log_level level, const char *line)
{
	static const char *const names[NATRA_LOG_MAX] = {
		[NATRA_LOG_ERROR] = "error",
		[NATRA_LOG_WARN] = "warning",
		[NATRA_LOG_INFO] = "info",
		[NATRA_LOG_DEBUG] = "debug",
	};
	const struct cli *cli = arg;

	if (level >= NATRA_LOG_MAX ||
	    (level == NATRA_LOG_DEBUG && cli->opts.verbosity < 2))
		return;
	fprintf(stderr, "natractl: %s: ", names[level]);
	print_text(stderr, line, 0);
	fputc('\n', stderr);
}

static int run(struct cli *cli, const struct command *command)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	int r;

	opts.bpffs_path = cli->opts.value[OPT_BPFFS];
	if (opts.bpffs_path && opts.bpffs_path[0] != '/')
		return usage_error(opts_name(OPT_BPFFS), opts.bpffs_path,
				   "is not an absolute path");
	if (cli->opts.verbosity > 0) {
		opts.log_fn = log_line;
		opts.log_arg = cli;
	}
	r = natra_open(&cli->n, &opts);
	if (r < 0) {
		fprintf(stderr, "natractl: open libnatra: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	r = command->run(cli);
	natra_close(cli->n);
	return r;
}

static int run_with(struct cli *cli, const struct command *command, int argc,
		    char **argv)
{
	struct opts_spec spec = command->spec;
	int r;

	spec.options = options_of(command);
	r = opts_parse(&cli->opts, &spec, argc, argv);
	if (r)
		return r;
	if (cli->opts.value[OPT_HELP]) {
		show_command_help(command);
		return EXIT_SUCCESS;
	}
	return run(cli, command);
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
	const struct command *command;
	int r, next;

	r = opts_parse_global(&cli->opts, argc, argv, &next);
	if (r)
		return r;
	if (cli->opts.value[OPT_HELP]) {
		show_help();
		return EXIT_SUCCESS;
	}
	if (cli->opts.value[OPT_VERSION])
		return cmd_version(cli);
	if (next == argc)
		return usage_error("COMMAND", NULL,
				   "is missing (see natractl --help)");
	command = find_command(argv[next]);
	if (!command)
		return usage_error("COMMAND", argv[next],
				   "is not known (see natractl --help)");

	r = run_with(cli, command, argc - next - 1, argv + next + 1);
	return command->run == cmd_hook ? hook_exit(argc, argv, r) : r;
}

int main(int argc, char **argv)
{
	struct cli cli = {0};
	int r;

	memory_init(STDERR_FILENO, "natractl: out of memory\n");
	r = dispatch(&cli, argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "natractl: write to stdout: %s\n",
			strerror(errno));
		return EXIT_FAILURE;
	}
	return r;
}
