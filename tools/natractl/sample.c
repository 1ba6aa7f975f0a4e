/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "info.h"

void sample_list_free(struct sample_list *list)
{
	free(list->items);
	*list = (struct sample_list){0};
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The attachments to tell of: the one that was asked for, or all. */
static int read_infos(const struct cli *cli, struct info_list *ret_list)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	if (!cli->opts.arg)
		return info_list_read(cli->n, ret_list);
	r = natra_query(cli->n, cli->opts.arg, &info);
	if (r < 0)
		return r;
	ret_list->items = malloc(sizeof(info));
	if (!ret_list->items)
		return -ENOMEM;
	ret_list->items[0] = info;
	ret_list->len = 1;
	return 0;
}

static int read_sample(struct natra *n, const struct natra_info *info,
		       struct sample *ret_sample)
{
	struct sample sample = {.stats = NATRA_INIT(sample.stats)};
	int r;

	r = natra_stats(n, info->id, &sample.stats);
	if (r < 0)
		return r;
	memcpy(sample.id, info->id, sizeof(sample.id));
	sample.has_backstop = info->pace_active;
	sample.taken_ns = now_ns();
	*ret_sample = sample;
	return 0;
}

int sample_list_read(const struct cli *cli, struct sample_list *ret_list)
{
	struct info_list infos = {0};
	struct sample_list list = {0};
	int r;

	r = read_infos(cli, &infos);
	if (r < 0)
		return r;
	/* calloc(0) may be NULL. */
	list.items = calloc(infos.len + 1, sizeof(*list.items));
	if (!list.items)
		r = -ENOMEM;
	for (size_t i = 0; i < infos.len && r == 0; i++) {
		if (info_is_foreign(&infos.items[i]))
			continue;
		r = read_sample(cli->n, &infos.items[i], &list.items[list.len]);
		if (r == 0)
			list.len++;
		else if (r == -ENOENT && !cli->opts.arg)
			r = 0; /* detached since it was listed */
	}
	info_list_free(&infos);
	if (r < 0)
		sample_list_free(&list);
	else
		*ret_list = list;
	return r;
}

const struct sample *sample_list_find(const struct sample_list *list,
				      const char *id)
{
	for (size_t i = 0; i < list->len; i++) {
		if (strcmp(list->items[i].id, id) == 0)
			return &list->items[i];
	}
	return NULL;
}
