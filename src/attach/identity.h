/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether an interface is the one that a record is of. With CAP_NET_ADMIN a process in the
 * pod renames or moves eth0 and gives another interface its name, index and address. What it
 * cannot do is put natra's programs there, or make a link to the node's namespace:
 *
 * - A device keeps its TCX links when it is renamed, moved to another namespace or both, and a
 *   link tells the index that its device has now, in whichever namespace; 0 once the device
 *   is gone. So the interface with one of the programs is the right one.
 * - A filter of clsact, which is part of a qdisc, is gone when its device is moved, as fq is.
 *   Where none of the programs is, and in the host-side modes, the port tells: struct
 *   record_port.
 */
#ifndef NATRA_ATTACH_IDENTITY_H
#define NATRA_ATTACH_IDENTITY_H

#include "kernel/link.h"
#include "state/pin.h"

struct bpf_link_info;

/* Asks the kernel about a leg's TCX link. Returns -ENOENT without an error text
 * if the link is not pinned. */
int identity_ask_link(struct natra *n, const struct pin_gen *gen, enum leg leg,
		      struct bpf_link_info *ret_info);

/* Returns 1 if a TCX link that is attached, or the other end of a pair, proves that there is an
 * interface: its namespace may be mounted where natra does not look, and have no process yet.
 * Else 0 or -errno. */
int identity_exists(struct natra *n, const struct pin_gen *gen);

/* Lets the record name its interfaces by the indices that they have now, as far as TCX links
 * tell them. */
void identity_follow(struct natra *n, struct pin_gen *gen);

enum identity {
	IDENTITY_OTHER,
	IDENTITY_PORT, /* no program of the record is there, but it is the same port */
	IDENTITY_PROGRAMS, /* at least one is */
};

/* Returns an enum identity for an interface in the caller's namespace, or -errno. */
int identity_look(struct natra *n, const struct record *record,
		  const struct link_info *link);

/*
 * Returns -EBADE, with a text and a code, if the interface with this index in the namespace
 * pod_fd is not that of the record, while that may still exist: in the same namespace, or
 * moved out of it. `after` is what has been attached there since, whose programs have to be
 * on the same interface; or NULL.
 */
int identity_check(struct natra *n, const struct pin_gen *gen, int pod_fd,
		   uint32_t ifindex, const struct record *after);

/* Refuses an interface that is not that of the record. Returns -EBADE. */
int identity_refuse(struct natra *n, const struct record *record,
		    const char *ifname, uint32_t ifindex);

/* Returns r, the result of a search for the pod's interface; but if that is -ENODEV, and a TCX link
 * or the other end of a veth says that it is elsewhere, -EBADE as above. */
int identity_explain(struct natra *n, const struct pin_gen *gen, int r);

#endif
