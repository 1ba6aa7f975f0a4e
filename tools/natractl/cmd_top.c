/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "find.h"
#include "../common/flows.h"
#include "json.h"
#include "output.h"
#include "top.h"

static void print_flows(const char *direction, const struct natra_flow *flows,
			size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const struct natra_flow *flow = &flows[i];

		printf("%-9s  %-7s  %-24s  %-24s  %10s  %10" PRIu64 "  %s\n",
		       direction, protocol_text(flow).text,
		       endpoint_text(flow, flow->saddr, flow->sport).text,
		       endpoint_text(flow, flow->daddr, flow->dport).text,
		       unit_size(flow->bytes).text, flow->packets,
		       unit_time(flow->idle_ns).text);
	}
}

/* Sets *ret_direction to NATRA_DIRECTION_MAX for both. */
static int parse_direction(const struct opts *opts, int *ret_direction)
{
	const char *text = opts->value[OPT_DIRECTION];

	if (!text) {
		*ret_direction = NATRA_DIRECTION_MAX;
		return 0;
	}
	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		if (strcmp(text, natra_direction_name(d)) == 0) {
			*ret_direction = d;
			return 0;
		}
	}
	return usage_error(opts_name(OPT_DIRECTION), text, "is not one of %s",
			   opts_metavar(OPT_DIRECTION));
}

static int show_flows(const struct cli *cli, int direction, uint32_t max)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "id", cli->opts.arg);
	if (!wants_json(cli))
		printf("%-9s  %-7s  %-24s  %-22s  %10s  %10s  %s\n",
		       "DIRECTION", "PROTO", "SOURCE", "DESTINATION", "BYTES",
		       "PACKETS", "IDLE");
	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		struct natra_flow flows[NATRA_FLOWS_MAX];
		size_t len = max;
		int r;

		if (direction != NATRA_DIRECTION_MAX && direction != d)
			continue;
		r = natra_top(cli->n, cli->opts.arg, (enum natra_direction)d,
			      flows, &len);
		if (r < 0) {
			cJSON_Delete(json);
			return failure(cli, r);
		}
		if (wants_json(cli))
			cJSON_AddItemToObject(json, natra_direction_name(d),
					      flows_json(flows, len));
		else
			print_flows(natra_direction_name(d), flows, len);
	}
	if (wants_json(cli))
		json_print(json);
	else
		cJSON_Delete(json);
	return EXIT_SUCCESS;
}

static int top_of_id(struct cli *cli, int direction)
{
	uint32_t max = 10;
	int r;

	if (cli->opts.value[OPT_INTERVAL])
		return usage_error(opts_name(OPT_INTERVAL), NULL,
				   "cannot stand beside an ID");
	r = find_argument(cli);
	if (!r && cli->opts.value[OPT_FLOWS])
		r = opts_number(&cli->opts, OPT_FLOWS, NATRA_FLOWS_MAX, &max);
	return r ? r : show_flows(cli, direction, max);
}

int cmd_top(struct cli *cli)
{
	struct top top = {.cli = cli, .seconds = 2};
	int r;

	r = parse_direction(&cli->opts, &top.direction);
	if (r)
		return r;
	if (cli->opts.value[OPT_INTERVAL])
		r = opts_number(&cli->opts, OPT_INTERVAL, TOP_HISTORY,
				&top.seconds);
	if (r)
		return r;
	if (cli->opts.arg)
		return top_of_id(cli, top.direction);
	if (cli->opts.value[OPT_FLOWS])
		return usage_error(opts_name(OPT_FLOWS), NULL, "needs an ID");
	r = top_run(&top);
	top_model_free(&top.model);
	return r;
}
