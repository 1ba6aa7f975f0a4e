/* SPDX-License-Identifier: BSD-2-Clause */
/* A pair of interfaces like that of a pod, to load programs with. */
#ifndef NATRA_AGENT_VETH_H
#define NATRA_AGENT_VETH_H

/* Makes a veth of which both ends are in the caller's network namespace. Returns NULL,
 * or why there is none. */
const char *veth_make(const char *ifname, const char *peer);

#endif
