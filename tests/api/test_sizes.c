/* SPDX-License-Identifier: BSD-2-Clause */
/* Each struct says how long it is. Sizes that cannot be one are refused: what a caller
 * forgot to initialise is neither read nor written past its end. Each struct is on the
 * heap, as long as it is, so that valgrind and ASan see a byte too many. */
#include "one_pod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct natra_events *events;
static struct natra_target own;
static struct natra_policy good;
static struct natra_leftovers left;
static char found[NATRA_ID_MAX + 1];

static int begin(void **state)
{
	(void)one_pod_begin(state);
	own = pod_target(&pod, ID);
	good = policy_of(10, 10);
	left = (struct natra_leftovers)NATRA_INIT(left);
	assert_int_equal(natra_attach(n, &own, &good, NULL), 0);
	assert_int_equal(natra_events_open(n, &events), 0);
	return 0;
}

static int end(void **state)
{
	natra_events_close(events);
	return one_pod_end(state);
}

static int open_close(const void *opts)
{
	struct natra *other = NULL;
	int r = natra_open(&other, opts);

	natra_close(other);
	return r;
}

static int check_class(const void *class)
{
	struct natra_policy policy = good;

	policy.classes = class;
	policy.classes_len = 1;
	return natra_policy_check(n, &policy);
}

static int parse_class(const void *base)
{
	struct natra_class *class = NULL;
	int r = natra_parse_class("a", base, &class, NULL);

	free(class);
	return r;
}

/* Each function calls the library with one struct, of this type, that may have a wrong size. */
#define CALLS(CALL)                                                            \
	CALL(open_with, open_opts, open_close(arg))                            \
	CALL(policy_check, policy, natra_policy_check(n, arg))                 \
	CALL(attach_target, target, natra_attach(n, arg, &good, NULL))         \
	CALL(attach_policy, policy, natra_attach(n, &own, arg, NULL))          \
	CALL(attach_info, info, natra_attach(n, &own, &good, arg))             \
	CALL(configure, policy, natra_configure(n, ID, arg))                   \
	CALL(check, policy, natra_check(n, ID, arg))                           \
	CALL(detach, target, natra_detach(n, arg))                             \
	CALL(find, target, natra_find(n, arg, found, sizeof(found)))           \
	CALL(record_target, target, natra_record_unshaped(n, arg, &good, "x")) \
	CALL(record_policy, policy, natra_record_unshaped(n, &own, arg, "x"))  \
	CALL(left_target, target, natra_find_leftovers(n, arg, &left))         \
	CALL(leftovers, leftovers, natra_find_leftovers(n, &own, arg))         \
	CALL(drain, target, natra_drain_leftovers(n, arg))                     \
	CALL(remove_left, target, natra_remove_leftovers(n, arg))              \
	CALL(probe, features, natra_probe(n, arg))                             \
	CALL(query, info, natra_query(n, ID, arg))                             \
	CALL(stats, stats, natra_stats(n, ID, arg))                            \
	CALL(read_event, event, natra_events_read(events, arg))                \
	CALL(group_set, group_info, natra_group_set(n, arg))                   \
	CALL(classes, class, check_class(arg))                                 \
	CALL(base_class, class, parse_class(arg))

typedef int (*call_fn)(void *arg);

#define DEFINE(name, type, call)                                               \
	static int name(void *arg)                                             \
	{                                                                      \
		return call;                                                   \
	}
#define ROW(name, type, call) {#name, name, sizeof(struct natra_##type)},

CALLS(DEFINE)

static const struct {
	const char *name;
	call_fn fn;
	size_t size;
} calls[] = {CALLS(ROW)};

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
	/* These have no handle that could tell. */
	if (fn != open_with && fn != base_class)
		says(n, ".sz: ", "is not its size");
	for (size_t i = sizeof(sz); i < size; i++)
		assert_int_equal(bytes[i], 0x5a);
}

TH_TEST(what_cannot_be_a_size_is_refused)
{
	for (size_t i = 0; i < TH_LEN(calls); i++) {
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
		for (size_t j = 0; j < TH_LEN(wrong); j++)
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
	says(n, "policy: ", "options that this version lacks");
	GIVES(-EINVAL, natra_detach(n, &t.target));
	says(n, "target: ", "options that this version lacks");
}

/* A newer program may have options in the bytes behind the last member. */
TH_TEST(reserved_bytes_are_read)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_annotations asked = NATRA_INIT(asked);
	struct natra_group_info group = NATRA_INIT(group);
	struct natra_policy policy = policy_of(10, 10);
	struct natra_class base = NATRA_INIT(base), *of = NULL;

	for (size_t i = 0; i < sizeof(opts.reserved); i++) {
		opts.reserved[i] = 1;
		assert_int_equal(open_with(&opts), -EINVAL);
		opts.reserved[i] = 0;
	}
	assert_int_equal(open_with(&opts), 0);
	for (size_t i = 0; i < sizeof(asked.reserved); i++) {
		asked.reserved[i] = 1;
		assert_int_equal(
			KEPT(natra_policy_annotate(n, &policy, &asked, &of)),
			-EINVAL);
		says(n, "annotations: ", "options that this version lacks");
		asked.reserved[i] = 0;
	}
	assert_int_equal(natra_policy_annotate(n, &policy, &asked, &of), 0);
	for (size_t i = 0; i < TH_LEN(base.room); i++) {
		base.room[i] = 1;
		assert_int_equal(parse_class(&base), -EINVAL);
		base.room[i] = 0;
	}
	assert_int_equal(parse_class(&base), 0);
	group.name = "new";
	group.ingress_rate_bits_per_sec = 1000000;
	group.room[7] = 1;
	assert_int_equal(KEPT(natra_group_set(n, &group)), -EINVAL);
	says(n, "group: ", "options that this version lacks");
	group.room[7] = 0;
	group.members = 7;
	assert_int_equal(natra_group_set(n, &group), 0);
	assert_int_equal(natra_group_remove(n, "new"), 1);
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
