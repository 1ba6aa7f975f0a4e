/* SPDX-License-Identifier: BSD-2-Clause */
#include "info.h"

#include <errno.h>
#include <stdlib.h>

#include "output.h"

static int append(void *arg, const struct natra_info *info)
{
	struct info_list *list = arg;
	struct natra_info *items;

	items = realloc(list->items, (list->len + 1) * sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->len++] = *info;
	return 0;
}

int info_list_read(struct natra *n, struct info_list *ret_list)
{
	struct info_list list = {0};
	int r;

	r = natra_foreach_attachment(n, append, &list);
	if (r < 0) {
		info_list_free(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

void info_list_free(struct info_list *list)
{
	free(list->items);
	*list = (struct info_list){0};
}

int info_list_id_width(const struct info_list *list)
{
	int width = 2;

	for (size_t i = 0; i < list->len; i++) {
		int w = text_width(list->items[i].id);

		width = w > width ? w : width;
	}
	return width;
}
