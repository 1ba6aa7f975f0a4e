/* SPDX-License-Identifier: BSD-2-Clause */
/* Histograms of durations: the bucket of each, and the sum of a state's stripes. */
#include "cm.h"

#include <stdlib.h>

#include "natra_durations.h"
#include "state/slot.h"
#include "util/cleanup.h"

TH_TEST(each_bucket_ends_at_a_power_of_two)
{
	const uint32_t last = NATRA_DURATION_BUCKETS - 1;

	assert_int_equal(natra_duration_bucket(0), 0);
	assert_int_equal(natra_duration_bucket(1), 0);
	assert_int_equal(natra_duration_bucket(1024), 0);
	for (uint32_t i = 1; i < last; i++) {
		assert_int_equal(
			natra_duration_bucket((1024ULL << (i - 1)) + 1), i);
		assert_int_equal(natra_duration_bucket((1024ULL << i) - 1), i);
		assert_int_equal(natra_duration_bucket(1024ULL << i), i);
	}
}

TH_TEST(the_last_bucket_has_no_end)
{
	const uint32_t last = NATRA_DURATION_BUCKETS - 1;

	for (uint32_t i = last; i <= 53; i++) {
		assert_int_equal(
			natra_duration_bucket((1024ULL << (i - 1)) + 1), last);
		assert_int_equal(natra_duration_bucket(1024ULL << i), last);
	}
	assert_int_equal(natra_duration_bucket(UINT64_MAX), last);
}

TH_TEST(stripes_are_added_up)
{
	cleanup_free struct natra_state *s = calloc(1, sizeof(*s));
	struct natra_counters sum;

	assert_non_null(s);
	for (uint64_t i = 0; i < NATRA_STRIPES; i++) {
		struct natra_durations *delays = &s->stripes[i].delays;

		delays->sum_ns = 1ULL << i;
		delays->count[0] = 16ULL << i;
		delays->count[NATRA_DURATION_BUCKETS - 1] = 256ULL << i;
	}
	sum = slot_sum(s);
	assert_int_equal(sum.delays.sum_ns, 15);
	assert_int_equal(sum.delays.count[0], 240);
	assert_int_equal(sum.delays.count[1], 0);
	assert_int_equal(sum.delays.count[NATRA_DURATION_BUCKETS - 1], 3840);
}

TH_MAIN(NULL, NULL)
