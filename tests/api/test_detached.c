/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests detach a TCX link while its interface is there: natra must report a
 * difference, not an interface that is gone. */
#include "one_pod.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define SKIP 77

static void detach_link(const char *leg)
{
	struct natra_info info = rig_query(n, ID);
	char path[600];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s_link", info.pin_path, leg);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	assert_int_equal(bpf_link_detach(fd), 0);
	(void)close(fd);
}

TH_TEST(what_is_missing_is_named_and_put_back)
{
	static const enum natra_attach_mode modes[] = {
		NATRA_ATTACH_MODE_TCX_PODSIDE,
		NATRA_ATTACH_MODE_TCX_HOSTSIDE,
	};
	static const char *const legs[] = {"ingress", "egress"};
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	size_t removed = 7;

	for (int i = 0; i < 4; i++) {
		const char *leg = legs[i % 2];

		policy.attach_mode = modes[i / 2];
		assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
		detach_link(leg);
		GIVES(-EBADE, natra_check(n, ID, NULL));
		says(n, leg, "detached");
		assert_false(rig_query(n, ID).interface_gone);
		/* gc must not take it for garbage either. */
		assert_int_equal(natra_gc(n, NULL, NULL, 0, &removed), 0);
		assert_int_equal(removed, 0);
		assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
		assert_int_equal(natra_check(n, ID, NULL), 0);
	}
}

TH_TEST(an_interface_that_is_gone_is_gone)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	size_t removed = 0;

	policy.attach_mode = NATRA_ATTACH_MODE_TCX_PODSIDE;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	detach_link("ingress");
	rig_sh("ip link del h-%s", pod.name);
	assert_int_equal(natra_check(n, ID, NULL), -ENODEV);
	assert_true(rig_query(n, ID).interface_gone);
	assert_int_equal(natra_gc(n, NULL, NULL, 0, &removed), 0);
	assert_int_equal(removed, 1);
	assert_int_equal(rig_pins(), 0);
}

int main(void)
{
	rig_enter();
	if (!rig_has_tcx()) {
		puts("skip: no TCX");
		return SKIP;
	}
	return th_run_each(one_pod_begin, one_pod_end);
}
