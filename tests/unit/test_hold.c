/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdbool.h>
#include <string.h>

#include "hold.h"

static struct natra_neighbour neighbour(const char *program, bool is_on_host)
{
	return (struct natra_neighbour){
		.sz = sizeof(struct natra_neighbour),
		.direction = NATRA_DIRECTION_INGRESS,
		.ifname = "eth0",
		.hook = "clsact",
		.prog_id = 1,
		.prog_name = program,
		.is_on_host = is_on_host,
	};
}

/* The interfaces have one name, as a pod may choose. */
TH_TEST(test_sides_of_one_name)
{
	struct natra_info info = {
		.mode = NATRA_MODE_CLSACT_HOSTSIDE,
		.host_ifname = "eth0",
		.ingress_prog_id = 2,
		.egress_prog_id = 3,
	};
	struct natra_neighbour e = neighbour("cali_from_wl", false);
	struct hold in_pod = {.info = &info}, on_host = {.info = &info};

	assert_int_equal(hold_note(&in_pod, &e), 0);
	assert_null(hold_lost(&in_pod));
	assert_null(in_pod.owner);
	e = neighbour("cali_from_wl", true);
	assert_int_equal(hold_note(&on_host, &e), 0);
	assert_string_equal(hold_lost(&on_host), "ingress");
	assert_string_equal(on_host.owner, "Calico");
	/* What natra judges in the pod is not lost. */
	e = neighbour("natra_rx", false);
	e.is_ours = true;
	assert_int_equal(hold_note(&on_host, &e), 0);
	assert_null(hold_lost(&on_host));
}

TH_MAIN(NULL, NULL)
