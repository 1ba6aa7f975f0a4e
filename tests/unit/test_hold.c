/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdbool.h>
#include <string.h>

#include "hold.h"

static struct natra_neighbour neighbour(const char *program, const char *hook,
					bool is_on_host)
{
	return (struct natra_neighbour){
		.sz = sizeof(struct natra_neighbour),
		.direction = NATRA_DIRECTION_INGRESS,
		.ifname = "eth0",
		.hook = hook,
		.prog_id = 1,
		.prog_name = program,
		.is_on_host = is_on_host,
	};
}

#define SIZED .sz = sizeof(struct natra_group_info)
static struct natra_group_info groups[] = {
	{SIZED, .name = "other", .ingress_rate_bits_per_sec = 1},
	{SIZED, .name = "node"},
	{SIZED, .name = "g", .automatic = true, .ingress_rate_bits_per_sec = 1},
	{SIZED, .name = "g", .parent = "node"},
};

int __wrap_natra_foreach_group(struct natra *n, natra_group_fn fn, void *arg)
{
	int r = 0;

	(void)n;
	for (size_t i = 0; i < TH_LEN(groups) && r == 0; i++)
		r = fn(arg, &groups[i]);
	return r;
}

/* Returns what is lost beside a program, or NULL. */
static const char *lost(const struct natra_info *info, const char *program,
			const char *hook, bool is_on_host)
{
	const struct natra_neighbour e = neighbour(program, hook, is_on_host);
	struct hold hold = {.info = info};
	struct hold_loss loss;

	if (!hold_may_lose(info))
		return NULL;
	hold_read_group(&hold, NULL);
	assert_int_equal(hold_note(&hold, &e), 0);
	return hold_lost(&hold, &loss) ? loss.lost : NULL;
}

/* The interfaces have one name, as a pod may choose. */
TH_TEST(test_sides_of_one_name)
{
	const struct natra_info info = {
		.mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE,
		.host_ifname = "eth0",
		.ingress_prog_id = 2,
		.egress_prog_id = 3,
	};

	assert_null(lost(&info, "cali_from_wl", "clsact", false));
	assert_string_equal(lost(&info, "cali_from_wl", "clsact", true),
			    "ingress");
}

/* Whoever redirects into a pod does so from other pods' interfaces, whatever hook has his
 * programs here. */
TH_TEST(test_redirects_by_any_hook)
{
	struct natra_info info = {
		.mode = NATRA_ATTACH_MODE_TCX_HOSTSIDE,
		.ingress_prog_id = 2,
		.egress_prog_id = 3,
	};

	assert_string_equal(lost(&info, "cil_from_contai", "tcx", true),
			    "ingress");
	assert_string_equal(lost(&info, "cil_from_contai", "clsact", true),
			    "ingress");
	info.mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	assert_string_equal(lost(&info, "cil_from_contai", "tcx", true),
			    "ingress and egress");
	assert_string_equal(lost(&info, "cil_from_contai", "clsact", true),
			    "ingress");
	info.ingress_prog_id = 0;
	assert_string_equal(lost(&info, "cil_from_contai", "tcx", true),
			    "egress");
	assert_null(lost(&info, "cil_from_contai", "clsact", true));
	info.host_prog_id = 4; /* paced */
	assert_string_equal(lost(&info, "cil_from_contai", "clsact", true),
			    "ingress");
}

/* The backstop in the pod holds what the pod has by itself, and charges no group. */
TH_TEST(test_pacer_of_a_group)
{
	struct natra_info info = {
		.mode = NATRA_ATTACH_MODE_TCX_PODSIDE,
		.ingress_prog_id = 2,
		.host_prog_id = 4,
		.pace_active = true,
	};

	assert_null(lost(&info, "cil_from_contai", "clsact", true));
	info.policy.group[0] = 'g';
	assert_null(lost(&info, "cil_from_contai", "clsact", true));
	groups[1].ingress_rate_bits_per_sec = 1;
	assert_string_equal(lost(&info, "cil_from_contai", "clsact", true),
			    "ingress of the pod's group");
	groups[1].ingress_rate_bits_per_sec = 0;
	info.policy.group_is_automatic = true;
	assert_string_equal(lost(&info, "cil_from_contai", "clsact", true),
			    "ingress of the pod's group");
	assert_string_equal(lost(&info, "cali_tc_main", "tcx", true),
			    "ingress of the pod's group");
	assert_null(lost(&info, "handle_ingress", "clsact", true));
	info.pace_active = false;
	assert_null(lost(&info, "cil_from_contai", "clsact", true));
}

TH_MAIN(NULL, NULL)
