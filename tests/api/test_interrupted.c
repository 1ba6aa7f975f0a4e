/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check changes of classes that go on, that a killed process has not ended, or
 * that could not be undone. */
#include "one_pod.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "../../bpf/natra_shared.h"
#include "state/record.h"

static const char *const before[] = {"192.0.2.0/24"};
static const char *const after[] = {"198.51.100.0/24", "203.0.113.0/24"};

/* The class that cases begin with. */
static struct natra_class class;

static struct natra_policy begin(void)
{
	struct natra_policy policy = policy_of(10, 20);
	struct natra_target target = pod_target(&pod, ID);

	class = (struct natra_class){
		.sz = sizeof(class),
		.name = "far",
		.subnets = before,
		.subnets_len = 1,
		.ingress_rate_bits_per_sec = MBIT,
	};
	policy.classes = &class;
	policy.classes_len = 1;
	if (KEPT(natra_attach(n, &target, &policy, NULL)) < 0)
		fail_msg("%s", natra_error(n));
	return policy;
}

/* Writes into the record whether a change goes on. */
static void mark(uint32_t is_changing)
{
	struct record record;
	int fd = rig_open_pin(n, ID, "meta");

	rig_read(fd, &record);
	record.is_changing = is_changing;
	rig_write(fd, &record);
	(void)close(fd);
}

/* Whoever is killed while it changes lists of a thousand blocks leaves both of them in the
 * map, which has no room for a third. They cannot be kept with other rates. */
TH_TEST(a_killed_change_leaves_room)
{
	enum { BLOCKS = 1000 };
	static char texts[BLOCKS][32];
	static const char *blocks[BLOCKS];
	struct natra_policy policy = begin();
	int fd = rig_open_pin(n, ID, "subnets");

	for (uint32_t i = 0; i < 2 * BLOCKS; i++) {
		const struct natra_subnet key = {
			.prefix_bits = NATRA_SUBNET_VERSION_BITS + 32,
			.version = 4,
			.addr = {htonl(10U << 24 | 79U << 16 | i)},
		};
		const uint8_t number = 1;

		assert_int_equal(
			bpf_map_update_elem(fd, &key, &number, BPF_NOEXIST), 0);
	}
	(void)close(fd);
	for (unsigned int i = 0; i < BLOCKS; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "10.80.%u.%u/32",
			       i >> 8, i & 255);
		blocks[i] = texts[i];
	}
	mark(1);
	policy.classes = NULL;
	GIVES(-EUCLEAN, natra_configure(n, ID, &policy));
	says(n, ID, "interrupted");
	policy.classes = &class;
	class.subnets = blocks;
	class.subnets_len = BLOCKS;
	if (KEPT(natra_configure(n, ID, &policy)) < 0)
		fail_msg("%s", natra_error(n));
	OK(natra_check(n, ID, &policy));
}

static int lock_id(void)
{
	const struct natra_info info = rig_query(n, ID);
	char path[600];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/..", info.pin_path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void *check(void *arg)
{
	struct natra *other = rig_open();
	int *result = arg;

	*result = natra_check(other, ID, NULL);
	natra_close(other);
	return NULL;
}

/* Returns what a check says during a change, which it waits for. A change that does not
 * complete leaves its mark. */
static int check_meanwhile(bool completes)
{
	pthread_t thread;
	int fd = lock_id(), result = 1;
	bool waits;

	mark(1);
	assert_int_equal(pthread_create(&thread, NULL, check, &result), 0);
	(void)usleep(300000);
	waits = pthread_tryjoin_np(thread, NULL) == EBUSY;
	if (completes)
		mark(0);
	/* The end of a case that fails needs the lock, too. */
	(void)close(fd);
	assert_true(waits);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return result;
}

TH_TEST(check_waits_for_a_change)
{
	struct natra_policy policy = begin();

	assert_int_equal(check_meanwhile(true), 0);
	assert_int_equal(check_meanwhile(false), -EUCLEAN);
	GIVES(-EUCLEAN, natra_check(n, ID, NULL));
	says(n, ID, "interrupted");
	/* Lists that are half changed are not taken for those that were asked for, whatever else
	 * changes. */
	OK(natra_upgrade(n, ID));
	GIVES(-EUCLEAN, natra_check(n, ID, NULL));
	policy.classes = NULL;
	policy.ingress_rate_bits_per_sec = 5 * MBIT;
	OK(natra_configure(n, ID, &policy));
	assert_int_equal(rig_query(n, ID).policy.ingress_rate_bits_per_sec,
			 5 * MBIT);
	GIVES(-EUCLEAN, natra_check(n, ID, NULL));
	policy.classes = &class;
	/* To set the classes again is what the header advises. */
	OK(natra_configure(n, ID, &policy));
	OK(natra_check(n, ID, &policy));
}

static _Atomic bool ends;

/* Changes rates, and attaches anew each other time. */
static void *change_again(void *arg)
{
	struct natra *other = rig_open();
	struct natra_target target = pod_target(&pod, ID);
	int *result = arg;

	for (unsigned int i = 1; !ends && *result == 0; i++) {
		struct natra_policy policy = policy_of(10 + i % 7, 20);

		policy.sli = i & 2 ? NATRA_SLI_ON : NATRA_SLI_OFF;
		*result = natra_attach(other, &target, &policy, NULL);
		/* A process that waits for a lock tries it now and then: it has to be free at times. */
		(void)usleep(1000);
	}
	natra_close(other);
	return NULL;
}

/* A check beside changes of the limits, or beside programs that are replaced, finds nothing wrong. */
TH_TEST(check_beside_changes)
{
	const struct natra_policy policy = policy_of(10, 20);
	const time_t until = time(NULL) + 3;
	pthread_t thread;
	int result = 0, wrong = 0;

	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(pthread_create(&thread, NULL, change_again, &result),
			 0);
	while (time(NULL) < until && !wrong)
		wrong = natra_check(n, ID, NULL);
	ends = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(result, 0);
	if (wrong)
		fail_msg("%d: %s", wrong, natra_error(n));
}

/* Nobody can write to a frozen map, so neither the change nor its undoing succeeds. */
TH_TEST(what_could_not_be_undone_is_reported)
{
	struct natra_policy policy = begin();
	int fd = rig_open_pin(n, ID, "subnets");

	assert_int_equal(bpf_map_freeze(fd), 0);
	(void)close(fd);
	class.subnets = after;
	class.subnets_len = 2;
	GIVES(-EPERM, natra_configure(n, ID, &policy));
	says(n, "subnets", NULL);
	GIVES(-EUCLEAN, natra_check(n, ID, NULL));
	says(n, ID, "interrupted");
	/* Another name takes other maps. */
	class.name = "farther";
	OK(natra_configure(n, ID, &policy));
	OK(natra_check(n, ID, &policy));
}

POD_MAIN()
