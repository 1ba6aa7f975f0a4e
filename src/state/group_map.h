/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The groups of the node, in one map that all programs with groups share:
 *
 *   <bpffs>/natra/abi<number>/groups/map
 *
 * It is pinned with the first group, and removed when there is neither a group nor an
 * engine, whose programs know this map and no later one. flock(2) on the directory
 * guards the map and all that is in it. Whoever makes an attachment a member holds it
 * until the record that says so is pinned, which counts before the attachment is
 * complete: a group without a member in any record has none.
 */
#ifndef NATRA_STATE_GROUP_MAP_H
#define NATRA_STATE_GROUP_MAP_H

#include <stdint.h>

#include "state/pin_dir.h"
#include "state/record.h"
#include "../../bpf/natra_shared.h"

/* The map while it is locked; `map` has 2 * NATRA_GROUPS entries. */
struct groups {
	struct pin_dir dir;
	struct natra_group *map; /* NULL: not open */
};

#define GROUPS_INIT                                                            \
	{                                                                      \
		.dir = PIN_DIR_INIT                                            \
	}

/* Locks and opens the groups, and pins a new map if there is none and `create` is
 * true. Returns -ENOENT without an error text if there is none, and -ESTALE if
 * something else is pinned in its place. */
int groups_open(struct natra *n, bool create, struct groups *ret);
void groups_close(struct groups *groups);
#define cleanup_groups __attribute__((cleanup(groups_close)))

/* Opens the map for a program that is to be loaded. Returns its descriptor or -errno. */
int groups_map_fd(struct natra *n);

/* Makes a map that is not pinned. Returns its descriptor or -errno. */
int groups_make_map(struct natra *n);

/* Returns a group as it was asked for, whose name is "" if there is none. */
struct natra_group_given *groups_given(const struct groups *groups,
				       uint32_t number);

/* Return the number of the group with this name, and of a free one; 0: none. Automatic
 * groups have names of their own, and leave some numbers for those that an administrator
 * makes. */
uint32_t groups_find(const struct groups *groups, const char *name,
		     bool automatic);
uint32_t groups_find_free(const struct groups *groups, bool automatic);

/* Returns whether the group is another one's parent. */
bool groups_is_parent(const struct groups *groups, uint32_t number);

/* Clears the state of a group that is to be made. */
void groups_clear(const struct groups *groups, uint32_t number);

/* Writes the limits of all groups as they are asked for, at once for each packet. Those
 * of a group depend on its parent. */
void groups_write_limits(const struct groups *groups);

/* Does the same for limits that a process which was killed has not written. */
int groups_repair(struct natra *n);

/* These are sums over the records of the members of a group. */
struct groups_members {
	uint32_t count;
	uint64_t
		floor_bits_per_sec; /* the sum, which holds in each direction */
	char id[256];               /* of one; "": it has none */
	bool of_namespace;          /* one has a label of the namespace */
};

/* Lists the members of all groups, each at its number, and at 0 the attachments whose record
 * cannot be read, which may be in any group; but for the attachment `except` (may be NULL).
 * `label` (NULL: none) is of the namespace, as "<namespace>/<pod>". The caller frees
 * *ret_members. */
int groups_list_members(struct natra *n, const char *except, const char *label,
			struct groups_members **ret_members);

/* Removes automatic groups without members. Returns 1 if a group is left, 0 if none is, or
 * -errno. */
int groups_clear_empty(struct natra *n, const struct groups *groups);

/* Returns 0, or -EBADE if the group on record is not there, or its limits are not those
 * that were asked for. */
int groups_check(struct natra *n, const struct record *record);

/* Copies the name of a group, which is "" if it is gone. The groups are not locked. */
int groups_name(struct natra *n, uint32_t number, char *ret_name, size_t size);

/* Tells in which directions a group or its parent has a rate. The groups are not locked. */
int groups_limit(struct natra *n, uint32_t number,
		 bool ret_limits[NATRA_DIRECTION_MAX]);

/* Returns 0, or -ERANGE if the floors of a group's members, of the groups in it, and one
 * more of an attachment that is to be a member (NULL: none is) are together more than
 * its rate. */
int groups_check_floors(struct natra *n, const struct groups *groups,
			uint32_t number, const char *id, uint64_t floor);

/* To be called when an attachment that was in the group of the record `before` is in group
 * `number`, or was not attached: an automatic group goes with its last member. The
 * groups are not locked. */
void groups_left(struct natra *n, const struct record *before, uint32_t number);

/* Removes the automatic groups that have no member and are no parent, and the map if there
 * is neither a group nor an engine. If one cannot be removed, this is logged, and it stays
 * until the next sweep. */
void groups_sweep(struct natra *n);

#endif
