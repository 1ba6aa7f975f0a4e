/* SPDX-License-Identifier: BSD-2-Clause */
/* The name that a mistyped word was probably meant to be. */
#ifndef NATRACTL_NEAREST_H
#define NATRACTL_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *word;
	const char *
		name; /* the nearest one; NULL: none is near, or two are as near */
	size_t distance;
};

/* Keeps a name if no other one is as near. It must outlive `n`. */
void nearest_add(struct nearest *n, const char *name);

#endif
