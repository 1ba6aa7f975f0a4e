/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/pin.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bpf_call.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"
#include "util/str.h"

void pin_close_gen(struct pin_gen *gen)
{
	cleanup_closep(&gen->record_fd);
	gen->record_fd = -1;
}

static int pin(struct natra *n, int fd, const char *path)
{
	int r = bpf_obj_pin(fd, path);

	return r < 0 ? fail_errno(n, r, "pin '%s'", path) : 0;
}

#define RECORD_TRIES 3

/* Reads the record of a generation. An error means that it could not be read: the
 * record may be sound then, and must not be taken for garbage. */
static int load_record(struct natra *n, struct pin_gen *gen)
{
	char path[PIN_PATH_MAX + 8];
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	cleanup_free void *value = NULL;
	const uint32_t zero = 0;
	int r;

	gen->kind = RECORD_NONE;
	(void)snprintf(path, sizeof(path), "%s/" PIN_RECORD_NAME, gen->path);
	r = bpf_obj_get(path);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail_errno(n, r, "open '%s'", path);
	gen->record_fd = r;
	r = bpf_obj_get_info_by_fd(gen->record_fd, &info, &len);
	if (r < 0)
		return fail_errno(n, r, "ask for '%s'", path);
	if (info.type != BPF_MAP_TYPE_ARRAY || info.key_size != sizeof(zero))
		return 0;
	value = malloc(info.value_size);
	if (!value)
		return fail_errno(n, -ENOMEM, "read '%s'", path);
	/* A record that is read while it is written may not be sound. */
	for (int i = 0; i < RECORD_TRIES; i++) {
		r = bpf_map_lookup_elem(gen->record_fd, &zero, value);
		if (r < 0)
			return fail_errno(n, r, "read '%s'", path);
		gen->kind = record_read(value, info.value_size, &gen->record);
		if (gen->kind != RECORD_FOREIGN ||
		    gen->record.abi != NATRA_PIN_ABI)
			break;
	}
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a;
	unsigned int y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

#define MAX_GENS 16 /* two, unless many processes were killed in a row */

int pin_foreach_gen(struct natra *n, const char *path,
		    int (*cb)(void *arg, struct pin_gen *gen), void *arg)
{
	cleanup_dir DIR *dir = opendir(path);
	unsigned int numbers[MAX_GENS];
	size_t len = 0;
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0
				       : fail_errno(n, -errno, "'%s'", path);
	while (len < MAX_GENS && (entry = readdir(dir))) {
		char *end;
		unsigned long number = strtoul(entry->d_name, &end, 10);

		if (*end || number == 0 || number > UINT32_MAX)
			continue;
		numbers[len++] = (unsigned int)number;
	}
	qsort(numbers, len, sizeof(numbers[0]), compare_numbers);

	for (size_t i = 0; i < len && r == 0; i++) {
		cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;

		gen.number = numbers[i];
		if (snprintf(gen.path, sizeof(gen.path), "%s/%u", path,
			     gen.number) >= (int)sizeof(gen.path))
			continue;
		r = load_record(n, &gen);
		if (r == 0)
			r = cb(arg, &gen);
	}
	return r;
}

struct find {
	struct pin_gen *gen;
	bool found;
};

/* Nobody replaces an attachment so often; a directory without a record, which a killed process
 * left, looks the same each time. */
#define FIND_TRIES 3

static int keep_newest(void *arg, struct pin_gen *gen)
{
	struct find *find = arg;

	if (gen->kind == RECORD_NONE || !gen->record.complete)
		return 0;
	pin_close_gen(find->gen);
	*find->gen = *gen;
	gen->record_fd = -1;
	find->found = true;
	return 0;
}

static int refuse_foreign(struct natra *n, const struct record *record)
{
	if (record->abi == NATRA_PIN_ABI)
		return refuse(
			n, -ESTALE,
			"'%s' was attached by another build of ABI %u, whose record this one cannot read",
			record->id, record->abi);
	return refuse(n, -ESTALE,
		      "'%s' was attached by natra of ABI %u, this is ABI %d",
		      record->id, record->abi, NATRA_PIN_ABI);
}

int pin_find_gen(struct natra *n, const char *path, struct pin_gen *ret_gen)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct find find = {.gen = &gen};
	int r = pin_foreach_gen(n, path, keep_newest, &find);

	/* A reader takes no lock: what it has seen in the directory may have been replaced by what it
	 * has not. */
	for (int i = 1;
	     i < FIND_TRIES && r == 0 && !find.found && access(path, F_OK) == 0;
	     i++)
		r = pin_foreach_gen(n, path, keep_newest, &find);
	if (r < 0)
		return r;
	if (!find.found)
		return -ENOENT;
	*ret_gen = gen;
	gen.record_fd = -1;
	return ret_gen->kind == RECORD_OWN
		       ? 0
		       : refuse_foreign(n, &ret_gen->record);
}

int pin_find(struct natra *n, const char *id, struct pin_gen *ret_gen)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_path(n, id, path);

	return r < 0 ? r : pin_find_gen(n, path, ret_gen);
}

int pin_object(struct natra *n, const char *dir, const char *name, int fd)
{
	char path[PIN_PATH_MAX + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return pin(n, fd, path);
}

int pin_open_object(struct natra *n, const char *dir, const char *name,
		    int *ret_fd)
{
	char path[PIN_PATH_MAX + 32];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = bpf_obj_get(path);
	if (fd == -ENOENT)
		return fd;
	if (fd < 0)
		return fail_errno(n, fd, "open '%s'", path);
	*ret_fd = fd;
	return 0;
}

static const char link_suffix[] = "_link";

static void link_name(enum leg leg, char *ret_name, size_t size)
{
	(void)snprintf(ret_name, size, "%s%s", leg_name(leg), link_suffix);
}

int pin_link(struct natra *n, const struct pin_gen *gen, enum leg leg,
	     int link_fd)
{
	char name[32];

	link_name(leg, name, sizeof(name));
	return pin_object(n, gen->path, name, link_fd);
}

int pin_open_link(struct natra *n, const struct pin_gen *gen, enum leg leg,
		  int *ret_fd)
{
	char name[32];

	link_name(leg, name, sizeof(name));
	return pin_open_object(n, gen->path, name, ret_fd);
}

static int detach_link(struct natra *n, const struct pin_gen *gen,
		       const char *name)
{
	cleanup_close int fd = -1;
	int r = pin_open_object(n, gen->path, name, &fd);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Detaching takes effect at once. If the pin were only removed, the
	 * kernel would free the link later. */
	r = bpf_link_detach(fd);
	if (r < 0 && r != -ENOLINK && r != -ENODEV && r != -ENOENT)
		return fail_errno(n, r, "detach '%s/%s'", gen->path, name);
	return 0;
}

static bool is_link_name(const char *name)
{
	const size_t len = strlen(name), suffix = sizeof(link_suffix) - 1;

	return len > suffix && strcmp(name + len - suffix, link_suffix) == 0;
}

int pin_detach_links(struct natra *n, const struct pin_gen *gen)
{
	cleanup_dir DIR *dir = opendir(gen->path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return errno == ENOENT
			       ? 0
			       : fail_errno(n, -errno, "'%s'", gen->path);
	while (r == 0 && (entry = readdir(dir))) {
		if (is_link_name(entry->d_name))
			r = detach_link(n, gen, entry->d_name);
	}
	return r;
}

/* Unpins all that is in a directory, `last` after the others, and removes the
 * directory. */
static int remove_dir(struct natra *n, const char *path, const char *last)
{
	cleanup_dir DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return errno == ENOENT ? 0
				       : fail_errno(n, -errno, "'%s'", path);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    (last && strcmp(entry->d_name, last) == 0))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 &&
		    errno != ENOENT)
			return fail_errno(n, -errno, "unpin '%s/%s'", path,
					  entry->d_name);
	}
	if (last && unlinkat(dirfd(dir), last, 0) < 0 && errno != ENOENT)
		return fail_errno(n, -errno, "unpin '%s/%s'", path, last);
	if (rmdir(path) < 0 && errno != ENOENT)
		return fail_errno(n, -errno, "remove '%s'", path);
	return 0;
}

int pin_remove_all(struct natra *n, const char *dir)
{
	return remove_dir(n, dir, NULL);
}

static bool is_map(const struct bpf_map_info *info,
		   const struct pin_map *wanted)
{
	return info->type == wanted->type &&
	       info->key_size == sizeof(uint32_t) &&
	       info->value_size == wanted->value_size &&
	       (!wanted->entries || info->max_entries == wanted->entries) &&
	       (info->map_flags & wanted->flags) == wanted->flags;
}

int pin_check_map(struct natra *n, const char *dir, const char *name, int fd,
		  const struct pin_map *wanted, uint32_t *ret_entries)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int r = bpf_obj_get_info_by_fd(fd, &info, &len);

	if (r < 0)
		return fail_errno(n, r, "ask for '%s/%s'", dir, name);
	if (!is_map(&info, wanted))
		return refuse(
			n, -ESTALE,
			"'%s/%s' is not this natra's: a map of type %u with values of %u bytes",
			dir, name, info.type, info.value_size);
	if (ret_entries)
		*ret_entries = info.max_entries;
	return 0;
}

#define SUBNETS_NAME "subnets"
#define CLASSES_NAME "classes"

int pin_subnets(struct natra *n, const struct pin_gen *gen, int fd)
{
	return pin_object(n, gen->path, SUBNETS_NAME, fd);
}

int pin_open_subnets(struct natra *n, const struct pin_gen *gen, int *ret_fd)
{
	return pin_open_object(n, gen->path, SUBNETS_NAME, ret_fd);
}

int pin_classes(struct natra *n, const struct pin_gen *gen,
		const struct record_classes *classes)
{
	const uint32_t zero = 0;
	cleanup_close int fd =
		bpf_call_make_array("natra_classes", sizeof(*classes));
	int r;

	if (fd < 0)
		return fail_errno(n, fd, "create the map of classes");
	r = bpf_map_update_elem(fd, &zero, classes, BPF_ANY);
	if (r < 0)
		return fail_errno(n, r, "write the classes");
	return pin_object(n, gen->path, CLASSES_NAME, fd);
}

static int open_classes(struct natra *n, const struct pin_gen *gen, int *ret_fd)
{
	static const struct pin_map classes_map = {
		.type = BPF_MAP_TYPE_ARRAY,
		.value_size = sizeof(struct record_classes),
	};
	int r = pin_open_object(n, gen->path, CLASSES_NAME, ret_fd);

	return r < 0 ? r
		     : pin_check_map(n, gen->path, CLASSES_NAME, *ret_fd,
				     &classes_map, NULL);
}

int pin_read_classes(struct natra *n, const struct pin_gen *gen,
		     struct record_classes *ret_classes)
{
	const uint32_t zero = 0;
	cleanup_close int fd = -1;
	int r = open_classes(n, gen, &fd);

	if (r < 0)
		return r;
	r = bpf_map_lookup_elem(fd, &zero, ret_classes);
	if (r < 0)
		return fail_errno(n, r, "read the classes");
	/* Names are terminated, whoever wrote them. */
	for (size_t i = 0; i < NATRA_CLASSES_MAX; i++)
		ret_classes->list[i].name[NATRA_CLASS_NAME_MAX] = '\0';
	return 0;
}

int pin_write_classes(struct natra *n, const struct pin_gen *gen,
		      const struct record_classes *classes)
{
	const uint32_t zero = 0;
	cleanup_close int fd = -1;
	int r = open_classes(n, gen, &fd);

	if (r < 0)
		return r;
	r = bpf_map_update_elem(fd, &zero, classes, BPF_EXIST);
	return r < 0 ? fail_errno(n, r, "write the classes") : 0;
}

/* Reads what the classes are called, and their rates. */
static int read_classes(struct natra *n, const struct pin_gen *gen,
			struct subnets *subnets)
{
	struct record_classes pinned;
	int r = pin_read_classes(n, gen, &pinned);

	if (r < 0)
		return r;
	subnets->classes =
		calloc(gen->record.classes_len, sizeof(*subnets->classes));
	if (!subnets->classes)
		return fail_errno(n, -ENOMEM, "read the classes");
	subnets->classes_len = gen->record.classes_len;
	for (size_t i = 0; i < subnets->classes_len; i++) {
		struct peer_class *class = &subnets->classes[i];
		const struct record_class *from = &pinned.list[i];

		(void)str_copy(class->name, sizeof(class->name), from->name);
		class->ingress_rate_bits_per_sec =
			from->ingress_rate_bits_per_sec;
		class->egress_rate_bits_per_sec =
			from->egress_rate_bits_per_sec;
	}
	return 0;
}

int pin_read_subnets(struct natra *n, const struct pin_gen *gen,
		     struct subnets *ret_subnets)
{
	cleanup_subnets struct subnets subnets = {
		.kind = (enum subnets_kind)gen->record.subnets,
	};
	cleanup_close int fd = -1;
	int r = 0;

	if (gen->record.classes_len)
		r = read_classes(n, gen, &subnets);
	if (r == 0 && subnets_any(&subnets))
		r = pin_open_subnets(n, gen, &fd);
	if (r == 0 && subnets_any(&subnets))
		r = subnets_map_read(n, fd, &subnets);
	if (r < 0)
		return r;
	*ret_subnets = subnets;
	subnets = (struct subnets){0};
	return 0;
}

int pin_remove_gen(struct natra *n, const struct pin_gen *gen)
{
	/* The record goes last: after a crash, what is left can still be
	 * understood and undone. */
	return remove_dir(n, gen->path, PIN_RECORD_NAME);
}
