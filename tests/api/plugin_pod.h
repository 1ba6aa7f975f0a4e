/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture of programs whose cases each have one pod, beside which they build with tc
 * what upstream's bandwidth plugin leaves. */
#ifndef TEST_API_PLUGIN_POD_H
#define TEST_API_PLUGIN_POD_H

#include "one_pod.h"

#define HOST "h-old"
#define TBF  "tbf rate 10mbit burst 64k latency 25ms"
#define IFB  "bwp148cdf1cc030"

/* The node_state() before the case. */
extern char *state_before;

/* Makes the rig; skips the program where the kernel lacks what the plugin needs. */
void plugin_enter(void);
int plugin_begin(void **state);
int plugin_end(void **state);

/* Returns the node's qdiscs, ingress filters and links, without reference counts and
 * htb's count of packets, which the kernel sends now and then. */
char *node_state(void);
void same_node_state(const char *expected);

/* The plugin's limits of each direction, with their parts. */
void add_tbf(void);
/* What versions 1.5.0 and 1.5.1 give instead, with this default class. */
void add_htb(const char *dev, const char *rate, const char *defcls);
void add_ingress(const char *ifb);
void add_ifb(const char *name);
void add_redirect(const char *ifb, const char *flowid);

/* What the library finds of the pod, removes, or must not find. */
struct natra_leftovers find(void);
void remove_all(void);
void assert_none(void);

#endif
