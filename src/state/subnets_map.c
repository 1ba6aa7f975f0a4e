/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/subnets_map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "policy/fields.h"
#include "util/cleanup.h"

#define DSCPS           (POLICY_DSCP_MAX + 1)
#define DSCP_PREFIX_MAX (NATRA_SUBNET_VERSION_BITS + 32)
/* While the map changes, it has what is there before and after, but that of any DSCP once;
 * some kernels want room for one more to replace an entry. It takes no memory for what it
 * does not have. */
#define ENTRIES_MAX     (2 * (NATRA_SUBNETS_MAX + DSCPS) + 2)

struct entry {
	struct natra_subnet key;
	uint8_t number; /* of its class; 0: of none; NATRA_CLASS_EXEMPT */
};

/* Programs find this entry when they have found neither a subnet nor the DSCP of a
 * class. */
static const struct natra_subnet any_dscp = {
	.prefix_bits = NATRA_SUBNET_VERSION_BITS,
	.version = NATRA_SUBNET_DSCP,
};

/* The entries of a map, the longest prefixes first. */
struct entries {
	struct entry *list; /* owned */
	size_t len;
};

static void entries_free(struct entries *entries)
{
	free(entries->list);
}

#define cleanup_entries __attribute__((cleanup(entries_free)))

/* Programs look for a DSCP when they have found no subnet, so its prefixes count as the
 * shortest ones. */
static uint32_t length_of(const struct natra_subnet *key)
{
	return key->prefix_bits +
	       (key->version == NATRA_SUBNET_DSCP ? 0 : DSCP_PREFIX_MAX);
}

static int longest_first(const void *a, const void *b)
{
	const struct natra_subnet *x = &((const struct entry *)a)->key;
	const struct natra_subnet *y = &((const struct entry *)b)->key;
	const uint32_t x_len = length_of(x), y_len = length_of(y);

	return x_len == y_len ? subnet_compare(x, y)
			      : (x_len < y_len) - (x_len > y_len);
}

static void add_blocks(struct entries *entries, const struct natra_subnet *list,
		       size_t len, uint8_t number)
{
	for (size_t i = 0; i < len; i++)
		entries->list[entries->len++] = (struct entry){list[i], number};
}

static void add_dscps(struct entries *entries, uint64_t dscps, uint8_t number)
{
	for (uint32_t dscp = 0; dscp < DSCPS; dscp++) {
		const struct natra_subnet key = {
			.prefix_bits = DSCP_PREFIX_MAX,
			.version = NATRA_SUBNET_DSCP,
			.addr = {dscp},
		};

		if (dscps >> dscp & 1)
			add_blocks(entries, &key, 1, number);
	}
}

/* Shaped peers are in no class, and all others are exempt; or unshaped ones are. */
static void add_subnets(struct entries *entries, const struct subnets *subnets)
{
	const bool shaped = subnets->kind == SUBNETS_SHAPED;

	add_blocks(entries, subnets->list, subnets->len,
		   shaped ? 0 : NATRA_CLASS_EXEMPT);
	if (shaped)
		add_blocks(entries, &any_dscp, 1, NATRA_CLASS_EXEMPT);
}

static int entries_of(struct natra *n, const struct subnets *subnets,
		      struct entries *ret)
{
	size_t len = subnets->len + 1;

	for (size_t i = 0; i < subnets->classes_len; i++)
		len += subnets->classes[i].len + DSCPS;
	ret->list = calloc(len, sizeof(*ret->list));
	if (!ret->list)
		return fail_errno(n, -ENOMEM, "list the subnets");
	add_subnets(ret, subnets);
	for (size_t i = 0; i < subnets->classes_len; i++) {
		const struct peer_class *class = &subnets->classes[i];
		const uint8_t number = (uint8_t)(i + 1);

		add_blocks(ret, class->list, class->len, number);
		add_dscps(ret, class->dscps, number);
	}
	qsort(ret->list, ret->len, sizeof(*ret->list), longest_first);
	return 0;
}

int subnets_map_make(struct natra *n, const struct subnets *subnets,
		     int *ret_fd)
{
	const struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.map_flags = BPF_F_NO_PREALLOC,
	};
	cleanup_entries struct entries entries = {0};
	cleanup_close int fd = -1;
	int r = entries_of(n, subnets, &entries);

	if (r < 0)
		return r;
	fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "natra_subnets",
			    sizeof(entries.list->key),
			    sizeof(entries.list->number), ENTRIES_MAX, &opts);
	if (fd < 0)
		return fail_errno(n, fd, "create the map of subnets");
	for (size_t i = 0; i < entries.len && r == 0; i++)
		r = bpf_map_update_elem(fd, &entries.list[i].key,
					&entries.list[i].number, BPF_ANY);
	if (r < 0)
		return fail_errno(n, r, "write the subnets");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int subnets_tries_make(struct natra *n, uint32_t slots, int *ret_fd)
{
	const struct subnets none = {0};
	struct bpf_map_create_opts opts = {.sz = sizeof(opts)};
	cleanup_close int trie_fd = -1;
	int r;

	/* The kernel takes the layout of the tries from this one. */
	r = subnets_map_make(n, &none, &trie_fd);
	if (r < 0)
		return r;
	opts.inner_map_fd = (uint32_t)trie_fd;
	r = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "natra_tries",
			   sizeof(uint32_t), sizeof(uint32_t), slots, &opts);
	if (r < 0)
		return fail_errno(n, r, "create the map of tries");
	*ret_fd = r;
	return 0;
}

/* Puts an entry where it belongs. Returns -ESTALE if it is none of a map of these
 * subnets, and -ENOMEM. */
static int take_entry(struct subnets *subnets, const struct entry *entry)
{
	struct peer_class *class = NULL;
	struct natra_subnet **list = &subnets->list;
	size_t *len = &subnets->len;
	struct natra_subnet *longer;

	if (subnet_compare(&entry->key, &any_dscp) == 0)
		return 0; /* it follows from the kind of list */
	if (entry->number && entry->number <= subnets->classes_len) {
		class = &subnets->classes[entry->number - 1];
		list = &class->list;
		len = &class->len;
	} else if (subnets->kind == SUBNETS_NONE ||
		   (entry->number && entry->number != NATRA_CLASS_EXEMPT)) {
		return -ESTALE;
	}
	if (class && entry->key.version == NATRA_SUBNET_DSCP &&
	    entry->key.addr[0] < DSCPS) {
		class->dscps |= UINT64_C(1) << entry->key.addr[0];
		return 0;
	}
	if (!subnet_valid(&entry->key))
		return -ESTALE;
	longer = realloc(*list, (*len + 1) * sizeof(**list));
	if (!longer)
		return -ENOMEM;
	*list = longer;
	longer[(*len)++] = entry->key;
	return 0;
}

static int read_entries(struct natra *n, int fd, uint32_t max,
			struct subnets *subnets)
{
	struct entry entry = {0};
	int r = 0;

	for (uint32_t i = 0; i < max; i++) {
		struct natra_subnet next;

		r = bpf_map_get_next_key(fd, i ? &entry.key : NULL, &next);
		if (r == -ENOENT)
			return 0;
		entry.key = next;
		if (r == 0)
			r = bpf_map_lookup_elem(fd, &entry.key, &entry.number);
		if (r == -ENOENT)
			continue; /* it is being changed */
		if (r == 0)
			r = take_entry(subnets, &entry);
		if (r == -ESTALE)
			return refuse(n, r, "a pinned subnet is not valid");
		if (r < 0)
			return fail_errno(n, r, "read the subnets");
	}
	return 0;
}

int subnets_map_read(struct natra *n, int fd, struct subnets *subnets)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int r;

	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return fail_errno(n, r, "ask for the map of subnets");
	if (info.type != BPF_MAP_TYPE_LPM_TRIE ||
	    info.key_size != sizeof(struct natra_subnet) ||
	    info.value_size != sizeof(uint8_t) ||
	    info.max_entries > ENTRIES_MAX)
		return refuse(n, -ESTALE,
			      "the pin of the subnets is another map");
	r = read_entries(n, fd, info.max_entries, subnets);
	if (r < 0)
		return r;
	subnets->len = subnets_sort(subnets->list, subnets->len);
	for (size_t i = 0; i < subnets->classes_len; i++) {
		struct peer_class *class = &subnets->classes[i];

		class->len = subnets_sort(class->list, class->len);
	}
	return 0;
}

static const struct entry *find(const struct entries *entries,
				const struct entry *entry)
{
	return bsearch(entry, entries->list, entries->len,
		       sizeof(*entries->list), longest_first);
}

/* Returns whether a map has no room for what is in it beside what is to come.
 * It has room for two lists, and a process that was killed while it changed them has left
 * two. */
static bool is_crowded(const struct entries *from, const struct entries *to)
{
	size_t both = from->len;

	for (size_t i = 0; i < to->len; i++)
		both += !find(from, &to->list[i]);
	return both > ENTRIES_MAX - 1;
}

/* Adds the longest prefixes first, so that an address never falls to a shorter new prefix
 * than the one that it is to have. */
static int add_new(int fd, const struct entries *from, const struct entries *to)
{
	int r = 0;

	for (size_t i = 0; i < to->len && r == 0; i++) {
		const struct entry *entry = &to->list[i];
		const struct entry *old = find(from, entry);

		if (!old || old->number != entry->number)
			r = bpf_map_update_elem(fd, &entry->key, &entry->number,
						BPF_ANY);
	}
	return r;
}

/* Removes the shortest prefixes first, so that no address falls back to a shorter old
 * one. */
static int remove_old(int fd, const struct entries *from,
		      const struct entries *to)
{
	int r = 0;

	for (size_t i = from->len; i > 0 && r == 0; i--) {
		const struct entry *entry = &from->list[i - 1];

		if (!find(to, entry))
			r = bpf_map_delete_elem(fd, &entry->key);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

/* New entries come first, so that no peer is of no class meanwhile; unless there is no
 * room for them. */
static int apply(int fd, const struct entries *from, const struct entries *to)
{
	int r = is_crowded(from, to) ? remove_old(fd, from, to) : 0;

	if (r == 0)
		r = add_new(fd, from, to);
	return r < 0 ? r : remove_old(fd, from, to);
}

int subnets_map_change(struct natra *n, int fd, const struct subnets *from,
		       const struct subnets *to)
{
	cleanup_entries struct entries before = {0};
	cleanup_entries struct entries after = {0};
	int r = entries_of(n, from, &before);

	if (r == 0)
		r = entries_of(n, to, &after);
	if (r < 0)
		return r;
	r = apply(fd, &before, &after);
	if (r < 0) {
		(void)apply(fd, &after, &before);
		return fail_errno(n, r, "change the subnets");
	}
	return 0;
}
