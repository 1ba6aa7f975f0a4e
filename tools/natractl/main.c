/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/memory.h"
#include "../common/stream.h"
#include "cli.h"
#include "commands.h"
#include "output.h"

static void log_line(void *arg, enum natra_log_level level, const char *line)
{
	const struct cli *cli = arg;

	if (level >= NATRA_LOG_MAX ||
	    (level == NATRA_LOG_DEBUG && cli->opts.verbosity < 2))
		return;
	fprintf(stderr, "natractl: %s: ",
		level == NATRA_LOG_WARN ? "warning"
					: natra_log_level_name(level));
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

	spec.options = command_options(command);
	r = opts_parse(&cli->opts, &spec, argc, argv);
	if (r)
		return r;
	if (cli->opts.value[OPT_HELP]) {
		help_print_command(command);
		return EXIT_SUCCESS;
	}
	return run(cli, command);
}

static int unknown_command(const char *word)
{
	const char *likely = likely_command(word);

	return likely ? usage_error("COMMAND", word, "is not known (is it %s?)",
				    likely)
		      : usage_error("COMMAND", word,
				    "is not known (see natractl --help)");
}

int cmd_help(struct cli *cli)
{
	const char *word = cli->opts.arg;
	const struct command *command = word ? find_command(word) : NULL;

	if (!word)
		help_print(stdout, true);
	else if (command)
		help_print_command(command);
	else
		return unknown_command(word);
	return EXIT_SUCCESS;
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
	const struct command *command;
	int r, next;

	r = opts_parse_global(&cli->opts, argc, argv, &next);
	if (r)
		return r;
	if (cli->opts.value[OPT_HELP]) {
		help_print(stdout, true);
		return EXIT_SUCCESS;
	}
	if (cli->opts.value[OPT_VERSION])
		return cmd_version(cli);
	if (next == argc) {
		help_print(stderr, false);
		return EXIT_USAGE;
	}
	command = find_command(argv[next]);
	if (!command)
		return unknown_command(argv[next]);
	/* A runtime that does not read what its hook says must not wait for that. */
	if (command->run == cmd_hook)
		stream_never_wait(STDERR_FILENO);

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
