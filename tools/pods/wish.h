/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits that an interface would get if it were made now. What the runtime would pass
 * on is in libcni's cache, or in the pod's present annotations, and the plugin's own code
 * reads the keys. */
#ifndef NATRA_PODS_WISH_H
#define NATRA_PODS_WISH_H

#include "../../cni/wanted.h"
#include "cached.h"

/* What the node says of all pods. */
struct wish_source {
	const cJSON
		*conf; /* natra's keys where a pod's list does not call natra */
	const cJSON *namespaces; /* see namespaces.h; NULL: there are none */
};

struct wish {
	const cJSON *keys;  /* of natra's element */
	cJSON *made;        /* the element, if the list has none */
	struct asker asker; /* it points into the others, and to `cached` */
	struct natra_policy rates; /* of the pod's present annotations */
	char pod[NATRA_NAME_MAX + 1];
	struct settings settings; /* its policy points to the others */
};

/*
 * Reads what `cached` should have. If its list does not call natra, the keys of
 * `source` are natra's configuration, as when natra is installed; the limits of an
 * element of the bandwidth plugin hold then. `annotations` are the pod's present
 * ones, which stand in for those that the runtime passed on; NULL: those count.
 * Returns 0 or a code, with the text in *failure. wish_free is always needed, and before it
 * neither `wish` nor `cached` may move.
 */
int wish_read(struct wish *wish, const struct cached *cached,
	      const struct wish_source *source, const cJSON *annotations,
	      struct natra *n, struct log *log, struct failure *failure);

/* Does the same by the start of a pod that runs without limits. It cannot be refused any more,
 * so none of natra's annotations may keep it from its rates: a wrong one does not count, and if
 * values do not go together wish_attach drops all of them. */
int wish_read_start(struct wish *wish, const struct cached *cached,
		    const struct wish_source *source, struct natra *n,
		    struct log *log, struct failure *failure);

/* Does as wish_read does by the pod's start, without a log. */
int wish_look(struct wish *wish, const struct cached *cached,
	      const struct wish_source *source, struct natra *n,
	      struct failure *failure);

/* Reads the keys alone, for no pod. Returns 0 or a code, with the text in *failure.
 * settings_free is needed whatever is returned. */
int wish_read_keys(struct settings *ret, const cJSON *keys, struct natra *n,
		   struct failure *failure);
/* Returns the file of the plugin's log, a text of `keys`; "": none. */
const char *wish_log_file(const cJSON *keys);

/* Attaches as ADD does with the group of the wish, see groups_attach. */
int wish_attach(struct wish *wish, struct natra *n, struct log *log,
		int (*attach)(void *arg, const struct natra_policy *policy),
		void *arg);

/* Lowers the wish to what the pod's namespace limits it to, after others have changed it. */
void wish_lower(struct wish *wish);

/* Returns whether the limits of a running pod follow its annotation of this name. All other
 * annotations, which may name its group, count as they were when the pod was made. */
bool wish_follows(const char *name);
/* Returns whether the configuration puts `cached` into a group, whatever annotations the
 * pod has had since. */
bool wish_may_join(const struct cached *cached, const cJSON *conf);
/* Returns whether the configuration, or the pod if it may, decides which classes of peers
 * there are. If not, those that somebody has given the attachment by hand stay. */
bool wish_has_classes(const struct wish *wish);
void wish_free(struct wish *wish);

#endif
