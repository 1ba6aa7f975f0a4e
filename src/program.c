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

_Static_assert(
	offsetof(struct natra_bpf__bss, natra_sketch) +
			sizeof(((struct natra_bpf__bss *)0)->natra_sketch) ==
		sizeof(struct natra_bpf__bss),
	"the sketch is last: its map is resized");

#define KEYS_OFFSET offsetof(struct natra_bpf__rodata, natra_keys)

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
		[PROGRAM_MAP_KEYS] = "keys",
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
				  enum program_kind kind)
{
	struct bpf_program *all[PROGRAM_KIND_MAX] = {
		[PROGRAM_RX] = skel->progs.natra_rx,
		[PROGRAM_TX] = skel->progs.natra_tx,
		[PROGRAM_EDT] = skel->progs.natra_edt,
	};

	for (int i = 0; i < PROGRAM_KIND_MAX; i++)
		(void)bpf_program__set_autoload(all[i], i == (int)kind);
	return all[kind];
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

static int prepare(struct natra *n, struct natra_bpf *skel,
		   const struct program_options *options,
		   const struct natra_limits *limits)
{
	const uint32_t cells = NATRA_ROWS * options->sketch_width;
	uint64_t keys[NATRA_HASH_KEYS];
	int r;

	if (getrandom(keys, sizeof(keys), 0) != sizeof(keys))
		return natra_fail(n, -errno, "random keys");
	for (int i = 0; i < NATRA_HASH_KEYS; i++)
		skel->rodata->natra_keys[i] = keys[i] | 1;
	skel->rodata->natra_has_l2 = options->has_l2;
	skel->rodata->natra_sketch_mask = options->sketch_width - 1;
	skel->data_config->natra_config.slot[0] = *limits;

	forbid_mmap(skel);
	if (options->sketch_width == NATRA_SKETCH_WIDTH_DEFAULT)
		return 0;
	r = bpf_map__set_value_size(
		skel->maps.bss,
		(uint32_t)(offsetof(struct natra_bpf__bss, natra_sketch) +
			   cells * sizeof(uint32_t)));
	if (r < 0)
		return natra_fail(n, r, "size the sketch");
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
		[PROGRAM_MAP_COUNTERS] = skel->maps.natra_counters,
		[PROGRAM_MAP_KEYS] = skel->maps.rodata,
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
	chosen = choose(skel, options->kind);
	r = prepare(n, skel, options, limits);
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

int program_counters(struct natra *n, int counters_fd,
		     struct natra_counters *ret_counters)
{
	cleanup_free struct natra_counters *cpus = NULL;
	struct natra_counters sum = {0};
	int len = libbpf_num_possible_cpus();
	const uint32_t zero = 0;
	int r;

	if (len < 0)
		return natra_fail(n, len, "count the CPUs");
	cpus = calloc((size_t)len, sizeof(*cpus));
	if (!cpus)
		return natra_fail(n, -ENOMEM, "counters");
	r = bpf_map_lookup_elem(counters_fd, &zero, cpus);
	if (r < 0)
		return natra_fail(n, r, "read the counters");
	for (int i = 0; i < len; i++) {
		for (int j = 0; j < NATRA_COUNT_MAX; j++) {
			sum.count[j].packets += cpus[i].count[j].packets;
			sum.count[j].bytes += cpus[i].count[j].bytes;
		}
		sum.delay_ns_sum += cpus[i].delay_ns_sum;
	}
	*ret_counters = sum;
	return 0;
}

/* A map's whole value, of which at least `min` bytes must be there. */
static int read_value(struct natra *n, int fd, size_t min, void **ret_value)
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
	return 0;
}

int program_flows(struct natra *n, int state_fd, int keys_fd,
		  struct natra_flow_slot *ret_flows)
{
	cleanup_free void *state_value = NULL;
	cleanup_free void *keys_value = NULL;
	uint64_t keys[NATRA_HASH_KEYS];
	const struct natra_state *state;
	int r;

	r = read_value(n, state_fd, sizeof(*state), &state_value);
	if (r < 0)
		return r;
	r = read_value(n, keys_fd, KEYS_OFFSET + sizeof(keys), &keys_value);
	if (r < 0)
		return r;
	state = state_value;
	memcpy(keys, (const char *)keys_value + KEYS_OFFSET, sizeof(keys));

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
		if (slot.tag != natra_flow_tag(natra_hash_tuple(
					(const volatile __u64 *)keys, &t)))
			slot.tag = 0;
		ret_flows[i] = slot;
	}
	return 0;
}
