/* SPDX-License-Identifier: BSD-2-Clause */
#include "install_show.h"

#include <string.h>

#include "../../src/util/escape.h"
#include "output.h"

#define CONTEXT_LINES 3

static const char *const actions[] = {
	[INSTALL_WRITE] = "write",   [INSTALL_COPY] = "copy",
	[INSTALL_REMOVE] = "remove", [INSTALL_RESTORE] = "restore",
	[INSTALL_RELOAD] = "reload",
};

/* A text as lines, of which the last one may lack its line break. */
struct lines {
	const char *text;
	size_t len;
};

static struct lines lines_of(const char *text)
{
	struct lines l = {text ? text : "", 0};

	for (const char *s = l.text; *s; s++) {
		if (*s == '\n' || !s[1])
			l.len++;
	}
	return l;
}

static const char *line_at(struct lines l, size_t n, size_t *ret_len)
{
	const char *s = l.text;

	for (; n; n--)
		s = strchr(s, '\n') + 1;
	*ret_len = strcspn(s, "\n");
	return s;
}

static bool same_line(struct lines a, size_t i, struct lines b, size_t j)
{
	size_t a_len, b_len;
	const char *x = line_at(a, i, &a_len), *y = line_at(b, j, &b_len);

	/* The lines' ends are compared, too: the last line may have none. */
	return a_len == b_len && memcmp(x, y, a_len) == 0 &&
	       x[a_len] == y[b_len];
}

/* Prints a line. Tabs are printed as they are, since lists have them. */
static void print_line(char mark, struct lines l, size_t n)
{
	size_t len;
	const char *line = line_at(l, n, &len);
	bool ends = line[len] == '\n';

	putchar(mark);
	for (; len; len--, line++)
		fputs(*line == '\t' ? "\t" : escape_byte(*line).text, stdout);
	putchar('\n');
	if (!ends)
		puts("\\ No newline at end of file");
}

static void print_lines(char mark, struct lines l, size_t begin, size_t end)
{
	for (size_t n = begin; n < end; n++)
		print_line(mark, l, n);
}

static size_t first_line(size_t begin, size_t len)
{
	return len ? begin + 1 : begin;
}

/* Prints one hunk, from the first line that differs to the last one: natra
 * changes a list in one place. */
static void print_difference(const char *before, const char *after)
{
	struct lines a = lines_of(before), b = lines_of(after);
	size_t head = 0, tail = 0, begin, more;

	while (head < a.len && head < b.len && same_line(a, head, b, head))
		head++;
	while (tail < a.len - head && tail < b.len - head &&
	       same_line(a, a.len - tail - 1, b, b.len - tail - 1))
		tail++;
	begin = head > CONTEXT_LINES ? head - CONTEXT_LINES : 0;
	more = tail > CONTEXT_LINES ? CONTEXT_LINES : tail;
	printf("@@ -%zu,%zu +%zu,%zu @@\n", first_line(begin, a.len),
	       a.len - tail + more - begin, first_line(begin, b.len),
	       b.len - tail + more - begin);
	print_lines(' ', a, begin, head);
	print_lines('-', a, head, a.len - tail);
	print_lines('+', b, head, b.len - tail);
	print_lines(' ', a, a.len - tail, a.len - tail + more);
}

static void print_name(const char *mark, const char *path)
{
	fputs(mark, stdout);
	(void)print_text(stdout, path ? path : "/dev/null", 0);
	putchar('\n');
}

void install_show_change(const struct install_change *change, bool whole)
{
	printf("%s ", actions[change->kind]);
	(void)print_text(stdout, change->path, 0);
	putchar('\n');
	if (!whole || (!change->before && !change->after))
		return;
	print_name("--- ", change->before ? change->path : NULL);
	print_name("+++ ", change->after ? change->path : NULL);
	print_difference(change->before, change->after);
}

cJSON *install_change_json(const struct install_change *change)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "action", actions[change->kind]);
	json_add_text(json, "path", change->path);
	if (change->before)
		json_add_text(json, "before", change->before);
	if (change->after)
		json_add_text(json, "after", change->after);
	return json;
}
