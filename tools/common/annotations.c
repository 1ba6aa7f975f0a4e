/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotations.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* Makes room for as many more. */
static struct natra_annotation *grow(struct natra_annotations *list, int more)
{
	struct natra_annotation *all = memory_grow(
		(void *)list->annotations,
		sizeof(*all) * (list->annotations_len + (size_t)more + 1));

	list->annotations = all;
	return all + list->annotations_len;
}

const cJSON *annotations_add(struct natra_annotations *list,
			     const cJSON *object,
			     bool (*wants)(const char *name))
{
	struct natra_annotation *to = grow(list, cJSON_GetArraySize(object));
	const cJSON *item;

	/* The items of a list have no names. */
	if (!cJSON_IsObject(object))
		return NULL;
	cJSON_ArrayForEach(item, object)
	{
		if (wants && !wants(item->string))
			continue;
		if (!json_text(item) && !cJSON_IsNull(item))
			return item;
		*to++ = (struct natra_annotation){item->string,
						  json_text(item)};
		list->annotations_len++;
	}
	return NULL;
}

void annotations_free(struct natra_annotations *list)
{
	free((void *)list->annotations);
	list->annotations = NULL;
	list->annotations_len = 0;
}

const char *annotations_find(const struct natra_annotations *list,
			     const char *name)
{
	for (size_t i = list->annotations_len; i; i--) {
		if (strcmp(list->annotations[i - 1].name, name) == 0)
			return list->annotations[i - 1].value;
	}
	return NULL;
}
