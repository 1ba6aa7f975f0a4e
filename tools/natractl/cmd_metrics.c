/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../metrics/families.h"
#include "cli.h"
#include "output.h"

#define FILE_NAME_MAX 4000

static int read_options(const struct cli *cli, struct families_options *o)
{
	const char *verdicts = cli->opts.value[OPT_VERDICTS];
	const char *aggregate = cli->opts.value[OPT_AGGREGATE];

	if (wants_json(cli))
		return usage_error(opts_name(OPT_JSON), NULL,
				   "not an option of 'metrics'");
	if (verdicts && !families_read_verdicts(o, verdicts))
		return usage_error(opts_name(OPT_VERDICTS), verdicts,
				   "is not basic or all");
	if (aggregate && !families_read_aggregate(o, aggregate))
		return usage_error(opts_name(OPT_AGGREGATE), aggregate,
				   "is not namespace");
	/* Two runs know nothing of each other. */
	if (aggregate && cli->opts.value[OPT_TEXTFILE])
		return usage_error(opts_name(OPT_AGGREGATE), aggregate,
				   "cannot stand beside --textfile: sums fall "
				   "when a pod goes");
	return opts_check_text(opts_name(OPT_TEXTFILE),
			       cli->opts.value[OPT_TEXTFILE], FILE_NAME_MAX);
}

static void write_metrics(FILE *out, const struct node_metrics *node,
			  const struct families_options *o)
{
	struct exposition e = {.out = out};

	families_write(&e, node, o);
	exposition_end(&e);
}

/* A reader of the file sees the old metrics or the new ones: they are written to
 * a file of another name, which then takes the old one's place. */
static int replace_file(const char *path, const struct node_metrics *node,
			const struct families_options *o)
{
	char temporary[FILE_NAME_MAX + 8];
	FILE *out;
	int r = 0, fd;

	(void)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	out = fdopen(fd, "w");
	if (!out) {
		r = -errno;
		(void)close(fd);
	} else {
		write_metrics(out, node, o);
		if (fflush(out) != 0)
			r = -errno;
		if (r == 0 && ferror(out))
			r = -EIO;
		/* node_exporter is another user. */
		if (r == 0 && fchmod(fd, 0644) < 0)
			r = -errno;
		if (fclose(out) != 0 && r == 0)
			r = -errno;
	}
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}

/* The program's end finds out whether stdout could be written. */
static int show(const struct cli *cli, const struct node_metrics *node,
		const struct families_options *o)
{
	const char *path = cli->opts.value[OPT_TEXTFILE];
	int r = 0;

	if (path)
		r = replace_file(path, node, o);
	else
		write_metrics(stdout, node, o);
	if (r == 0)
		return EXIT_SUCCESS;
	fputs("natractl: write the metrics to '", stderr);
	print_text(stderr, path, 0);
	fprintf(stderr, "': %s\n", strerror(-r));
	return EXIT_FAILURE;
}

int cmd_metrics(struct cli *cli)
{
	struct families_options o = {0};
	struct node_metrics node = {0};
	int r = read_options(cli, &o);

	if (r)
		return r;
	r = node_metrics_read(cli->n, &node);
	if (r == 0)
		r = node_metrics_inspect(cli->n, &node);
	r = r < 0 ? failure(cli, r) : show(cli, &node, &o);
	node_metrics_free(&node);
	return r;
}
