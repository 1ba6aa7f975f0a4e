/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/group_map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/libbpf_log.h"
#include "policy/group_limits.h"
#include "state/pin.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"
#include "../../bpf/natra_bucket.h"
#include "../../bpf/natra_groups.h"

#define MAP_SIZE (2 * NATRA_GROUPS * sizeof(struct natra_group))
/* So many places are left for administrators' groups. */
#define RESERVED 32
/* What a group owes up to so long is not converted when its rate changes. */
#define DEBT_NS  100000000ULL

static const char map_name[] = "map";

_Static_assert(sizeof(((struct groups_members *)0)->id) == NATRA_ID_MAX + 1,
	       "room for an id");

int groups_make_map(struct natra *n)
{
	const struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.map_flags = BPF_F_MMAPABLE,
	};
	LIBBPF_LOG_SCOPE(n);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "natra_groups",
				sizeof(uint32_t), sizeof(struct natra_group),
				2 * NATRA_GROUPS, &opts);

	return fd < 0 ? fail_errno(n, fd, "create the map of groups") : fd;
}

static int open_map(struct natra *n, const char *dir, int *ret_fd)
{
	static const struct pin_map groups_map = {
		.type = BPF_MAP_TYPE_ARRAY,
		.value_size = sizeof(struct natra_group),
		.entries = 2 * NATRA_GROUPS,
		.flags = BPF_F_MMAPABLE,
	};
	cleanup_close int fd = -1;
	int r = pin_open_object(n, dir, map_name, &fd);

	if (r == 0)
		r = pin_check_map(n, dir, map_name, fd, &groups_map, NULL);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int groups_map_fd(struct natra *n)
{
	char path[PIN_PATH_MAX];
	int fd = -1;
	int r = pin_dir_groups_path(n, path);

	if (r == 0)
		r = open_map(n, path, &fd);
	if (r == -ENOENT)
		return refuse(n, r, "there are no groups");
	return r < 0 ? r : fd;
}

static int map_groups(struct natra *n, int fd, struct groups *groups)
{
	void *map =
		mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return fail_errno(n, -errno, "map the groups");
	groups->map = map;
	/* Names are terminated, whoever wrote them. */
	for (uint32_t i = 1; i <= NATRA_GROUPS; i++) {
		struct natra_group_given *given = groups_given(groups, i);

		given->name[sizeof(given->name) - 1] = '\0';
		if (given->parent > NATRA_GROUPS)
			given->parent = 0;
	}
	return 0;
}

int groups_open(struct natra *n, bool create, struct groups *ret)
{
	cleanup_groups struct groups groups = GROUPS_INIT;
	cleanup_close int fd = -1;
	int r = pin_dir_lock_groups(n, create, &groups.dir);

	if (r < 0)
		return r;
	r = open_map(n, groups.dir.path, &fd);
	if (r == -ENOENT && create) {
		fd = groups_make_map(n);
		r = fd < 0 ? fd : pin_object(n, groups.dir.path, map_name, fd);
		if (r < 0)
			pin_dir_remove(&groups.dir);
	}
	if (r == 0)
		r = map_groups(n, fd, &groups);
	if (r < 0)
		return r;
	*ret = groups;
	groups = (struct groups)GROUPS_INIT;
	return 0;
}

void groups_close(struct groups *groups)
{
	if (groups->map)
		(void)munmap(groups->map, MAP_SIZE);
	groups->map = NULL;
	pin_dir_unlock(&groups->dir);
}

static struct natra_group *entry_of(const struct groups *groups,
				    uint32_t number, bool egress)
{
	return &groups->map[natra_group_place(number, egress) - 1];
}

struct natra_group_given *groups_given(const struct groups *groups,
				       uint32_t number)
{
	return &entry_of(groups, number, false)->given;
}

uint32_t groups_find(const struct groups *groups, const char *name,
		     bool automatic)
{
	for (uint32_t i = 1; i <= NATRA_GROUPS && name[0]; i++) {
		const struct natra_group_given *given = groups_given(groups, i);

		if (strcmp(given->name, name) == 0 &&
		    (given->automatic != 0) == automatic)
			return i;
	}
	return 0;
}

uint32_t groups_find_free(const struct groups *groups, bool automatic)
{
	for (uint32_t i = 1; i <= NATRA_GROUPS; i++) {
		const uint32_t place = automatic ? NATRA_GROUPS + 1 - i : i;

		if (automatic && place <= RESERVED)
			break;
		if (!groups_given(groups, place)->name[0])
			return place;
	}
	return 0;
}

bool groups_is_parent(const struct groups *groups, uint32_t number)
{
	for (uint32_t i = 1; i <= NATRA_GROUPS; i++) {
		const struct natra_group_given *given = groups_given(groups, i);

		if (given->name[0] && given->parent == number)
			return true;
	}
	return false;
}

void groups_clear(const struct groups *groups, uint32_t number)
{
	memset(entry_of(groups, number, false), 0, sizeof(struct natra_group));
	memset(entry_of(groups, number, true), 0, sizeof(struct natra_group));
}

/* Converts what a group owes from one rate to another. What takes no longer than DEBT_NS
 * stays. */
static void convert_debts(struct natra_group *group,
			  const struct natra_rate *from,
			  const struct natra_rate *to)
{
	const uint64_t base_ns = clock_ns(CLOCK_MONOTONIC) + DEBT_NS;
	__u64 *tats[] = {&group->fair.tat_ns, &group->fair.latest_ns};

	if (!from->mult || !to->mult)
		return;
	for (size_t i = 0; i < sizeof(tats) / sizeof(*tats); i++)
		natra_bucket_convert(tats[i], base_ns, natra_debt_unit(from),
				     natra_debt_unit(to));
}

static void write_limits(struct natra_group *group,
			 const struct natra_group_limits *limits)
{
	const uint64_t active = group->active;
	const struct natra_rate *before = &group->limits[active & 1].rate;

	if (memcmp(&group->limits[active & 1], limits, sizeof(*limits)) == 0)
		return;
	group->limits[(active & 1) ^ 1] = *limits;
	__atomic_store_n(&group->active, active + 1, __ATOMIC_RELEASE);
	convert_debts(group, before, &limits->rate);
}

/* Returns the limits that follow from what was asked for. */
static struct natra_group_limits limits_of(const struct groups *groups,
					   uint32_t number, bool egress)
{
	const struct natra_group_given *given = groups_given(groups, number);

	return group_limits(given,
			    given->parent ? groups_given(groups, given->parent)
					  : NULL,
			    egress);
}

void groups_write_limits(const struct groups *groups)
{
	for (uint32_t i = 1; i <= NATRA_GROUPS; i++) {
		const bool is_used = groups_given(groups, i)->name[0];

		for (int egress = 0; is_used && egress < 2; egress++) {
			const struct natra_group_limits limits =
				limits_of(groups, i, egress);

			write_limits(entry_of(groups, i, egress), &limits);
		}
	}
}

int groups_repair(struct natra *n)
{
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = groups_open(n, false, &groups);

	if (r == 0)
		groups_write_limits(&groups);
	return r == -ENOENT ? 0 : r;
}

struct listing {
	struct natra *n;
	const char *except, *label;
	struct groups_members *list;
};

/* Returns whether the attachment may be in a group of this ABI: a record that cannot be
 * read does not say. */
static bool may_be_member(const struct pin_gen *gen)
{
	return gen->record_fd >= 0 &&
	       (gen->kind == RECORD_NONE || (gen->kind == RECORD_FOREIGN &&
					     gen->record.abi == NATRA_PIN_ABI));
}

/* A label that is not "<namespace>/<pod>" has no namespace. */
static bool is_of_namespace(const char *label, const char *of)
{
	const size_t len = of ? strcspn(of, "/") : 0;

	return len && of[len] && strncmp(label, of, len + 1) == 0;
}

static void note_record(const struct listing *listing,
			const struct record *record, uint32_t number)
{
	struct groups_members *members = &listing->list[number];

	if (!number)
		return;
	members->count++;
	members->of_namespace |= is_of_namespace(record->label, listing->label);
	members->floor_bits_per_sec +=
		record_get_policy(record).group_floor_bits_per_sec;
	(void)str_copy(members->id, sizeof(members->id), record->id);
}

/* One that is being built counts as well: its record is all that keeps its group. */
static int note_gen(void *arg, struct pin_gen *gen)
{
	const struct listing *listing = arg;
	const struct record *record = &gen->record;

	if (may_be_member(gen)) {
		listing->list->count++;
		(void)str_copy(listing->list->id, sizeof(listing->list->id),
			       gen->kind == RECORD_NONE ? gen->path
							: gen->record.id);
	}
	if (gen->kind != RECORD_OWN ||
	    (listing->except && strcmp(record->id, listing->except) == 0))
		return 0;
	note_record(listing, record, record->group_number);
	note_record(listing, record, record->group_next);
	return 0;
}

static int note_member(void *arg, const char *path)
{
	const struct listing *listing = arg;

	return pin_foreach_gen(listing->n, path, note_gen, arg);
}

int groups_list_members(struct natra *n, const char *except, const char *label,
			struct groups_members **ret_members)
{
	struct listing listing = {n, except, label, NULL};
	cleanup_free struct groups_members *list =
		calloc(NATRA_GROUPS + 1, sizeof(*list));
	int r;

	if (!list)
		return fail_errno(n, -ENOMEM, "list the members of groups");
	listing.list = list;
	r = pin_dir_foreach_id(n, note_member, &listing);
	if (r == 0)
		*ret_members = TAKE_PTR(list);
	return r;
}

/* Checks the sum of floors against the rate that a direction of a group has. */
static int check_sum(struct natra *n, const struct natra_group_given *given,
		     bool egress, uint64_t floors)
{
	const uint64_t rate = given->rate_bits_per_sec[egress];

	if (!rate || floors <= rate)
		return 0;
	return refuse(n, -ERANGE,
		      "group '%s': the floors of its members are %" PRIu64
		      " bit/s together, its %s rate is %" PRIu64,
		      given->name, floors, egress ? "egress" : "ingress", rate);
}

/* Returns the sum of the floors that the groups in this one have in a direction. */
static uint64_t child_floors(const struct groups *groups, uint32_t parent,
			     bool egress)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= NATRA_GROUPS; i++) {
		const struct natra_group_given *given = groups_given(groups, i);

		if (given->name[0] && given->parent == parent &&
		    given->rate_bits_per_sec[egress])
			sum += given->floor_bits_per_sec;
	}
	return sum;
}

int groups_check_floors(struct natra *n, const struct groups *groups,
			uint32_t number, const char *id, uint64_t floor)
{
	cleanup_free struct groups_members *list = NULL;
	int r = groups_list_members(n, id, NULL, &list);

	for (int egress = 0; egress < 2 && r == 0; egress++)
		r = check_sum(n, groups_given(groups, number), egress,
			      list[number].floor_bits_per_sec +
				      child_floors(groups, number, egress) +
				      floor);
	return r;
}

int groups_check(struct natra *n, const struct record *record)
{
	const uint32_t number = record->group_number;
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = groups_open(n, false, &groups);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT || groups_find(&groups, record->group,
					record->group_is_automatic) != number)
		return refuse(n, -EBADE, "its group '%s' is gone",
			      record->group);
	for (int egress = 0; egress < 2; egress++) {
		const struct natra_group_limits want =
			limits_of(&groups, number, egress);
		const struct natra_group_limits *have = natra_group_limits_of(
			entry_of(&groups, number, egress));

		if (memcmp(&want, have, sizeof(want)) != 0)
			return refuse(
				n, -EBADE,
				"the %s limits of group '%s' are not what was last set",
				egress ? "egress" : "ingress", record->group);
	}
	return 0;
}

/* Copies what the map has of a group at this moment. */
static int copy_given(struct natra *n, int fd, uint32_t number,
		      struct natra_group_given *ret_given)
{
	cleanup_free struct natra_group *group = malloc(sizeof(*group));
	const uint32_t place = natra_group_place(number, false) - 1;
	int r;

	if (!group)
		return fail_errno(n, -ENOMEM, "read the groups");
	r = bpf_map_lookup_elem(fd, &place, group);
	if (r < 0)
		return fail_errno(n, r, "read a group");
	*ret_given = group->given;
	ret_given->name[sizeof(ret_given->name) - 1] = '\0';
	return 0;
}

int groups_name(struct natra *n, uint32_t number, char *ret_name, size_t size)
{
	cleanup_close int fd = groups_map_fd(n);
	struct natra_group_given given;
	int r = fd < 0 ? fd : copy_given(n, fd, number, &given);

	if (r == 0)
		(void)str_copy(ret_name, size, given.name);
	return r;
}

int groups_limit(struct natra *n, uint32_t number,
		 bool ret_limits[NATRA_DIRECTION_MAX])
{
	cleanup_close int fd = groups_map_fd(n);
	struct natra_group_given given;

	if (fd < 0)
		return fd;
	/* A parent has none itself. */
	for (int i = 0; i < 2 && number && number <= NATRA_GROUPS; i++) {
		int r = copy_given(n, fd, number, &given);

		if (r < 0)
			return r;
		for (int j = 0; j < NATRA_DIRECTION_MAX; j++)
			ret_limits[j] |= given.rate_bits_per_sec[j] != 0;
		number = given.parent;
	}
	return 0;
}

int groups_clear_empty(struct natra *n, const struct groups *groups)
{
	cleanup_free struct groups_members *members = NULL;
	int r = 0, left = 0;

	for (uint32_t i = 1; i <= NATRA_GROUPS && r == 0; i++) {
		const struct natra_group_given *given = groups_given(groups, i);

		if (!given->name[0])
			continue;
		left++;
		if (!given->automatic || groups_is_parent(groups, i))
			continue;
		if (!members)
			r = groups_list_members(n, NULL, NULL, &members);
		if (members && r == 0 && !members[i].count && !members->count) {
			groups_clear(groups, i);
			left--;
		}
	}
	return r < 0 ? r : left > 0;
}

static int sweep(struct natra *n)
{
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = groups_open(n, false, &groups);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = groups_clear_empty(n, &groups);
	if (r == 0)
		r = pin_dir_find_engine(n, groups.dir.path);
	if (r != 0)
		return r < 0 ? r : 0;
	return pin_remove_all(n, groups.dir.path);
}

void groups_sweep(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);

	if (sweep(n) < 0)
		log_line(n, NATRA_LOG_WARN, "groups stay: %s", last_error(n));
}

void groups_left(struct natra *n, const struct record *before, uint32_t number)
{
	if (before->group_is_automatic && before->group_number &&
	    before->group_number != number)
		groups_sweep(n);
}
