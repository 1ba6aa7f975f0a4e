/* SPDX-License-Identifier: BSD-2-Clause */
/* The only file that includes the skeleton. */
#include "state/bank_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/libbpf_log.h"
#include "kernel/feature.h"
#include "state/connects_map.h"
#include "state/group_map.h"
#include "state/pin_dir.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"
#include "natra.skel.h"
#include "natra_object_id.h"

#define POSSIBLE_CPUS "/sys/devices/system/cpu/possible"

void bank_close(struct bank *bank)
{
	cleanup_closep(&bank->programs_fd);
	cleanup_closep(&bank->configs_fd);
	cleanup_closep(&bank->states_fd);
	cleanup_closep(&bank->object_fd);
	cleanup_closep(&bank->connects_fd);
	cleanup_closep(&bank->tries_fd);
	cleanup_closep(&bank->next_fd);
	*bank = (struct bank)BANK_INIT;
}

static void skeleton_freep(struct natra_bpf **skel)
{
	natra_bpf__destroy(*skel);
}

/* Returns whether there are more CPU ids than stripes. Ids may have gaps, so
 * the highest one decides, which is the last number of "0-3,8-11\n". If it
 * cannot be read, returns true: shared stripes are right on every machine. */
static bool shares_stripes(void)
{
	cleanup_close int fd = open(POSSIBLE_CPUS, O_RDONLY | O_CLOEXEC);
	char text[4096]; /* sysfs files are not longer */
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *last;

	if (len <= 0)
		return true;
	text[len] = '\0';
	for (last = text + len; last > text; last--) {
		if (last[-1] == ',' || last[-1] == '-')
			break;
	}
	return strtoul(last, NULL, 10) >= NATRA_STRIPES;
}

/* Looks once in a process: CPU ids that are possible do not change. */
static bool knows_shared_stripes(void)
{
	static _Atomic signed char known; /* the answer plus 1, or 0 */
	signed char now = known;

	if (!now)
		known = now = (signed char)(shares_stripes() + 1);
	return now - 1;
}

/* Fills in the constants of the program, which the verifier knows. */
static void fixed_of(const struct program_options *options,
		     struct natra_fixed *ret)
{
	*ret = (struct natra_fixed){
		.stripes_shared = knows_shared_stripes(),
		.has_l2 = options->has_l2,
		.holds = options->holds || options->kind == STUB_EDT,
		.sets_tstamp = feature_is_there(FEATURE_SET_TSTAMP) != 0,
		.has_classes = options->has_classes,
		.measures_connects = options->measures_connects,
		.has_groups = options->has_groups,
	};
}

#define FNV_BASIS 0xcbf29ce484222325ULL

/* Hashes words by FNV-1a. */
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

uint64_t bank_object(void)
{
	return NATRA_OBJECT_ID;
}

uint64_t engine_id(const struct program_options *options)
{
	/* The sizes are here in case somebody changes a struct and forgets to
	 * raise NATRA_PIN_ABI. Stubs of builds that call engines in another way
	 * stay with engines of their own. */
	const uint32_t layout[] = {
		NATRA_PIN_ABI,
		NATRA_CALL_SLOT | NATRA_CALL_SENT | NATRA_CALL_HELD |
			NATRA_CALL_PEER_TO | NATRA_CALL_EXEMPT |
			NATRA_CALL_HIDDEN | NATRA_CALL_INNER,
		sizeof(struct natra_config),
		sizeof(struct natra_state),
		sizeof(struct natra_group),
	};
	struct natra_fixed fixed;
	uint64_t h;

	fixed_of(options, &fixed);
	h = hash_words(FNV_BASIS, &fixed, sizeof(fixed));
	return hash_words(h, layout, sizeof(layout));
}

static struct bpf_program *choose(struct natra_bpf *skel,
				  const struct program_options *options)
{
	if (options->has_classes)
		return skel->progs.natra_classes;
	(void)bpf_program__set_autoload(skel->progs.natra_classes, false);
	return skel->progs.natra_shape;
}

/* Makes the map of tables of connections, or leaves it out. */
static int prepare_connects(struct natra *n, struct natra_bpf *skel,
			    const struct program_options *options,
			    uint32_t slots, const struct bank *bank,
			    struct bank *b)
{
	struct bpf_map *map = skel->maps.natra_connects;
	int r;

	if (!options->measures_connects) {
		r = bpf_map__set_autocreate(map, false);
	} else if (bank) {
		r = bpf_map__reuse_fd(map, bank->connects_fd);
	} else {
		r = connects_map_make(n, slots, &b->connects_fd);
		if (r < 0)
			return r;
		r = bpf_map__reuse_fd(map, b->connects_fd);
	}
	return r < 0 ? fail_errno(n, r, "prepare the map of connections") : 0;
}

/* Makes the map of tries, or leaves it out with that of the next program, which libbpf
 * makes. */
static int prepare_classes(struct natra *n, struct natra_bpf *skel,
			   const struct program_options *options,
			   uint32_t slots, const struct bank *bank,
			   struct bank *b)
{
	struct bpf_map *tries = skel->maps.natra_tries;
	struct bpf_map *next = skel->maps.natra_next;
	int r;

	if (!options->has_classes) {
		r = bpf_map__set_autocreate(tries, false);
		if (r == 0)
			r = bpf_map__set_autocreate(next, false);
	} else if (bank) {
		r = bpf_map__reuse_fd(tries, bank->tries_fd);
		if (r == 0)
			r = bpf_map__reuse_fd(next, bank->next_fd);
	} else {
		r = subnets_tries_make(n, slots, &b->tries_fd);
		if (r < 0)
			return r;
		r = bpf_map__reuse_fd(tries, b->tries_fd);
	}
	return r < 0 ? fail_errno(n, r, "prepare the maps of classes") : 0;
}

/* Opens the map of groups under its lock, while the caller has that of an engine. A process that has
 * found no engine, and removes the map, would take it from this program; it has done so once it is
 * unlocked, or it finds the engine, for whose lock it does not wait. */
static int open_groups(struct natra *n)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r = pin_dir_lock_groups(n, false, &dir);

	return r < 0 && r != -ENOENT ? r : groups_map_fd(n);
}

/* Lets the program use the node's groups, or leaves them out. */
static int prepare_groups(struct natra *n, struct natra_bpf *skel,
			  const struct program_options *options)
{
	struct bpf_map *map = skel->maps.natra_groups;
	cleanup_close int fd = -1;
	int r;

	if (!options->has_groups) {
		r = bpf_map__set_autocreate(map, false);
	} else if (options->groups_fd > 0) {
		r = bpf_map__reuse_fd(map, options->groups_fd);
	} else {
		fd = open_groups(n);
		if (fd < 0)
			return fd;
		r = bpf_map__reuse_fd(map, fd);
	}
	return r < 0 ? fail_errno(n, r, "prepare the map of groups") : 0;
}

/* Lets the program use the maps of `bank`, or sizes new ones if that is
 * NULL. */
static int prepare_maps(struct natra *n, struct natra_bpf *skel, uint32_t slots,
			const struct bank *bank)
{
	struct bpf_map *configs = skel->maps.natra_configs;
	struct bpf_map *states = skel->maps.natra_states;
	int r;

	if (bank) {
		r = bpf_map__reuse_fd(configs, bank->configs_fd);
		if (r == 0)
			r = bpf_map__reuse_fd(states, bank->states_fd);
		return r < 0 ? fail_errno(n, r, "reuse the maps") : 0;
	}
	r = bpf_map__set_max_entries(configs, slots);
	if (r == 0)
		r = bpf_map__set_max_entries(states, slots);
	return r < 0 ? fail_errno(n, r, "size the maps") : 0;
}

static int prepare(struct natra *n, struct natra_bpf *skel,
		   const struct program_options *options)
{
	size_t size = 0;
	struct natra_fixed *fixed =
		bpf_map__initial_value(skel->maps.rodata, &size);

	if (!fixed || size != sizeof(*fixed))
		return refuse(n, -ENOEXEC,
			      "the BPF object is of another build");
	fixed_of(options, fixed);
	return 0;
}

/* Duplicates a descriptor that the skeleton closes. */
static int own_fd(struct natra *n, int fd, int *ret_fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0)
		return fail_errno(n, -errno, "duplicate a descriptor");
	*ret_fd = copy;
	return 0;
}

/* Puts the program into an array of its own, which keeps the program while the
 * array is pinned. */
static int make_array(struct natra *n, int prog_fd, struct bank *b)
{
	const uint32_t zero = 0;
	int r = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "natra_programs",
			       sizeof(uint32_t), sizeof(uint32_t), 1, NULL);

	if (r < 0)
		return fail_errno(n, r, "create the program array");
	b->programs_fd = r;
	r = bpf_map_update_elem(b->programs_fd, &zero, &prog_fd, BPF_ANY);
	return r < 0 ? fail_errno(n, r, "fill the program array") : 0;
}

/*
 * A token delegates the right to load programs, which natra's caller has already.
 * libbpf would look for one where LIBBPF_BPF_TOKEN_PATH says, or on bpffs by a
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

/* Without a ring libbpf makes one for this program alone. */
static int prepare_ring(struct natra *n, struct natra_bpf *skel, int ring_fd)
{
	int r;

	if (ring_fd < 0)
		return 0;
	r = bpf_map__reuse_fd(skel->maps.natra_events, ring_fd);
	return r < 0 ? fail_errno(n, r, "use the ring of events") : 0;
}

/* Puts the program behind natra_classes into its place. */
static int set_next(struct natra *n, const struct natra_bpf *skel)
{
	const uint32_t zero = 0;
	const int fd = bpf_program__fd(skel->progs.natra_shape);
	int r = bpf_map_update_elem(bpf_map__fd(skel->maps.natra_next), &zero,
				    &fd, BPF_ANY);

	return r < 0 ? fail_errno(n, r, "set the next program") : 0;
}

/* The arguments of load(). */
struct loading {
	const struct program_options *options;
	uint32_t slots;
	int ring_fd;
	const struct bank *bank; /* NULL: its maps are new */
};

/* libbpf takes a feature of the kernel for absent if no descriptor is left to try it, and makes
 * a program of it that the kernel refuses as invalid. Beside what is loaded, a try takes one for
 * BTF, one for a map and one for a program. */
static int check_descriptors(void)
{
	int fds[3], r = 0;
	size_t len = 0;

	while (r == 0 && len < sizeof(fds) / sizeof(fds[0])) {
		fds[len] = open("/", O_PATH | O_CLOEXEC);
		if (fds[len] < 0)
			r = -errno;
		else
			len++;
	}
	while (len > 0)
		(void)close(fds[--len]);
	return r;
}

/* Loads the program. If a map of connections or of tries is made, *b gets it. */
static int load(struct natra *n, const struct loading *loading, struct bank *b,
		struct natra_bpf **ret_skel, struct bpf_program **ret_program)
{
	const struct program_options *options = loading->options;
	struct natra_bpf *skel = open_skeleton();
	int r;

	if (!skel)
		return fail_errno(n, -errno, "open the BPF object");
	*ret_skel = skel;
	*ret_program = choose(skel, options);
	r = prepare(n, skel, options);
	if (r == 0)
		r = prepare_maps(n, skel, loading->slots, loading->bank);
	if (r == 0)
		r = prepare_connects(n, skel, options, loading->slots,
				     loading->bank, b);
	if (r == 0)
		r = prepare_classes(n, skel, options, loading->slots,
				    loading->bank, b);
	if (r == 0)
		r = prepare_groups(n, skel, options);
	if (r == 0)
		r = prepare_ring(n, skel, loading->ring_fd);
	if (r < 0)
		return r;
	r = check_descriptors();
	if (r == 0)
		r = natra_bpf__load(skel);
	if (r < 0)
		return fail_errno(n, r, "load program %s",
				  bpf_program__name(*ret_program));
	return options->has_classes ? set_next(n, skel) : 0;
}

int bank_load(struct natra *n, const struct program_options *options,
	      uint32_t slots, int ring_fd, struct bank *ret_bank)
{
	const struct loading loading = {options, slots, ring_fd, NULL};
	__attribute__((cleanup(skeleton_freep))) struct natra_bpf *skel = NULL;
	cleanup_bank struct bank b = BANK_INIT;
	struct bpf_program *program;
	LIBBPF_LOG_SCOPE(n);
	int r = load(n, &loading, &b, &skel, &program);

	if (r < 0)
		return r;
	r = own_fd(n, bpf_map__fd(skel->maps.natra_configs), &b.configs_fd);
	if (r == 0)
		r = own_fd(n, bpf_map__fd(skel->maps.natra_states),
			   &b.states_fd);
	if (r == 0 && options->has_classes)
		r = own_fd(n, bpf_map__fd(skel->maps.natra_next), &b.next_fd);
	if (r == 0)
		r = make_array(n, bpf_program__fd(program), &b);
	if (r < 0)
		return r;
	*ret_bank = b;
	b = (struct bank)BANK_INIT;
	return 0;
}

int bank_load_program(struct natra *n, const struct program_options *options,
		      int ring_fd, const struct bank *bank, int *ret_prog_fd)
{
	const struct loading loading = {options, 0, ring_fd, bank};
	__attribute__((cleanup(skeleton_freep))) struct natra_bpf *skel = NULL;
	/* load() adds nothing to this, since the bank has such maps
	 * already. */
	cleanup_bank struct bank made = BANK_INIT;
	struct bpf_program *program;
	LIBBPF_LOG_SCOPE(n);
	int r = load(n, &loading, &made, &skel, &program);

	return r < 0 ? r : own_fd(n, bpf_program__fd(program), ret_prog_fd);
}
