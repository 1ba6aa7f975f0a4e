/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the files of the public API share. */
#ifndef NATRA_API_INTERNAL_H
#define NATRA_API_INTERNAL_H

#include "attach/bypass.h"
#include "state/pin.h"

/* Fills in what the record of a generation says, or the prefix of a foreign one, which is
 * all but `interface_gone` and what read_upgrade says. */
void info_of(const struct pin_gen *gen, struct natra_info *ret_info);

/* Fills in what passes the programs. */
void info_set_bypass(struct natra_info *info, const struct bypass *bypass);

/* Looks what passes the programs, and fills it in, or 0 if that cannot be told. */
void read_bypass(struct natra *n, const struct pin_gen *gen,
		 struct natra_info *info);

/* Fills in whether all programs of an attachment are this build's, and whether they can be
 * changed in place. Those that do not exist any more are not current, nor are those of a
 * foreign one. */
int read_upgrade(struct natra *n, const struct pin_gen *gen,
		 struct natra_info *info);

/* Returns a flow in the form of the API, without its counters. */
struct natra_flow flow_of_tuple(const struct natra_tuple *tuple);

/* Removes the programs that no attachment uses any more, after an attach that
 * failed. */
void drop_unused_programs(struct natra *n);

/* Does nothing and returns false, unless an attach or a change with this policy returned that
 * there is no room for its automatic group. Then it takes the policy out of the group, whose
 * rates become the policy's where they are lower, and logs that. */
bool leave_full_group(struct natra *n, int r, struct natra_policy *policy);

/* Returns -EINVAL if there is no handle or no id, else 0. */
int require_id(struct natra *n, const char *id);

#endif
