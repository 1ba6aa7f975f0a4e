/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture of programs whose cases each have one pod and one handle. */
#ifndef TEST_API_ONE_POD_H
#define TEST_API_ONE_POD_H

#include "rig.h"

#define POD       "pod"
#define NODE_SIDE "h-" POD
/* The fixture detaches this id when a case ends. */
#define ID        "of-the-pod"

extern struct natra *n;
extern struct pod pod;

int one_pod_begin(void **state);
/* Checks that no pins are left after the detach. */
int one_pod_end(void **state);
#define POD_MAIN() RIG_MAIN(one_pod_begin, one_pod_end)

/* Attaches to the pod, and checks that the call leaves the thread as it was. */
int attach_pod(const struct natra_policy *policy);

/* A group has this rate in both directions, and a member 10 Mbit/s into it and 20 out of it. */
struct natra_group_info group_of(const char *name, uint64_t mbit);
void make_group(const char *name, uint64_t mbit);
void remove_group(const char *name);
void enter_group(struct natra_policy *policy, const char *name);
struct natra_policy member_of(const char *name);

#endif
