/* SPDX-License-Identifier: BSD-2-Clause */
/* Early in a boot the kernel's generator is waited for, and a signal ends that wait. */
#include "cm.h"

#include <errno.h>
#include <sys/random.h>

#include "base/handle.h"
#include "state/bank.h"
#include "state/connects_map.h"
#include "state/owner.h"

static struct natra n;
/* So many calls are ended by a signal. The others fail if there is an errno, or give a part of what
 * was asked for. */
static int signals, error;
static unsigned int calls;

ssize_t __wrap_getrandom(void *buf, size_t size, unsigned int flags)
{
	calls++;
	if (signals > 0) {
		signals--;
		errno = EINTR;
		return -1;
	}
	if (error) {
		errno = error;
		return -1;
	}
	size = size > 3 ? 3 : size;
	memset(buf, (int)calls, size);
	return (ssize_t)size;
}

static int begin(void **state)
{
	signals = 2;
	error = 0;
	calls = 0;
	return 0;
}

TH_TEST(a_signal_does_not_end_it)
{
	uint64_t owner = 0, keys[NATRA_HASH_KEYS] = {0};
	const unsigned char *bytes = (const void *)keys;

	assert_int_equal(owner_make(&n, "id", LEG_EGRESS, &owner), 0);
	assert_true(owner_is_of(owner, "id"));
	assert_int_equal(owner_leg(owner), LEG_EGRESS);
	assert_int_equal(calls, 4);
	signals = 1;
	assert_int_equal(bank_make_keys(&n, keys), 0);
	for (size_t i = 0; i < sizeof(keys); i++)
		assert_int_equal(bytes[i], 6 + i / 3);
}

TH_TEST(another_error_does)
{
	uint64_t owner, keys[NATRA_HASH_KEYS];
	int fd;

	error = ENOSYS;
	assert_int_equal(owner_make(&n, "id", LEG_EGRESS, &owner), -ENOSYS);
	assert_int_equal(bank_make_keys(&n, keys), -ENOSYS);
	assert_int_equal(connects_table_make(&n, &fd), -ENOSYS);
	assert_int_equal(calls, 5);
}

TH_MAIN_EACH(begin, NULL)
