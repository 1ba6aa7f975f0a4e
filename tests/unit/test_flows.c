/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "natra_flows.h"

#define WIDTH 1024

static struct natra_flow_entry flows[NATRA_FLOWS];
static __u32 sketch[NATRA_ROWS * WIDTH];
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
	memset(flows, 0, sizeof(flows));
	memset(sketch, 0, sizeof(sketch));
	return 0;
}

/* Returns the hash of flow n of a set. Its parts are the flow's cells, which no
 * other flow has if n is less than WIDTH. */
static __u64 hash_of(__u32 set, __u32 n)
{
	return (__u64)n << 48 | (__u64)n << 33 | (__u64)n << 16 | n << 3 | set;
}

/* Does what the data path does with a heavy packet. Returns whether the flow
 * has an entry, `*ret_new` whether it is a new one. */
static bool note_new(__u64 hash, __u32 now, __u32 bytes, bool *ret_new)
{
	const __u64 now_ns = (__u64)now << NATRA_FLOW_TICK_SHIFT;
	__u32 estimate =
		natra_sketch_add(sketch, WIDTH - 1, hash, natra_units(bytes),
				 natra_epoch(now_ns));
	struct natra_flow_entry *entry = natra_flow_find(flows, hash);

	*ret_new = !entry;
	if (!entry) {
		entry = natra_flow_evict(flows, sketch, WIDTH - 1, hash,
					 estimate, now_ns);
		if (!entry)
			return false;
		natra_flow_insert(entry, hash, &tuple);
	}
	natra_flow_add(entry, now, bytes);
	return true;
}

/* Returns whether the flow was known. */
static bool note(__u64 hash, __u32 now, __u32 bytes)
{
	bool is_new;

	return note_new(hash, now, bytes, &is_new) && !is_new;
}

static bool is_there(__u64 hash)
{
	return natra_flow_find(flows, hash) != NULL;
}

TH_TEST(flow_is_found_again_with_its_sums)
{
	const __u64 hash = hash_of(3, 1);
	const struct natra_flow_entry *entry;

	assert_false(note(hash, 100, 1514));
	assert_true(note(hash, 101, 66));
	entry = natra_flow_find(flows, hash);
	assert_non_null(entry);
	assert_int_equal(entry->bytes, 1580);
	assert_int_equal(entry->packets, 2);
	assert_int_equal(entry->last, 101);
	assert_int_equal(entry->tag, natra_flow_tag(hash));
}

TH_TEST(tag_is_never_that_of_an_empty_way)
{
	assert_int_not_equal(natra_flow_tag(0), 0);
	assert_int_not_equal(natra_flow_tag(0xffffffff), 0);
	assert_false(is_there(0));
}

static void fill_set(__u32 set, __u32 now)
{
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(set, n), now, 1000 * (n + 1));
}

TH_TEST(least_of_the_set_is_evicted_and_its_sums_with_it)
{
	const struct natra_flow_entry *entry;

	fill_set(2, 100);
	note(hash_of(2, 0), 110, 9000);
	assert_false(note(hash_of(2, 9), 120, 5000));
	assert_false(is_there(hash_of(2, 1)));
	assert_true(is_there(hash_of(2, 0)));
	entry = natra_flow_find(flows, hash_of(2, 9));
	assert_non_null(entry);
	assert_int_equal(entry->bytes, 5000);
	assert_int_equal(entry->packets, 1);
}

TH_TEST(newcomer_must_be_larger_by_half)
{
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(2, n), 100, 6400);
	note(hash_of(2, 9), 100, 9600);
	assert_false(is_there(hash_of(2, 9)));
	note(hash_of(2, 9), 100, 64);
	assert_true(is_there(hash_of(2, 9)));
}

/* A flow's estimate halves in each window of 1024 ticks. */
TH_TEST(flow_that_sends_less_now_is_evicted)
{
	fill_set(2, 100);
	note(hash_of(2, 0), 100, 64000);
	for (__u32 now = 100; now < 8292; now += 1024) {
		for (__u32 n = 1; n < NATRA_FLOW_WAYS; n++)
			note(hash_of(2, n), now, 6400);
	}
	note(hash_of(2, 9), 7300, 6400);
	assert_true(is_there(hash_of(2, 9)));
	assert_false(is_there(hash_of(2, 0)));
}

/* Another flow has the cell of the one that is gone. */
TH_TEST(idle_flow_is_evicted_whatever_its_cell_says)
{
	const __u64 now_ns = 9000ULL << NATRA_FLOW_TICK_SHIFT;

	fill_set(2, 100);
	for (__u32 n = 1; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(2, n), 9000, 6400);
	sketch[3 * WIDTH] = natra_epoch(now_ns) << NATRA_CELL_COUNT_BITS |
			    NATRA_CELL_COUNT_MAX;
	note(hash_of(2, 9), 9000, 64);
	assert_true(is_there(hash_of(2, 9)));
	assert_false(is_there(hash_of(2, 0)));
}

/* The flows take turns, so that each would evict the next one by age. */
static void largest_flow_keeps_its_bytes_among(__u32 others)
{
	const __u64 largest = hash_of(4, 0);
	const __u32 rounds = 1000, bytes = 1500;
	const struct natra_flow_entry *entry;

	for (__u32 round = 0; round < rounds; round++) {
		for (__u32 n = 1; n <= others; n++)
			note(hash_of(n % NATRA_FLOW_SETS, n), 1000 + round,
			     bytes / 3);
		note(largest, 1000 + round, bytes);
	}
	entry = natra_flow_find(flows, largest);
	assert_non_null(entry);
	assert_in_range(entry->bytes, rounds * bytes * 99 / 100,
			rounds * bytes);
}

TH_TEST(largest_flow_keeps_its_bytes)
{
	static const __u32 others[] = {15, 39, 63, 199, 999};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		clear(state);
		largest_flow_keeps_its_bytes_among(others[i]);
	}
}

/* Fair shares make flows equal; none would keep its sums if they evicted each
 * other. */
TH_TEST(equal_flows_do_not_evict_each_other)
{
	unsigned int inserted = 0;
	bool is_new;

	for (__u32 round = 0; round < 5000; round++) {
		for (__u32 n = 0; n < 200; n++) {
			if (note_new(hash_of(n % NATRA_FLOW_SETS, n),
				     1000 + round, 1500, &is_new))
				inserted += is_new;
		}
	}
	assert_int_equal(inserted, NATRA_FLOWS);
}

TH_TEST(sets_do_not_disturb_each_other)
{
	for (__u32 set = 0; set < NATRA_FLOW_SETS; set++) {
		for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
			assert_false(note(hash_of(set, n), 50, 1));
	}
	for (__u32 set = 0; set < NATRA_FLOW_SETS; set++) {
		for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
			assert_true(is_there(hash_of(set, n)));
	}
}

TH_TEST(ages_are_right_across_the_wrap_of_the_clock)
{
	const __u32 start = 0U - 100;

	fill_set(5, start);
	note(hash_of(5, 9), start + 200, 64);
	assert_false(is_there(hash_of(5, 9)));
	for (__u32 n = 1; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(5, n), start + 8100, 6400);
	note(hash_of(5, 9), start + 8292, 64);
	assert_true(is_there(hash_of(5, 9)));
	assert_false(is_there(hash_of(5, 0)));
}

/* Another CPU has noted its packet at a later tick than this one's clock has. */
TH_TEST(flow_that_is_seen_later_keeps_its_entry)
{
	for (__u32 n = 0; n < NATRA_FLOW_WAYS; n++)
		note(hash_of(2, n), 101, 6400);
	note(hash_of(2, 9), 100, 6400);
	assert_false(is_there(hash_of(2, 9)));
}

TH_TEST(a_flow_is_idle_at_each_age)
{
	static const struct {
		__u32 age;
		bool is_idle;
	} rows[] = {
		{0, false},       {999, false},
		{1000, true},     {(1U << 31) - 1, true},
		{1U << 31, true}, {3U << 30, true},
		{-1U, false},     {-1024U, false},
		{-1025U, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct natra_flow_entry flow = {.last = 7 - rows[i].age};

		assert_int_equal(natra_flow_is_idle(&flow, 7, 1000),
				 rows[i].is_idle);
	}
}

TH_TEST(tick_is_2_to_the_20_ns)
{
	assert_int_equal(natra_flow_now((1 << 20) - 1), 0);
	assert_int_equal(natra_flow_now(1 << 20), 1);
	assert_int_equal(natra_flow_now(3ULL << 52), 0);
}

TH_MAIN_EACH(clear, NULL)
