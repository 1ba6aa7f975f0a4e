/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/feature.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bpf_call.h"
#include "kernel/netns.h"

static const char *const names[FEATURE_REQUIRED] = {
	[FEATURE_ECN] = "bpf_skb_ecn_set_ce (Linux 5.1)",
	[FEATURE_COARSE_CLOCK] = "bpf_ktime_get_coarse_ns (Linux 5.11)",
	[FEATURE_ATOMICS] = "BPF atomic instructions (Linux 5.12)",
	[FEATURE_NETNS_COOKIE] = "SO_NETNS_COOKIE (Linux 5.14)",
};

/* The instruction that is tried for each feature: a call of the helper, or the
 * instruction itself. */
static const struct bpf_insn tried[FEATURE_MAX] = {
	[FEATURE_ECN] = {.code = BPF_JMP | BPF_CALL,
			 .imm = BPF_FUNC_skb_ecn_set_ce},
	[FEATURE_COARSE_CLOCK] = {.code = BPF_JMP | BPF_CALL,
				  .imm = BPF_FUNC_ktime_get_coarse_ns},
	[FEATURE_ATOMICS] = {.code = BPF_STX | BPF_ATOMIC | BPF_DW,
			     .dst_reg = BPF_REG_10,
			     .src_reg = BPF_REG_1,
			     .off = -8,
			     .imm = BPF_CMPXCHG},
	[FEATURE_SET_TSTAMP] = {.code = BPF_JMP | BPF_CALL,
				.imm = BPF_FUNC_skb_set_tstamp},
};

/*
 * Tries an instruction in a program that no kernel accepts, so that none has to
 * be compiled and removed again. Returns 1 if the kernel knows the instruction,
 * 0 if not, or -errno. The verifier returns -EINVAL for an instruction or
 * helper that it does not know, and otherwise -EACCES for a register that is
 * read before it is set: in the instruction that comes next, or as an operand
 * of the tried one.
 */
static int try_instruction(const struct bpf_insn *insn)
{
	const struct bpf_insn insns[] = {
		*insn,
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .src_reg = BPF_REG_6},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_call_load_tc("natra_kernel", insns,
				  sizeof(insns) / sizeof(insns[0]));

	if (fd >= 0)
		(void)close(fd);
	if (fd >= 0 || fd == -EACCES)
		return 1;
	return fd == -EINVAL ? 0 : fd;
}

static int try_netns_cookie(void)
{
	struct netns_id id;
	int r = netns_self(-1, &id);

	if (r == -ENOPROTOOPT)
		return 0;
	return r < 0 ? r : 1;
}

int feature_is_there(enum feature feature)
{
	/* Each is the answer plus 1, or 0. A kernel does not change while a process runs, but the
	 * process may get the right to ask. Threads may both ask, and find the same. */
	static _Atomic signed char known[FEATURE_MAX];
	int r = known[feature] - 1;

	if (r < 0)
		r = feature == FEATURE_NETNS_COOKIE
			    ? try_netns_cookie()
			    : try_instruction(&tried[feature]);
	if (r >= 0)
		known[feature] = (signed char)(r + 1);
	return r;
}

int feature_require_all(struct natra *n)
{
	char missing[256] = "";
	size_t len = 0;

	for (int i = 0; i < FEATURE_REQUIRED; i++) {
		if (feature_is_there((enum feature)i) == 0)
			len += (size_t)snprintf(missing + len,
						sizeof(missing) - len, "%s%s",
						len ? ", " : "", names[i]);
	}
	if (!len)
		return 0;
	return refuse(n, -EOPNOTSUPP, "this kernel lacks %s", missing);
}

int feature_blame(struct natra *n, int error)
{
	return feature_require_all(n) < 0 ? -EOPNOTSUPP : error;
}
