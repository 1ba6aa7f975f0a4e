/* SPDX-License-Identifier: BSD-2-Clause */
#include "nearest.h"

#include <string.h>

#define NAME_MAX_LEN 40
/* A word of few letters is near to too many names. */
#define FAR(len)     ((len) < 3 ? 1 : (len) < 6 ? 2 : 3)

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns how many letters are to be inserted, removed, replaced or swapped with the next
 * one to make `a` of `b` (the distance of Damerau and Levenshtein). */
static size_t distance_of(const char *a, const char *b)
{
	size_t rows[3][NAME_MAX_LEN + 1];
	const size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		rows[0][j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t *row = rows[i % 3], *last = rows[(i + 2) % 3];
		const size_t *before = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			row[j] = least(last[j], row[j - 1]) + 1;
			row[j] = least(row[j],
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return rows[strlen(a) % 3][len];
}

void nearest_add(struct nearest *n, const char *name)
{
	const size_t len = strlen(n->word);
	size_t distance;

	if (strlen(name) > NAME_MAX_LEN || len > NAME_MAX_LEN)
		return;
	distance = distance_of(n->word, name);
	if (distance >= FAR(len) || (n->distance && distance > n->distance))
		return;
	n->name = distance == n->distance ? NULL : name;
	n->distance = distance;
}
