/* SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "libbpf_log.h"
#include "natra.skel.h"
#include "util/cleanup.h"
#include "../bpf/natra_flows.h"

#define KEYS_BYTES       sizeof(((struct natra_state *)0)->keys)
#define SUBNETS_MAP_NAME "natra_subnets"

static void skeleton_freep(struct natra_bpf **skel)
{
	natra_bpf__destroy(*skel);
}

const char *program_map_name(enum program_map map)
{
	static const char *const names[PROGRAM_MAP_MAX] = {
		[PROGRAM_MAP_CONFIG] = "config",
		[PROGRAM_MAP_STATE] = "state",
		[PROGRAM_MAP_COUNTERS] = "counters",
	};

	return names[map];
}

void program_close(struct program *program)
{
	cleanup_closep(&program->prog_fd);
	program->prog_fd = -1;
	for (int i = 0; i < PROGRAM_MAP_MAX; i++) {
		cleanup_closep(&program->map_fd[i]);
		program->map_fd[i] = -1;
	}
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
		all[options->kind][options->subnets != NATRA_SUBNETS_NONE];
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj)
	{
		(void)bpf_program__set_autoload(program, program == chosen);
	}
	return chosen;
}

/*
 * Makes the number that stands for the map of subnets a reference to it. libbpf
 * itself still has to make those to global data: it finds them by their place,
 * which stays.
 */
static int link_subnets(struct natra *n, struct bpf_program *program, int fd)
{
	const uint32_t low = (uint32_t)NATRA_SUBNETS_MAP;
	const uint32_t high = (uint32_t)(NATRA_SUBNETS_MAP >> 32);
	size_t len = bpf_program__insn_cnt(program);
	cleanup_free struct bpf_insn *insns = calloc(len, sizeof(*insns));
	bool found = false;
	int r;

	if (!insns)
		return natra_fail(n, -ENOMEM, "link the subnets");
	memcpy(insns, bpf_program__insns(program), len * sizeof(*insns));
	for (size_t i = 0; i + 1 < len; i++) {
		if (insns[i].code != (BPF_LD | BPF_IMM | BPF_DW) ||
		    insns[i].src_reg || (uint32_t)insns[i].imm != low ||
		    (uint32_t)insns[i + 1].imm != high)
			continue;
		insns[i].src_reg = BPF_PSEUDO_MAP_FD;
		insns[i].imm = fd;
		insns[i + 1].imm = 0;
		found = true;
	}
	if (!found)
		return natra_refuse(n, -EINVAL,
				    "the BPF object is of another build");
	r = bpf_program__set_insns(program, insns, len);
	return r < 0 ? natra_fail(n, r, "link the subnets") : 0;
}

/*
 * Nothing here is read through mmap, and a map that could be costs two pages
 * more.
 */
static void forbid_mmap(struct natra_bpf *skel)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj)
	{
		(void)bpf_map__set_map_flags(map, bpf_map__map_flags(map) &
							  ~BPF_F_MMAPABLE);
	}
}

/* A section's variable, before it is loaded; its size is the ABI. */
static void *section(struct bpf_map *map, size_t size)
{
	size_t found = 0;
	void *value = bpf_map__initial_value(map, &found);

	return found == size ? value : NULL;
}

static int prepare(struct natra *n, struct natra_bpf *skel,
		   const struct program_options *options,
		   const struct natra_limits *limits)
{
	struct natra_memory *memory =
		section(skel->maps.bss, sizeof(struct natra_memory));
	struct natra_fixed *fixed =
		section(skel->maps.rodata, sizeof(struct natra_fixed));
	struct natra_config *config =
		section(skel->maps.data_config, sizeof(struct natra_config));
	int cpus = libbpf_num_possible_cpus();
	int r;

	if (!memory || !fixed || !config)
		return natra_refuse(n, -EINVAL,
				    "the BPF object is of another build");
	if (cpus < 0)
		return natra_fail(n, cpus, "count the CPUs");
	if (getrandom(memory->state.keys, KEYS_BYTES, 0) != KEYS_BYTES)
		return natra_fail(n, -errno, "random keys");
	fixed->cpus = (uint32_t)cpus;
	fixed->has_l2 = options->has_l2;
	fixed->subnets = (uint16_t)options->subnets;
	fixed->peer_is_to = options->peer_is_to;
	fixed->sketch_mask = options->sketch_width - 1;
	config->slot[0] = *limits;

	forbid_mmap(skel);
	/* From here on `memory` is not valid: resizing moves it. */
	r = bpf_map__set_value_size(skel->maps.bss_cpus,
				    (uint32_t)cpus * sizeof(struct natra_cpu));
	if (r == 0)
		r = bpf_map__set_value_size(
			skel->maps.bss,
			(uint32_t)(offsetof(struct natra_memory, sketch) +
				   NATRA_ROWS * sizeof(uint32_t) *
					   options->sketch_width));
	if (r < 0)
		return natra_fail(n, r, "size the maps");
	return 0;
}

static int own_fd(struct natra *n, int fd, int *ret_fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0)
		return natra_fail(n, -errno, "duplicate a descriptor");
	*ret_fd = copy;
	return 0;
}

static int take_fds(struct natra *n, struct natra_bpf *skel, int prog_fd,
		    struct program *p)
{
	const struct bpf_map *maps[PROGRAM_MAP_MAX] = {
		[PROGRAM_MAP_CONFIG] = skel->maps.data_config,
		[PROGRAM_MAP_STATE] = skel->maps.bss,
		[PROGRAM_MAP_COUNTERS] = skel->maps.bss_cpus,
	};
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int r;

	r = own_fd(n, prog_fd, &p->prog_fd);
	for (int i = 0; i < PROGRAM_MAP_MAX && r == 0; i++)
		r = own_fd(n, bpf_map__fd(maps[i]), &p->map_fd[i]);
	if (r < 0)
		return r;
	r = bpf_obj_get_info_by_fd(prog_fd, &info, &len);
	if (r < 0)
		return natra_fail(n, r, "ask for the program's id");
	p->prog_id = info.id;
	return 0;
}

int program_load(struct natra *n, const struct program_options *options,
		 const struct natra_limits *limits, struct program *ret_program)
{
	__attribute__((cleanup(skeleton_freep))) struct natra_bpf *skel = NULL;
	cleanup_program struct program p = PROGRAM_INIT;
	struct bpf_program *chosen;
	LIBBPF_LOG_SCOPE(n);
	int r;

	skel = natra_bpf__open();
	if (!skel)
		return natra_fail(n, -errno, "open the BPF object");
	chosen = choose(skel, options);
	r = prepare(n, skel, options, limits);
	if (r == 0 && options->subnets)
		r = link_subnets(n, chosen, options->subnets_fd);
	if (r < 0)
		return r;
	r = natra_bpf__load(skel);
	if (r < 0)
		return natra_fail(n, r, "load program %s",
				  bpf_program__name(chosen));
	r = take_fds(n, skel, bpf_program__fd(chosen), &p);
	if (r < 0)
		return r;
	*ret_program = p;
	p = (struct program)PROGRAM_INIT;
	return 0;
}

static int read_config(struct natra *n, int fd, struct natra_config *ret)
{
	const uint32_t zero = 0;
	int r = bpf_map_lookup_elem(fd, &zero, ret);

	return r < 0 ? natra_fail(n, r, "read the limits") : 0;
}

int program_get_limits(struct natra *n, int config_fd,
		       struct natra_limits *ret_limits)
{
	struct natra_config config;
	int r = read_config(n, config_fd, &config);

	if (r == 0)
		*ret_limits = config.slot[config.active & 1];
	return r;
}

int program_set_limits(struct natra *n, int config_fd,
		       const struct natra_limits *limits)
{
	const uint32_t zero = 0;
	struct natra_config config;
	int r = read_config(n, config_fd, &config);

	if (r < 0)
		return r;
	config.slot[(config.active & 1) ^ 1] = *limits;
	r = bpf_map_update_elem(config_fd, &zero, &config, BPF_EXIST);
	if (r == 0) {
		config.active ^= 1;
		r = bpf_map_update_elem(config_fd, &zero, &config, BPF_EXIST);
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

	fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, SUBNETS_MAP_NAME,
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

/* A map's whole value, of which at least `min` bytes must be there. */
static int read_value(struct natra *n, int fd, size_t min, void **ret_value,
		      size_t *ret_size)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_free void *value = NULL;
	const uint32_t zero = 0;
	int r;

	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return natra_fail(n, r, "ask for a map's size");
	if (info.value_size < min)
		return natra_refuse(n, -ESTALE, "a pinned map is too small");
	value = malloc(info.value_size);
	if (!value)
		return natra_fail(n, -ENOMEM, "read a map");
	r = bpf_map_lookup_elem(fd, &zero, value);
	if (r < 0)
		return natra_fail(n, r, "read a map");
	*ret_value = TAKE_PTR(value);
	*ret_size = info.value_size;
	return 0;
}

int program_counters(struct natra *n, int counters_fd,
		     struct natra_counters *ret_counters)
{
	cleanup_free void *value = NULL;
	struct natra_counters sum = {0};
	const struct natra_cpu *cpus;
	size_t size;
	int r = read_value(n, counters_fd, sizeof(*cpus), &value, &size);

	if (r < 0)
		return r;
	cpus = value;
	for (size_t i = 0; i < size / sizeof(*cpus); i++) {
		for (int j = 0; j < NATRA_COUNT_MAX; j++) {
			sum.count[j].packets +=
				cpus[i].counters.count[j].packets;
			sum.count[j].bytes += cpus[i].counters.count[j].bytes;
		}
		sum.delay_ns_sum += cpus[i].counters.delay_ns_sum;
	}
	*ret_counters = sum;
	return 0;
}

int program_flows(struct natra *n, int state_fd,
		  struct natra_flow_slot *ret_flows)
{
	cleanup_free void *value = NULL;
	const struct natra_state *state;
	size_t size;
	int r = read_value(n, state_fd, sizeof(*state), &value, &size);

	if (r < 0)
		return r;
	state = value;
	for (int i = 0; i < NATRA_FLOWS; i++) {
		struct natra_flow_slot slot = state->flows[i];
		struct natra_tuple t = {
			.ports = slot.ports,
			.version = slot.version,
			.protocol = slot.protocol,
			.fragment = slot.fragment,
		};

		memcpy(t.saddr, slot.saddr, sizeof(t.saddr));
		memcpy(t.daddr, slot.daddr, sizeof(t.daddr));
		if (slot.tag !=
		    natra_flow_tag(natra_hash_tuple(state->keys, &t)))
			slot.tag = 0;
		ret_flows[i] = slot;
	}
	return 0;
}
