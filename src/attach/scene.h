/* SPDX-License-Identifier: BSD-2-Clause */
/* The place where an attachment is to be, before anything is changed there. */
#ifndef NATRA_ATTACH_SCENE_H
#define NATRA_ATTACH_SCENE_H

#include "kernel/link.h"
#include "kernel/netns.h"

/* The interface to shape, and what is on it already. */
struct scene {
	int pod_fd; /* its namespace, -1: the caller's own */
	struct netns_id pod_netns;
	struct netns_id host_netns; /* the caller's */
	struct link_info pod;
	bool foreign_natra; /* natra programs are on its hooks already */
	bool others;        /* programs of other owners are */
};

/* Looks the interface up in the namespace pod_fd. */
int scene_look(struct natra *n, int pod_fd, const char *ifname,
	       struct scene *ret_scene);

#endif
