/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds what is said of pods in a minute, so that no tenant uses up what others need, however many
 * pods and namespaces he has. */
#ifndef NATRA_AGENT_TENANTS_H
#define NATRA_AGENT_TENANTS_H

#include <stdbool.h>
#include <stdint.h>

/* More than a kubelet's pods, each of which may be the first of its namespace. */
#define TENANTS_SAID_MAX 256

/* What was said in the last minute. */
struct tenants {
	struct {
		uint64_t pod, space; /* hashes */
		uint64_t at_ms;      /* 0: there is none */
	} said[TENANTS_SAID_MAX];
};

/* Returns whether something may be said of a pod now. */
bool tenants_may(const struct tenants *t, const char *uid,
		 const char *namespace);
/* Notes that it is said. */
void tenants_take(struct tenants *t, const char *uid, const char *namespace);

#endif
