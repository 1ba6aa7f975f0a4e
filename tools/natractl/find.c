/* SPDX-License-Identifier: BSD-2-Clause */
#include "find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/name.h"
#include "info.h"
#include "output.h"

/* Finds the container in an id of the CNI plugin's. Returns the container's length, or
 * 0 if the id has another form. */
static size_t container_of(const char *id, const char **ret_begin)
{
	const char *begin = strchr(id, '/');
	size_t len;

	if (!begin)
		return 0;
	begin++;
	len = strspn(begin, "0123456789abcdef");
	if (len <= SHORT_ID_LEN || begin[len] != '/')
		return 0;
	*ret_begin = begin;
	return len;
}

static bool is_container(const char *id, const char *word)
{
	const size_t len = strlen(word);
	const char *container;

	return len >= CONTAINER_PREFIX_MIN &&
	       container_of(id, &container) >= len &&
	       strncmp(container, word, len) == 0;
}

bool is_named(const char *id, const char *label, const char *word)
{
	return strcmp(id, word) == 0 || strcmp(label, word) == 0 ||
	       is_container(id, word);
}

void short_id(const char *id, char ret_text[NATRA_ID_MAX + 1])
{
	const char *container;

	if (container_of(id, &container))
		snprintf(ret_text, NATRA_ID_MAX + 1, "%.*s", SHORT_ID_LEN,
			 container);
	else
		snprintf(ret_text, NATRA_ID_MAX + 1, "%s", id);
}

static size_t count_named(const struct info_list *list, const char *word,
			  char ret_id[NATRA_ID_MAX + 1])
{
	size_t found = 0;

	for (size_t i = 0; i < list->len; i++) {
		if (!is_named(list->items[i].id, list->items[i].label, word))
			continue;
		memcpy(ret_id, list->items[i].id, NATRA_ID_MAX + 1);
		found++;
	}
	return found;
}

static void print_candidates(const struct info_list *list, const char *word)
{
	const char *separator = ":";

	fputs("natractl: ID|POD: '", stderr);
	print_text(stderr, word, 0);
	fputs("' means several attachments", stderr);
	for (size_t i = 0; i < list->len; i++) {
		const struct natra_info *info = &list->items[i];

		if (!is_named(info->id, info->label, word))
			continue;
		fprintf(stderr, "%s ", separator);
		print_text(stderr, info->id, 0);
		fputs(" (", stderr);
		print_text(stderr, info->ifname, 0);
		fputc(')', stderr);
		separator = ",";
	}
	fputc('\n', stderr);
}

int find_id(const struct cli *cli, const char *word,
	    char ret_id[NATRA_ID_MAX + 1])
{
	struct natra_info info = NATRA_INIT(info);
	struct info_list list;
	size_t found;
	int r;

	r = opts_check_text("ID|POD", word, NATRA_ID_MAX);
	if (r)
		return r;
	snprintf(ret_id, NATRA_ID_MAX + 1, "%s", word);
	/* An id comes first: a label is free text, and could be another's id. */
	if (natra_query(cli->n, word, &info) != -ENOENT ||
	    info_list_read(cli->n, &list) < 0)
		return 0;
	found = count_named(&list, word, ret_id);
	if (found > 1)
		print_candidates(&list, word);
	info_list_free(&list);
	return found > 1 ? EXIT_FAILURE : 0;
}

int find_argument(struct cli *cli)
{
	int r = find_id(cli, cli->opts.arg, cli->id);

	if (r == 0)
		cli->opts.arg = cli->id;
	return r;
}
