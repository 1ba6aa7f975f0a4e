/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <pthread.h>
#include <stdio.h>

#include "natra_bucket.h"
#include "natra_wirelen.h"
#include "policy/policy.h"

__extension__ typedef unsigned __int128 u128;

#define SECOND 1000000000ULL
#define START  (1000 * SECOND)

static const uint64_t rates[] = {
	800,         1000,        9600,         100000,       1000000,
	10000000,    33333333,    100000000,    1000000000,   2500000000,
	10000000000, 40000000000, 100000000000, 400000000000, 1000000000000,
};
static const uint32_t sizes[] = {
	60, 66, 67, 590, 1514, 1518, 9014, 65549, 262144, 524288,
};

TH_TEST(burst_is_admitted_at_once_and_one_packet_more)
{
	/* A byte costs 1000 ns, and the burst has room for ten packets. */
	const struct natra_rate rate = policy_rate(8000000, 10000);
	__u64 cost = natra_cost_ns(&rate, 1000, 0);
	__u64 tat = 0;
	int admitted = 0;

	assert_int_equal(rate.burst_ns, 10000000);
	assert_int_equal(cost, 1000000);
	while (natra_bucket_take(&tat, START, rate.burst_ns, cost, 0) !=
	       NATRA_BUCKET_REFUSED)
		admitted++;
	assert_int_equal(admitted, 11);
	assert_int_equal(tat, START + cost);
}

TH_TEST(bucket_fills_no_further_than_its_burst)
{
	__u64 tat = START, later = START + 3600 * SECOND;
	__u64 depart = natra_bucket_take(&tat, later, SECOND, 1000, 0);

	assert_int_equal(depart, later - SECOND);
	assert_int_equal(tat, later - SECOND + 1000);
}

TH_TEST(one_packet_of_debt_is_allowed_whatever_its_size)
{
	for (size_t i = 0; i < TH_LEN(sizes); i++) {
		const struct natra_rate rate = policy_rate(10000000, 1);
		__u64 cost = natra_cost_ns(&rate, sizes[i], 0);
		__u64 tat = START;

		/* The bucket is empty, but not in debt. */
		assert_int_equal(
			natra_bucket_take(&tat, START, rate.burst_ns, cost, 0),
			START);
		assert_int_equal(tat, START + cost);
		assert_int_equal(
			natra_bucket_take(&tat, START, rate.burst_ns, 1, 0),
			NATRA_BUCKET_REFUSED);
		/* Packets are refused until the debt is paid to the last
		 * nanosecond. */
		assert_int_equal(natra_bucket_take(&tat, START + cost - 1,
						   rate.burst_ns, 1, 0),
				 NATRA_BUCKET_REFUSED);
		assert_int_equal(natra_bucket_take(&tat, START + cost,
						   rate.burst_ns, 1, 0),
				 START + cost);
	}
}

TH_TEST(refusal_leaves_the_bucket_as_it_was)
{
	const __u64 limit = 2 * SECOND;
	__u64 tat = START + limit + 1;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(
			natra_bucket_take(&tat, START, 0, 12345, limit),
			NATRA_BUCKET_REFUSED);
	assert_int_equal(tat, START + limit + 1);
	/* One nanosecond later the packet is just within the horizon. */
	assert_int_equal(natra_bucket_take(&tat, START + 1, 0, 12345, limit),
			 START + 1 + limit);
	assert_int_equal(tat, START + 1 + limit + 12345);
}

TH_TEST(nothing_is_refused_without_a_limit)
{
	__u64 tat = START + 3600 * SECOND;

	assert_int_equal(natra_bucket_take(&tat, START, 0, 5, NATRA_NO_LIMIT),
			 START + 3600 * SECOND);
}

/* Returns the mean rate of a paced sender that always has a packet. */
static double long_run_rate(uint64_t bits_per_sec, uint32_t bytes)
{
	const struct natra_rate rate = policy_rate(bits_per_sec, 1);
	/* If a cost is only a few ns, the random rounding needs more packets to
	 * even out. */
	const __u64 packets =
		8e9 * bytes / (double)bits_per_sec < 100 ? 4000000 : 20000;
	__u64 now = START, tat = START;

	for (__u64 i = 0; i <= packets; i++)
		now = natra_bucket_take(
			&tat, now, 0,
			natra_cost_ns(&rate, bytes,
				      natra_dither(tat + (i << 32))),
			NATRA_NO_LIMIT);
	return 8e9 * bytes * (double)packets / (double)(now - START);
}

TH_TEST(long_run_rate_is_exact_to_a_tenth_of_a_percent)
{
	int wrong = 0;

	for (size_t i = 0; i < TH_LEN(rates); i++) {
		for (size_t j = 0; j < TH_LEN(sizes); j++) {
			double rate = long_run_rate(rates[i], sizes[j]);
			double ratio = rate / (double)rates[i];

			if (ratio > 0.999 && ratio < 1.001)
				continue;
			print_error("%lu bit/s, %u bytes: %.4f of it\n",
				    (unsigned long)rates[i], sizes[j], ratio);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static int wrong_cost(uint64_t bits_per_sec, uint32_t bytes)
{
	const struct natra_rate rate = policy_rate(bits_per_sec, 1);
	u128 want = (u128)bytes * 8 * SECOND / bits_per_sec;
	__u64 least = natra_cost_ns(&rate, bytes, 0);
	__u64 most = natra_cost_ns(&rate, bytes, UINT64_MAX);

	if (least + 1 >= want - want / 1000 && most <= want + want / 1000 + 1)
		return 0;
	print_error("%lu bit/s, %u bytes: %lu to %lu ns, not %lu\n",
		    (unsigned long)bits_per_sec, bytes, (unsigned long)least,
		    (unsigned long)most, (unsigned long)want);
	return 1;
}

/* The lowest rate is 1 bit/s, which is also the lowest share of a rate. */
TH_TEST(no_packet_at_any_rate_overflows)
{
	static const uint32_t large[] = {(1U << 21) - 1, (1U << 24) - 1,
					 1U << 24, NATRA_BYTES_MAX};
	int wrong = 0;

	for (size_t i = 0; i < TH_LEN(large); i++) {
		for (uint64_t rate = 1; rate <= 1000000000000000; rate *= 10) {
			/* Some of these rates are just over or under a power of
			 * two. */
			for (uint64_t part = 0; part < 90; part++)
				wrong += wrong_cost(rate + rate * part / 10,
						    large[i]);
			wrong += wrong_cost(rate * 8 / 127 + 1, large[i]);
		}
	}
	assert_int_equal(wrong, 0);
}

TH_TEST(clock_near_its_end_does_not_wrap)
{
	static const uint64_t nows[] = {
		1ULL << 62,
		(1ULL << 63) - 1,
		1ULL << 63,
		UINT64_MAX - 3600 * SECOND,
	};

	for (size_t i = 0; i < TH_LEN(nows); i++) {
		__u64 now = nows[i], tat = 0;
		__u64 first, second;

		first = natra_bucket_take(&tat, now, SECOND, 2 * SECOND, 0);
		assert_int_equal(first, now - SECOND);
		second = natra_bucket_take(&tat, now, SECOND, SECOND,
					   2 * SECOND);
		assert_int_equal(second, now + SECOND);
		assert_int_equal(tat, now + 2 * SECOND);
		assert_int_equal(
			natra_bucket_take(&tat, now, SECOND, 1, 2 * SECOND - 1),
			NATRA_BUCKET_REFUSED);
	}
}

TH_TEST(burst_longer_than_the_uptime_is_no_future)
{
	__u64 tat = 0;

	assert_int_equal(natra_bucket_take(&tat, SECOND, 5 * SECOND, 7, 0), 0);
	assert_int_equal(tat, 7);
	assert_int_equal(natra_bucket_take(&tat, 0, INT64_MAX, 7, 7), 7);
}

#define THREADS 4
#define TAKES   200000
#define COST    1000

struct contender {
	pthread_t thread;
	__u64 *tat;
	__u64 limit;
	uint64_t admitted;
};

static void *contend(void *arg)
{
	struct contender *c = arg;

	for (int i = 0; i < TAKES; i++)
		c->admitted +=
			natra_bucket_take(c->tat, START, 0, COST, c->limit) !=
			NATRA_BUCKET_REFUSED;
	return NULL;
}

static uint64_t run_contenders(__u64 *tat, __u64 limit)
{
	struct contender all[THREADS] = {0};
	uint64_t admitted = 0;

	for (int i = 0; i < THREADS; i++) {
		all[i].tat = tat;
		all[i].limit = limit;
		assert_int_equal(
			pthread_create(&all[i].thread, NULL, contend, &all[i]),
			0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(all[i].thread, NULL), 0);
		admitted += all[i].admitted;
	}
	return admitted;
}

TH_TEST(no_charge_is_lost_between_cpus)
{
	__u64 tat = START;

	assert_int_equal(run_contenders(&tat, NATRA_NO_LIMIT), THREADS * TAKES);
	assert_int_equal(tat, START + (__u64)THREADS * TAKES * COST);
}

TH_TEST(cpus_together_get_no_more_than_the_limit)
{
	const __u64 limit = 50000 * COST;
	__u64 tat = START;
	uint64_t admitted = run_contenders(&tat, limit);

	/* Each thread may have seen the bucket before the last packet of the
	 * others, or have added its packet without a check after eight lost
	 * races. */
	assert_in_range(admitted, 50001, 50001 + THREADS);
	assert_int_equal(tat, START + admitted * COST);
}

TH_MAIN(NULL, NULL)
