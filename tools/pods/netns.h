/* SPDX-License-Identifier: BSD-2-Clause */
/* A pod's network namespace by the path that the runtime keeps of it. */
#ifndef NATRA_PODS_NETNS_H
#define NATRA_PODS_NETNS_H

/* Opens it by its path below root_fd: a file that it is mounted on, or a
 * process's, such as /proc/7/ns/net. Returns a descriptor, or -errno. */
int netns_open(int root_fd, const char *path);

#endif
