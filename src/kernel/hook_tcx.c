/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/hook.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "base/libbpf_log.h"
#include "util/cleanup.h"
#include "util/str.h"

#define MAX_PROGRAMS 64 /* BPF_MPROG_MAX of the kernel */

static enum bpf_attach_type attach_type(const struct hook *hook)
{
	return hook->ingress ? BPF_TCX_INGRESS : BPF_TCX_EGRESS;
}

static int query(const struct hook *hook, uint32_t *ids, uint32_t *inout_len)
{
	struct bpf_prog_query_opts opts = {.sz = sizeof(opts)};
	int r;

	opts.prog_ids = ids;
	opts.prog_cnt = *inout_len;
	r = bpf_prog_query_opts((int)hook->ifindex, attach_type(hook), &opts);
	if (r < 0)
		return r;
	*inout_len = opts.prog_cnt;
	return 0;
}

int hook_tcx_supported(struct natra *n)
{
	/* Every namespace has its loopback interface at index 1. */
	struct hook lo = {.ifindex = 1, .ingress = true};
	uint32_t len = 0;
	int r = query(&lo, NULL, &len);

	/* A kernel before 6.6 does not know this attach type. */
	if (r == -EINVAL)
		return 0;
	if (r < 0)
		return fail_errno(n, r, "ask the kernel for TCX");
	return 1;
}

int hook_tcx_attach(struct natra *n, const struct hook *hook, int prog_fd,
		    int *ret_link_fd)
{
	struct bpf_link_create_opts opts;
	int fd;

	/* With its padding, which libbpf compares with 0. */
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.flags = BPF_F_BEFORE;
	fd = bpf_link_create(prog_fd, (int)hook->ifindex, attach_type(hook),
			     &opts);
	if (fd < 0)
		return fail_errno(n, fd, "attach to the TCX %s of ifindex %u",
				  hook->ingress ? "ingress" : "egress",
				  hook->ifindex);
	*ret_link_fd = fd;
	return 0;
}

void hook_program_look(struct hook_program *program)
{
	cleanup_close int fd = bpf_prog_get_fd_by_id(program->prog_id);
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	program->is_hidden = fd == -EPERM;
	program->name[0] = '\0';
	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0)
		(void)str_copy(program->name, sizeof(program->name), info.name);
}

bool hook_program_is_natra(const struct hook_program *program)
{
	return program->prog_id && (strcmp(program->name, "natra_rx") == 0 ||
				    strcmp(program->name, "natra_tx") == 0 ||
				    strcmp(program->name, "natra_edt") == 0);
}

bool hook_program_may_pace(const struct hook_program *program)
{
	return program->is_hidden || strcmp(program->name, "natra_edt") == 0;
}

int hook_tcx_find(struct natra *n, const struct hook *hook, uint32_t prog_id)
{
	uint32_t ids[MAX_PROGRAMS];
	uint32_t len = MAX_PROGRAMS;
	int r = query(hook, ids, &len);

	if (r == -EINVAL || r == -ENODEV)
		return 0;
	if (r < 0)
		return fail_errno(n, r, "list the TCX programs of ifindex %u",
				  hook->ifindex);
	for (uint32_t i = 0; i < len; i++) {
		if (ids[i] == prog_id)
			return 1;
	}
	return 0;
}

int hook_tcx_list(struct natra *n, const struct hook *hook, hook_list_fn cb,
		  void *arg)
{
	struct hook_program program = {0};
	uint32_t ids[MAX_PROGRAMS];
	uint32_t len = MAX_PROGRAMS;
	int r = query(hook, ids, &len);

	if (r == -EINVAL)
		return 0;
	if (r < 0)
		return fail_errno(n, r, "list the TCX programs of ifindex %u",
				  hook->ifindex);
	for (uint32_t i = 0; i < len; i++) {
		program.prog_id = ids[i];
		hook_program_look(&program);
		r = cb(arg, &program);
		if (r != 0)
			return r;
	}
	return 0;
}
