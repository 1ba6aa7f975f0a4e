/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cli.h"
#include "info.h"
#include "limits.h"
#include "json.h"
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

static int check_attach(const struct cli *cli, struct natra_policy *policy)
{
	const struct opts *opts = &cli->opts;
	int r;

	r = check_interface(cli);
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
	if (r)
		return r;
	if (!policy->ingress_rate_bits_per_sec &&
	    !policy->egress_rate_bits_per_sec)
		return usage_error("attach", NULL,
				   "needs --ingress RATE or --egress RATE");
	return 0;
}

/* Removes or reports what the bandwidth plugin left: its limits hold beside
 * natra's. */
static int handle_leftovers(const struct cli *cli,
			    const struct natra_target *target)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);

	if (cli->opts.value[OPT_REPLACE_BANDWIDTH]) {
		int r = natra_drain_leftovers(cli->n, target);

		return r < 0 ? r : natra_remove_leftovers(cli->n, target);
	}
	/* With --verbose the library's log reports them. If they cannot be
	 * found, natra_attach fails for the same reason. */
	if (cli->opts.verbosity > 0 ||
	    natra_find_leftovers(cli->n, target, &leftovers) < 0 ||
	    !leftovers_any(&leftovers))
		return 0;
	fputs("natractl: warning: ", stderr);
	leftovers_print(stderr, &leftovers);
	fputs(", of the bandwidth plugin: its limits hold as well"
	      " (--replace-bandwidth removes them)\n",
	      stderr);
	return 0;
}

int cmd_attach(struct cli *cli)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_info info = NATRA_INIT(info);
	int r;

	r = check_attach(cli, &policy);
	if (r)
		return r;

	target.id = cli->opts.value[OPT_ID];
	target.ifname = cli->opts.arg;
	target.netns = cli->opts.value[OPT_NETNS];
	target.network = cli->opts.value[OPT_NETWORK];
	target.label = cli->opts.value[OPT_LABEL];
	r = handle_leftovers(cli, &target);
	if (r == 0)
		r = natra_attach(cli->n, &target, &policy, &info);
	if (r < 0)
		return failure(cli, r);
	return show_attached(cli, &info);
}

/* Checks the options before the kernel is asked. The attachment's rates are not
 * known yet, so that the highest ones stand in for them: else a burst without a
 * rate would be refused. */
static int check_set(const struct cli *cli)
{
	struct natra_policy policy = NATRA_INIT(policy);
	int r;

	r = check_id(cli);
	if (r)
		return r;
	if (!limits_given(&cli->opts, limits_live_options()))
		return usage_error("set", NULL, "has nothing to change");
	policy.ingress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	policy.egress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	policy.group = 1; /* as little known as the rates */
	return limits_apply(cli, &policy);
}

/* If another process changes the attachment between query and configure, the
 * last one wins, as with any two commands. */
int cmd_set(struct cli *cli)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	r = check_set(cli);
	if (r)
		return r;
	r = natra_query(cli->n, cli->opts.arg, &info);
	if (r < 0)
		return failure(cli, r);
	r = limits_apply(cli, &info.policy);
	if (r)
		return r;
	r = natra_configure(cli->n, cli->opts.arg, &info.policy);
	if (r < 0)
		return failure(cli, r);
	return show_result(cli, cli->opts.arg);
}
