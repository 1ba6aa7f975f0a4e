/* SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_call.h"
#include "libbpf_log.h"
#include "util/cleanup.h"
#include "../bpf/natra_flows.h"

void program_close(struct program *program)
{
	cleanup_closep(&program->prog_fd);
	program->prog_fd = -1;
}

void slot_close(struct slot *slot)
{
	cleanup_closep(&slot->config_fd);
	cleanup_closep(&slot->state_fd);
	*slot = (struct slot)SLOT_INIT;
}

#define INSN(op, dst, src, offset, value)                                      \
	{                                                                      \
		.code = (op), .dst_reg = (dst), .src_reg = (src),              \
		.off = (int16_t)(offset), .imm = (int32_t)(value)              \
	}

int program_load_stub(struct natra *n, enum program_kind kind, int programs_fd,
		      uint32_t slot, struct program *ret_program)
{
	static const char *const names[PROGRAM_KIND_MAX] = {
		[PROGRAM_RX] = "natra_rx",
		[PROGRAM_TX] = "natra_tx",
		[PROGRAM_EDT] = "natra_edt",
	};
	const struct bpf_insn insns[] = {
		/* ctx->cb[0] = slot: it is the hook's scratch space. */
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, slot),
		INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_2,
		     offsetof(struct __sk_buff, cb[0]), 0),
		INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0,
		     programs_fd),
		INSN(0, 0, 0, 0, 0),
		/* A constant: the kernel makes a direct jump of it. To patch that
		 * in is most of what loading this takes, once; each packet
		 * would pay for a jump by way of the array. */
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		/* Back only if there is no program: TC_ACT_UNSPEC. */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, -1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_close int fd = -1;
	LIBBPF_LOG_SCOPE(n);
	int r;

	fd = bpf_call_load_tc(names[kind], insns,
			      sizeof(insns) / sizeof(insns[0]));
	if (fd < 0)
		return natra_fail(n, fd, "load program %s", names[kind]);
	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return natra_fail(n, r, "ask for the program's id");
	ret_program->prog_id = info.id;
	ret_program->prog_fd = TAKE_FD(fd);
	return 0;
}

static int read_config(struct natra *n, const struct slot *slot,
		       struct natra_config *ret)
{
	int r = bpf_map_lookup_elem(slot->config_fd, &slot->index, ret);

	return r < 0 ? natra_fail(n, r, "read the limits") : 0;
}

int slot_get_limits(struct natra *n, const struct slot *slot,
		    struct natra_limits *ret_limits)
{
	struct natra_config config;
	int r = read_config(n, slot, &config);

	if (r == 0)
		*ret_limits = config.limits[config.active & 1];
	return r;
}

static int write_config(const struct slot *slot,
			const struct natra_config *config)
{
	return bpf_map_update_elem(slot->config_fd, &slot->index, config,
				   BPF_EXIST);
}

int slot_set_limits(struct natra *n, const struct slot *slot,
		    const struct natra_limits *limits)
{
	struct natra_config config;
	int r = read_config(n, slot, &config);

	if (r < 0)
		return r;
	config.limits[(config.active & 1) ^ 1] = *limits;
	r = write_config(slot, &config);
	if (r == 0) {
		config.active++;
		r = write_config(slot, &config);
	}
	return r < 0 ? natra_fail(n, r, "write the limits") : 0;
}

int program_make_subnets(struct natra *n, const struct subnets *subnets,
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
		return natra_fail(n, fd, "create the map of subnets");
	for (size_t i = 0; i < subnets->len && r == 0; i++)
		r = bpf_map_update_elem(fd, &subnets->list[i], &unused,
					BPF_ANY);
	if (r < 0)
		return natra_fail(n, r, "write the subnets");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int program_read_subnets(struct natra *n, int fd, struct subnets *ret_subnets)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_subnets struct subnets subnets = {0};
	int r;

	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return natra_fail(n, r, "ask for the map of subnets");
	if (info.type != BPF_MAP_TYPE_LPM_TRIE ||
	    info.key_size != sizeof(*subnets.list) ||
	    info.max_entries > NATRA_SUBNETS_MAX)
		return natra_refuse(n, -ESTALE,
				    "the pinned subnets are no such map");
	subnets.list = calloc(info.max_entries, sizeof(*subnets.list));
	if (!subnets.list)
		return natra_fail(n, -ENOMEM, "read the subnets");
	for (; subnets.len < info.max_entries; subnets.len++) {
		const struct natra_subnet *last =
			subnets.len ? &subnets.list[subnets.len - 1] : NULL;

		r = bpf_map_get_next_key(fd, last, &subnets.list[subnets.len]);
		if (r == -ENOENT)
			break;
		if (r < 0)
			return natra_fail(n, r, "read the subnets");
		if (!subnet_valid(&subnets.list[subnets.len]))
			return natra_refuse(n, -ESTALE,
					    "a pinned subnet is none");
	}
	subnets_sort(&subnets);
	*ret_subnets = subnets;
	subnets = (struct subnets){0};
	return 0;
}

static int read_state(struct natra *n, const struct slot *slot,
		      struct natra_state **ret_state)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_free struct natra_state *state = NULL;
	int r;

	r = bpf_obj_get_info_by_fd(slot->state_fd, &info, &len);
	if (r < 0)
		return natra_fail(n, r, "ask for a map's size");
	state = malloc(info.value_size);
	if (!state)
		return natra_fail(n, -ENOMEM, "read a map");
	r = bpf_map_lookup_elem(slot->state_fd, &slot->index, state);
	if (r < 0)
		return natra_fail(n, r, "read a map");
	*ret_state = TAKE_PTR(state);
	return 0;
}

int slot_counters(struct natra *n, const struct slot *slot,
		  struct natra_counters *ret_counters)
{
	cleanup_free struct natra_state *state = NULL;
	struct natra_counters sum = {0};
	int r = read_state(n, slot, &state);

	if (!state)
		return r;
	for (int i = 0; i < NATRA_STRIPES; i++) {
		for (int j = 0; j < NATRA_COUNT_MAX; j++) {
			sum.count[j].packets += state->stripes[i][j].packets;
			sum.count[j].bytes += state->stripes[i][j].bytes;
		}
	}
	sum.delay_ns_sum = state->delay_ns_sum;
	*ret_counters = sum;
	return 0;
}

int slot_flows(struct natra *n, const struct slot *slot,
	       struct natra_flow_entry *ret_flows)
{
	cleanup_free struct natra_state *state = NULL;
	struct natra_config config;
	int r = read_config(n, slot, &config);

	if (r == 0)
		r = read_state(n, slot, &state);
	if (r < 0)
		return r;
	for (int i = 0; i < NATRA_FLOWS; i++) {
		struct natra_flow_entry flow = state->flows[i];

		if (flow.tag !=
		    natra_flow_tag(natra_hash_tuple(config.keys, &flow.tuple)))
			flow.tag = 0;
		ret_flows[i] = flow;
	}
	return 0;
}
