/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of SYNs that wait for an answer: what is found again, what is the oldest,
 * and what is too old. */
#include "cm.h"

#include <string.h>

#include "natra_connects.h"

#define SECOND 1000000000ULL
#define NOW    (1000 * SECOND)
#define SEQ    0xfffffff0U

static struct natra_connect_table table;

static int clear(void **state)
{
	memset(&table, 0, sizeof(table));
	for (unsigned int i = 0; i < NATRA_HASH_KEYS; i++)
		table.keys[i] = 0x9e3779b97f4a7c15ULL * (i + 1);
	return 0;
}

/* Returns hashes of one set, which have different keys. */
static __u64 hash_of(unsigned int i)
{
	return (__u64)(i + 1) << 33 | 5;
}

TH_TEST(the_other_end_has_the_same_hash)
{
	const struct natra_tuple tuple = {
		.saddr = {1, 2, 3, 4},
		.daddr = {5, 6, 7, 8},
		.ports = 0x12345678,
		.version = 6,
		.protocol = NATRA_CONNECT_WAYS + 2,
	};
	struct natra_tuple other = tuple;

	memcpy(other.saddr, tuple.daddr, sizeof(other.saddr));
	memcpy(other.daddr, tuple.saddr, sizeof(other.daddr));
	other.ports = 0x56781234;
	assert_true(natra_connect_reverse(table.keys, &other) ==
		    natra_hash_tuple(table.keys, &tuple));
	assert_true(natra_connect_reverse(table.keys, &tuple) !=
		    natra_hash_tuple(table.keys, &tuple));
}

TH_TEST(no_key_is_0)
{
	assert_true(natra_connect_key(0, 0) != 0);
	assert_true(natra_connect_key(UINT64_MAX, 0) != 0);
	assert_true(natra_connect_key(7, 1) != natra_connect_key(7, 2));
	assert_true(natra_connect_key(hash_of(1), 1) !=
		    natra_connect_key(hash_of(2), 1));
}

TH_TEST(an_answer_is_found_once)
{
	assert_int_equal(natra_connect_begin(&table, hash_of(0), SEQ, NOW),
			 NATRA_CONNECT_FIRST);
	assert_int_equal(
		natra_connect_begin(&table, hash_of(0), SEQ, NOW + SECOND),
		NATRA_CONNECT_AGAIN);
	assert_int_equal(natra_connect_end(&table, hash_of(0), SEQ - 1, NOW),
			 0);
	assert_int_equal(natra_connect_end(&table, hash_of(1), SEQ, NOW), 0);
	assert_int_equal(
		natra_connect_end(&table, hash_of(0), SEQ, NOW + 2 * SECOND),
		NOW);
	assert_int_equal(
		natra_connect_end(&table, hash_of(0), SEQ, NOW + 2 * SECOND),
		0);
}

/* TCP Fast Open: an answer acknowledges what the SYN carried, too, or not. */
TH_TEST(an_answer_to_data_is_found)
{
	static const __u32 lengths[] = {0, 1, 1460, NATRA_CONNECT_DATA_MAX};

	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		(void)natra_connect_begin(&table, hash_of(i), SEQ, NOW + i);
		assert_int_equal(natra_connect_end(
					 &table, hash_of(i),
					 SEQ + NATRA_CONNECT_DATA_MAX + 1, NOW),
				 0);
		assert_int_equal(natra_connect_end(&table, hash_of(i),
						   SEQ + lengths[i], NOW),
				 NOW + i);
	}
}

TH_TEST(a_full_set_loses_its_oldest)
{
	static const unsigned int order[NATRA_CONNECT_WAYS] = {2, 0, 3, 1};

	for (unsigned int i = 0; i < NATRA_CONNECT_WAYS; i++)
		assert_int_equal(natra_connect_begin(&table, hash_of(order[i]),
						     SEQ, NOW + i),
				 NATRA_CONNECT_FIRST);
	assert_int_equal(
		natra_connect_begin(&table, hash_of(9), SEQ, NOW + SECOND),
		NATRA_CONNECT_EVICTS);
	assert_int_equal(natra_connect_end(&table, hash_of(order[0]), SEQ, NOW),
			 0);
	for (unsigned int i = 1; i < NATRA_CONNECT_WAYS; i++)
		assert_int_equal(
			natra_connect_end(&table, hash_of(order[i]), SEQ, NOW),
			NOW + i);
	assert_int_equal(natra_connect_end(&table, hash_of(9), SEQ, NOW),
			 NOW + SECOND);
}

/* A port that is used again takes its own entry. */
TH_TEST(a_new_attempt_replaces_the_old_one)
{
	for (unsigned int i = 0; i < NATRA_CONNECT_WAYS; i++)
		(void)natra_connect_begin(&table, hash_of(i), SEQ, NOW + i);
	assert_int_equal(
		natra_connect_begin(&table, hash_of(2), SEQ + 7, NOW + SECOND),
		NATRA_CONNECT_FIRST);
	assert_int_equal(natra_connect_end(&table, hash_of(2), SEQ, NOW), 0);
	assert_int_equal(natra_connect_end(&table, hash_of(0), SEQ, NOW), NOW);
	assert_int_equal(natra_connect_end(&table, hash_of(2), SEQ + 7, NOW),
			 NOW + SECOND);
}

TH_TEST(what_is_too_old_is_gone)
{
	const __u64 later = NOW + NATRA_CONNECT_AGE_NS;

	for (unsigned int i = 0; i < NATRA_CONNECT_WAYS; i++)
		(void)natra_connect_begin(&table, hash_of(i), SEQ, NOW + i);
	assert_int_equal(
		natra_connect_begin(&table, hash_of(0), SEQ, later - 1),
		NATRA_CONNECT_AGAIN);
	assert_int_equal(natra_connect_end(&table, hash_of(0), SEQ, later), 0);
	/* Only the first one is too old by now, so the second takes its place. */
	assert_int_equal(natra_connect_begin(&table, hash_of(7), SEQ, later),
			 NATRA_CONNECT_FIRST);
	assert_int_equal(natra_connect_begin(&table, hash_of(8), SEQ, later),
			 NATRA_CONNECT_EVICTS);
	assert_int_equal(
		natra_connect_begin(&table, hash_of(2), SEQ, later + 2),
		NATRA_CONNECT_FIRST);
	assert_int_equal(natra_connect_end(&table, hash_of(2), SEQ, later + 3),
			 later + 2);
}

TH_MAIN_EACH(clear, NULL)
