/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "find.h"
#include "info.h"
#include "json.h"
#include "output.h"

struct upgrade {
	const struct cli *cli;
	cJSON *json; /* an array of results */
	int exit_code;
};

/* What an upgrade would do with an attachment. */
enum outcome { CURRENT, IN_PLACE, REPLACED, REFUSED };

static const char *const outcomes[] = {"current", "in place", "replaced",
				       "refused"};

/* Writes why to ret_why, which has room for NATRA_NAME_MAX + 1 bytes. */
static enum outcome foresee(const struct natra_info *info, char *ret_why)
{
	const char *why = "its programs are of this build";
	enum outcome outcome = CURRENT;

	if (info->other_abi) {
		(void)snprintf(
			ret_why, NATRA_NAME_MAX + 1,
			"natra of ABI %u attached it: natra-agent, or natractl attach with its limits, replaces it",
			info->abi);
		return REFUSED;
	}
	if (info->interface_gone) {
		outcome = REFUSED;
		why = "its interface is gone (natractl gc)";
	} else if (info->unshaped) {
		outcome = REFUSED;
		why = info->reason;
	} else if (!info->upgrade_is_in_place) {
		outcome = REPLACED;
		why = "its maps are of another layout: counters begin again";
	} else if (!info->program_is_current) {
		outcome = IN_PLACE;
		why = "its maps can be kept, with counters and buckets";
	}
	(void)snprintf(ret_why, NATRA_NAME_MAX + 1, "%s", why);
	return outcome;
}

/* Adds what --check says of an attachment to the JSON output. */
static void note_check(struct upgrade *u, const char *id, const char *label,
		       const char *outcome, const char *why)
{
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "id", id);
	json_add_text(o, "label", label);
	json_add_text(o, "upgrade", outcome);
	json_add_text(o, "why", why);
	cJSON_AddItemToArray(u->json, o);
}

static void check_one(struct upgrade *u, const struct natra_info *info)
{
	char why[NATRA_NAME_MAX + 1];
	enum outcome outcome = foresee(info, why);

	if ((outcome == REFUSED || outcome == REPLACED) && !u->exit_code)
		u->exit_code = EXIT_NO;
	if (wants_json(u->cli)) {
		note_check(u, info->id, info->label, outcomes[outcome], why);
		return;
	}
	printf("%-9s ", outcomes[outcome]);
	print_text(stdout, info->label[0] ? info->label : info->id, 0);
	printf(": ");
	print_text(stdout, why, 0);
	putchar('\n');
}

/* Adds the result for an attachment to the JSON output. error is NULL if it
 * went well. */
static void note(struct upgrade *u, const char *id, const char *error)
{
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "id", id);
	cJSON_AddBoolToObject(o, "ok", !error);
	if (error)
		json_add_text(o, "error", error);
	cJSON_AddItemToArray(u->json, o);
}

static void upgrade_one(struct upgrade *u, const char *id, const char *label)
{
	struct natra_info info = NATRA_INIT(info);
	const char *error;
	bool checks = u->cli->opts.value[OPT_CHECK] != NULL;
	int r = checks ? natra_query(u->cli->n, id, &info)
		       : natra_upgrade(u->cli->n, id);

	if (r == 0 && checks) {
		check_one(u, &info);
		return;
	}
	/* If all attachments are upgraded, one that was detached meanwhile is
	 * no failure. */
	if (r == -ENOENT && !u->cli->opts.arg)
		return;
	if (r < 0)
		u->exit_code = failure(u->cli, r);
	error = natra_error(u->cli->n);
	if (checks)
		note_check(u, id, label, "failed",
			   error[0] ? error : strerror(-r));
	else
		note(u, id, r < 0 ? error : NULL);
}

/* Upgrades all attachments, except those without limits or without an
 * interface: these run no program of natra's, and nothing is said of them. */
static int upgrade_all(struct upgrade *u)
{
	struct info_list list;
	int r = info_list_read(u->cli->n, &list);

	if (r < 0)
		return failure(u->cli, r);
	for (size_t i = 0; i < list.len; i++) {
		const struct natra_info *info = &list.items[i];

		if (!info->unshaped && !info->interface_gone)
			upgrade_one(u, info->id, info->label);
	}
	info_list_free(&list);
	return u->exit_code;
}

int cmd_upgrade(struct cli *cli)
{
	const struct opts *opts = &cli->opts;
	struct upgrade u = {.cli = cli, .json = cJSON_CreateArray()};
	int r = 0;

	for (size_t i = 0; i < opts->args_len && !r; i++)
		r = opts_check_text("ID|POD", opts->args[i], NATRA_ID_MAX);
	if (!r && !opts->args_len)
		r = upgrade_all(&u);
	for (size_t i = 0; i < opts->args_len && r != EXIT_USAGE; i++) {
		char id[NATRA_ID_MAX + 1];

		if (find_id(cli, opts->args[i], id) == 0)
			upgrade_one(&u, id, "");
		else
			u.exit_code = EXIT_FAILURE;
		r = u.exit_code;
	}
	if (wants_json(cli) && r != EXIT_USAGE)
		json_print(u.json);
	else
		cJSON_Delete(u.json);
	return r;
}
