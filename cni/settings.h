/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads natra's own keys in the network configuration. */
#ifndef NATRA_CNI_SETTINGS_H
#define NATRA_CNI_SETTINGS_H

#include "../tools/common/namespaces.h"
#include "conf.h"

/* Says which rate counts if both the configuration and the runtime have one. */
enum precedence {
	PRECEDENCE_STATIC,  /* the configuration's, as upstream does */
	PRECEDENCE_RUNTIME, /* for each direction, the runtime's if it has one */
	PRECEDENCE_LOWEST,  /* for each direction, the lower one */
	PRECEDENCE_MAX
};

struct settings {
	struct natra_policy policy;
	struct natra_policy
		plain; /* without what natra's annotations ask for */
	/* The policy's subnets point to these, and these to the configuration. */
	const char *subnets[NATRA_SUBNETS_MAX];
	struct natra_class classes[NATRA_CLASSES_MAX];
	/* Those that the pod asks for in their place, which are owned. */
	struct natra_class *asked;
	/* The pod's group, see groups.h; its texts belong to the configuration. Its
	 * name is a template, and NULL if there is no such key. */
	struct natra_group_info group;
	bool group_is_for_all;    /* each pod is in one by this key */
	bool group_is_impossible; /* but not this one; it has the group's rates */
	/* Why the pod is in no group although there is the key, or "". */
	char group_absence[2 * NATRA_GROUP_NAME_MAX];
	/* The rule of the pod's namespace, whose texts belong to the asker's file, and the limits
	 * that it sets, if it sets any. */
	struct namespace_rule rule;
	bool has_limits;
	struct natra_policy limits;
	struct namespace_note lowered;
	/* Why all that natra's annotations ask for was dropped, or "". */
	char dropped[sizeof(((struct failure *)0)->msg)];
	enum precedence precedence;
	bool continue_on_error;
	bool replace_bandwidth;
	bool require_namespaces; /* the pod cannot do without the asker's file */
	/* The list is owned, and its texts belong to the configuration. */
	const char **allowed;
	size_t allowed_len;
};

/* Says what becomes of values of the pod that are wrong, or that do not go together. */
enum on_error {
	ON_ERROR_AS_SET, /* as the key "onError" says */
	ON_ERROR_FAIL,
	ON_ERROR_CONTINUE, /* they do not count */
};

/* The pod that is to be limited, and what the runtime passes on of it. */
struct asker {
	const char *pod;        /* "<namespace>/<pod>", or "" */
	const cJSON *bandwidth; /* of runtimeConfig, or NULL */
	/* The rates that stand in for those of `bandwidth`; NULL: none do. */
	const struct natra_policy *rates;
	struct natra_annotations annotations; /* without what it may use */
	const cJSON *namespaces; /* see namespaces.h; NULL: there are none */
	const char
		*namespaces_wrong; /* why their file cannot be read, or NULL */
	enum cni_code namespaces_code; /* what ADD fails with by that */
	enum on_error on_error;
};

/* Reads all keys but rates, bursts and subnets, which bandwidth.h reads, groups and classes.
 * The library checks ranges. settings_free is needed whatever is returned. */
int settings_read(struct settings *s, const cJSON *all, struct natra *n,
		  struct failure *failure);

/* Finds the rule for the pod's namespace, and gives the pod what it says of its annotations and of
 * directions without a rate. Returns 0 or a code. */
int settings_read_namespace(struct settings *settings,
			    const struct asker *asker, struct failure *failure);
/* Lowers a policy to what the namespace limits the pod to. */
void settings_lower(struct settings *settings, struct natra_policy *policy);

/* Returns whether pods may use an annotation that natra knows. */
bool settings_allow(const struct settings *settings, const char *name);

/* Settings that are all 0 are fine. */
void settings_free(struct settings *settings);
#define cleanup_settings __attribute__((cleanup(settings_free)))

struct log_settings {
	const char *file; /* "": no log */
	enum natra_log_level level;
};

/* Reads the keys about the log for any command. A wrong value counts as absent
 * here, because DEL and GC must not fail for a bad configuration; settings_read
 * refuses it. */
struct log_settings settings_log(const cJSON *all);

#endif
