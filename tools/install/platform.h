/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the distributions of Kubernetes have the runtime's directories. */
#pragma once

struct platform {
	const char *name;
	const char *net_dir;
	const char *bin_dir;
	const char
		*sign; /* a path that tells this platform; NULL: the default */
};

/* NULL: there is none of this name. */
const struct platform *platform_find(const char *name);
/* The first whose paths are there; never NULL. */
const struct platform *platform_in_use(int root_fd);
