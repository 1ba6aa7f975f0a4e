/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories of the runtime, as the distributions of Kubernetes have them. */
#ifndef NATRA_INSTALL_PLATFORM_H
#define NATRA_INSTALL_PLATFORM_H

struct platform {
	const char *name;
	const char *net_dir;
	const char *bin_dir;
	/* Where Multus' own list is, which the runtime reads; NULL: in net_dir */
	const char *multus_dir;
	const char *containerd; /* its configuration */
	const char *
		sign; /* a path that only this platform has; NULL: the default */
};

/* Returns the platform of this name; NULL if there is none. */
const struct platform *platform_find(const char *name);
/* Returns the first platform whose paths exist, else the default one; never
 * NULL. */
const struct platform *platform_in_use(int root_fd);

#endif
