/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "natra_hash.h"
#include "rng.h"

static __u64 keys[NATRA_HASH_KEYS];

static int make_keys(void **state)
{
	uint64_t seed = 42;

	for (int i = 0; i < NATRA_HASH_KEYS; i++)
		keys[i] = th_rng(&seed) | 1;
	return 0;
}

static struct natra_tuple random_tuple(uint64_t *seed, __u8 version)
{
	struct natra_tuple t = {
		.ports = (__u32)th_rng(seed),
		.version = version,
		.protocol = (__u8)th_rng(seed),
		.fragment = th_rng(seed) & 1,
	};
	int words = version == 4 ? 1 : 4;

	for (int i = 0; i < words; i++) {
		t.saddr[i] = (__u32)th_rng(seed);
		t.daddr[i] = (__u32)th_rng(seed);
	}
	return t;
}

/* The data path hashes most packets without a tuple, by another formula. */
TH_TEST(formulas_of_fast_and_slow_path_agree)
{
	uint64_t seed = 2;

	for (int i = 0; i < 1000; i++) {
		struct natra_tuple t = random_tuple(&seed, 4);
		__u32 kind =
			natra_hash_kind(4, t.protocol, t.fragment, t.inner);

		assert_int_equal(natra_hash_v4(keys, t.saddr[0], t.daddr[0],
					       t.ports, kind),
				 natra_hash_tuple(keys, &t));
		t = random_tuple(&seed, 6);
		kind = natra_hash_kind(6, t.protocol, t.fragment, t.inner);
		assert_int_equal(
			natra_hash_v6(keys, t.saddr, t.daddr, t.ports, kind),
			natra_hash_tuple(keys, &t));
	}
}

static void assert_hash_differs(const struct natra_tuple *a,
				const struct natra_tuple *b)
{
	assert_int_not_equal(natra_hash_tuple(keys, a),
			     natra_hash_tuple(keys, b));
}

TH_TEST(every_bit_of_the_identity_matters)
{
	uint64_t seed = 3;

	for (__u8 version = 4; version <= 6; version += 2) {
		const struct natra_tuple t = random_tuple(&seed, version);
		struct natra_tuple u;

		for (int bit = 0; bit < 32; bit++) {
			int words = version == 4 ? 1 : 4;

			for (int i = 0; i < words; i++) {
				u = t;
				u.saddr[i] ^= 1U << bit;
				assert_hash_differs(&t, &u);
				u = t;
				u.daddr[i] ^= 1U << bit;
				assert_hash_differs(&t, &u);
			}
			u = t;
			u.ports ^= 1U << bit;
			assert_hash_differs(&t, &u);
		}
		for (int bit = 0; bit < 8; bit++) {
			u = t;
			u.protocol ^= (__u8)(1U << bit);
			assert_hash_differs(&t, &u);
		}
		u = t;
		u.fragment ^= 1;
		assert_hash_differs(&t, &u);
	}
}

TH_TEST(versions_and_directions_are_apart)
{
	struct natra_tuple t = {.version = 4, .protocol = 6, .ports = 80};
	struct natra_tuple u = t;

	u.version = 6;
	assert_hash_differs(&t, &u);
	u = t;
	t.saddr[0] = u.daddr[0] = 0x010200c0;
	t.daddr[0] = u.saddr[0] = 0x016433c6;
	assert_hash_differs(&t, &u);
}

TH_TEST(every_key_matters)
{
	uint64_t seed = 4;
	struct natra_tuple v4 = random_tuple(&seed, 4);
	struct natra_tuple v6 = random_tuple(&seed, 6);
	__u64 hash4 = natra_hash_tuple(keys, &v4);
	__u64 hash6 = natra_hash_tuple(keys, &v6);

	for (int i = 0; i < NATRA_HASH_KEYS; i++) {
		/* The last three words of an IPv4 address are 0. */
		bool v4_has = i < 4 || i == 7;

		keys[i] += 2;
		assert_int_equal(natra_hash_tuple(keys, &v4) != hash4, v4_has);
		assert_int_not_equal(natra_hash_tuple(keys, &v6), hash6);
		keys[i] -= 2;
	}
}

/* Tuples that collide in a row with one set of keys do not with another set. */
TH_TEST(collisions_do_not_carry_over_to_other_keys)
{
	const struct natra_tuple target = {.version = 4, .protocol = 6};
	__u16 row0 = (__u16)natra_hash_tuple(keys, &target);
	struct natra_tuple found[64];
	struct natra_tuple t = target;
	size_t len = 0, still = 0;
	uint64_t seed = 5;

	while (len < TH_LEN(found)) {
		t.ports++;
		if (((natra_hash_tuple(keys, &t) ^ row0) & 0x7ff) == 0)
			found[len++] = t;
	}
	for (int i = 0; i < NATRA_HASH_KEYS; i++)
		keys[i] = th_rng(&seed) | 1;
	row0 = (__u16)natra_hash_tuple(keys, &target);
	for (size_t i = 0; i < len; i++)
		still += ((natra_hash_tuple(keys, &found[i]) ^ row0) & 0x7ff) ==
			 0;
	assert_true(still <= 2);
}

#define SAMPLES        65536
#define BUCKETS        256
/* 255 degrees of freedom have mean 255 and sigma 22.6; this is six sigma. */
#define CHI_SQUARE_MAX 391.0

static double chi_square(const __u64 *hashes, int shift)
{
	unsigned int count[BUCKETS] = {0};
	const double expected = (double)SAMPLES / BUCKETS;
	double sum = 0;

	for (size_t i = 0; i < SAMPLES; i++)
		count[(hashes[i] >> shift) % BUCKETS]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		double d = count[i] - expected;

		sum += d * d / expected;
	}
	return sum;
}

/* Returns tuples that differ in a few bits, as those of an attacker or of a
 * busy server do. */
static struct natra_tuple nth_tuple(int pattern, __u32 n)
{
	struct natra_tuple t = {.version = 4, .protocol = 6};

	t.saddr[0] = 0x010200c0;
	t.daddr[0] = 0x016433c6;
	switch (pattern) {
	case 0:
		t.ports = 80 << 16 | n;
		break;
	case 1:
		t.daddr[0] += n << 16;
		break;
	case 2:
		t.saddr[0] += (n & 0xff) << 24;
		t.ports = n >> 8 << 16;
		break;
	default:
		t.version = 6;
		t.daddr[3] = n << 8;
		break;
	}
	return t;
}

TH_TEST(rows_are_evenly_used_by_similar_tuples)
{
	static __u64 hashes[SAMPLES];

	for (int pattern = 0; pattern < 4; pattern++) {
		for (__u32 i = 0; i < SAMPLES; i++) {
			struct natra_tuple t = nth_tuple(pattern, i);

			hashes[i] = natra_hash_tuple(keys, &t);
		}
		for (int shift = 0; shift < 64; shift += 8) {
			double chi = chi_square(hashes, shift);

			if (chi > CHI_SQUARE_MAX)
				fail_msg("pattern %d, bits %d: %.0f", pattern,
					 shift, chi);
		}
	}
}

TH_MAIN_EACH(make_keys, NULL)
