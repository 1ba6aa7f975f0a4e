/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cli.h"
#include "info.h"
#include "json.h"
#include "neighbours.h"
#include "output.h"

static void print_row(const struct natra_info *info, int id_width)
{
	const struct natra_policy *p = &info->effective;
	const char *mode = natra_mode_name(info->mode);
	char state[16] = "ok";

	if (info->interface_gone)
		(void)snprintf(state, sizeof(state), "gone");
	else if (info->other_abi)
		(void)snprintf(state, sizeof(state), "ABI %u", info->abi);
	print_text(stdout, info->id, id_width + 2);
	print_text(stdout, info->ifname, 17);
	printf("%-14s  ", unit_limit(p->ingress_rate_bits_per_sec).text);
	printf("%-14s  ", unit_limit(p->egress_rate_bits_per_sec).text);
	if (info->unshaped) {
		printf("unshaped%s: ", info->interface_gone ? ", gone" : "");
		print_text(stdout, info->reason, 0);
		putchar('\n');
		return;
	}
	printf("%-15s  %-6s  %-5s  ", mode ? mode : "unknown",
	       info->edt_active ? "on" : "off", state);
	print_text(stdout, info->label, 0);
	putchar('\n');
}

static void print_table(const struct info_list *list)
{
	int id_width = info_list_id_width(list);

	printf("%-*s  %-15s  %-14s  %-14s  %-15s  %-6s  %-5s  %s\n", id_width,
	       "ID", "INTERFACE", "INGRESS", "EGRESS", "MODE", "PACING",
	       "STATE", "LABEL");
	for (size_t i = 0; i < list->len; i++)
		print_row(&list->items[i], id_width);
}

int cmd_list(struct cli *cli)
{
	struct info_list list;
	int r;

	r = info_list_read(cli->n, &list);
	if (r < 0)
		return failure(cli, r);
	if (wants_json(cli)) {
		cJSON *json = cJSON_CreateArray();

		for (size_t i = 0; i < list.len; i++)
			cJSON_AddItemToArray(json,
					     info_json(cli->n, &list.items[i]));
		json_print(json);
	} else {
		print_table(&list);
	}
	info_list_free(&list);
	return EXIT_SUCCESS;
}

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

	r = check_id(cli);
	if (r)
		return r;
	r = natra_query(cli->n, cli->opts.arg, &info);
	if (r < 0)
		return failure(cli, r);
	r = wants_json(cli) ? show_json(cli, &info) : show_human(cli, &info);
	return r < 0 ? failure(cli, r) : EXIT_SUCCESS;
}
