/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

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

static void upgrade_one(struct upgrade *u, const char *id)
{
	int r = natra_upgrade(u->cli->n, id);

	/* If all attachments are upgraded, one that was detached meanwhile is
	 * no failure. */
	if (r == -ENOENT && !u->cli->opts.arg)
		return;
	if (r < 0)
		u->exit_code = failure(u->cli, r);
	note(u, id, r < 0 ? natra_error(u->cli->n) : NULL);
}

/* Upgrades all attachments, except those without limits or without an
 * interface: these run no program of natra's. */
static int upgrade_all(struct upgrade *u)
{
	struct info_list list;
	int r = info_list_read(u->cli->n, &list);

	if (r < 0)
		return failure(u->cli, r);
	for (size_t i = 0; i < list.len; i++) {
		const struct natra_info *info = &list.items[i];

		if (!info->unshaped && !info->interface_gone)
			upgrade_one(u, info->id);
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
			upgrade_one(&u, id);
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
