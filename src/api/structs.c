/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/structs.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "policy/class_check.h"
#include "policy/class_text.h"
#include "policy/policy.h"

/* A member that is put behind the last one would change no size if there were padding, so that
 * nobody could tell a caller that knows it from one that does not. */
#define ASSERT_FULL(type, last)                                                \
	static_assert(offsetof(struct type, last) +                            \
				      sizeof(((struct type *)0)->last) ==      \
			      sizeof(struct type),                             \
		      #type " has padding at its end")
#if UINTPTR_MAX == UINT64_MAX
ASSERT_FULL(natra_open_opts, reserved);
ASSERT_FULL(natra_target, label);
ASSERT_FULL(natra_policy, room);
ASSERT_FULL(natra_class, room);
ASSERT_FULL(natra_annotations, reserved);
ASSERT_FULL(natra_group_info, free_bytes);
ASSERT_FULL(natra_info, reserved);
ASSERT_FULL(natra_stats, egress_connects);
ASSERT_FULL(natra_direction_stats, room);
ASSERT_FULL(natra_connect_stats, room);
ASSERT_FULL(natra_flow, room);
ASSERT_FULL(natra_event, reserved);
ASSERT_FULL(natra_neighbour, reserved);
ASSERT_FULL(natra_leftovers, reserved);
ASSERT_FULL(natra_features, reserved);
#endif

/* No struct will be longer. A size that a caller forgot to initialise mostly is. */
#define LONGEST 16384

static int read_size(struct natra *n, const char *name, const void *from,
		     size_t first, size_t *ret_size)
{
	if (!from)
		return refuse(n, -EINVAL, "%s: missing", name);
	memcpy(ret_size, from, sizeof(*ret_size));
	/* Its alignment is that of its first member, so it is a multiple of it long. */
	if (*ret_size < first || *ret_size > LONGEST ||
	    *ret_size % sizeof(*ret_size))
		return refuse(n, -EINVAL, "%s.sz: %zu is not its size", name,
			      *ret_size);
	return 0;
}

/* Bytes that this version does not know can hold options of a newer caller. */
static int check_unknown(struct natra *n, const char *name, const void *from,
			 size_t begin, size_t end)
{
	const unsigned char *bytes = from;

	for (size_t i = begin; i < end; i++) {
		if (bytes[i])
			return refuse(n, -EINVAL,
				      "%s: has options that this version lacks",
				      name);
	}
	return 0;
}

int struct_in(struct natra *n, const char *name, void *to, struct extent of,
	      const void *from)
{
	size_t from_size = 0;
	int r = read_size(n, name, from, of.first, &from_size);

	if (r == 0)
		r = check_unknown(n, name, from, of.known, from_size);
	if (r < 0)
		return r;
	memset(to, 0, of.size);
	memcpy(to, from, from_size < of.size ? from_size : of.size);
	memcpy(to, &of.size, sizeof(of.size));
	return 0;
}

int group_in(struct natra *n, const char *name,
	     const struct natra_group_info *group,
	     struct natra_group_info *ret_group)
{
	int r = struct_in(n, name, ret_group, EXTENT_GROUP, group);

	return r < 0 ? r
		     : check_unknown(n, name, ret_group->room, 0,
				     sizeof(ret_group->room));
}

int struct_out(struct natra *n, const char *name, void *to, struct extent of,
	       const void *from)
{
	size_t to_size = 0;
	int r = read_size(n, name, to, of.first, &to_size);

	if (r < 0)
		return r;
	memcpy(to, from, to_size < of.size ? to_size : of.size);
	memcpy(to, &to_size, sizeof(to_size));
	return 0;
}

int struct_out_check(struct natra *n, const char *name, const void *to,
		     struct extent of)
{
	size_t size;

	return read_size(n, name, to, of.first, &size);
}

static int check_text(struct natra *n, const char *name, const char *value,
		      size_t max)
{
	if (value && strlen(value) > max)
		return refuse(n, -EINVAL, "%s: longer than %zu bytes", name,
			      max);
	return 0;
}

int target_in(struct natra *n, const struct natra_target *target,
	      struct natra_target *ret_target)
{
	struct natra_target t;
	int r;

	r = struct_in(n, "target", &t, EXTENT_TARGET, target);
	if (r == 0)
		r = check_text(n, "id", t.id, NATRA_ID_MAX);
	if (r == 0)
		r = check_text(n, "ifname", t.ifname, 15);
	if (r == 0)
		r = check_text(n, "network", t.network, NATRA_NAME_MAX);
	if (r == 0)
		r = check_text(n, "label", t.label, NATRA_NAME_MAX);
	if (r < 0)
		return r;
	if (t.netns && t.netns_fd > 0)
		return refuse(n, -EINVAL, "netns_fd: %d beside netns '%s'",
			      t.netns_fd, t.netns);
	if (t.netns_fd < 0)
		return refuse(n, -EINVAL, "netns_fd: %d", t.netns_fd);
	*ret_target = t;
	return 0;
}

/* Copies the classes of a policy, which are an array of structs of the caller's size. */
static int classes_in(struct natra *n, struct natra_policy *policy,
		      struct natra_class list[NATRA_CLASSES_MAX])
{
	const char *from = (const char *)policy->classes;
	size_t stride = 0;
	int r = 0;

	if (!policy->classes_len || !from ||
	    policy->classes_len > NATRA_CLASSES_MAX)
		return 0; /* policy_check refuses too many */
	memcpy(&stride, from, sizeof(stride));
	for (size_t i = 0; i < policy->classes_len && r == 0; i++) {
		const char *class = from + i * stride;

		if (memcmp(class, &stride, sizeof(stride)) != 0)
			return refuse(n, -EINVAL,
				      "classes.sz: not the same in all");
		r = struct_in(n, "classes", &list[i], EXTENT_CLASS, class);
	}
	policy->classes = list;
	return r;
}

/* Copies the limits of an automatic group, which the policy then asks for. */
static int automatic_in(struct natra *n, struct natra_policy *policy,
			struct natra_group_info *ret_automatic)
{
	int r;

	if (!policy->automatic_group)
		return 0;
	r = group_in(n, "automatic_group", policy->automatic_group,
		     ret_automatic);
	policy->automatic_group = ret_automatic;
	if (policy->group[0])
		policy->group_is_automatic = true;
	return r;
}

int policy_in(struct natra *n, const struct natra_policy *policy,
	      struct natra_policy *ret_policy,
	      struct natra_group_info *ret_automatic,
	      struct subnets *ret_subnets)
{
	cleanup_subnets struct subnets subnets = {0};
	struct natra_class list[NATRA_CLASSES_MAX];
	struct natra_policy p;
	int r = struct_in(n, "policy", &p, EXTENT_POLICY, policy);

	if (r == 0)
		r = classes_in(n, &p, list);
	if (r == 0)
		r = automatic_in(n, &p, ret_automatic);
	if (r == 0)
		r = with_field(
			n, policy_check(&p, error_room(n), HANDLE_ERROR_MAX));
	if (r < 0)
		return r;
	r = subnets_read(&p, &subnets);
	if (r < 0)
		return fail_errno(n, r, "read the subnets");
	r = with_field(
		n, subnets_check(&subnets, error_room(n), HANDLE_ERROR_MAX));
	if (r < 0)
		return r;
	if (subnets.kind)
		subnets_set_lengths(&subnets, &p);
	p.shaped_subnets = NULL;
	p.unshaped_subnets = NULL;
	p.classes = NULL;
	*ret_policy = p;
	*ret_subnets = subnets;
	subnets = (struct subnets){0};
	return 0;
}

int natra_policy_check(struct natra *n, const struct natra_policy *policy)
{
	cleanup_subnets struct subnets subnets = {0};
	struct natra_group_info automatic;
	struct natra_policy p;

	if (!begin_call(n))
		return -EINVAL;
	return finish(n, policy_in(n, policy, &p, &automatic, &subnets));
}

int natra_parse_class(const char *text, const struct natra_class *base,
		      struct natra_class **ret_class, const char **ret_item)
{
	struct natra none = {0}; /* There is no handle to ask for the text. */
	struct natra_class known;

	if (base && struct_in(&none, "base", &known, EXTENT_CLASS, base) < 0)
		return -EINVAL;
	return class_parse(text, base ? &known : NULL, ret_class, ret_item);
}
