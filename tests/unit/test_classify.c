/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "natra_classify.h"
#include "natra_shared.h"

#define ENTER   800
#define LEAVE   100
#define BETWEEN 400

static __u32 table[NATRA_HEAVY_SETS];

static int clear(void **state)
{
	(void)state;
	memset(table, 0, sizeof(table));
	return 0;
}

static bool heavy(__u64 hash, __u32 estimate, __u32 epoch)
{
	return natra_is_heavy(table, hash, estimate, ENTER, LEAVE, epoch);
}

/* A hash of which the table sees set and fingerprint. */
static __u64 hash_of(__u32 set, __u32 print)
{
	return (__u64)print << 23 | set;
}

static void new_flow_is_a_mouse_until_it_reaches_enter(void **state)
{
	const __u64 flow = hash_of(1, 1);

	(void)state;
	assert_false(heavy(flow, LEAVE - 1, 5));
	assert_false(heavy(flow, BETWEEN, 5));
	assert_false(heavy(flow, ENTER - 1, 5));
	assert_true(heavy(flow, ENTER, 5));
}

static void heavy_flow_stays_heavy_down_to_leave(void **state)
{
	const __u64 flow = hash_of(2, 2);

	(void)state;
	assert_true(heavy(flow, ENTER, 5));
	assert_true(heavy(flow, ENTER - 1, 5));
	assert_true(heavy(flow, LEAVE, 6));
	assert_false(heavy(flow, LEAVE - 1, 6));
}

static void heavy_flow_is_forgotten_after_64_windows(void **state)
{
	const __u64 flow = hash_of(3, 3);

	(void)state;
	for (__u32 epoch = 0; epoch < 256; epoch++) {
		assert_true(heavy(flow, ENTER, epoch));
		assert_true(heavy(flow, BETWEEN, (epoch + 64) & 0xff));
		assert_false(heavy(flow, BETWEEN, (epoch + 65) & 0xff));
		assert_false(heavy(flow, BETWEEN, (epoch + 127) & 0xff));
	}
}

static void reaching_enter_again_starts_the_64_windows_anew(void **state)
{
	const __u64 flow = hash_of(4, 4);

	(void)state;
	assert_true(heavy(flow, ENTER, 0));
	assert_true(heavy(flow, ENTER, 60));
	assert_true(heavy(flow, BETWEEN, 60 + 64));
}

static void between_leave_and_enter_does_not_refresh(void **state)
{
	const __u64 flow = hash_of(5, 5);

	(void)state;
	assert_true(heavy(flow, ENTER, 0));
	for (__u32 epoch = 0; epoch <= 64; epoch++)
		assert_true(heavy(flow, BETWEEN, epoch));
	assert_false(heavy(flow, BETWEEN, 65));
}

static void entry_looks_fresh_from_128_to_192_windows(void **state)
{
	const __u64 flow = hash_of(6, 6);

	(void)state;
	assert_true(heavy(flow, ENTER, 0));
	assert_false(heavy(flow, BETWEEN, 127));
	assert_true(heavy(flow, BETWEEN, 128));
	assert_true(heavy(flow, BETWEEN, 192));
	assert_false(heavy(flow, BETWEEN, 193));
}

static void two_flows_of_a_set_are_both_heavy(void **state)
{
	const __u64 first = hash_of(7, 1), second = hash_of(7, 2);

	(void)state;
	for (__u32 epoch = 5; epoch < 8; epoch++) {
		assert_true(heavy(first, ENTER, epoch));
		assert_true(heavy(second, ENTER, epoch));
		assert_true(heavy(first, BETWEEN, epoch));
		assert_true(heavy(second, BETWEEN, epoch));
	}
	/* Each has its own 64 windows. */
	assert_true(heavy(second, ENTER, 8));
	assert_false(heavy(first, BETWEEN, 7 + 65));
	assert_true(heavy(second, BETWEEN, 8 + 64));
}

static void third_flow_evicts_the_one_seen_longest_ago(void **state)
{
	const __u64 first = hash_of(7, 1), second = hash_of(7, 2);
	const __u64 third = hash_of(7, 3);

	(void)state;
	assert_true(heavy(first, ENTER, 5));
	assert_true(heavy(second, ENTER, 5));
	assert_true(heavy(first, ENTER, 6));
	assert_true(heavy(third, ENTER, 6));
	assert_true(heavy(first, BETWEEN, 6));
	assert_false(heavy(second, BETWEEN, 6));
	assert_true(heavy(third, BETWEEN, 6));
	/* Until it reaches enter. */
	assert_true(heavy(second, ENTER, 6));
	assert_true(heavy(second, BETWEEN, 6));
	assert_false(heavy(first, BETWEEN, 6));
}

static void other_flow_in_the_set_is_not_taken_for_heavy(void **state)
{
	(void)state;
	for (__u32 print = 1; print < 512; print++) {
		table[8] = 0;
		assert_true(heavy(hash_of(8, print), ENTER, 5));
		/* 0 is an empty entry, so that fingerprint is taken for 1. */
		for (__u32 other = 0; other < 512; other++)
			assert_int_equal(heavy(hash_of(8, other), BETWEEN, 5),
					 (other ? other : 1) == print);
	}
}

static void empty_entry_makes_no_flow_heavy(void **state)
{
	(void)state;
	for (__u32 print = 0; print < 512; print++) {
		for (__u32 epoch = 0; epoch < 256; epoch++)
			assert_false(heavy(hash_of(9, print), BETWEEN, epoch));
	}
}

static void hysteresis_holds_for_every_flow_and_epoch(void **state)
{
	(void)state;
	for (__u32 print = 0; print < 512; print++) {
		for (__u32 epoch = 0; epoch < 256; epoch++) {
			assert_true(heavy(hash_of(10, print), ENTER, epoch));
			if (!heavy(hash_of(10, print), BETWEEN, epoch))
				fail_msg("fingerprint %u, epoch %u", print,
					 epoch);
		}
	}
}

static void sets_are_all_used_and_separate(void **state)
{
	(void)state;
	for (__u32 set = 0; set < NATRA_HEAVY_SETS; set++)
		assert_true(heavy(hash_of(set, 3), ENTER, 9));
	for (__u32 set = 0; set < NATRA_HEAVY_SETS; set++) {
		assert_int_not_equal(table[set], 0);
		assert_true(heavy(hash_of(set, 3), BETWEEN, 9));
	}
}

static void upper_half_of_the_hash_counts_too(void **state)
{
	(void)state;
	assert_true(heavy(11, ENTER, 1));
	assert_false(heavy(11 | 12ULL << 32, BETWEEN, 1));
	assert_false(heavy(11 | 1ULL << 60, BETWEEN, 1));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, clear)
	const struct CMUnitTest tests[] = {
		CASE(new_flow_is_a_mouse_until_it_reaches_enter),
		CASE(heavy_flow_stays_heavy_down_to_leave),
		CASE(heavy_flow_is_forgotten_after_64_windows),
		CASE(reaching_enter_again_starts_the_64_windows_anew),
		CASE(between_leave_and_enter_does_not_refresh),
		CASE(entry_looks_fresh_from_128_to_192_windows),
		CASE(two_flows_of_a_set_are_both_heavy),
		CASE(third_flow_evicts_the_one_seen_longest_ago),
		CASE(other_flow_in_the_set_is_not_taken_for_heavy),
		CASE(empty_entry_makes_no_flow_heavy),
		CASE(hysteresis_holds_for_every_flow_and_epoch),
		CASE(sets_are_all_used_and_separate),
		CASE(upper_half_of_the_hash_counts_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
