/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of all attachments: the pods first, in 80 columns, or with all columns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "find.h"
#include "info.h"
#include "json.h"
#include "origin.h"
#include "output.h"
#include "top.h"

/* The rates that are shown are counted over this time. */
#define RATE_NS 250000000

/* Returns how the names compare where a slash ends a word, so that the pods of a
 * namespace stand together. Those without a name come last. */
static int compare_names(const char *a, const char *b)
{
	if (!a[0] || !b[0])
		return !a[0] - !b[0];
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (*a == '/' ? 1 : (unsigned char)*a) -
	       (*b == '/' ? 1 : (unsigned char)*b);
}

static int compare_infos(const void *first, const void *second)
{
	const struct natra_info *a = first, *b = second;
	int r = compare_names(a->label, b->label);

	if (r == 0)
		r = strcmp(a->ifname, b->ifname);
	return r ? r : strcmp(a->id, b->id);
}

/* Returns the state of limits that hold: a maximum matters more than a default. */
static const char *sound_state(const struct natra_info *info)
{
	const char *in = origin_of(info, NATRA_DIRECTION_INGRESS);
	const char *out = origin_of(info, NATRA_DIRECTION_EGRESS);

	if (in[0] == 'm' || out[0] == 'm')
		return "ok, maximum";
	return in[0] || out[0] ? "ok, default" : "ok";
}

static struct unit_text state_of(const struct natra_info *info)
{
	const char *gone = info->interface_gone ? "gone" : sound_state(info);
	const uint32_t bypassed =
		info->ingress_bypassed_percent > info->egress_bypassed_percent
			? info->ingress_bypassed_percent
			: info->egress_bypassed_percent;
	struct unit_text state;

	if (info->unshaped)
		(void)snprintf(state.text, sizeof(state.text), "unshaped%s",
			       info->interface_gone ? ", gone" : "");
	else if (info->other_abi && !info->interface_gone)
		(void)snprintf(state.text, sizeof(state.text), "ABI %u",
			       info->abi);
	else if (bypassed)
		(void)snprintf(state.text, sizeof(state.text), "bypassed %u%%",
			       bypassed);
	else
		(void)snprintf(state.text, sizeof(state.text), "%s", gone);
	return state;
}

/* Prints a limit and, before it, what passes now; nothing stands for what is not
 * there. */
static void print_direction(const struct top_model *rates,
			    const struct natra_info *info,
			    enum natra_direction direction)
{
	const uint64_t limit =
		direction == NATRA_DIRECTION_INGRESS
			? info->effective.ingress_rate_bits_per_sec
			: info->effective.egress_rate_bits_per_sec;
	struct top_of of = {.kind = TOP_POD, .direction = direction};
	size_t at;

	memcpy(of.id, info->id, sizeof(of.id));
	at = top_model_find(rates, &of);

	printf("  %7s %6s",
	       at == TOP_NOWHERE || info->unshaped
		       ? "-"
		       : top_rate_text(top_row_at(rates, at)->rate.passed).text,
	       limit ? top_rate_text(limit).text : "-");
}

static int print_or_dash(const char *text, int width)
{
	return print_text(stdout, text[0] ? text : "-", width);
}

static void print_short_row(const struct top_model *rates,
			    const struct natra_info *info, int pod_width,
			    int ifname_width, int state_width)
{
	char id[NATRA_ID_MAX + 1];

	short_id(info->id, id);
	print_or_dash(info->label, pod_width);
	fputs("  ", stdout);
	print_text(stdout, info->ifname, ifname_width);
	print_direction(rates, info, NATRA_DIRECTION_INGRESS);
	print_direction(rates, info, NATRA_DIRECTION_EGRESS);
	printf("  %-*s  ", state_width, state_of(info).text);
	print_text(stdout, id, 0);
	if (info->unshaped) {
		fputs("  ", stdout);
		print_text(stdout, info->reason, 0);
	}
	putchar('\n');
}

static int widest(int width, const char *text)
{
	const int w = text_width(text);

	return w > width ? w : width;
}

static void print_short(const struct top_model *rates,
			const struct info_list *list)
{
	int pod = 3, ifname = 5, state = 5;

	for (size_t i = 0; i < list->len; i++) {
		pod = widest(pod, list->items[i].label);
		ifname = widest(ifname, list->items[i].ifname);
		state = widest(state, state_of(&list->items[i]).text);
	}
	printf("%-*s  %-*s  %7s %6s  %7s %6s  %-*s  %s\n", pod, "POD", ifname,
	       "IFACE", "INGRESS", "LIMIT", "EGRESS", "LIMIT", state, "STATE",
	       "ID");
	for (size_t i = 0; i < list->len; i++)
		print_short_row(rates, &list->items[i], pod, ifname, state);
}

static void print_wide_row(const struct natra_info *info, int id_width)
{
	const struct natra_policy *p = &info->effective;
	const char *mode = natra_attach_mode_name(info->mode);

	print_text(stdout, info->id, id_width + 2);
	print_text(stdout, info->ifname, 17);
	printf("%-14s  ", unit_limit(p->ingress_rate_bits_per_sec).text);
	printf("%-14s  ", unit_limit(p->egress_rate_bits_per_sec).text);
	if (info->unshaped) {
		printf("%s: ", state_of(info).text);
		print_text(stdout, info->reason, 0);
		putchar('\n');
		return;
	}
	printf("%-15s  %-6s  %-5s  ", mode ? mode : "unknown",
	       info->edt_active ? "on" : "off", state_of(info).text);
	print_text(stdout, info->label, 0);
	putchar('\n');
}

static void print_wide(const struct info_list *list)
{
	int id_width = info_list_id_width(list);

	printf("%-*s  %-15s  %-14s  %-14s  %-15s  %-6s  %-5s  %s\n", id_width,
	       "ID", "INTERFACE", "INGRESS", "EGRESS", "MODE", "PACING",
	       "STATE", "LABEL");
	for (size_t i = 0; i < list->len; i++)
		print_wide_row(&list->items[i], id_width);
}

static void print_json(const struct cli *cli, const struct info_list *list)
{
	cJSON *json = cJSON_CreateArray();

	for (size_t i = 0; i < list->len; i++)
		cJSON_AddItemToArray(json, info_json(cli->n, &list->items[i]));
	json_print(json);
}

/* Reads the counters twice. */
static int read_rates(struct top *top)
{
	struct timespec interval = {.tv_nsec = RATE_NS};
	int r = top_read(top);

	while (r == 0 && nanosleep(&interval, &interval) < 0 && errno == EINTR)
		;
	if (r == 0)
		r = top_read(top);
	return r;
}

static int list_short(struct cli *cli, const struct info_list *list)
{
	struct top top = {.cli = cli, .direction = NATRA_DIRECTION_MAX};
	int r = list->len ? read_rates(&top) : 0;

	if (r < 0)
		return failure(cli, r);
	top_model_arrange(&top.model);
	print_short(&top.model, list);
	top_model_free(&top.model);
	return EXIT_SUCCESS;
}

int cmd_list(struct cli *cli)
{
	struct info_list list;
	int r;

	r = info_list_read(cli->n, &list);
	if (r < 0)
		return failure(cli, r);
	if (list.len)
		qsort(list.items, list.len, sizeof(list.items[0]),
		      compare_infos);
	r = EXIT_SUCCESS;
	if (wants_json(cli))
		print_json(cli, &list);
	else if (cli->opts.value[OPT_WIDE])
		print_wide(&list);
	else
		r = list_short(cli, &list);
	info_list_free(&list);
	return r;
}
