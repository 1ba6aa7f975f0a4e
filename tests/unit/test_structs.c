/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/handle.h"
#include "api/structs.h"

struct now {
	size_t sz;
	uint64_t first;
	uint64_t second;
};

/* A program built for an earlier or a later version passes these. */
struct before {
	size_t sz;
	uint64_t first;
};

struct later {
	size_t sz;
	uint64_t first;
	uint64_t second;
	uint64_t third;
};

#define FIRST      sizeof(struct before)
#define EXTENT_NOW EXTENT_FULL(now, first)

static int open_handle(void **state)
{
	struct natra *n = NULL;

	if (natra_open(&n, NULL) < 0)
		return -1;
	*state = n;
	return 0;
}

static int close_handle(void **state)
{
	natra_close(*state);
	return 0;
}

TH_TEST(struct_of_this_version_is_copied)
{
	const struct now from = {sizeof(from), 1, 2};
	struct now to = {99, 99, 99};

	assert_int_equal(struct_in(*state, "now", &to, EXTENT_NOW, &from), 0);
	assert_memory_equal(&to, &from, sizeof(to));
	assert_string_equal(natra_error(*state), "");
}

TH_TEST(older_struct_has_zero_for_what_it_lacks)
{
	const struct before from = {sizeof(from), 1};
	struct now to = {99, 99, 99};

	assert_int_equal(struct_in(*state, "now", &to, EXTENT_NOW, &from), 0);
	assert_int_equal(to.sz, sizeof(to));
	assert_int_equal(to.first, 1);
	assert_int_equal(to.second, 0);
}

TH_TEST(newer_struct_is_good_if_its_tail_is_zero)
{
	struct later from = {sizeof(from), 1, 2, 0};
	struct now to = {0};

	assert_int_equal(struct_in(*state, "now", &to, EXTENT_NOW, &from), 0);
	assert_int_equal(to.sz, sizeof(to));
	assert_int_equal(to.second, 2);
}

TH_TEST(every_byte_of_a_newer_tail_counts)
{
	for (size_t at = offsetof(struct later, third);
	     at < sizeof(struct later); at++) {
		struct later from = {sizeof(from), 1, 2, 0};
		struct now to = {99, 99, 99};

		((unsigned char *)&from)[at] = 1;
		assert_int_equal(
			struct_in(*state, "now", &to, EXTENT_NOW, &from),
			-EINVAL);
		assert_int_equal(to.first, 99);
		assert_non_null(
			strstr(natra_error(*state), "now: has options"));
	}
}

/* A member that a later version puts there does not make the struct longer. */
TH_TEST(every_reserved_byte_counts)
{
	struct spare {
		size_t sz;
		bool member;
		uint8_t reserved[7];
	} from = {sizeof(from), true, {0}}, to;
	const struct extent extent = EXTENT(spare, reserved, reserved);

	assert_int_equal(struct_in(*state, "spare", &to, extent, &from), 0);
	for (size_t at = 0; at < sizeof(from.reserved); at++) {
		from.reserved[at] = 1;
		assert_int_equal(struct_in(*state, "spare", &to, extent, &from),
				 -EINVAL);
		from.reserved[at] = 0;
	}
}

TH_TEST(missing_struct_is_named)
{
	struct now to = {99, 99, 99};

	assert_int_equal(struct_in(*state, "policy", &to, EXTENT_NOW, NULL),
			 -EINVAL);
	assert_string_equal(natra_error(*state), "policy: missing");
	assert_int_equal(struct_out(*state, "info", NULL, EXTENT_NOW, &to),
			 -EINVAL);
	assert_string_equal(natra_error(*state), "info: missing");
	assert_int_equal(to.first, 99);
}

TH_TEST(size_that_is_none_is_refused)
{
	static const size_t wrong[] = {0,         sizeof(size_t),
				       FIRST - 1, sizeof(struct now) + 1,
				       1 << 20,   SIZE_MAX};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct now a = {wrong[i], 1, 2}, b = {99, 99, 99};

		assert_int_equal(struct_in(*state, "a", &b, EXTENT_NOW, &a),
				 -EINVAL);
		assert_int_equal(b.first, 99);
		assert_int_equal(struct_out(*state, "a", &a, EXTENT_NOW, &b),
				 -EINVAL);
		assert_int_equal(struct_out_check(*state, "a", &a, EXTENT_NOW),
				 -EINVAL);
		assert_int_equal(a.first, 1);
	}
}

TH_TEST(older_caller_gets_what_it_has_room_for)
{
	const struct now from = {sizeof(from), 1, 2};
	struct now to = {sizeof(struct before), 99, 99};

	assert_int_equal(struct_out(*state, "now", &to, EXTENT_NOW, &from), 0);
	assert_int_equal(to.sz, sizeof(struct before));
	assert_int_equal(to.first, 1);
	assert_int_equal(to.second, 99);
}

TH_TEST(newer_caller_keeps_the_rest)
{
	const struct now from = {sizeof(from), 1, 2};
	struct later to = {sizeof(to), 99, 99, 99};

	assert_int_equal(struct_out(*state, "now", &to, EXTENT_NOW, &from), 0);
	assert_int_equal(to.sz, sizeof(to));
	assert_int_equal(to.first, 1);
	assert_int_equal(to.second, 2);
	assert_int_equal(to.third, 99);
}

TH_MAIN_EACH(open_handle, close_handle)
