/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defaults and maximums for the pods of namespaces, from a file on the node:
 *
 *   {"tenant-*": {"default": {"egressRate": "10M"},
 *                 "max": {"ingressRate": "1G", "egressRate": "100M"},
 *                 "fastPass": "strict", "allowAnnotations": ["egress-burst"]}}
 *
 * A key is the name of a namespace, or its beginning and "*". The most specific one counts: the
 * name itself, and else the longest beginning. natra-agent(8) explains the members. Whoever
 * makes a pod's policy goes this way: namespaces_find, namespace_fill, the pod's annotations
 * with `allowed`, namespace_limits and namespace_lower.
 */
#ifndef NATRA_COMMON_NAMESPACES_H
#define NATRA_COMMON_NAMESPACES_H

#include <stdbool.h>

#include "../../src/policy/fields.h"
#include "json.h"

/* The agent writes it, and ADD reads it. */
#define NAMESPACES_FILE "/var/lib/natra/namespaces.json"
#define NAMESPACES_MAX  1024

struct namespaces_error {
	char text[512];
};

struct namespace_rule {
	const char *name;             /* the key; NULL: there is none */
	struct natra_policy standard; /* rates of pods that have none */
	struct natra_policy max;
	/* Those of the configuration's count if there is no list. */
	bool has_allowed;
	const cJSON *allowed; /* a list of texts */
};

/* Reads a file. *ret is NULL, and 0 is returned, if there is none. Returns -errno, and a line about
 * it. */
int namespaces_load(const char *path, cJSON **ret,
		    struct namespaces_error *error);
/* Parses a text, and looks at it as a whole. Returns -EINVAL and a line that names the field and
 * the value. */
int namespaces_parse(const char *text, cJSON **ret,
		     struct namespaces_error *error);
/* Writes the file, in one step; NULL removes it. */
int namespaces_store(int root_fd, const char *text);

/* Finds the rule for a pod ("<namespace>/<pod>", or "", of which only "*" is a rule), whose texts
 * belong to `file`. NULL has none. Returns 0, or -EINVAL and a line. */
int namespaces_find(const cJSON *file, const char *pod,
		    struct namespace_rule *ret, struct namespaces_error *error);

/* Returns the texts of the list, which the caller frees. */
const char **namespace_allowed(const struct namespace_rule *rule,
			       size_t *ret_len);
/* Gives each direction without a rate the default, or else the maximum. */
void namespace_fill(const struct namespace_rule *rule,
		    struct natra_policy *policy);
/* Works out what the rule limits a pod to. A burst, a threshold and a share of which it says
 * nothing are those of `conf`, which is what the pod has without its annotations; a burst is
 * at most half a second of the maximum then. Returns false if it limits nothing. */
bool namespace_limits(const struct namespace_rule *rule,
		      const struct natra_policy *conf,
		      struct natra_policy *ret_limits);

/* What a pod has asked for, and has not: the first such thing; "": there is none. */
struct namespace_note {
	char text[256];
};

/* Lowers a policy to limits of namespace_limits. `own_classes` says that the pod has asked for
 * its classes: their rates and the pod's own are at most the maximum together. */
void namespace_lower(const struct natra_policy *limits, bool own_classes,
		     struct natra_policy *policy, struct namespace_note *note);

#endif
