/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "natra_classify.h"
#include "natra_shared.h"
#include "rng.h"

#define ENTER   800
#define LEAVE   100
#define BETWEEN 400
#define HOLD    NATRA_HOLD_WINDOWS
#define KNOWN   NATRA_KNOWN_WINDOWS

static __u8 table[NATRA_ROWS * NATRA_HEAVY_WIDTH];

TH_STEP(clear, memset(table, 0, sizeof(table)))

static bool heavy(__u64 hash, __u32 estimate, __u32 epoch)
{
	return natra_is_heavy(table, hash, estimate, 0, ENTER, LEAVE,
			      epoch & 0xff);
}

/* Returns a hash with these cells, one in each row. */
static __u64 hash_of(__u16 a, __u16 b, __u16 c, __u16 d)
{
	return a | (__u64)b << 16 | (__u64)c << 32 | (__u64)d << 48;
}

static const __u64 flow = 0x0123456789abcdef;

TH_TEST(new_flow_is_a_mouse_until_it_reaches_enter)
{
	assert_false(heavy(flow, LEAVE - 1, 5));
	assert_false(heavy(flow, LEAVE, 5));
	assert_false(heavy(flow, ENTER - 1, 5));
	assert_true(heavy(flow, ENTER, 5));
}

TH_TEST(flow_under_leave_is_heavy_for_the_hold)
{
	for (__u32 epoch = 0; epoch < 256; epoch++) {
		assert_true(heavy(flow, ENTER, epoch));
		assert_true(heavy(flow, LEAVE / 2, epoch + 1));
		assert_true(heavy(flow, LEAVE - 1, epoch + HOLD));
		assert_false(heavy(flow, LEAVE - 1, epoch + HOLD + 1));
		assert_false(heavy(flow, LEAVE - 1, epoch + 127));
	}
}

TH_TEST(flow_over_leave_stays_heavy_for_ever)
{
	assert_true(heavy(flow, ENTER, 0));
	for (__u32 epoch = 0; epoch < 1000; epoch += KNOWN)
		assert_true(heavy(flow, LEAVE, epoch));
}

/* The sketch remembers only earlier packets, not the one that is judged. */
TH_TEST(flow_under_leave_is_heavy_if_the_sketch_remembers_it)
{
	assert_true(heavy(flow, ENTER, 0));
	for (__u32 epoch = 0; epoch < HOLD; epoch++) {
		const __u32 least = LEAVE >> epoch;

		for (__u32 units = 0; units + least < LEAVE; units += 23) {
			assert_false(natra_is_heavy(table, flow,
						    least - 1 + units, units,
						    ENTER, LEAVE, epoch));
			assert_true(natra_is_heavy(table, flow, least + units,
						   units, ENTER, LEAVE, epoch));
		}
	}
}

/* A flow touches all of its cells at once, so the oldest of them says when it was last
 * seen. */
TH_TEST(younger_cells_of_others_do_not_raise_the_demand)
{
	assert_true(heavy(hash_of(1, 2, 3, 4), ENTER, 0));
	assert_true(heavy(hash_of(1, 2, 3, 9), ENTER, 5));
	assert_true(heavy(hash_of(1, 2, 3, 4), LEAVE >> 5, 5));
	assert_true(heavy(hash_of(9, 9, 9, 4), ENTER, 5));
	assert_false(heavy(hash_of(1, 2, 3, 4), LEAVE >> 5, 5));
}

TH_TEST(flow_under_leave_does_not_prolong_the_hold)
{
	assert_true(heavy(flow, ENTER, 0));
	for (__u32 epoch = 1; epoch <= HOLD; epoch++)
		assert_true(heavy(flow, LEAVE - 1, epoch));
	assert_false(heavy(flow, LEAVE - 1, HOLD + 1));
}

TH_TEST(known_flow_is_a_mouse_until_it_reaches_leave)
{
	for (__u32 epoch = 0; epoch < 256; epoch++) {
		assert_true(heavy(flow, ENTER, epoch));
		assert_false(heavy(flow, LEAVE - 1, epoch + KNOWN));
		assert_true(heavy(flow, LEAVE, epoch + KNOWN));
		/* The packet begins the hold anew. */
		assert_true(heavy(flow, LEAVE >> HOLD, epoch + KNOWN + HOLD));
	}
}

TH_TEST(forgotten_flow_is_a_mouse_until_it_reaches_enter)
{
	assert_true(heavy(flow, ENTER, 0));
	assert_false(heavy(flow, LEAVE, KNOWN + 1));
	assert_false(heavy(flow, ENTER - 1, KNOWN + 1));
	assert_true(heavy(flow, ENTER, KNOWN + 1));
}

TH_TEST(marks_look_fresh_again_after_128_windows)
{
	assert_true(heavy(flow, ENTER, 0));
	assert_false(heavy(flow, BETWEEN, 127));
	assert_true(heavy(flow, LEAVE / 2, 128 + 1));
	assert_false(heavy(flow, LEAVE - 1, 128 + HOLD + 1));
	assert_true(heavy(flow, BETWEEN, 128 + KNOWN));
	assert_false(heavy(flow, BETWEEN, 128 + 2 * KNOWN + 1));
}

TH_TEST(unused_cells_make_no_flow_heavy)
{
	for (__u32 epoch = 0; epoch < 256; epoch++) {
		assert_false(heavy(flow, ENTER - 1, epoch));
		assert_false(heavy(flow, LEAVE - 1, epoch));
	}
}

/* Each part of the hash counts: a flow that shares three cells is still
 * another. */
TH_TEST(flow_with_three_cells_of_another_is_a_mouse)
{
	assert_true(heavy(hash_of(1, 2, 3, 4), ENTER, 5));
	assert_true(heavy(hash_of(1, 2, 3, 4), BETWEEN, 5));
	assert_false(heavy(hash_of(9, 2, 3, 4), BETWEEN, 5));
	assert_false(heavy(hash_of(1, 9, 3, 4), BETWEEN, 5));
	assert_false(heavy(hash_of(1, 2, 9, 4), BETWEEN, 5));
	assert_false(heavy(hash_of(1, 2, 3, 9), BETWEEN, 5));
	/* The same parts in another order are another flow. */
	assert_false(heavy(hash_of(4, 3, 2, 1), BETWEEN, 5));
}

TH_TEST(old_cell_of_another_does_not_count)
{
	assert_true(heavy(hash_of(1, 2, 3, 3), ENTER, 5));
	assert_true(heavy(hash_of(9, 9, 9, 4), ENTER, 5 + KNOWN + 1));
	assert_false(heavy(hash_of(1, 2, 3, 4), BETWEEN, 5 + KNOWN + 1));
}

TH_TEST(cells_are_all_used)
{
	for (__u16 i = 0; i < NATRA_HEAVY_WIDTH; i++)
		assert_true(heavy(hash_of(i, i, i, i), ENTER, 9));
	for (size_t i = 0; i < sizeof(table); i++)
		assert_int_not_equal(table[i], 0);
}

TH_TEST(no_number_of_flows_makes_one_forgotten)
{
	uint64_t rng = 1;

	for (int i = 0; i < 2000; i++)
		assert_true(heavy(th_rng(&rng), ENTER, 5));
	rng = 1;
	for (int i = 0; i < 2000; i++)
		assert_true(heavy(th_rng(&rng), LEAVE - 1, 5 + HOLD));
}

/* The expected share is (1 - (1 - 1/512)^64)^4 = 1.9e-4. */
TH_TEST(few_mice_are_heavy_beside_64_heavy_flows)
{
	uint64_t rng = 2;
	int taken = 0;

	for (int i = 0; i < 64; i++)
		assert_true(heavy(th_rng(&rng), ENTER, 5));
	for (int i = 0; i < 1000000; i++)
		taken += heavy(th_rng(&rng), LEAVE - 1, 6);
	assert_in_range(taken, 50, 500);
}

TH_MAIN_EACH(clear, NULL)
