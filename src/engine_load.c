/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading the BPF object for a bank. The only user of the skeleton. */
#include "engine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "libbpf_log.h"
#include "natra.skel.h"
#include "natra_object_id.h"
#include "util/cleanup.h"

static void skeleton_freep(struct natra_bpf **skel)
{
	natra_bpf__destroy(*skel);
}

static enum natra_subnets subnets_kind(const struct program_options *options)
{
	return options->subnets ? options->subnets->kind : NATRA_SUBNETS_NONE;
}

/* What the verifier is told of; the other half of the id is the object. */
static int fixed_of(struct natra *n, const struct program_options *options,
		    struct natra_fixed *ret)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return natra_fail(n, cpus, "count the CPUs");
	*ret = (struct natra_fixed){
		.cpus = (uint32_t)cpus,
		.sketch_mask = options->sketch_width - 1,
		.has_l2 = options->has_l2,
		.subnets = (uint16_t)subnets_kind(options),
		.peer_is_to = options->peer_is_to,
	};
	return 0;
}

/* FNV-1a by words. */
static uint64_t hash_words(uint64_t h, const void *data, size_t size)
{
	uint64_t word;

	for (size_t i = 0; i < size; i += sizeof(word)) {
		size_t left = size - i;

		word = 0;
		memcpy(&word, (const char *)data + i,
		       left < sizeof(word) ? left : sizeof(word));
		h = (h ^ word) * 0x100000001b3ULL;
	}
	return h;
}

int engine_id(struct natra *n, const struct program_options *options,
	      uint64_t *ret_id)
{
	const uint32_t kind[2] = {NATRA_PIN_ABI, options->kind};
	uint64_t h = NATRA_OBJECT_ID;
	struct natra_fixed fixed = {0};
	int r = fixed_of(n, options, &fixed);

	if (r < 0)
		return r;
	h = hash_words(h, kind, sizeof(kind));
	if (options->subnets && options->subnets->len)
		h = hash_words(h, options->subnets->list,
			       options->subnets->len *
				       sizeof(*options->subnets->list));
	*ret_id = hash_words(h, &fixed, sizeof(fixed));
	return 0;
}

static struct bpf_program *choose(struct natra_bpf *skel,
				  const struct program_options *options)
{
	struct bpf_program *all[PROGRAM_KIND_MAX][2] = {
		[PROGRAM_RX] = {skel->progs.natra_rx,
				skel->progs.natra_rx_nets},
		[PROGRAM_TX] = {skel->progs.natra_tx,
				skel->progs.natra_tx_nets},
		[PROGRAM_EDT] = {skel->progs.natra_edt,
				 skel->progs.natra_edt_nets},
	};
	struct bpf_program *chosen =
		all[options->kind][subnets_kind(options) != NATRA_SUBNETS_NONE];
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj)
	{
		(void)bpf_program__set_autoload(program, program == chosen);
	}
	return chosen;
}

/* Makes the map of subnets, or leaves it out. */
static int prepare_subnets(struct natra *n, struct natra_bpf *skel,
			   const struct program_options *options,
			   struct engine *e)
{
	struct bpf_map *map = skel->maps.natra_subnets;
	int r;

	if (!subnets_kind(options)) {
		r = bpf_map__set_autocreate(map, false);
	} else {
		r = program_make_subnets(n, options->subnets, &e->subnets_fd);
		if (r < 0)
			return r;
		r = bpf_map__reuse_fd(map, e->subnets_fd);
	}
	return r < 0 ? natra_fail(n, r, "prepare the map of subnets") : 0;
}

static int prepare(struct natra *n, struct natra_bpf *skel,
		   const struct program_options *options, uint32_t slots)
{
	size_t size = 0;
	struct natra_fixed *fixed =
		bpf_map__initial_value(skel->maps.rodata, &size);
	int r;

	if (!fixed || size != sizeof(*fixed))
		return natra_refuse(n, -EINVAL,
				    "the BPF object is of another build");
	r = fixed_of(n, options, fixed);
	if (r < 0)
		return r;
	r = bpf_map__set_max_entries(skel->maps.natra_configs, slots);
	if (r == 0)
		r = bpf_map__set_max_entries(skel->maps.natra_states, slots);
	if (r == 0)
		r = bpf_map__set_value_size(
			skel->maps.natra_states,
			(uint32_t)(sizeof(struct natra_state) +
				   fixed->cpus * sizeof(struct natra_cpu) +
				   NATRA_ROWS * sizeof(uint32_t) *
					   options->sketch_width));
	return r < 0 ? natra_fail(n, r, "size the maps") : 0;
}

/* A copy of a descriptor that the skeleton closes. */
static int own_fd(struct natra *n, int fd, int *ret_fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0)
		return natra_fail(n, -errno, "duplicate a descriptor");
	*ret_fd = copy;
	return 0;
}

/* The program in an array of its own, which keeps it while it is pinned. */
static int make_array(struct natra *n, int prog_fd, struct engine *e)
{
	const uint32_t zero = 0;
	int r = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "natra_programs",
			       sizeof(uint32_t), sizeof(uint32_t), 1, NULL);

	if (r < 0)
		return natra_fail(n, r, "create the program array");
	e->programs_fd = r;
	r = bpf_map_update_elem(e->programs_fd, &zero, &prog_fd, BPF_ANY);
	return r < 0 ? natra_fail(n, r, "fill the program array") : 0;
}

/*
 * A token delegates the right to load programs; whoever calls natra has it. libbpf
 * would look for one where LIBBPF_BPF_TOKEN_PATH says, or on bpffs by a
 * descriptor that is not O_CLOEXEC.
 */
static struct natra_bpf *open_skeleton(void)
{
#if LIBBPF_MAJOR_VERSION > 1 || LIBBPF_MINOR_VERSION >= 4
	const struct bpf_object_open_opts opts = {
		.sz = sizeof(opts),
		.bpf_token_path = "",
	};

	return natra_bpf__open_opts(&opts);
#else
	return natra_bpf__open();
#endif
}

int engine_load(struct natra *n, const struct program_options *options,
		uint32_t slots, struct engine *ret_engine)
{
	__attribute__((cleanup(skeleton_freep))) struct natra_bpf *skel = NULL;
	cleanup_engine struct engine e = ENGINE_INIT;
	struct bpf_program *chosen;
	LIBBPF_LOG_SCOPE(n);
	int r;

	skel = open_skeleton();
	if (!skel)
		return natra_fail(n, -errno, "open the BPF object");
	chosen = choose(skel, options);
	r = prepare(n, skel, options, slots);
	if (r == 0)
		r = prepare_subnets(n, skel, options, &e);
	if (r < 0)
		return r;
	r = natra_bpf__load(skel);
	if (r < 0)
		return natra_fail(n, r, "load program %s",
				  bpf_program__name(chosen));
	r = own_fd(n, bpf_map__fd(skel->maps.natra_configs), &e.configs_fd);
	if (r == 0)
		r = own_fd(n, bpf_map__fd(skel->maps.natra_states),
			   &e.states_fd);
	if (r == 0)
		r = make_array(n, bpf_program__fd(chosen), &e);
	if (r < 0)
		return r;
	*ret_engine = e;
	e = (struct engine)ENGINE_INIT;
	return 0;
}
