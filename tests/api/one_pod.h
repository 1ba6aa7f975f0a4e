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

#define POD_CASE(name)                                                         \
	cmocka_unit_test_setup_teardown(name, one_pod_begin, one_pod_end)

#endif
