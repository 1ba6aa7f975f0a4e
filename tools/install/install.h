/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How natra gets into a node's CNI chain, and out of it: look at the runtime's
 * directories, plan, show the plan, apply it. Nothing here prints.
 *
 *	install_open(i, &request);
 *	do {
 *		install_plan(i, &plan);
 *		install_apply(i, plan, &made);
 *	} while (plan->changes_len);	(a limited number of times)
 *
 * Whoever changes a list at the same time makes the next plan differ, which is
 * why the end is a plan without changes. cJSON's hooks must end the process when
 * memory is short, as this code does itself: being killed at any point leaves
 * directories that a runtime can read.
 *
 * Functions that return int return 0 or -errno, with one line in
 * install_error().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

enum install_mode {
	INSTALL_AUTO,
	INSTALL_DROPIN,    /* NETDIR/<network>/90-natra.conf */
	INSTALL_LIST,      /* NETDIR/00-natra-<primary>, a copy with natra */
	INSTALL_BANDWIDTH, /* natra's binary under the name bandwidth */
	INSTALL_PRESENT,   /* a list of the node names natra: the binary only */
	INSTALL_MODE_MAX
};

/* What is asked for. The texts are the caller's and must stay; NULL is the
 * default. Paths are those of the host, below `root`. */
struct install_request {
	enum install_mode mode;
	const char *platform; /* one of install_platform(); NULL: found */
	const char *root;     /* "/" */
	const char *net_dir;
	const char *bin_dir;
	const char *plugin;  /* a path of the caller, not below `root` */
	const char *network; /* NULL: the one that the runtime uses */
	const char *runtime_version; /* "containerd://2.1.0"; NULL: asked */
	const cJSON *conf;           /* keys of natra's configuration */
	bool removal;                /* nothing about the plugin is needed */
	bool dry_run; /* all of a removal in one plan, not in two steps */
};

enum install_kind {
	INSTALL_WRITE,   /* a configuration */
	INSTALL_COPY,    /* the plugin's binary; a previous one is kept */
	INSTALL_REMOVE,  /* a file, and the drop-in directory if it is empty */
	INSTALL_RESTORE, /* bring back the binary that was kept */
	INSTALL_RELOAD,  /* make the runtime read its directory again */
};

struct install_change {
	enum install_kind kind;
	bool in_bin_dir;
	char *subdir; /* of the directory; NULL: the directory itself */
	char *name;
	char *path;   /* on the host */
	char *before; /* the configuration that is there; NULL: none */
	char *after;  /* the one to be; NULL unless INSTALL_WRITE */
};

#define INSTALL_CHANGES_MAX  64
#define INSTALL_WARNINGS_MAX 16

struct install_plan {
	enum install_mode mode;
	char *reason;
	char *kept; /* why a removal leaves the binary; NULL: it does not */
	char *warnings[INSTALL_WARNINGS_MAX];
	size_t warnings_len;
	struct install_change changes[INSTALL_CHANGES_MAX];
	size_t changes_len;
	/* The list that it was made from, and how it read; NULL: none. */
	char *primary_file;
	char *primary_text;
};

struct install;

struct install *install_new(void);
/* Lets go of the locks. NULL is legal. */
void install_free(struct install *i);
/* Valid until the next call. */
const char *install_error(const struct install *i);

/* Opens and locks the directories, and unless it is for a removal finds the plugin
 * and asks for the runtime's version. -EBUSY: another installer has the
 * directories for 10 s. `request` must stay. */
int install_open(struct install *i, const struct install_request *request);
/* The directories in use. */
const char *install_net_dir(const struct install *i);
const char *install_bin_dir(const struct install *i);

/* -ENOENT: no list yet; -EAGAIN: a list is being written; -EOPNOTSUPP: natra
 * cannot be there without harm, and the error says why. */
int install_plan(struct install *i, struct install_plan **ret);
/* The plugin goes by a later plan than the list or drop-in that names it: a pod
 * may be made until these are gone, and that plan looks for it anew.
 * `in_use`: what still needs the binary, beside what libcni's cache names; NULL:
 * nothing. `force`: the binary goes even so. */
int install_plan_removal(struct install *i, const char *in_use, bool force,
			 struct install_plan **ret);
/* -EAGAIN: the directory is no longer what the plan was made for. *ret_made is the
 * number of changes that were made, also behind an error. */
int install_apply(struct install *i, const struct install_plan *plan,
		  size_t *ret_made);
void install_plan_free(struct install_plan *plan);

const char *install_mode_name(enum install_mode mode);
/* NULL behind the last one. */
const char *install_platform(size_t index);
/* The key as natra-cni(8) writes it; NULL: natra has no such key. */
const char *install_conf_key(const char *key);
/* NULL if `name` can be a network's, else what is wrong with it. */
const char *install_check_network(const char *name);
/* Whether "containerd://2.1.0" or the like has a version in it. */
bool install_check_runtime_version(const char *text);
