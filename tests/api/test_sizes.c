/* SPDX-License-Identifier: BSD-2-Clause */
/* Each struct says how long it is. Sizes that cannot be one are refused: what a caller
 * forgot to initialise is neither read nor written past its end. Each struct is on the
 * heap, as long as it is, so that valgrind and ASan see a byte too many. */
#include "one_pod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct natra_events *events;

static int begin(void **state)
{
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target;

	(void)one_pod_begin(state);
	target = pod_target(&pod, ID);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	assert_int_equal(natra_events_open(n, &events), 0);
	return 0;
}

static int end(void **state)
{
	natra_events_close(events);
	return one_pod_end(state);
}

/* Calls a function with one struct that may have a wrong size. */
typedef int (*call_fn)(void *arg);

static int open_with(void *opts)
{
	struct natra *other = NULL;
	int r = natra_open(&other, opts);

	natra_close(other);
	return r;
}

static int policy_check(void *policy)
{
	return natra_policy_check(n, policy);
}

static int attach_target(void *target)
{
	struct natra_policy policy = policy_of(10, 10);

	return natra_attach(n, target, &policy, NULL);
}

static int attach_policy(void *policy)
{
	struct natra_target target = pod_target(&pod, ID);

	return natra_attach(n, &target, policy, NULL);
}

static int attach_info(void *info)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 10);

	return natra_attach(n, &target, &policy, info);
}

static int configure(void *policy)
{
	return natra_configure(n, ID, policy);
}

static int check(void *policy)
{
	return natra_check(n, ID, policy);
}

static int detach(void *target)
{
	return natra_detach(n, target);
}

static int find(void *target)
{
	char id[NATRA_ID_MAX + 1];

	return natra_find(n, target, id);
}

static int record_target(void *target)
{
	struct natra_policy policy = policy_of(10, 10);

	return natra_record_unshaped(n, target, &policy, "test");
}

static int record_policy(void *policy)
{
	struct natra_target target = pod_target(&pod, ID);

	return natra_record_unshaped(n, &target, policy, "test");
}

static int leftovers_target(void *target)
{
	struct natra_leftovers left = NATRA_INIT(left);

	return natra_find_leftovers(n, target, &left);
}

static int leftovers(void *left)
{
	const struct natra_target target = pod_target(&pod, ID);

	return natra_find_leftovers(n, &target, left);
}

static int drain(void *target)
{
	return natra_drain_leftovers(n, target);
}

static int remove_leftovers(void *target)
{
	return natra_remove_leftovers(n, target);
}

static int probe(void *features)
{
	return natra_probe(n, features);
}

static int query(void *info)
{
	return natra_query(n, ID, info);
}

static int stats(void *result)
{
	return natra_stats(n, ID, result);
}

static int read_event(void *event)
{
	return natra_events_read(events, event);
}

static int group_set(void *group)
{
	return natra_group_set(n, group);
}

static int classes(void *class)
{
	struct natra_policy policy = policy_of(10, 10);

	policy.classes = class;
	policy.classes_len = 1;
	return natra_policy_check(n, &policy);
}

#define CALL(fn, type)                                                         \
	{                                                                      \
#fn, fn, sizeof(struct natra_##type)                           \
	}

static const struct {
	const char *name;
	call_fn fn;
	size_t size;
} calls[] = {
	CALL(open_with, open_opts),
	CALL(policy_check, policy),
	CALL(attach_target, target),
	CALL(attach_policy, policy),
	CALL(attach_info, info),
	CALL(configure, policy),
	CALL(check, policy),
	CALL(detach, target),
	CALL(find, target),
	CALL(record_target, target),
	CALL(record_policy, policy),
	CALL(leftovers_target, target),
	CALL(leftovers, leftovers),
	CALL(drain, target),
	CALL(remove_leftovers, target),
	CALL(probe, features),
	CALL(query, info),
	CALL(stats, stats),
	CALL(read_event, event),
	CALL(group_set, group_info),
	CALL(classes, class),
};

static void refuse(const char *name, call_fn fn, void *object, size_t size,
		   size_t sz)
{
	unsigned char *bytes = object;
	int r;

	memset(object, 0x5a, size);
	memcpy(object, &sz, sizeof(sz));
	r = KEPT(fn(object));
	if (r != -EINVAL)
		fail_msg("%s with %zu: %d: %s", name, sz, r, natra_error(n));
	/* natra_open has no handle yet that could tell. */
	if (fn != open_with)
		says(n, ".sz: ", "is not its size");
	for (size_t i = sizeof(sz); i < size; i++)
		assert_int_equal(bytes[i], 0x5a);
}

TH_TEST(what_cannot_be_a_size_is_refused)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const size_t size = calls[i].size;
		const size_t wrong[] = {0,
					1,
					sizeof(size_t),
					size - sizeof(size_t),
					size - 1,
					size + 1,
					1 << 20,
					SIZE_MAX,
					SIZE_MAX / 2 + 1,
					(size_t)0x5a5a5a5a5a5a5a58,
					(size_t)(uintptr_t)&size};
		void *object = malloc(size);

		assert_non_null(object);
		for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++)
			refuse(calls[i].name, calls[i].fn, object, size,
			       wrong[j]);
		free(object);
	}
}

/* A newer program's struct may be longer, as long as it asks for nothing that this
 * version lacks. */
TH_TEST(longer_structs_are_read)
{
	struct {
		struct natra_policy policy;
		uint64_t tail;
	} p = {policy_of(10, 10), 0};
	struct {
		struct natra_target target;
		uint64_t tail;
	} t = {pod_target(&pod, ID), 0};
	struct {
		struct natra_open_opts opts;
		uint64_t tail;
	} o = {NATRA_INIT(o.opts), 0};

	p.policy.sz = sizeof(p);
	t.target.sz = sizeof(t);
	o.opts.sz = sizeof(o);
	OK(open_with(&o));
	OK(natra_attach(n, &t.target, &p.policy, NULL));
	p.tail = t.tail = o.tail = 1ULL << 63;
	assert_int_equal(open_with(&o), -EINVAL);
	GIVES(-EINVAL, natra_policy_check(n, &p.policy));
	says(n, "policy.sz", NULL);
	GIVES(-EINVAL, natra_detach(n, &t.target));
	says(n, "target.sz", NULL);
}

/* The library writes no further than it knows. */
TH_TEST(longer_structs_are_written)
{
	struct {
		struct natra_info info;
		uint64_t tail;
	} i = {NATRA_INIT(i.info), 4711};

	i.info.sz = sizeof(i);
	OK(natra_query(n, ID, &i.info));
	assert_int_equal(i.info.sz, sizeof(i));
	assert_string_equal(i.info.id, ID);
	assert_int_equal(i.tail, 4711);
}

RIG_MAIN(begin, end)
