/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/engine.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/libbpf_log.h"
#include "policy/mode.h"
#include "state/bank.h"
#include "state/group_map.h"
#include "state/journal.h"
#include "state/owner.h"
#include "state/ring.h"
#include "util/cleanup.h"
#include "util/random.h"

/*
 * How many slots a bank has, of which a pod takes one to three, and as many again for each of
 * its classes. The first bank is
 * small, so that a node with one limited pod or two does not pay for many; in the others
 * more attachments share the memory of a program, and the time to load it.
 */
#define BANK_SLOTS_FIRST 6
#define BANK_SLOTS       24
#define BANK_MAX         4096

/* A leg's slots are in one bank, side by side. All legs of an attachment fit. */
static uint32_t bank_slots(uint32_t bank, uint32_t slots)
{
	const uint32_t usual = bank ? BANK_SLOTS : BANK_SLOTS_FIRST;

	return LEG_MAX * slots > usual ? LEG_MAX * slots : usual;
}

/*
 * Returns whether this leg is the one that measures connections in its direction: it
 * is on the pod's side of all delay into the pod, unless the pacer has the only hook
 * that there is.
 */
static bool sees_connects(const struct record *record, enum leg leg)
{
	return leg != LEG_HOST ||
	       mode_is_hostside((enum natra_attach_mode)record->mode);
}

struct program_options engine_options(const struct record *record, enum leg leg)
{
	const struct record_leg *h = &record->leg[leg];
	struct natra_policy policy = record_get_policy(record);
	struct program_options options = {
		.kind = h->hook_ingress ? STUB_RX : STUB_TX,
		.has_l2 = record->l2_legs >> leg & 1,
		/* natra's fq on the host side paces ingress. */
		.holds = record->edt || record->host.fq,
		.has_classes = record_has_classes(record),
		.measures_connects = policy.sli == NATRA_SLI_ON &&
				     sees_connects(record, leg),
		.has_groups = policy.group[0] != '\0',
	};

	if (record_is_paced(record, leg))
		options.kind = STUB_EDT;
	/* The backstop tells flows apart as the pacer in front of it does, or it would drop what
	 * that has passed. Where nothing is held, no packet waits for its tunnel's. */
	options.tells_inner =
		options.kind == STUB_EDT ||
		(leg == LEG_INGRESS && record_is_paced(record, LEG_HOST));
	return options;
}

bool engine_serves(const struct record *record)
{
	for (int i = 0; i < LEG_MAX; i++) {
		struct program_options options =
			engine_options(record, (enum leg)i);

		if (record->leg[i].hook &&
		    engine_id(&options) != record->slot[i].engine)
			return false;
	}
	return true;
}

/* Turns -ESTALE into 0 and logs the error text: maps of an unknown layout are
 * left to the natra that they belong to. */
static int pass_over(struct natra *n, int r)
{
	if (r != -ESTALE)
		return r;
	log_line(n, NATRA_LOG_WARN, "%s", last_error(n));
	forget_error(n);
	return 0;
}

/* Opens a bank if it has so many free slots, and returns 1. Returns 0 if it has not,
 * and -ENOENT without an error text if there is no such bank; *ret_bank stays
 * closed then. */
static int try_bank(struct natra *n, struct record_slot *slot, uint32_t count,
		    uint32_t bank, struct bank *ret_bank)
{
	cleanup_bank struct bank b = BANK_INIT;
	char path[PIN_PATH_MAX];
	int r;

	pin_dir_bank_path(n, slot->engine, bank, path);
	r = bank_open(n, path, &b);
	if (r < 0)
		return pass_over(n, r);
	r = bank_find_slots(n, &b, count, &slot->index);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	slot->bank = bank;
	*ret_bank = b;
	b = (struct bank)BANK_INIT;
	return 1;
}

/* Gets the number that comes after the highest number of a bank. */
static int count_banks(struct natra *n, const struct pin_dir *dir,
		       uint32_t *ret_count)
{
	cleanup_dir DIR *banks = opendir(dir->path);
	struct dirent *entry;
	uint32_t count = 0;

	if (!banks)
		return fail_errno(n, -errno, "'%s'", dir->path);
	while ((entry = readdir(banks))) {
		unsigned long bank = strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && bank >= count && bank < BANK_MAX)
			count = (uint32_t)bank + 1;
	}
	*ret_count = count;
	return 0;
}

/* Tries all banks but one, like try_bank. *ret_missing becomes the lowest
 * number that no bank has. */
static int search_banks(struct natra *n, uint32_t count, uint32_t except,
			struct record_slot *slot, uint32_t slots,
			struct bank *ret_bank, uint32_t *ret_missing)
{
	int r = 0;

	*ret_missing = count;
	for (uint32_t bank = 0; bank < count && r == 0; bank++) {
		r = bank == except ? 0
				   : try_bank(n, slot, slots, bank, ret_bank);
		if (r == -ENOENT) {
			if (*ret_missing == count)
				*ret_missing = bank;
			r = 0;
		}
	}
	return r;
}

/*
 * Finds a bank with so many free slots, or makes a new one. While a node fills up, the
 * last bank has a free slot; later, when pods have come and gone, nearly any
 * bank has. All banks are looked at only if three guesses fail, since that
 * takes 0.1 ms a bank.
 */
static int find_bank(struct natra *n, const struct program_options *options,
		     const struct pin_dir *dir, struct record_slot *slot,
		     uint32_t slots, struct bank *ret_bank)
{
	char path[PIN_PATH_MAX];
	uint32_t count = 0, guess[3], missing;
	int r;

	r = count_banks(n, dir, &count);
	if (r < 0)
		return r;
	r = random_fill(guess, sizeof(guess));
	if (r < 0)
		return fail_errno(n, r, "random banks");
	guess[0] = count - 1;
	for (size_t i = 0; i < 3 && count && r == 0; i++) {
		r = try_bank(n, slot, slots, guess[i] % count, ret_bank);
		if (r == -ENOENT)
			r = 0;
	}
	if (r == 0)
		r = search_banks(n, count, BANK_MAX, slot, slots, ret_bank,
				 &missing);
	if (r != 0)
		return r < 0 ? r : 0;
	if (missing == BANK_MAX)
		return refuse(n, -ENOSPC, "all %d banks are full", BANK_MAX);
	pin_dir_bank_path(n, slot->engine, missing, path);
	r = bank_make(n, options, path, bank_slots(missing, slots), ret_bank);
	slot->bank = missing;
	slot->index = 0;
	return r;
}

int engine_enter(struct natra *n, struct pin_gen *gen, enum leg leg,
		 const struct program_options *options,
		 const struct slot_content *content, struct stub *ret_stub)
{
	const uint32_t count = record_slots(&gen->record);
	struct record_slot slot = {0};
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_bank struct bank b = BANK_INIT;
	LIBBPF_LOG_SCOPE(n);
	int r;

	r = owner_make(n, gen->record.id, leg, &slot.owner);
	if (r < 0)
		return r;
	slot.engine = engine_id(options);
	r = pin_dir_lock_engine(n, slot.engine, true, &dir);
	if (r < 0)
		return r;
	r = find_bank(n, options, &dir, &slot, count, &b);
	if (r == 0)
		r = bank_renew(n, options, &b);
	if (r == 0) {
		gen->record.slot[leg] = slot;
		r = journal_write(n, gen, JOURNAL_SLOT);
	}
	if (r == 0)
		r = bank_take_slots(n, &b, slot.index, count, slot.owner,
				    content);
	if (r < 0) {
		KEEP_ERROR_SCOPE(n);

		pin_dir_remove(&dir); /* refused while it has a bank */
		ring_sweep(n);
		return r;
	}
	return stub_load(n, options, leg == LEG_EGRESS, b.programs_fd,
			 slot.index, ret_stub);
}

/* Opens the bank of a slot. This takes no lock: a slot stays its owner's until
 * the owner leaves it. */
static int open_slot(struct natra *n, const struct record_slot *slot,
		     struct bank *b)
{
	char path[PIN_PATH_MAX];
	struct natra_config config;
	int r;

	if (!slot->engine)
		return -ENOENT;
	pin_dir_bank_path(n, slot->engine, slot->bank, path);
	r = bank_open(n, path, b);
	if (r == 0)
		r = bank_read_config(n, b, slot->index, &config);
	if (r == 0 && config.owner != slot->owner)
		r = -ENOENT;
	return r;
}

int engine_open_slot(struct natra *n, const struct record_slot *slot,
		     struct slot *ret_slot)
{
	cleanup_bank struct bank b = BANK_INIT;
	const uint32_t zero = 0;
	uint32_t id;
	int r = open_slot(n, slot, &b);

	if (r < 0)
		return r;
	r = bpf_map_lookup_elem(b.programs_fd, &zero, &id);
	if (r < 0)
		return r == -ENOENT ? r : fail_errno(n, r, "find the program");
	ret_slot->index = slot->index;
	ret_slot->config_fd = TAKE_FD(b.configs_fd);
	ret_slot->state_fd = TAKE_FD(b.states_fd);
	return 0;
}

int engine_trie_id(struct natra *n, const struct record_slot *slot,
		   uint32_t *ret_id)
{
	cleanup_bank struct bank b = BANK_INIT;
	int r = open_slot(n, slot, &b);

	return r < 0 ? r : bank_trie_id(n, &b, slot->index, ret_id);
}

int engine_is_current(struct natra *n, const struct record_slot *slot,
		      bool *ret_current)
{
	cleanup_bank struct bank b = BANK_INIT;
	int r = open_slot(n, slot, &b);

	return r < 0 ? r : bank_is_current(n, &b, ret_current);
}

int engine_renew(struct natra *n, const struct record_slot *slot,
		 const struct program_options *options)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_bank struct bank b = BANK_INIT;
	bool current = false;
	int r = engine_is_current(n, slot, &current);

	if (r < 0 || current)
		return r;
	r = pin_dir_lock_engine(n, slot->engine, false, &dir);
	if (r == 0)
		r = open_slot(n, slot, &b);
	return r < 0 ? r : bank_renew(n, options, &b);
}

/* The owners of all slots that are on record. */
struct owners {
	struct natra *n;
	uint64_t *list;
	size_t len;
	bool unknown; /* there are records that cannot be read: they may own some */
};

static int note_owners(void *arg, struct pin_gen *gen)
{
	struct owners *owners = arg;
	uint64_t *list;

	if (gen->kind != RECORD_OWN) {
		owners->unknown = owners->unknown || gen->kind == RECORD_NONE ||
				  gen->record.abi == NATRA_PIN_ABI;
		return 0;
	}
	list = realloc(owners->list, (owners->len + LEG_MAX) * sizeof(*list));
	if (!list)
		return fail_errno(owners->n, -ENOMEM, "list the slots");
	owners->list = list;
	for (int i = 0; i < LEG_MAX; i++)
		owners->list[owners->len++] = gen->record.slot[i].owner;
	return 0;
}

static int note_key(void *arg, const char *path)
{
	struct owners *owners = arg;

	return pin_foreach_gen(owners->n, path, note_owners, owners);
}

static bool is_owner(const struct owners *owners, uint64_t owner)
{
	for (size_t i = 0; i < owners->len; i++) {
		if (owners->list[i] == owner)
			return true;
	}
	return owners->unknown;
}

/* Frees the slots whose owner is not among `owners`; if that is NULL, none.
 * Returns 1 if a slot is still taken, 0 if none is. */
static int sweep_slots(struct natra *n, const struct bank *b,
		       const struct owners *owners)
{
	struct natra_config config;
	int used = 0;

	for (uint32_t i = 0;; i++) {
		int r = bank_read_config(n, b, i, &config);

		if (r == -ENOENT)
			return used;
		if (r < 0)
			return r;
		if (config.owner && owners && !is_owner(owners, config.owner))
			r = bank_free_slot(n, b, i);
		else if (config.owner)
			used = 1;
		if (r < 0)
			return r;
	}
}

/*
 * Removes a bank of which no slot is taken, if another one has a slot for the
 * next attachment: a node keeps no banks for pods that were removed.
 */
static int drop_spare_bank(struct natra *n, const struct record_slot *slot)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_bank struct bank b = BANK_INIT;
	cleanup_bank struct bank other = BANK_INIT;
	struct record_slot next = *slot;
	char path[PIN_PATH_MAX];
	uint32_t count, missing;
	int r;

	pin_dir_bank_path(n, slot->engine, slot->bank, path);
	r = pin_dir_lock_engine(n, slot->engine, false, &dir);
	/* The bank is opened under the lock: before that, the bank of this
	 * number may have been another one. */
	if (r == 0)
		r = bank_open(n, path, &b);
	if (r == 0)
		r = sweep_slots(n, &b, NULL);
	if (r != 0)
		return r == 1 || r == -ENOENT ? 0 : r;
	r = count_banks(n, &dir, &count);
	if (r == 0)
		r = search_banks(n, count, slot->bank, &next, 1, &other,
				 &missing);
	return r == 1 ? bank_remove(n, path, &b) : r;
}

int engine_leave(struct natra *n, const struct record_slot *slot)
{
	cleanup_bank struct bank b = BANK_INIT;
	int r = open_slot(n, slot, &b);

	if (r == 0)
		r = bank_free_slots(n, &b, slot->index, slot->owner);
	if (r == 0)
		r = sweep_slots(n, &b, NULL);
	if (r == 0)
		r = drop_spare_bank(n, slot);
	return r == 1 || r == -ENOENT ? 0 : pass_over(n, r);
}

static int sweep_bank(struct natra *n, const char *path,
		      const struct owners *owners)
{
	cleanup_bank struct bank b = BANK_INIT;
	int r = bank_open(n, path, &b);

	if (r == 0)
		r = sweep_slots(n, &b, owners);
	else if (r == -ESTALE)
		return pass_over(n, r);
	else if (r == -ENOENT)
		r = 0; /* a killed process left only a part of it */
	if (r == 0)
		return bank_remove(n, path, &b);
	return r < 0 ? r : 0;
}

static int remove_foreign_bank(struct natra *n, const char *path,
			       const struct owners *owners)
{
	(void)owners; /* owners of slots are unknown, see below */
	return bank_remove_foreign(n, path);
}

/* Calls fn for each bank of an engine, until it returns something other than
 * 0. */
static int foreach_bank(struct natra *n, const char *path,
			int (*fn)(struct natra *n, const char *path,
				  const struct owners *owners),
			const struct owners *owners)
{
	cleanup_dir DIR *dir = opendir(path);
	char bank[PIN_PATH_MAX + 16];
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return fail_errno(n, -errno, "'%s'", path);
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(bank, sizeof(bank), "%s/%s", path, entry->d_name) <
		    (int)sizeof(bank))
			r = fn(n, bank, owners);
	}
	return r;
}

struct foreign_records {
	struct natra *n;
	uint32_t abi;
};

/* Returns 1 if the record is of that ABI or cannot be understood, so that it
 * may be. */
static int is_of_abi(void *arg, struct pin_gen *gen)
{
	const struct foreign_records *records = arg;

	return gen->kind == RECORD_NONE || gen->record.abi == records->abi;
}

static int has_abi(void *arg, const char *path)
{
	const struct foreign_records *records = arg;

	return pin_foreach_gen(records->n, path, is_of_abi, arg);
}

/*
 * Removes an engine of another ABI, which the caller has locked. The records that
 * say which of its slots are taken have a layout that this natra does not know, so
 * the engine goes as a whole, when no record of that ABI is left. That is safe:
 * every natra pins an attachment's record first, then locks the engine, and
 * takes a slot under that lock. A process that has a slot therefore has a
 * record, which is found here. A process that has pinned its record after this
 * function looked for it has no slot yet: it waits for the lock, and then finds
 * the directory gone and makes a new one.
 */
static int remove_foreign_engine(struct natra *n, const char *path,
				 uint32_t abi)
{
	struct foreign_records records = {n, abi};
	int r = pin_dir_foreach_id(n, has_abi, &records);

	if (r != 0)
		return r < 0 ? r : 0;
	return foreach_bank(n, path, remove_foreign_bank, NULL);
}

static int sweep_engine(void *arg, const char *path)
{
	uint32_t abi = pin_dir_engine_abi(path);
	struct natra *n = arg;
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r;

	r = pin_dir_lock(n, path, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = abi == NATRA_PIN_ABI ? foreach_bank(n, path, sweep_bank, NULL)
				 : remove_foreign_engine(n, path, abi);
	if (r == 0)
		pin_dir_remove(&dir); /* refused while it has a bank */
	return r;
}

int engine_sweep(struct natra *n)
{
	int r = pin_dir_foreach_engine(n, sweep_engine, n);

	if (r >= 0) {
		ring_sweep(n);
		groups_sweep(n);
	}
	return r;
}

static int gc_engine(void *arg, const char *path)
{
	struct natra *n = arg;
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	struct owners owners = {.n = n};
	int r;

	if (pin_dir_engine_abi(path) != NATRA_PIN_ABI)
		return sweep_engine(arg, path);
	r = pin_dir_lock(n, path, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* This happens under the lock of the engine, so each slot that
	 * is taken is in a record. */
	r = pin_dir_foreach_id(n, note_key, &owners);
	if (r == 0)
		r = foreach_bank(n, path, sweep_bank, &owners);
	free(owners.list);
	if (r == 0)
		pin_dir_remove(&dir);
	return r;
}

int engine_gc(struct natra *n)
{
	int r = pin_dir_foreach_engine(n, gc_engine, n);

	if (r >= 0) {
		ring_sweep(n);
		groups_sweep(n);
	}
	return r;
}
