/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the arguments of an attach, and takes the locks that it needs. */
#ifndef NATRA_API_ADMISSION_H
#define NATRA_API_ADMISSION_H

#include "attach/shaper.h"
#include "state/pin_dir.h"

/* An order, with the locks and the namespace that it holds until it is carried out. */
struct admission {
	struct natra_target target;
	int netns_fd;
	struct pin_dir netns_lock;
	struct pin_dir dir;
	char id[NATRA_ID_MAX + 1];
	struct natra_group_info automatic; /* see policy_in */
	struct order order;
};

#define ADMISSION_INIT                                                         \
	{                                                                      \
		.netns_fd = -1, .netns_lock = PIN_DIR_INIT,                    \
		.dir = PIN_DIR_INIT                                            \
	}

/* Reads and checks the caller's arguments, without asking the kernel. */
int admission_read(struct natra *n, const struct natra_target *target,
		   const struct natra_policy *policy, struct admission *a);

/* Copies the id of a target that has an id or an ifname: its own, or the default one.
 * ret_id has room for NATRA_ID_MAX + 1 bytes. */
int admission_id(struct natra *n, const struct natra_target *target,
		 int netns_fd, char *ret_id);

/* Finds the interface, and locks out other callers from it and from the id. */
int admission_lock(struct natra *n, struct admission *a);

void admission_close(struct admission *a);
#define cleanup_admission __attribute__((cleanup(admission_close)))

#endif
