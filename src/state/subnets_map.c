/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/subnets_map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"

int subnets_map_make(struct natra *n, const struct subnets *subnets,
		     int *ret_fd)
{
	const struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.map_flags = BPF_F_NO_PREALLOC,
	};
	const char unused = 0;
	cleanup_close int fd = -1;
	int r = 0;

	fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "natra_subnets",
			    sizeof(*subnets->list), sizeof(unused),
			    (uint32_t)subnets->len, &opts);
	if (fd < 0)
		return fail_errno(n, fd, "create the map of subnets");
	for (size_t i = 0; i < subnets->len && r == 0; i++)
		r = bpf_map_update_elem(fd, &subnets->list[i], &unused,
					BPF_ANY);
	if (r < 0)
		return fail_errno(n, r, "write the subnets");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int subnets_map_read(struct natra *n, int fd, struct subnets *ret_subnets)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_subnets struct subnets subnets = {0};
	int r;

	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return fail_errno(n, r, "ask for the map of subnets");
	if (info.type != BPF_MAP_TYPE_LPM_TRIE ||
	    info.key_size != sizeof(*subnets.list) ||
	    info.max_entries > NATRA_SUBNETS_MAX)
		return refuse(n, -ESTALE,
			      "the pin of the subnets is another map");
	subnets.list = calloc(info.max_entries, sizeof(*subnets.list));
	if (!subnets.list)
		return fail_errno(n, -ENOMEM, "read the subnets");
	for (; subnets.len < info.max_entries; subnets.len++) {
		const struct natra_subnet *last =
			subnets.len ? &subnets.list[subnets.len - 1] : NULL;

		r = bpf_map_get_next_key(fd, last, &subnets.list[subnets.len]);
		if (r == -ENOENT)
			break;
		if (r < 0)
			return fail_errno(n, r, "read the subnets");
		if (!subnet_valid(&subnets.list[subnets.len]))
			return refuse(n, -ESTALE,
				      "a pinned subnet is not valid");
	}
	subnets_sort(&subnets);
	*ret_subnets = subnets;
	subnets = (struct subnets){0};
	return 0;
}
