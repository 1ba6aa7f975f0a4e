/* SPDX-License-Identifier: BSD-2-Clause */
#include "progrun.h"

#include "cm.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel/feature.h"
#include "natra_classify.h"
#include "state/connects_map.h"
#include "state/ring.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"

static uint64_t clock_now(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * TH_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t th_now(void)
{
	return clock_now(CLOCK_MONOTONIC);
}

uint64_t th_coarse_now(void)
{
	return clock_now(CLOCK_MONOTONIC_COARSE);
}

void th_require_bpf(void)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = TC_ACT_UNSPEC},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd;

	if (geteuid() != 0) {
		printf("not root\n");
		exit(TH_SKIP);
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "th_probe", "GPL", nothing,
			   TH_LEN(nothing), NULL);
	if (fd < 0) {
		printf("no permission to load BPF programs: %s\n",
		       strerror(-fd));
		exit(TH_SKIP);
	}
	(void)close(fd);
}

struct natra_limits th_limits(void)
{
	const struct natra_rate rate = policy_rate(8000000, 1);

	return (struct natra_limits){
		.rate = rate,
		.mice = policy_rate(4000000, 1),
		.max_delay_ns = 2 * TH_SECOND,
		.target_ns = UINT64_MAX,
		.unfelt_delay_ns = 2 * TH_SECOND,
		.enter_units = 100,
		.leave_units = 12,
		.pass = NATRA_PASS_OFF,
		.ramp_mult = UINT64_MAX / TH_NS_PER_BYTE,
		.fair_shift = 24,
	};
}

/* The tests use another slot than the first, so that a wrong index shows. */
#define SLOTS (3 + NATRA_CLASSES_MAX)
#define SLOT  1

/* Fills the slot of the test, and behind it those of its classes, if it has any. */
static int take_slots(struct progrun *run,
		      const struct program_options *options,
		      const struct subnets *subnets,
		      const struct natra_limits *limits)
{
	struct natra_limits all[1 + NATRA_CLASSES_MAX];
	uint64_t keys[NATRA_HASH_KEYS];
	uint32_t slots = 1;
	int r = bank_make_keys(run->n, keys);

	if (r == 0 && options->measures_connects)
		r = connects_table_make(run->n, &run->table_fd);
	if (r == 0 && options->has_classes) {
		slots += (uint32_t)subnets->classes_len;
		r = subnets_map_make(run->n, subnets, &run->trie_fd);
	}
	for (uint32_t i = 0; i < slots; i++)
		all[i] = *limits;
	return r < 0 ? r
		     : bank_take_slots(run->n, &run->bank, SLOT, slots, 1,
				       &(struct slot_content){all, keys, 0,
							      run->table_fd,
							      run->trie_fd});
}

void th_look_at_class(struct progrun *run, uint32_t number)
{
	run->slot.index = SLOT + number;
}

bool th_has_stamp_types(void)
{
	return feature_is_there(FEATURE_SET_TSTAMP) != 0;
}

int th_start(struct progrun *run, const struct program_options *given,
	     const struct th_peers *peers, const struct natra_limits *limits)
{
	const struct subnets *subnets = peers ? peers->subnets : NULL;
	struct program_options options = *given;
	int r;

	options.has_classes = subnets && subnets_any(subnets);

	*run = (struct progrun){
		.bank = BANK_INIT,
		.stub = STUB_INIT,
		.ring_fd = -1,
		.table_fd = -1,
		.trie_fd = -1,
		.prelude_fd = -1,
		.array_fd = -1,
	};
	r = natra_open(&run->n, NULL);
	if (r == 0) {
		run->ring_fd = ring_make(run->n);
		r = run->ring_fd < 0 ? run->ring_fd : 0;
	}
	if (r == 0)
		r = bank_load(run->n, &options, SLOTS, run->ring_fd,
			      &run->bank);
	if (r == 0)
		r = take_slots(run, &options, subnets, limits);
	if (r == 0)
		r = stub_load(run->n, &options,
			      peers ? peers->is_to : given->kind == STUB_EDT,
			      run->bank.programs_fd, SLOT, &run->stub);
	run->slot = (struct slot){
		.config_fd = run->bank.configs_fd,
		.state_fd = run->bank.states_fd,
		.index = SLOT,
	};
	return r;
}

void th_load(struct progrun *run, const struct program_options *options,
	     const struct natra_limits *limits)
{
	th_load_peers(run, options, NULL, limits);
}

void th_load_peers(struct progrun *run, const struct program_options *options,
		   const struct th_peers *peers,
		   const struct natra_limits *limits)
{
	if (th_start(run, options, peers, limits) < 0)
		fail_msg("%s", natra_error(run->n));
}

struct progrun th_load_kind(enum stub_kind kind,
			    const struct natra_limits *limits)
{
	const struct program_options options = {
		.kind = kind,
		.has_l2 = true,
	};
	struct progrun run;

	th_load(&run, &options, limits);
	return run;
}

void th_share_table(struct progrun *run, const struct progrun *with)
{
	assert_int_equal(
		bank_put_table(run->n, &run->bank, SLOT, with->table_fd), 0);
}

void th_close(struct progrun *run)
{
	stub_close(&run->stub);
	bank_close(&run->bank);
	cleanup_closep(&run->ring_fd);
	cleanup_closep(&run->table_fd);
	cleanup_closep(&run->trie_fd);
	cleanup_closep(&run->prelude_fd);
	cleanup_closep(&run->array_fd);
	natra_close(run->n);
}

#define INSN(op, dst, src, offset, value)                                      \
	{                                                                      \
		.code = (op), .dst_reg = (dst), .src_reg = (src),              \
		.off = (int16_t)(offset), .imm = (int32_t)(value)              \
	}
#define MOV(dst, src)  INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define MOVI(dst, imm) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define FIELD(size, dst, name)                                                 \
	INSN(BPF_LDX | (size) | BPF_MEM, dst, 6,                               \
	     offsetof(struct __sk_buff, name), 0)
#define CALL(function) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)

static int load_prelude(int array_fd)
{
	const struct bpf_insn set_tstamp = CALL(BPF_FUNC_skb_set_tstamp);
	const struct bpf_insn insns[] = {
		MOV(6, 1),
		FIELD(BPF_W, 3, cb[0]),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 3, 0),
		MOV(1, 6),
		MOVI(2, __builtin_bswap16(0x8100)),
		CALL(BPF_FUNC_skb_vlan_push),
		FIELD(BPF_W, 3, cb[1]),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 2, 0),
		MOV(1, 6),
		CALL(BPF_FUNC_skb_vlan_pop),
		/* It takes IP only, so no tag is in the frame any more. */
		MOV(1, 6),
		FIELD(BPF_DW, 2, tstamp),
		FIELD(BPF_W, 3, mark),
		th_has_stamp_types() ? set_tstamp : (struct bpf_insn)MOVI(0, 0),
		MOV(1, 6),
		FIELD(BPF_W, 2, cb[2]),
		CALL(BPF_FUNC_set_hash),
		MOV(1, 6),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0,
		     array_fd),
		INSN(0, 0, 0, 0, 0),
		MOVI(3, 0),
		CALL(BPF_FUNC_tail_call),
		MOVI(0, 1000), /* reached if the array has no program */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "th_prelude", "GPL",
			     insns, TH_LEN(insns), NULL);
}

void th_use_prelude(struct progrun *run)
{
	const uint32_t zero = 0;

	run->array_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "th_array", 4,
				       4, 1, NULL);
	assert_true(run->array_fd >= 0);
	run->prelude_fd = load_prelude(run->array_fd);
	assert_true(run->prelude_fd >= 0);
	assert_int_equal(bpf_map_update_elem(run->array_fd, &zero,
					     &run->stub.prog_fd, BPF_ANY),
			 0);
	run->through_prelude = true;
}

void th_counters(struct progrun *run, struct natra_counters *ret)
{
	struct natra_state state = th_read_state(run);

	*ret = slot_sum(&state);
}

/* A packet that has a delay is in the bucket for it, and no other one is in any. */
static void compare_delays(const struct natra_durations *before,
			   const struct natra_durations *after,
			   uint64_t delay_ns)
{
	for (int i = 0; i < NATRA_DURATION_BUCKETS; i++) {
		const uint64_t from = i ? 1024ULL << (i - 1) : 0;
		const uint64_t to = i < NATRA_DURATION_BUCKETS - 1
					    ? 1024ULL << i
					    : UINT64_MAX;

		assert_int_equal(after->count[i] - before->count[i],
				 delay_ns > from && delay_ns <= to);
	}
}

static void compare(const struct natra_counters *before,
		    const struct natra_counters *after, struct th_result *ret)
{
	int changed = 0;

	for (int i = 0; i < NATRA_COUNT_MAX; i++) {
		uint64_t packets =
			after->count[i].packets - before->count[i].packets;
		uint64_t bytes = after->count[i].bytes - before->count[i].bytes;

		if (!packets && !bytes)
			continue;
		assert_int_equal(packets, 1);
		ret->counter = (enum natra_counter)i;
		ret->bytes = bytes;
		changed++;
	}
	assert_int_equal(changed, 1);
	ret->delay_ns = after->delays.sum_ns - before->delays.sum_ns;
	compare_delays(&before->delays, &after->delays, ret->delay_ns);
}

int th_try_send(struct progrun *run, const struct packet *packet,
		const struct th_context *context, struct th_result *ret)
{
	const struct th_context none = {0};
	const struct th_context *c = context ? context : &none;
	struct __sk_buff in = {
		.tstamp = c->tstamp,
		.wire_len = c->wire_len,
		.gso_segs = c->gso_segs,
		.gso_size = c->gso_size,
		.priority = c->priority,
		.mark = c->tstamp_type,
		.cb = {c->vlan_tci, c->pop_vlan ? 1 : (uint32_t)c->group_mark,
		       run->through_prelude ? c->hash
					    : (uint32_t)(c->group_mark >> 32)},
	};
	struct __sk_buff out = {0};
	/* LIBBPF_OPTS is not used here because it is not ISO C. */
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts),
		.data_in = packet->data,
		.data_size_in = (uint32_t)packet->len,
		.data_out = ret->data,
		.data_size_out = sizeof(ret->data),
		.ctx_in = &in,
		.ctx_size_in = sizeof(in),
		.ctx_out = &out,
		.ctx_size_out = sizeof(out),
		.repeat = 1,
	};
	struct natra_counters before, after;
	int r;

	th_counters(run, &before);
	ret->coarse_ns = th_coarse_now();
	ret->before_ns = th_now();
	r = bpf_prog_test_run_opts(run->through_prelude ? run->prelude_fd
							: run->stub.prog_fd,
				   &opts);
	ret->after_ns = th_now();
	if (r < 0)
		return r;
	th_counters(run, &after);
	compare(&before, &after, ret);
	ret->verdict = (int)opts.retval;
	ret->tstamp = out.tstamp;
	ret->priority = out.priority;
	ret->group_mark = (uint64_t)out.cb[2] << 32 | out.cb[1];
	ret->len = opts.data_size_out;
	return 0;
}

void th_send(struct progrun *run, const struct packet *packet,
	     const struct th_context *context, struct th_result *ret)
{
	int r = th_try_send(run, packet, context, ret);

	if (r < 0)
		fail_msg("test run of %zu bytes: %s", packet->len,
			 strerror(-r));
}

struct natra_state th_read_state(struct progrun *run)
{
	struct natra_state state;

	assert_int_equal(bpf_map_lookup_elem(run->slot.state_fd,
					     &run->slot.index, &state),
			 0);
	return state;
}

void th_write_state(struct progrun *run, const struct natra_state *state)
{
	assert_int_equal(bpf_map_update_elem(run->slot.state_fd,
					     &run->slot.index, state,
					     BPF_EXIST),
			 0);
}

void th_set_limits(struct progrun *run, const struct natra_limits *limits)
{
	assert_int_equal(slot_set_limits(run->n, &run->slot, limits), 0);
}

void th_set_gates(struct progrun *run, uint64_t packets_tat_ns,
		  uint64_t connections_tat_ns)
{
	struct natra_state s = th_read_state(run);

	s.packets_tat_ns = packets_tat_ns;
	s.connections_tat_ns = connections_tat_ns;
	th_write_state(run, &s);
}

/* A TAT that a test sets is a debt under the current limits, not under limits
 * that were replaced. */
static uint64_t active_limits(struct progrun *run)
{
	struct natra_config config;

	assert_int_equal(bpf_map_lookup_elem(run->slot.config_fd,
					     &run->slot.index, &config),
			 0);
	return config.active;
}

void th_set_tat(struct progrun *run, uint64_t tat_ns)
{
	struct natra_state state = th_read_state(run);

	state.fair.tat_ns = tat_ns;
	for (size_t i = 0; i < TH_LEN(state.clocks); i++)
		state.clocks[i] = tat_ns;
	state.settled = active_limits(run);
	th_write_state(run, &state);
}

void th_set_queue(struct progrun *run, uint64_t tat_ns)
{
	struct natra_state state = th_read_state(run);

	state.fair.tat_ns = tat_ns;
	state.fair.latest_ns = tat_ns;
	state.settled = active_limits(run);
	th_write_state(run, &state);
}

uint64_t th_tat(struct progrun *run)
{
	return th_read_state(run).fair.tat_ns;
}

void th_set_mice_tat(struct progrun *run, uint64_t tat_ns)
{
	struct natra_state state = th_read_state(run);

	state.mice_tat_ns = tat_ns;
	state.tiny_tat_ns = tat_ns;
	state.settled = active_limits(run);
	th_write_state(run, &state);
}

uint64_t th_mice_tat(struct progrun *run)
{
	return th_read_state(run).mice_tat_ns;
}

void th_set_tiny_tat(struct progrun *run, uint64_t tat_ns)
{
	struct natra_state state = th_read_state(run);

	state.tiny_tat_ns = tat_ns;
	th_write_state(run, &state);
}

void th_clear_sketch(struct progrun *run)
{
	struct natra_state state = th_read_state(run);

	memset(state.sketch, 0, sizeof(state.sketch));
	th_write_state(run, &state);
}

void th_clear_clocks(struct progrun *run)
{
	struct natra_state state = th_read_state(run);

	memset(state.clocks, 0, sizeof(state.clocks));
	th_write_state(run, &state);
}

void th_age_heavy(struct progrun *run, unsigned int windows)
{
	struct natra_state state = th_read_state(run);

	for (size_t i = 0; i < sizeof(state.heavy); i++) {
		if (state.heavy[i])
			state.heavy[i] =
				NATRA_HEAVY_USED | ((state.heavy[i] - windows) &
						    NATRA_HEAVY_EPOCH_MASK);
	}
	th_write_state(run, &state);
}
