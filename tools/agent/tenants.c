/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants.h"

#include "../common/text.h"
#include "loop.h"

/* A namespace of which nothing was said yet may go past the node's number. */
#define PERIOD_MS     60000
#define POD_MAX       8
#define NAMESPACE_MAX 16
#define NODE_MAX      60

bool tenants_may(const struct tenants *t, const char *uid,
		 const char *namespace)
{
	const uint64_t now_ms = clock_ms();
	const uint64_t pod = text_hash(uid), space = text_hash(namespace);
	size_t of_pod = 0, of_space = 0, of_node = 0;

	for (size_t i = 0; i < TENANTS_SAID_MAX; i++) {
		if (!t->said[i].at_ms || now_ms - t->said[i].at_ms >= PERIOD_MS)
			continue;
		of_node++;
		of_pod += t->said[i].pod == pod;
		of_space += t->said[i].space == space;
	}
	return of_pod < POD_MAX && of_space < NAMESPACE_MAX &&
	       (!of_space || of_node < NODE_MAX) && of_node < TENANTS_SAID_MAX;
}

void tenants_take(struct tenants *t, const char *uid, const char *namespace)
{
	size_t oldest = 0;

	for (size_t i = 1; i < TENANTS_SAID_MAX; i++) {
		if (t->said[i].at_ms < t->said[oldest].at_ms)
			oldest = i;
	}
	t->said[oldest].pod = text_hash(uid);
	t->said[oldest].space = text_hash(namespace);
	t->said[oldest].at_ms = clock_ms();
}
