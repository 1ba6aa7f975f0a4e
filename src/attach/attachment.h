/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds attachments, and the interfaces that a record names. */
#ifndef NATRA_ATTACH_ATTACHMENT_H
#define NATRA_ATTACH_ATTACHMENT_H

#include "state/pin.h"

/* Finds the newest complete generation of an id, whose record follows its interfaces (see
 * identity_follow). Returns -ENOENT, with an error
 * text, if nothing is attached by that id, and otherwise as pin_find. */
int attachment_find(struct natra *n, const char *id, struct pin_gen *ret_gen);

/* Returns whether another process has attached an id again since a generation was found, which becomes
 * the newer one: what the old one names may be gone, while a reader without the lock looks. */
bool attachment_find_newer(struct natra *n, const char *id,
			   struct pin_gen *gen);

/* Does what attachment_find does for a caller that needs no more than the prefix of its record, so that
 * it may be foreign. */
int attachment_find_any(struct natra *n, const char *id,
			struct pin_gen *ret_gen);

/* Does the same under the lock of the id, which *ret_dir gets. */
int attachment_lock(struct natra *n, const char *id, struct pin_dir *ret_dir,
		    struct pin_gen *ret_gen);

/* Finds the id of what is attached to an interface; of what has programs on it, which may be
 * the host side of another one, if by_side. Returns -ENOENT, without an error text, if nothing
 * is. */
int attachment_owner(struct natra *n, const struct netns_id *netns,
		     uint32_t ifindex, bool by_side, char *ret_id);

/* Reads the subnets of an attachment. Returns -ENOENT, with an error text, if
 * somebody has unpinned them. */
int attachment_read_subnets(struct natra *n, const struct pin_gen *gen,
			    struct subnets *ret_subnets);

/* Opens the network namespace of an interface on record; see netns_find.
 * hint_fd: a namespace where it may be, or -1. Returns -ENODEV, with an error
 * text, if that namespace is gone. */
int attachment_open_netns(struct natra *n, const struct record_link *link,
			  int hint_fd, int *ret_fd);

/* Runs fn(arg) in that namespace, and returns what fn returned. Returns -ENODEV as
 * above; fn returns it, too, if the interface is gone. */
int attachment_visit(struct natra *n, const struct record_link *link,
		     int hint_fd, int (*fn)(void *arg), void *arg);

/* The kernel takes down what is in a namespace a while after that cannot be found any more: what
 * still exists is looked at so often, with a pause in between. */
#define DYING_LOOKS 20
void attachment_wait_dying(void);

#endif
