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
	rig_detach(n, ID);
	assert_int_equal(rig_pins(), 0);
	pod_remove(&pod);
	natra_close(n);
	return 0;
}
