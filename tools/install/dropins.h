/* SPDX-License-Identifier: BSD-2-Clause */
/* The drop-ins of a network, NETDIR/<network>/<file>.conf, which libcni appends to its list
 * from version 1.3.0 on. */
#ifndef NATRA_INSTALL_DROPINS_H
#define NATRA_INSTALL_DROPINS_H

#include "state.h"

/* `json` is NULL if libcni would refuse the file; `wrong` says why then, and is NULL
 * otherwise. A result other than 0 ends the walk. */
typedef int (*dropin_fn)(void *arg, const char *path, const cJSON *json,
			 const char *wrong);

/* Calls fn with each drop-in. Symbolic links are followed, as the runtime does. Returns 0
 * or what fn returned. */
int dropins_foreach(const struct install *i, const char *network, dropin_fn fn,
		    void *arg);

/* The first drop-in of each kind that is not natra's own: its path, which dropins_free
 * frees, or NULL. */
struct dropins {
	char *natra, *bandwidth;
	char *element; /* natra's, as text */
	char *wrong;   /* with the reason */
};

void dropins_look(const struct install *i, const char *network,
		  struct dropins *ret);
void dropins_free(struct dropins *dropins);
#define cleanup_dropins __attribute__((cleanup(dropins_free)))

#endif
