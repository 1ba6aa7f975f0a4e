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
 * If somebody changes a list at the same time, the next plan differs; so the
 * loop ends with a plan that has no changes. cJSON's hooks must end the process
 * when memory is short, as this code does itself: being killed at any point
 * leaves directories that a runtime can read.
 *
 * Functions that return int return 0 or -errno, with one line in
 * install_error().
 */
#ifndef NATRA_INSTALL_INSTALL_H
#define NATRA_INSTALL_INSTALL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

enum install_mode {
	INSTALL_AUTO,
	INSTALL_DROPIN,    /* NETDIR/<network>/90-natra.conf */
	INSTALL_LIST,      /* NETDIR/00-natra-<primary>, a copy with natra */
	INSTALL_BANDWIDTH, /* natra's binary under the name bandwidth */
	INSTALL_PRESENT,   /* a list has natra: install the binary only */
	INSTALL_MODE_MAX
};

/* The caller's wishes. The texts stay the caller's and must stay valid
 * as long as the installer; NULL stands for the default. Paths are those of the host,
 * below `root`. */
struct install_request {
	enum install_mode mode;
	const char *platform; /* from install_platform(); NULL: find it */
	const char *root;     /* NULL: "/" */
	const char *net_dir;
	const char *bin_dir;
	const char *plugin;          /* the caller's path, not below `root` */
	const char *network;         /* NULL: the one that the runtime uses */
	const char *runtime_version; /* "containerd://2.1.0"; NULL: ask */
	const cJSON *conf;           /* keys of natra's configuration */
	bool removal;                /* do not look for a plugin to install */
	bool is_own_kernel; /* pods of these directories run on this kernel */
	bool dry_run; /* plan all of a removal at once, not in two steps */
};

enum install_kind {
	INSTALL_WRITE,   /* write a configuration file */
	INSTALL_COPY,    /* copy natra's binary; another plugin is kept */
	INSTALL_REMOVE,  /* remove a file, and its subdirectory if empty */
	INSTALL_RESTORE, /* bring back the binary that was kept */
	INSTALL_RELOAD,  /* make the runtime read its directory again */
};

struct install_change {
	enum install_kind kind;
	bool in_bin_dir;
	char *subdir; /* below the directory; NULL: in itself */
	char *name;
	char *path;   /* its path on the host */
	char *before; /* its text now; NULL: it does not exist */
	char *after;  /* its new text; NULL unless INSTALL_WRITE */
};

#define INSTALL_CHANGES_MAX  64
#define INSTALL_WARNINGS_MAX 16

struct install_plan {
	enum install_mode mode;
	char *reason;
	char *kept; /* why a removal keeps the binary; NULL: it goes */
	char *warnings[INSTALL_WARNINGS_MAX];
	size_t warnings_len;
	struct install_change changes[INSTALL_CHANGES_MAX];
	size_t changes_len;
	/* The file name of the list that the plan was made from, and its text
	 * then; NULL if it was made from none. */
	char *primary_file;
	char *primary_text;
	/* natra's element in that list, if others have put it there; else NULL. */
	char *element;
};

struct install;

struct install *install_new(void);
/* Frees an installer and releases its lock. `i` may be NULL. */
void install_free(struct install *i);
/* Releases the lock alone, whose file is gone then: nothing may be applied any more. */
void install_unlock(struct install *i);
/* Returns the text of the last error, valid until the next call. */
const char *install_error(const struct install *i);

/* Opens the directories and takes the lock of the node's installers, unless the request is a dry
 * run. Unless it is a removal, it also finds the plugin and asks for the runtime's version. Returns
 * -EBUSY if another installer held the lock for 10 s. `request` must stay. */
int install_open(struct install *i, const struct install_request *request);
/* Opens the directories without a lock, only to look at them, and asks for the
 * runtime's version. A directory that is not there is no error. */
int install_look(struct install *i, const struct install_request *request);
/* Both return the path of a directory in use. */
const char *install_net_dir(const struct install *i);
const char *install_bin_dir(const struct install *i);

/* Plans an installation. Returns -ENOENT if there is no list yet, -EAGAIN if a
 * list is being written, and -EOPNOTSUPP if natra cannot be installed without
 * harm; the error says why. */
int install_plan(struct install *i, struct install_plan **ret);
/*
 * Plans a removal. The plugin goes by a later plan than the list or drop-in
 * that names it: a pod may be made until these are gone, and the later plan
 * looks for it anew. `in_use` names what still needs the binary, beside what
 * libcni's cache names; NULL if nothing does. With `force` the binary goes even
 * so. The bandwidth plugin that was kept comes back whatever `in_use` says, but not under
 * CRI-O.
 */
int install_plan_removal(struct install *i, const char *in_use, bool force,
			 struct install_plan **ret);
/* Makes the changes of a plan. Returns -EAGAIN if the directory is no longer
 * what the plan was made for. *ret_made is the number of changes that were
 * made, also after an error. */
int install_apply(struct install *i, const struct install_plan *plan,
		  size_t *ret_made);
void install_plan_free(struct install_plan *plan);

const char *install_mode_name(enum install_mode mode);
/* Reads a mode that a request can have. Returns false if it is none. */
bool install_mode_parse(const char *text, enum install_mode *ret_mode);
/* Returns the name of the platform with this number; NULL behind the last
 * one. */
const char *install_platform(size_t index);
/* Puts "KEY=VALUE" into `conf`. The value is JSON if it is valid JSON, else a
 * string; if a key is given more than once, the last value counts. Returns NULL,
 * or what is wrong with the text. */
const char *install_conf_add(cJSON *conf, const char *text);
/* Returns whether "containerd://2.1.0" or the like has a version in it. */
bool install_check_runtime_version(const char *text);

#endif
