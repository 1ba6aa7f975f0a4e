/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cli.h"
#include "find.h"
#include "info.h"
#include "json.h"
#include "neighbours.h"
#include "output.h"

static int find_leftovers(const struct cli *cli, const struct natra_info *info,
			  struct natra_leftovers *ret_leftovers)
{
	struct natra_target target = NATRA_INIT(target);

	target.id = info->id;
	return natra_find_leftovers(cli->n, &target, ret_leftovers);
}

static int show_json(const struct cli *cli, const struct natra_info *info)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	cJSON *json = info_json(cli->n, info), *hooks;
	int r = 0;

	hooks = cJSON_AddArrayToObject(json, "hooks");
	if (!info->interface_gone)
		r = find_leftovers(cli, info, &leftovers);
	cJSON_AddItemToObject(json, "leftovers", leftovers_json(&leftovers));
	if (!info->interface_gone && r == 0)
		r = hooks_json(cli, info->id, hooks);
	json_print(json);
	return r;
}

static int show_human(const struct cli *cli, const struct natra_info *info)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	int r;

	info_print(cli->n, info);
	if (info->interface_gone)
		return 0;
	r = find_leftovers(cli, info, &leftovers);
	if (r < 0)
		return r;
	if (leftovers_any(&leftovers)) {
		printf("  %-15s ", "leftovers");
		leftovers_print(stdout, &leftovers);
		puts(", of the bandwidth plugin");
	}
	return hooks_print(cli, info->id);
}

int cmd_show(struct cli *cli)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	r = find_argument(cli);
	if (r)
		return r;
	r = natra_query(cli->n, cli->opts.arg, &info);
	if (r < 0)
		return failure(cli, r);
	r = wants_json(cli) ? show_json(cli, &info) : show_human(cli, &info);
	return r < 0 ? failure(cli, r) : EXIT_SUCCESS;
}
