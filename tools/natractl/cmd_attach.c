/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/policy/environment.h"
#include "classes.h"
#include "cli.h"
#include "find.h"
#include "info.h"
#include "group.h"
#include "json.h"
#include "limits.h"
#include "neighbours.h"
#include "output.h"

/* Warns that the result cannot be shown. That is no failure, since the work is
 * done. */
static int cannot_show(const struct cli *cli)
{
	fputs("natractl: done, but cannot show it: ", stderr);
	print_text(stderr, natra_error(cli->n), 0);
	fputc('\n', stderr);
	return EXIT_SUCCESS;
}

static void print_attached(const struct cli *cli, const struct natra_info *info)
{
	if (wants_json(cli))
		json_print(info_json(cli->n, info));
	else
		info_print(cli->n, info);
}

static int show_result(const struct cli *cli, const char *id)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	r = natra_query(cli->n, id, &info);
	if (r < 0)
		return cannot_show(cli);
	print_attached(cli, &info);
	return EXIT_SUCCESS;
}

static int show_attached(const struct cli *cli, const struct natra_info *info)
{
	/* With --verbose the library's log reports them. */
	if (cli->opts.verbosity == 0)
		hooks_warn(cli, info->id);
	print_attached(cli, info);
	return EXIT_SUCCESS;
}

/* Writes the path of the network namespace of --pid, or "". */
static int read_pid(const struct cli *cli, char path[PID_NETNS_MAX])
{
	const char *value = cli->opts.value[OPT_PID];
	uint32_t pid;
	int r;

	path[0] = '\0';
	if (!value)
		return 0;
	if (cli->opts.value[OPT_NETNS])
		return usage_error(opts_name(OPT_PID), value,
				   "cannot stand beside %s",
				   opts_name(OPT_NETNS));
	r = opts_number(&cli->opts, OPT_PID, PID_MAX, &pid);
	if (r)
		return r;
	pid_netns(pid, path);
	if (access(path, F_OK) < 0)
		return usage_error(opts_name(OPT_PID), value,
				   "is no process here: %s", strerror(errno));
	return 0;
}

static int check_attach(const struct cli *cli, struct natra_policy *policy,
			struct class_list *classes,
			struct automatic_group *group,
			char netns[PID_NETNS_MAX])
{
	const struct opts *opts = &cli->opts;
	int r;

	r = check_interface(cli);
	if (!r)
		r = read_pid(cli, netns);
	if (!r)
		r = opts_check_text(opts_name(OPT_ID), opts->value[OPT_ID],
				    NATRA_ID_MAX);
	if (!r)
		r = opts_check_text(opts_name(OPT_NETWORK),
				    opts->value[OPT_NETWORK], NATRA_NAME_MAX);
	if (!r)
		r = opts_check_text(opts_name(OPT_LABEL),
				    opts->value[OPT_LABEL], NATRA_NAME_MAX);
	if (!r)
		r = limits_apply(cli, policy);
	if (!r)
		r = automatic_apply(cli, group, policy);
	if (!r)
		r = class_list_apply(cli, classes, policy);
	if (r)
		return r;
	if (!policy->ingress_rate_bits_per_sec &&
	    !policy->egress_rate_bits_per_sec && !policy->group[0] &&
	    !classes->len)
		return usage_error(
			"attach", NULL,
			"needs --ingress-rate RATE, --egress-rate RATE, --group NAME or --class CLASS");
	return 0;
}

/* Reports what the bandwidth plugin left: its limits hold beside natra's. */
static void warn_of_leftovers(const struct cli *cli,
			      const struct natra_target *target)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);

	/* With --verbose the library's log reports them. If the interface cannot be looked
	 * at, natra_attach reports it. */
	if (cli->opts.verbosity > 0 ||
	    natra_find_leftovers(cli->n, target, &leftovers) < 0 ||
	    !leftovers_any(&leftovers))
		return;
	fputs("natractl: warning: ", stderr);
	leftovers_print(stderr, &leftovers);
	fputs(", of the bandwidth plugin: its limits hold as well"
	      " (--replace-bandwidth removes them)\n",
	      stderr);
}

/* Attaches while the bandwidth plugin's limits still hold, so that the pod has limits at
 * each moment, also if natra's cannot be attached. The others go first only if they are
 * in the way. What waits in them passes before. */
static int replace(const struct cli *cli, struct natra_target target,
		   const struct natra_policy *policy, struct natra_info *info)
{
	int r = natra_attach(cli->n, &target, policy, info);
	const bool attached = r == 0;

	if (r < 0 && natra_error_code(cli->n) != NATRA_CODE_LEFTOVERS)
		return r;
	if (attached)
		target.id = info->id;
	r = natra_drain_leftovers(cli->n, &target);
	if (r == 0)
		r = natra_remove_leftovers(cli->n, &target);
	return r < 0 || attached ? r
				 : natra_attach(cli->n, &target, policy, info);
}

static int attach(struct cli *cli, struct class_list *classes)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_info info = NATRA_INIT(info);
	struct automatic_group group;
	char netns[PID_NETNS_MAX], wrong[ENVIRONMENT_ERROR_MAX];
	int r;

	r = check_attach(cli, &policy, classes, &group, netns);
	if (r)
		return r;
	if (environment_read(&policy, wrong, sizeof(wrong)) < 0) {
		fprintf(stderr, "natractl: %s\n", wrong);
		return EXIT_FAILURE;
	}

	target.id = cli->opts.value[OPT_ID];
	target.ifname = cli->opts.arg;
	target.netns = cli->opts.value[OPT_NETNS];
	if (netns[0])
		target.netns = netns;
	target.network = cli->opts.value[OPT_NETWORK];
	target.label = cli->opts.value[OPT_LABEL];
	if (cli->opts.value[OPT_REPLACE_BANDWIDTH]) {
		r = replace(cli, target, &policy, &info);
	} else {
		warn_of_leftovers(cli, &target);
		r = natra_attach(cli->n, &target, &policy, &info);
	}
	if (r < 0)
		return failure(cli, r);
	return show_attached(cli, &info);
}

int cmd_attach(struct cli *cli)
{
	struct class_list classes = {.len = 0};
	int r = attach(cli, &classes);

	class_list_free(&classes);
	return r;
}

/* Checks the options before the kernel is asked, but for what depends on the limits that
 * the attachment has. */
static int check_set(struct cli *cli)
{
	struct natra_policy policy = NATRA_INIT(policy);
	struct class_list classes = {.len = 0};
	int r = find_argument(cli);

	if (r)
		return r;
	if (!limits_given(&cli->opts, limits_live_options()))
		return usage_error("set", NULL, "has nothing to change");
	r = limits_check(cli);
	if (!r)
		r = automatic_check(cli);
	if (!r)
		r = class_list_apply(cli, &classes, &policy);
	class_list_free(&classes);
	return r;
}

/* If another process changes the attachment between query and configure, the
 * last one wins, as with any two commands. */
static int set(struct cli *cli, struct class_list *classes)
{
	struct natra_info info = NATRA_INIT(info);
	struct automatic_group group;
	int r;

	r = natra_query(cli->n, cli->opts.arg, &info);
	if (r < 0)
		return failure(cli, r);
	if (cli->opts.classes_len) {
		r = class_list_read(cli->n, cli->opts.arg, classes);
		if (r < 0)
			return failure(cli, r);
	}
	r = limits_apply(cli, &info.policy);
	if (!r)
		r = automatic_apply(cli, &group, &info.policy);
	if (!r)
		r = class_list_apply(cli, classes, &info.policy);
	if (r)
		return r;
	r = natra_configure(cli->n, cli->opts.arg, &info.policy);
	if (r < 0)
		return failure(cli, r);
	return show_result(cli, cli->opts.arg);
}

int cmd_set(struct cli *cli)
{
	struct class_list classes = {.len = 0};
	int r = check_set(cli);

	if (r)
		return r;
	r = set(cli, &classes);
	class_list_free(&classes);
	return r;
}
