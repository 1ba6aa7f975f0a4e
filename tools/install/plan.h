/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two kinds of plan share. */
#pragma once

#include "lists.h"

struct install_plan *plan_new(void);
#define cleanup_plan __attribute__((cleanup(plan_freep)))
void plan_freep(struct install_plan **plan);

__attribute__((format(printf, 2, 3))) void plan_warn(struct install_plan *plan,
						     const char *format, ...);
/* The texts are copied. What is over the limit is for the next plan. */
void plan_bin(const struct install *i, struct install_plan *plan,
	      enum install_kind kind, const char *name);
/* `subdir` NULL: of the directory itself. */
void plan_write(const struct install *i, struct install_plan *plan,
		const char *subdir, const char *name, const char *before,
		const char *after);
void plan_remove(const struct install *i, struct install_plan *plan,
		 const char *subdir, const char *name, const char *before);

/* What killed installers left. */
void plan_stale(const struct install *i, struct install_plan *plan,
		const struct lists *lists);
/* natra's own lists but `but`, which may be NULL. */
void plan_remove_lists(const struct install *i, struct install_plan *plan,
		       const struct lists *lists, const char *but);
/* natra's drop-ins: of `network`, and of networks that certainly have no list; or
 * all if `lists` is NULL. With `keep` that of `network` stays. */
void plan_remove_dropins(const struct install *i, struct install_plan *plan,
			 const struct lists *lists, const char *network,
			 bool keep);
/* Behind the changes of the configuration directory. */
void plan_reload(const struct install *i, struct install_plan *plan);
/* Brings back the bandwidth plugin that was kept, if there is one. */
bool plan_restore(const struct install *i, struct install_plan *plan);
