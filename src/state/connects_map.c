/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/connects_map.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/bpf_call.h"
#include "util/cleanup.h"
#include "util/random.h"
#include "../../bpf/natra_shared.h"

static int make_table(struct natra *n)
{
	int r = bpf_call_make_array("natra_connect",
				    sizeof(struct natra_connect_table));

	return r < 0 ? fail_errno(n, r, "create a table of connections") : r;
}

int connects_map_make(struct natra *n, uint32_t slots, int *ret_fd)
{
	/* The kernel takes the layout of the tables from this one. */
	cleanup_close int table_fd = make_table(n);
	const struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.inner_map_fd = (uint32_t)table_fd,
	};
	int r;

	if (table_fd < 0)
		return table_fd;
	r = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "natra_connects",
			   sizeof(uint32_t), sizeof(uint32_t), slots, &opts);
	if (r < 0)
		return fail_errno(n, r, "create the map of connections");
	*ret_fd = r;
	return 0;
}

int connects_table_make(struct natra *n, int *ret_fd)
{
	struct natra_connect_table table = {0};
	cleanup_close int fd = -1;
	const uint32_t zero = 0;
	int r = random_fill(table.keys, sizeof(table.keys));

	if (r < 0)
		return fail_errno(n, r, "random keys");
	fd = make_table(n);
	if (fd < 0)
		return fd;
	r = bpf_map_update_elem(fd, &zero, &table, BPF_ANY);
	if (r < 0)
		return fail_errno(n, r, "write a table of connections");
	*ret_fd = TAKE_FD(fd);
	return 0;
}
