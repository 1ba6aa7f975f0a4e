/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "natra_flows.h"

static struct natra_flow_entry flows[NATRA_FLOWS];
static const struct natra_tuple tuple = {
	.saddr = {1, 2, 3, 4},
	.daddr = {5, 6, 7, 8},
	.ports = 9,
	.version = 6,
	.protocol = 17,
	.fragment = 1,
};

static int clear(void **state)
{
	(void)state;
	memset(flows, 0, sizeof(flows));
	return 0;
}

/* Returns the hash of flow n of a set. */
static __u64 hash_of(__u32 set, __u32 n)
{
	return (__u64)(n + 1) << 33 | set;
}

/* Returns NULL if the flow is not there. */
static struct natra_flow_entry *find(__u64 hash, __u32 now)
{
	struct natra_flow_entry *entry = natra_flow_find(flows, hash, now);

	return entry->tag == natra_flow_tag(hash) ? entry : NULL;
}

/* Does what the data path does with a heavy packet. Returns whether the flow
 * was known. */
static bool note(__u64 hash, __u32 now, __u32 bytes)
{
	struct natra_flow_entry *entry = natra_flow_find(flows, hash, now);
	bool known = entry->tag == natra_flow_tag(hash);

	if (!known)
		natra_flow_insert(entry, hash, &tuple);
	natra_flow_add(entry, now, bytes);
	return known;
}

static bool is_there(__u64 hash, __u32 now)
{
	return find(hash, now) != NULL;
}

static void flow_is_found_again_with_its_sums(void **state)
{
	const __u64 hash = hash_of(3, 1);
	const struct natra_flow_entry *entry;

	(void)state;
	assert_false(note(hash, 100, 1514));
	assert_true(note(hash, 101, 66));
	entry = find(hash, 102);
	assert_non_null(entry);
	assert_int_equal(entry->bytes, 1580);
	assert_int_equal(entry->packets, 2);
	assert_int_equal(entry->last, 101);
	assert_int_equal(entry->tag, natra_flow_tag(hash));
}

static void entry_keeps_the_whole_tuple(void **state)
{
	const struct natra_flow_entry *entry;

	(void)state;
	note(hash_of(0, 0), 1, 1);
	entry = find(hash_of(0, 0), 1);
	assert_non_null(entry);
	assert_memory_equal(entry->tuple.saddr, tuple.saddr,
			    sizeof(tuple.saddr));
	assert_memory_equal(entry->tuple.daddr, tuple.daddr,
			    sizeof(tuple.daddr));
	assert_int_equal(entry->tuple.ports, tuple.ports);
	assert_int_equal(entry->tuple.version, tuple.version);
	assert_int_equal(entry->tuple.protocol, tuple.protocol);
	assert_int_equal(entry->tuple.fragment, tuple.fragment);
}

static void tag_is_never_that_of_an_empty_way(void **state)
{
	(void)state;
	assert_int_not_equal(natra_flow_tag(0), 0);
	assert_int_not_equal(natra_flow_tag(0xffffffff), 0);
	assert_false(is_there(0, 5));
}

static void empty_ways_are_used_before_any_is_evicted(void **state)
{
	(void)state;
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		assert_false(note(hash_of(1, n), 1000, 1));
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		assert_true(is_there(hash_of(1, n), 1000));
}

static void oldest_of_the_set_is_evicted_and_its_sums_with_it(void **state)
{
	const struct natra_flow_entry *entry;

	(void)state;
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(2, n), 100 + n, 1000);
	note(hash_of(2, 0), 110, 1000);
	assert_false(note(hash_of(2, 9), 120, 50));
	assert_false(is_there(hash_of(2, 1), 120));
	assert_true(is_there(hash_of(2, 0), 120));
	entry = find(hash_of(2, 9), 120);
	assert_non_null(entry);
	assert_int_equal(entry->bytes, 50);
	assert_int_equal(entry->packets, 1);
}

static void busy_flow_outlives_many_short_ones(void **state)
{
	const __u64 busy = hash_of(4, 0);

	(void)state;
	note(busy, 1000, 1);
	for (__u32 n = 1; n < 1000; n++) {
		note(hash_of(4, n), 1000 + n, 1);
		assert_true(note(busy, 1000 + n, 1));
	}
}

static void sets_do_not_disturb_each_other(void **state)
{
	(void)state;
	for (__u32 set = 0; set < NATRA_FLOW_SETS; set++) {
		for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
			assert_false(note(hash_of(set, n), 50, 1));
	}
	for (__u32 set = 0; set < NATRA_FLOW_SETS; set++) {
		for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
			assert_true(is_there(hash_of(set, n), 50));
	}
}

static void ages_are_right_across_the_wrap_of_the_clock(void **state)
{
	const __u32 start = 0xffffff00;

	(void)state;
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(5, n), start + n, 1);
	/* All flows but one are seen again, two of them after the wrap. */
	note(hash_of(5, 0), start + 0xf0, 1);
	note(hash_of(5, 2), start + 0x110, 1);
	note(hash_of(5, 3), start + 0x120, 1);
	note(hash_of(5, 8), start + 0x130, 1);
	assert_false(is_there(hash_of(5, 1), start + 0x130));
	note(hash_of(5, 9), start + 0x140, 1);
	assert_false(is_there(hash_of(5, 0), start + 0x140));
	assert_true(is_there(hash_of(5, 2), start + 0x140));
	assert_true(is_there(hash_of(5, 3), start + 0x140));
	assert_true(is_there(hash_of(5, 8), start + 0x140));
}

static void tick_is_2_to_the_20_ns(void **state)
{
	(void)state;
	assert_int_equal(natra_flow_now((1 << 20) - 1), 0);
	assert_int_equal(natra_flow_now(1 << 20), 1);
	assert_int_equal(natra_flow_now(3ULL << 52), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, clear)
	const struct CMUnitTest tests[] = {
		CASE(flow_is_found_again_with_its_sums),
		CASE(entry_keeps_the_whole_tuple),
		CASE(tag_is_never_that_of_an_empty_way),
		CASE(empty_ways_are_used_before_any_is_evicted),
		CASE(oldest_of_the_set_is_evicted_and_its_sums_with_it),
		CASE(busy_flow_outlives_many_short_ones),
		CASE(sets_do_not_disturb_each_other),
		CASE(ages_are_right_across_the_wrap_of_the_clock),
		CASE(tick_is_2_to_the_20_ns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
