/* SPDX-License-Identifier: BSD-2-Clause */
#include "one_pod.h"

struct natra *n;
struct pod pod;

int one_pod_begin(void **state)
{
	(void)state;
	rig_reset();
	n = rig_open();
	pod = pod_make(POD);
	return 0;
}

int one_pod_end(void **state)
{
	(void)state;
	rig_end(n, &pod, (const char *const[]){ID}, 1);
	return 0;
}
