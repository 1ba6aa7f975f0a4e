/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdlib.h>
#include <string.h>

#include "natra_hash.h"
#include "natra_sketch.h"
#include "rng.h"

#define WIDTH     NATRA_SKETCH_WIDTH
#define WINDOW    (1ULL << NATRA_WINDOW_SHIFT)
#define SATURATED NATRA_CELL_COUNT_MAX

static __u32 cells[NATRA_ROWS * WIDTH];

TH_STEP(clear, memset(cells, 0, sizeof(cells)))

static __u32 add(__u64 hash, __u32 units, __u32 epoch)
{
	return natra_sketch_add(cells, WIDTH - 1, hash, units, epoch);
}

TH_TEST(epoch_changes_each_window_and_wraps_at_256)
{
	assert_int_equal(natra_epoch(0), 0);
	assert_int_equal(natra_epoch(WINDOW - 1), 0);
	assert_int_equal(natra_epoch(WINDOW), 1);
	assert_int_equal(natra_epoch(255 * WINDOW), 255);
	assert_int_equal(natra_epoch(256 * WINDOW), 0);
	assert_int_equal(natra_epoch(UINT64_MAX), 255);
}

TH_TEST(units_are_the_nearest_and_never_zero)
{
	assert_int_equal(natra_units(0), 1);
	assert_int_equal(natra_units(14), 1);
	assert_int_equal(natra_units(66), 1);
	assert_int_equal(natra_units(95), 1);
	assert_int_equal(natra_units(96), 2);
	for (__u32 bytes = 64; bytes < 600000; bytes++) {
		__u32 back = natra_units(bytes) << NATRA_UNIT_SHIFT;

		assert_true(back <= bytes + 32 && back + 32 >= bytes);
	}
}

TH_TEST(count_halves_each_window_and_is_zero_from_age_24)
{
	const __u32 count = 0xabcdef;

	for (__u32 written = 0; written < 256; written++) {
		__u32 cell = written << NATRA_CELL_COUNT_BITS | count;

		for (__u32 age = 0; age < 256; age++) {
			__u32 want = age < 24 ? count >> age : 0;

			assert_int_equal(
				natra_cell_count(cell, (written + age) & 0xff),
				want);
		}
	}
}

TH_TEST(cell_looks_fresh_again_after_256_windows)
{
	add(1, 1000, natra_epoch(3 * WINDOW));
	assert_int_equal(add(1, 1, natra_epoch((3 + 255) * WINDOW)), 1);
	clear(NULL);
	add(1, 1000, natra_epoch(3 * WINDOW));
	assert_int_equal(add(1, 1, natra_epoch((3 + 256) * WINDOW)), 1001);
}

TH_TEST(estimate_ages_while_the_flow_goes_on)
{
	__u32 estimate = 0;

	for (__u32 epoch = 0; epoch < 20; epoch++)
		estimate = add(7, 1024, epoch & 0xff);
	/* The sum is 1024 * (1 + 1/2 + 1/4 ...), less what the shifts round
	 * away. */
	assert_in_range(estimate, 2047 - 11, 2048);
}

TH_TEST(count_saturates_and_leaves_the_epoch_alone)
{
	assert_int_equal(add(5, SATURATED - 1, 0xfe), SATURATED - 1);
	assert_int_equal(add(5, 1, 0xfe), SATURATED);
	assert_int_equal(add(5, 1, 0xfe), SATURATED);
	assert_int_equal(add(5, 9000, 0xfe), SATURATED);
	assert_int_equal(cells[5] >> NATRA_CELL_COUNT_BITS, 0xfe);
	assert_int_equal(add(5, 1, 0xff), SATURATED / 2 + 1);
}

TH_TEST(each_row_has_its_own_part_of_the_hash)
{
	for (int row = 0; row < NATRA_ROWS; row++) {
		__u64 other = 9ULL << (16 * row);

		clear(NULL);
		assert_int_equal(add(0, 100, 0), 100);
		/* The flows share three rows, and the fourth tells them
		 * apart. */
		assert_int_equal(add(other, 1, 0), 1);
		assert_int_equal(cells[row * WIDTH + 9], 1);
		assert_int_equal(cells[row * WIDTH], 100);
	}
}

TH_TEST(update_is_conservative)
{
	/* The flow shares row 0 with a big flow and has the other rows for
	 * itself. */
	add(0, 5000, 0);
	assert_int_equal(add(0x0001000100010000ULL, 10, 0), 10);
	assert_int_equal(cells[0], 5000);
	assert_int_equal(cells[WIDTH + 1], 10);
	assert_int_equal(add(0, 1, 0), 5001);
}

TH_TEST(first_and_last_cell_are_inside)
{
	const size_t len = (size_t)NATRA_ROWS * WIDTH;
	/* The buffer has the exact size, so that ASan sees a cell beyond it. */
	__u32 *all = calloc(len, sizeof(*all));

	assert_non_null(all);
	natra_sketch_add(all, WIDTH - 1, ~0ULL, 1, 0);
	natra_sketch_add(all, WIDTH - 1, 0, 1, 0);
	for (size_t cell = 0; cell < len; cell++) {
		const size_t at = cell % WIDTH;

		assert_int_equal(all[cell], at == 0 || at == WIDTH - 1);
	}
	free(all);
}

#define FLOWS   4000
#define PACKETS 200000

/* Picks flows by a Zipf-like law: half of the packets belong to the first
 * few. */
static size_t pick_flow(uint64_t *seed)
{
	uint64_t r = th_rng(seed);
	size_t range = r & 1 ? FLOWS : 16;

	return (r >> 8) % range;
}

TH_TEST(error_is_bounded_and_never_an_underestimate)
{
	static __u64 hash[FLOWS];
	static __u32 truth[FLOWS], estimate[FLOWS];
	uint64_t seed = 1, total = 0, error_sum = 0;
	unsigned int over_bound = 0;
	double bound;

	for (size_t i = 0; i < FLOWS; i++)
		hash[i] = th_rng(&seed);
	for (int i = 0; i < PACKETS; i++) {
		size_t flow = pick_flow(&seed);
		__u32 units = 1 + th_rng(&seed) % 24;

		truth[flow] += units;
		total += units;
		estimate[flow] = add(hash[flow], units, 17);
		assert_true(estimate[flow] >= truth[flow]);
	}
	/* Count-min bound: e^-4 of the estimates may be over by e * N / w. */
	bound = 2.71828 * (double)total / WIDTH;
	for (size_t i = 0; i < FLOWS; i++) {
		__u32 error = estimate[i] - truth[i];

		error_sum += error;
		over_bound += error > bound;
	}
	assert_true(over_bound <= FLOWS * 0.0184);
	assert_true((double)error_sum / FLOWS < bound / 2);
}

TH_TEST(few_flows_are_counted_exactly)
{
	uint64_t seed = 2;

	for (int i = 0; i < 20; i++) {
		__u64 hash = th_rng(&seed);

		for (__u32 packet = 1; packet <= 100; packet++)
			assert_int_equal(add(hash, 24, 1), 24 * packet);
	}
}

TH_MAIN_EACH(clear, NULL)
