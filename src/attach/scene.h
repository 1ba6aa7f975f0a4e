/* SPDX-License-Identifier: BSD-2-Clause */
/* The place where an attachment is to be, before anything is changed there. */
#ifndef NATRA_ATTACH_SCENE_H
#define NATRA_ATTACH_SCENE_H

#include "kernel/link.h"
#include "kernel/netns.h"
#include "state/record.h"

/* The interface to shape, and what is on it already. */
struct scene {
	int pod_fd; /* its namespace, -1: the caller's own */
	struct netns_id pod_netns;
	struct netns_id host_netns; /* the caller's */
	struct link_info pod;
	bool foreign_natra; /* natra programs are on its hooks already */
	bool is_cut;        /* not all of the programs were read */
	bool others;        /* programs of other owners are */
};

/* Looks up the interface that has this name in the namespace pod_fd. */
int scene_look(struct natra *n, int pod_fd, const char *ifname,
	       struct scene *ret_scene);

/* Looks up an interface on record, whatever its name is now: KubeVirt renames a
 * pod's eth0 and gives a dummy that name. `pod` has the name on record. Returns
 * -ENODEV if it is gone. */
int scene_look_recorded(struct natra *n, int pod_fd,
			const struct record_link *link,
			struct scene *ret_scene);

/* Looks up the interface that a caller means by an id ("": none) and a name: the one
 * that was attached by both, or recorded without limits, if it is still there, or else as
 * scene_look. */
int scene_look_named(struct natra *n, int pod_fd, const char *id,
		     const char *ifname, struct scene *ret_scene);

/* Refuses an interface that has programs of natra's, or whose host side has them, if another id
 * has attached them. */
int scene_refuse_other(struct natra *n, const struct scene *scene,
		       const char *id);

#endif
