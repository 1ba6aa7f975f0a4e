/* SPDX-License-Identifier: BSD-2-Clause */
/* Works out which limits a pod's interface should have, from the configuration, what
 * the runtime passes on, and the pod's annotations. */
#ifndef NATRA_CNI_WANTED_H
#define NATRA_CNI_WANTED_H

#include "../tools/common/log.h"
#include "settings.h"

/* Reads the limits of a pod by the keys of natra's configuration, and changes nothing. The
 * policy points into *ret and to the texts of both. *ret is all 0 before, and settings_free
 * is needed whatever is returned. */
int wanted_read(struct settings *ret, const cJSON *keys,
		const struct asker *asker, struct natra *n, struct log *log,
		struct failure *failure);
/* Reads the keys, and what the runtime has made of the pod's annotations of rates. */
int wanted_read_keys(struct settings *ret, const cJSON *keys,
		     const struct asker *asker, struct natra *n,
		     struct failure *failure);

#endif
