/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests replace the pinned record of an attachment by one of another ABI or
 * by garbage: natra reports it and never misreads it. */
#include "rig.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID          "record"
#define FOREIGN_ABI 99
/* These are the first words of every layout. */
#define WORD_MAGIC  0
#define WORD_ABI    1
#define WORD_SIZE   2
#define VALUE_MAX   4096

static struct natra *n;
static struct pod pod;

/* This is the pinned map of the record, and its value as natra wrote it. */
static struct {
	char path[192];
	int fd;
	uint32_t size;
	unsigned char value[VALUE_MAX];
} record;

static int begin(void **state)
{
	struct natra_policy policy = policy_of(10, 20);
	struct bpf_map_info map = {0};
	struct natra_info info = NATRA_INIT(info);
	struct natra_target target;
	uint32_t len = sizeof(map), zero = 0;

	(void)state;
	rig_reset();
	n = rig_open();
	pod = pod_make("record");
	target = pod_target(&pod, ID);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	assert_int_equal(natra_query(n, ID, &info), 0);
	(void)snprintf(record.path, sizeof(record.path), "%s/meta",
		       info.pin_path);
	record.fd = bpf_obj_get(record.path);
	assert_true(record.fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(record.fd, &map, &len), 0);
	record.size = map.value_size;
	assert_true(record.size <= VALUE_MAX && record.size % 4 == 0);
	assert_int_equal(bpf_map_lookup_elem(record.fd, &zero, record.value),
			 0);
	return 0;
}

static void write_value(const unsigned char *value)
{
	const uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(record.fd, &zero, value, BPF_ANY),
			 0);
}

static int end(void **state)
{
	struct natra_target target = pod_target(&pod, ID);

	(void)state;
	/* A case that failed has not restored the value. */
	write_value(record.value);
	(void)close(record.fd);
	assert_int_equal(natra_detach(n, &target), 0);
	assert_int_equal(natra_gc(n, NULL, NULL, 0, NULL), 0);
	assert_int_equal(rig_pins(), 0);
	pod_remove(&pod);
	natra_close(n);
	return 0;
}

static void write_word(int word, uint32_t number)
{
	unsigned char value[VALUE_MAX];

	memcpy(value, record.value, record.size);
	memcpy(value + (size_t)word * sizeof(number), &number, sizeof(number));
	write_value(value);
}

static void restore(void)
{
	struct natra_policy policy = policy_of(10, 20);

	write_value(record.value);
	assert_int_equal(natra_check(n, ID, &policy), 0);
}

static int tell(void *arg, const struct natra_info *info)
{
	struct natra_info *ret = arg;

	*ret = *info;
	return 0;
}

static int no_entry(void *arg, const struct natra_neighbour *entry)
{
	(void)arg;
	(void)entry;
	fail_msg("called");
	return 0;
}

/* Checks that each call that has to read the record refuses it and changes
 * nothing. */
static void refused_everywhere(void)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(30, 40);
	struct natra_info info = NATRA_INIT(info);
	struct natra_stats stats = NATRA_INIT(stats);
	char *before = rig_state();
	struct natra_flow flow;
	size_t len = 1;

	assert_int_equal(KEPT(natra_query(n, ID, &info)), -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_check(n, ID, NULL)), -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_stats(n, ID, &stats)), -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(
		KEPT(natra_top(n, ID, NATRA_DIRECTION_EGRESS, &flow, &len)),
		-ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_foreach_neighbour(n, ID, no_entry, NULL)),
			 -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_configure(n, ID, &policy)), -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)),
			 -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_detach(n, &target)), -ESTALE);
	says(n, "99", "ABI");
	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, NULL)), -ESTALE);
	says(n, "99", "ABI");
	rig_same_state(before);
	free(before);
}

static void foreign_abi(void **state)
{
	(void)state;
	write_word(WORD_ABI, FOREIGN_ABI);
	refused_everywhere();
	restore();
}

/* natra_foreach_attachment reports its path and its ABI. */
static void foreign_abi_listed(void **state)
{
	struct natra_info info = NATRA_INIT(info);
	size_t len = strlen(record.path) - strlen("/1/meta");

	(void)state;
	write_word(WORD_ABI, FOREIGN_ABI);
	assert_int_equal(KEPT(natra_foreach_attachment(n, tell, &info)), 0);
	assert_int_equal(strncmp(info.pin_path, record.path, len), 0);
	assert_string_equal(info.id, "");
	assert_int_equal(info.abi, FOREIGN_ABI);
	restore();
}

/* A gc that fails leaves its result as it was. */
static void gc_result_untouched(void **state)
{
	size_t removed = 77;

	(void)state;
	write_word(WORD_ABI, FOREIGN_ABI);
	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, &removed)), -ESTALE);
	assert_int_equal(removed, 77);
	restore();
}

/* An attachment of a foreign ABI does not disturb calls about others. */
static void foreign_abi_beside(void **state)
{
	struct natra_policy policy = policy_of(10, 20);
	struct pod other = pod_make("beside");
	struct natra_target target = pod_target(&other, "beside");
	char id[NATRA_ID_MAX + 1];

	(void)state;
	write_word(WORD_ABI, FOREIGN_ABI);
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)), 0);
	assert_int_equal(KEPT(natra_find(n, &target, id)), 0);
	assert_string_equal(id, "beside");
	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, NULL)), -ESTALE);
	assert_int_equal(KEPT(natra_check(n, "beside", &policy)), 0);
	assert_int_equal(KEPT(natra_detach(n, &target)), 0);
	restore();
	pod_remove(&other);
}

/* Any result is right, but an error must have a text and garbage is not
 * believed. */
static void orderly(const char *what, size_t offset)
{
	struct natra_info info = NATRA_INIT(info);
	int r = natra_query(n, ID, &info);

	if (r > 0 || (r < 0 && (natra_error(n)[0] == '\0' ||
				strchr(natra_error(n), '\n'))))
		fail_msg("%s %zu: query %d, '%s'", what, offset, r,
			 natra_error(n));
	if (r == 0 && (info.policy.attach_mode >= NATRA_MODE_MAX ||
		       info.policy.sli >= NATRA_SLI_MAX))
		fail_msg("%s %zu: query believes it", what, offset);
	r = natra_check(n, ID, NULL);
	if (r > 0 || (r < 0 && natra_error(n)[0] == '\0'))
		fail_msg("%s %zu: check %d", what, offset, r);
	r = natra_foreach_attachment(n, tell, &info);
	if (r > 0 || (r < 0 && natra_error(n)[0] == '\0'))
		fail_msg("%s %zu: foreach %d", what, offset, r);
}

/* Inverts each byte of the numbers, and some bytes of the texts. */
static void every_byte_wrong(void **state)
{
	unsigned char value[VALUE_MAX];

	(void)state;
	for (size_t i = 0; i < record.size; i++) {
		if (i > 320 && i % 32)
			continue;
		memcpy(value, record.value, record.size);
		value[i] ^= 0xff;
		write_value(value);
		orderly("byte", i);
	}
	restore();
}

static void strings_without_end(void **state)
{
	unsigned char value[VALUE_MAX];
	size_t texts = record.size - 4 * (NATRA_ID_MAX + 1);

	(void)state;
	memcpy(value, record.value, record.size);
	memset(value + texts, 'x', record.size - texts);
	write_value(value);
	orderly("texts", texts);
	restore();
}

/* A record without the magic is not natra's, and an attach replaces it. */
static void no_magic(void **state)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info = NATRA_INIT(info);

	(void)state;
	write_word(WORD_MAGIC, 0);
	assert_true(KEPT(natra_query(n, ID, &info)) < 0);
	says(n, NULL, NULL);
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)), 0);
	assert_int_equal(KEPT(natra_check(n, ID, &policy)), 0);
}

/* A value of the right ABI whose size field is wrong is not believed, and is not
 * garbage either. */
static void wrong_size_told(void **state)
{
	struct natra_info info = NATRA_INIT(info);
	char *before;

	(void)state;
	write_word(WORD_SIZE, record.size + 8);
	before = rig_state();
	assert_int_equal(KEPT(natra_query(n, ID, &info)), -ESTALE);
	says(n, "ABI", NULL);
	assert_int_equal(KEPT(natra_gc(n, NULL, NULL, 0, NULL)), -ESTALE);
	says(n, "ABI", NULL);
	rig_same_state(before);
	free(before);
	restore();
}

/* A map of another type or size is pinned in the record's place. */
static void another_map(void **state)
{
	static const struct {
		enum bpf_map_type type;
		uint32_t key, value;
	} maps[] = {
		{BPF_MAP_TYPE_ARRAY, 4, 8},
		{BPF_MAP_TYPE_ARRAY, 4, 16},
		{BPF_MAP_TYPE_ARRAY, 4, 65536},
		{BPF_MAP_TYPE_HASH, 8, 1256},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		int fd = bpf_map_create(maps[i].type, "other", maps[i].key,
					maps[i].value, 1, NULL);

		assert_true(fd >= 0);
		assert_int_equal(unlink(record.path), 0);
		assert_int_equal(bpf_obj_pin(fd, record.path), 0);
		(void)close(fd);
		orderly("map", i);
	}
	assert_int_equal(unlink(record.path), 0);
	assert_int_equal(bpf_obj_pin(record.fd, record.path), 0);
	restore();
}

/* The record begins as that of ABI 1 did, which is enough to detach it. */
static void abi_1(void **state)
{
	const uint32_t size = 1256, abi = 1, zero = 0;
	struct natra_policy policy = policy_of(30, 40);
	struct natra_info before, info = NATRA_INIT(info);
	struct natra_target target = pod_target(&pod, ID);
	unsigned char value[VALUE_MAX];
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "natra_meta", 4, size, 1,
				NULL);

	(void)state;
	before = rig_query(n, ID);
	memcpy(value, record.value, record.size);
	memcpy(value + WORD_ABI * sizeof(abi), &abi, sizeof(abi));
	memcpy(value + WORD_SIZE * sizeof(size), &size, sizeof(size));
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(fd, &zero, value, BPF_ANY), 0);
	assert_int_equal(unlink(record.path), 0);
	assert_int_equal(bpf_obj_pin(fd, record.path), 0);

	assert_int_equal(KEPT(natra_configure(n, ID, &policy)), -ESTALE);
	assert_int_equal(KEPT(natra_check(n, ID, &policy)), -ESTALE);
	assert_int_equal(KEPT(natra_query(n, ID, &info)), -ESTALE);
	/* An attach replaces it, and the state has this ABI again. */
	assert_int_equal(KEPT(natra_attach(n, &target, &policy, NULL)), 0);
	info = rig_query(n, ID);
	assert_int_equal(info.abi, before.abi);
	assert_int_not_equal(info.ingress_prog_id, before.ingress_prog_id);
	assert_int_equal(info.policy.egress_rate_bits_per_sec, 40 * MBIT);
	(void)close(fd);
	assert_int_equal(KEPT(natra_detach(n, &target)), 0);
	/* gc frees the slots that no record names any more. */
	assert_int_equal(natra_gc(n, NULL, NULL, 0, NULL), 0);
	assert_int_equal(rig_pins(), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(foreign_abi),
		CASE(foreign_abi_listed),
		CASE(gc_result_untouched),
		CASE(foreign_abi_beside),
		CASE(every_byte_wrong),
		CASE(strings_without_end),
		CASE(no_magic),
		CASE(wrong_size_told),
		CASE(another_map),
		CASE(abi_1),
	};

	rig_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
