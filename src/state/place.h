/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of the state: the bpffs that was given when the handle was opened, or
 * the one that pid 1 has at /sys/fs/bpf. In another mount namespace, such as
 * `ip netns exec` makes, that path is another directory; what is mounted and
 * pinned there is gone when the last process of that namespace ends.
 */
#ifndef NATRA_STATE_PLACE_H
#define NATRA_STATE_PLACE_H

#include "base/handle.h"

/* Sets n->bpffs. The first call finds the place, later ones do nothing. Returns
 * -EPERM if pid 1 has another bpffs, or another place for it, that this process
 * cannot reach. */
int place_find(struct natra *n);

/* Returns 1 if a bpffs is mounted at the place, which it finds first, and 0 if
 * not. */
int place_is_mounted(struct natra *n);

/* Returns 0 if a bpffs can be mounted at n->bpffs, which is not one. Returns -ENOTEMPTY if that
 * would hide files. */
int place_check(struct natra *n);

/* Mounts a bpffs at n->bpffs, in the mount namespace that the path leads to. */
int place_mount(struct natra *n);

/* Returns a path below n->bpffs in the form in which pid 1, and with it
 * everybody else, sees it. */
const char *place_public(const char *path);

#endif
