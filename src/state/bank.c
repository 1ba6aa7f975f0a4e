/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/bank.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/bpf_call.h"
#include "state/pin.h"
#include "state/ring.h"
#include "util/cleanup.h"
#include "util/random.h"

static const char programs_name[] = "programs";
static const char configs_name[] = "configs";
static const char states_name[] = "states";
static const char object_name[] = "object";
static const char connects_name[] = "connects";
static const char tries_name[] = "tries";
static const char next_name[] = "next";

static const struct pin_map configs_map = {
	.type = BPF_MAP_TYPE_ARRAY,
	.value_size = sizeof(struct natra_config),
};
static const struct pin_map states_map = {
	.type = BPF_MAP_TYPE_ARRAY,
	.value_size = sizeof(struct natra_state),
	.flags = BPF_F_MMAPABLE,
};
static const struct pin_map object_map = {
	.type = BPF_MAP_TYPE_ARRAY,
	.value_size = sizeof(uint64_t),
};
static const struct pin_map programs_map = {
	.type = BPF_MAP_TYPE_PROG_ARRAY,
	.value_size = sizeof(uint32_t),
};
/* That of connections, and that of tries. */
static const struct pin_map maps_map = {
	.type = BPF_MAP_TYPE_ARRAY_OF_MAPS,
	.value_size = sizeof(uint32_t),
};

/*
 * These two check all maps of a bank, since somebody may have pinned anything under
 * their names: the kernel copies as many bytes as the map's values have,
 * whatever the size of the struct that they are read into. (The blocks of
 * subnets are read from the pin of a generation, and checked there.)
 */
static int check_slots(struct natra *n, const char *path, const struct bank *b)
{
	uint32_t configs = 0, states = 0;
	int r;

	r = pin_check_map(n, path, configs_name, b->configs_fd, &configs_map,
			  &configs);
	if (r == 0)
		r = pin_check_map(n, path, states_name, b->states_fd,
				  &states_map, &states);
	if (r == 0 && configs != states)
		return refuse(n, -ESTALE, "'%s' has %u limits, but %u states",
			      path, configs, states);
	return r;
}

static int check_rest(struct natra *n, const char *path, const struct bank *b)
{
	int r = pin_check_map(n, path, object_name, b->object_fd, &object_map,
			      NULL);

	if (r == 0)
		r = pin_check_map(n, path, programs_name, b->programs_fd,
				  &programs_map, NULL);
	if (r == 0 && b->connects_fd >= 0)
		r = pin_check_map(n, path, connects_name, b->connects_fd,
				  &maps_map, NULL);
	if (r == 0 && b->tries_fd >= 0)
		r = pin_check_map(n, path, tries_name, b->tries_fd, &maps_map,
				  NULL);
	if (r == 0 && b->next_fd >= 0)
		r = pin_check_map(n, path, next_name, b->next_fd, &programs_map,
				  NULL);
	return r;
}

int bank_open_slots(struct natra *n, const char *path, struct bank *b)
{
	int r = pin_open_object(n, path, configs_name, &b->configs_fd);

	if (r == 0)
		r = pin_open_object(n, path, states_name, &b->states_fd);
	return r < 0 ? r : check_slots(n, path, b);
}

/* Opens what only some banks have. */
static int open_optional(struct natra *n, const char *path, const char *name,
			 int *fd)
{
	int r = pin_open_object(n, path, name, fd);

	return r == -ENOENT ? 0 : r;
}

int bank_open(struct natra *n, const char *path, struct bank *b)
{
	int r = bank_open_slots(n, path, b);

	if (r == 0)
		r = pin_open_object(n, path, object_name, &b->object_fd);
	if (r == 0)
		r = open_optional(n, path, connects_name, &b->connects_fd);
	if (r == 0)
		r = open_optional(n, path, tries_name, &b->tries_fd);
	if (r == 0)
		r = open_optional(n, path, next_name, &b->next_fd);
	/* The array of programs is pinned last: if it is there, the bank is
	 * whole. */
	if (r == 0)
		r = pin_open_object(n, path, programs_name, &b->programs_fd);
	return r < 0 ? r : check_rest(n, path, b);
}

static int write_object(struct natra *n, const struct bank *b)
{
	const uint64_t object = bank_object();
	const uint32_t zero = 0;
	int r = bpf_map_update_elem(b->object_fd, &zero, &object, BPF_EXIST);

	return r < 0 ? fail_errno(n, r, "write the object's id") : 0;
}

int bank_is_current(struct natra *n, const struct bank *b, bool *ret_current)
{
	const uint32_t zero = 0;
	uint64_t object = 0;
	int r = bpf_map_lookup_elem(b->object_fd, &zero, &object);

	if (r < 0)
		return fail_errno(n, r, "read the object's id");
	*ret_current = object == bank_object();
	return 0;
}

/*
 * Changes the program by one update of the array: a packet runs the old program
 * or the new one, never none. A process that is killed before it has written
 * the object's id leaves a program that the next process replaces once more,
 * which is harmless.
 */
int bank_renew(struct natra *n, const struct program_options *options,
	       const struct bank *b)
{
	const uint32_t zero = 0;
	cleanup_close int fd = -1, ring_fd = -1;
	bool current = false;
	int r = bank_is_current(n, b, &current);

	if (r < 0 || current)
		return r;
	ring_fd = ring_enter(n);
	r = bank_load_program(n, options, ring_fd, b, &fd);
	if (r < 0)
		return r;
	r = bpf_map_update_elem(b->programs_fd, &zero, &fd, BPF_ANY);
	if (r < 0)
		return fail_errno(n, r, "change the program");
	return write_object(n, b);
}

static int make_object(struct natra *n, struct bank *b)
{
	int r = bpf_call_make_array("natra_object", sizeof(uint64_t));

	if (r < 0)
		return fail_errno(n, r, "create the map of the object's id");
	b->object_fd = r;
	return write_object(n, b);
}

int bank_make(struct natra *n, const struct program_options *options,
	      const char *path, uint32_t slots, struct bank *b)
{
	cleanup_close int ring_fd = -1;
	int r;

	/* The directory can only hold what a killed process has left. */
	r = pin_remove_all(n, path);
	if (r == 0) {
		ring_fd = ring_enter(n);
		r = bank_load(n, options, slots, ring_fd, b);
	}
	if (r == 0)
		r = make_object(n, b);
	if (r == 0)
		r = pin_dir_make(n, path);
	if (r < 0)
		return r;
	r = pin_object(n, path, configs_name, b->configs_fd);
	if (r == 0)
		r = pin_object(n, path, states_name, b->states_fd);
	if (r == 0)
		r = pin_object(n, path, object_name, b->object_fd);
	if (r == 0 && b->connects_fd >= 0)
		r = pin_object(n, path, connects_name, b->connects_fd);
	if (r == 0 && b->tries_fd >= 0)
		r = pin_object(n, path, tries_name, b->tries_fd);
	if (r == 0 && b->next_fd >= 0)
		r = pin_object(n, path, next_name, b->next_fd);
	if (r == 0)
		r = pin_object(n, path, programs_name, b->programs_fd);
	if (r < 0)
		(void)pin_remove_all(n, path);
	return r;
}

int bank_read_config(struct natra *n, const struct bank *b, uint32_t index,
		     struct natra_config *ret_config)
{
	int r = bpf_map_lookup_elem(b->configs_fd, &index, ret_config);

	return r < 0 && r != -ENOENT ? fail_errno(n, r, "read slot %u", index)
				     : r;
}

/* Gives a slot to the attachment `owner`, with the limits of this class. The state of the
 * slot begins at zero. */
static int take_slot(struct natra *n, const struct bank *b, uint32_t index,
		     uint64_t owner, uint32_t class_number,
		     const struct slot_content *content)
{
	struct natra_config config = {
		.active = 2, /* not 0, under which nothing is charged */
		.limits = {content->limits[class_number]},
		.owner = owner,
		.class_number = class_number,
		.replaces = content->replaces,
	};
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_free void *zeroes = NULL;
	int r;

	memcpy(config.keys, content->keys, sizeof(config.keys));
	r = bpf_obj_get_info_by_fd(b->states_fd, &info, &len);
	if (r < 0)
		return fail_errno(n, r, "ask for the size of the state");
	zeroes = calloc(1, info.value_size);
	if (!zeroes)
		return fail_errno(n, -ENOMEM, "clear slot %u", index);
	r = bpf_map_update_elem(b->states_fd, &index, zeroes, BPF_EXIST);
	if (r == 0)
		r = bpf_map_update_elem(b->configs_fd, &index, &config,
					BPF_EXIST);
	return r < 0 ? fail_errno(n, r, "write slot %u", index) : 0;
}

int bank_put_table(struct natra *n, const struct bank *b, uint32_t index,
		   int table_fd)
{
	int r = bpf_map_update_elem(b->connects_fd, &index, &table_fd, BPF_ANY);

	return r < 0 ? fail_errno(n, r, "put a table into slot %u", index) : 0;
}

int bank_put_trie(struct natra *n, const struct bank *b, uint32_t index,
		  int trie_fd)
{
	int r = bpf_map_update_elem(b->tries_fd, &index, &trie_fd, BPF_ANY);

	return r < 0 ? fail_errno(n, r, "put the classes into slot %u", index)
		     : 0;
}

int bank_trie_id(struct natra *n, const struct bank *b, uint32_t index,
		 uint32_t *ret_id)
{
	int r = b->tries_fd < 0
			? -ENOENT
			: bpf_map_lookup_elem(b->tries_fd, &index, ret_id);

	return r < 0 && r != -ENOENT
		       ? fail_errno(n, r, "read the classes of slot %u", index)
		       : r;
}

int bank_find_slots(struct natra *n, const struct bank *b, uint32_t count,
		    uint32_t *ret_index)
{
	struct natra_config config;
	uint32_t free_slots = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0; i++) {
		r = bank_read_config(n, b, i, &config);
		free_slots = r == 0 && !config.owner ? free_slots + 1 : 0;
		if (free_slots == count) {
			*ret_index = i + 1 - count;
			return 0;
		}
	}
	return r;
}

int bank_take_slots(struct natra *n, const struct bank *b, uint32_t index,
		    uint32_t count, uint64_t owner,
		    const struct slot_content *content)
{
	int r = 0;

	for (uint32_t i = 0; i < count && r == 0; i++) {
		r = take_slot(n, b, index + i, owner, i, content);
		if (r == 0 && b->connects_fd >= 0)
			r = bank_put_table(n, b, index + i, content->table_fd);
	}
	if (r == 0 && b->tries_fd >= 0)
		r = bank_put_trie(n, b, index, content->trie_fd);
	return r;
}

int bank_make_keys(struct natra *n, uint64_t ret_keys[NATRA_HASH_KEYS])
{
	int r = random_fill(ret_keys, NATRA_HASH_KEYS * sizeof(*ret_keys));

	return r < 0 ? fail_errno(n, r, "random keys") : 0;
}

int bank_free_slots(struct natra *n, const struct bank *b, uint32_t index,
		    uint64_t owner)
{
	struct natra_config config = {.owner = owner};
	uint32_t count = 0;
	int r = 0;

	while (r == 0 && config.owner == owner)
		r = bank_read_config(n, b, index + ++count, &config);
	if (r < 0 && r != -ENOENT)
		return r;
	for (r = 0; count > 0 && r == 0; count--)
		r = bank_free_slot(n, b, index + count - 1);
	return r;
}

int bank_free_slot(struct natra *n, const struct bank *b, uint32_t index)
{
	static const struct natra_config nobodys = {0};
	int r;

	/* The table and the trie go first: a slot without an owner is not freed
	 * again. */
	if (b->connects_fd >= 0)
		(void)bpf_map_delete_elem(b->connects_fd, &index);
	if (b->tries_fd >= 0)
		(void)bpf_map_delete_elem(b->tries_fd, &index);
	r = bpf_map_update_elem(b->configs_fd, &index, &nobodys, BPF_EXIST);
	return r < 0 ? fail_errno(n, r, "free slot %u", index) : 0;
}

/*
 * Removes a bank's pins, and then its program from the array. The program must
 * not wait for the end of the array: the kernel keeps an array of programs for
 * ever if somebody opens it by its id, as bpftool does to list it, while it is
 * being freed.
 */
int bank_remove(struct natra *n, const char *path, const struct bank *b)
{
	const uint32_t zero = 0;
	int r = pin_remove_all(n, path);

	/* This comes after the pins are removed, since no other process may find
	 * a bank without a program. */
	if (r == 0 && b->programs_fd >= 0)
		(void)bpf_map_delete_elem(b->programs_fd, &zero);
	if (r == 0 && b->next_fd >= 0)
		(void)bpf_map_delete_elem(b->next_fd, &zero);
	return r;
}

int bank_remove_foreign(struct natra *n, const char *path)
{
	cleanup_bank struct bank b = BANK_INIT;
	int r = open_optional(n, path, programs_name, &b.programs_fd);

	if (r == 0)
		r = open_optional(n, path, next_name, &b.next_fd);
	return r < 0 ? r : bank_remove(n, path, &b);
}
