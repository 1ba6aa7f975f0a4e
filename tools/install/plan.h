/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that plans of an installation and of a removal share. */
#ifndef NATRA_INSTALL_PLAN_H
#define NATRA_INSTALL_PLAN_H

#include "lists.h"

struct install_plan *plan_new(void);
#define cleanup_plan __attribute__((cleanup(plan_freep)))
void plan_freep(struct install_plan **plan);

__attribute__((format(printf, 2, 3))) void plan_warn(struct install_plan *plan,
						     const char *format, ...);
/* These three add a change to a plan and copy the texts. If the plan is full,
 * the change is left to the next plan. */
void plan_bin(const struct install *i, struct install_plan *plan,
	      enum install_kind kind, const char *name);
/* With `subdir` NULL the file is in the configuration directory itself. */
void plan_write(const struct install *i, struct install_plan *plan,
		const char *subdir, const char *name, const char *before,
		const char *after);
void plan_remove(const struct install *i, struct install_plan *plan,
		 const char *subdir, const char *name, const char *before);

/* Plans to remove what killed installers left. */
void plan_stale(const struct install *i, struct install_plan *plan,
		const struct lists *lists);
/* Plans to remove natra's own lists except `but`, which may be NULL, and warns of the guests
 * that go with them. Those of `moved`, which may be NULL, too, are in `but`. */
void plan_remove_lists(const struct install *i, struct install_plan *plan,
		       const struct lists *lists, const char *but,
		       const struct list *moved);
/* Plans to remove natra's drop-ins: that of `network`, unless `keep` is set,
 * and those of networks that certainly have no list. If `lists` is NULL, it
 * removes all of them. */
void plan_remove_dropins(const struct install *i, struct install_plan *plan,
			 const struct lists *lists, const char *network,
			 bool keep);
/* Plans to make the runtime read its directory again, if that is necessary.
 * Call it after all changes of the configuration directory. */
void plan_reload(const struct install *i, struct install_plan *plan);
/* Plans to bring back the bandwidth plugin that was kept. Returns false if
 * there is none. */
bool plan_restore(const struct install *i, struct install_plan *plan);

#endif
