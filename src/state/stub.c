/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/stub.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stddef.h>

#include "base/bpf_call.h"
#include "base/libbpf_log.h"
#include "natra_shared.h"
#include "util/cleanup.h"

void stub_close(struct stub *stub)
{
	cleanup_closep(&stub->prog_fd);
	stub->prog_fd = -1;
}

#define INSN(op, dst, src, offset, value)                                      \
	{                                                                      \
		.code = (op), .dst_reg = (dst), .src_reg = (src),              \
		.off = (int16_t)(offset), .imm = (int32_t)(value)              \
	}

int stub_load(struct natra *n, const struct program_options *options,
	      bool peer_is_to, int programs_fd, uint32_t slot,
	      struct stub *ret_stub)
{
	static const char *const names[STUB_KIND_MAX] = {
		[STUB_RX] = "natra_rx",
		[STUB_TX] = "natra_tx",
		[STUB_EDT] = "natra_edt",
	};
	static const uint32_t calls[STUB_KIND_MAX] = {
		[STUB_TX] = NATRA_CALL_SENT,
		[STUB_EDT] = NATRA_CALL_SENT | NATRA_CALL_HELD,
	};
	const struct bpf_insn insns[] = {
		/* ctx->cb[0] = slot: cb is scratch space of the hook. */
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_2, 0, 0,
		     slot | calls[options->kind] |
			     (peer_is_to ? NATRA_CALL_PEER_TO : 0) |
			     (options->tells_inner ? NATRA_CALL_INNER : 0)),
		INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_2,
		     offsetof(struct __sk_buff, cb[0]), 0),
		INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0,
		     programs_fd),
		INSN(0, 0, 0, 0, 0),
		/*
		 * The index is a constant, so that the kernel makes a direct jump of
		 * the call. Patching it in takes most of the time of loading the stub,
		 * but only once; a jump through the array would cost time for each
		 * packet.
		 */
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		/* This is reached only if there is no program: returns
		 * TC_ACT_UNSPEC. */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, -1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_close int fd = -1;
	LIBBPF_LOG_SCOPE(n);
	int r;

	fd = bpf_call_load_tc(names[options->kind], insns,
			      sizeof(insns) / sizeof(insns[0]));
	if (fd < 0)
		return fail_errno(n, fd, "load program %s",
				  names[options->kind]);
	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return fail_errno(n, r, "ask for the program's id");
	ret_stub->prog_id = info.id;
	ret_stub->prog_fd = TAKE_FD(fd);
	return 0;
}
