/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/structs.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "policy/class_check.h"
#include "policy/policy.h"

/* Other structs and arrays contain these: a new member takes a part of their `room`. */
#if UINTPTR_MAX == UINT64_MAX
static_assert(sizeof(struct natra_policy) == 576, "it has room");
static_assert(sizeof(struct natra_class) == 128, "it has room");
static_assert(sizeof(struct natra_direction_stats) == 320, "it has room");
static_assert(sizeof(struct natra_connect_stats) == 384, "it has room");
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

int struct_in(struct natra *n, const char *name, void *to, size_t first,
	      size_t size, const void *from)
{
	const unsigned char *bytes = from;
	size_t from_size = 0;
	int r = read_size(n, name, from, first, &from_size);

	if (r < 0)
		return r;
	for (size_t i = size; i < from_size; i++) {
		if (bytes[i])
			return refuse(
				n, -EINVAL,
				"%s.sz: %zu has options that this version lacks",
				name, from_size);
	}
	memset(to, 0, size);
	memcpy(to, from, from_size < size ? from_size : size);
	memcpy(to, &size, sizeof(size));
	return 0;
}

int struct_out(struct natra *n, const char *name, void *to, const void *from,
	       size_t first, size_t size)
{
	size_t to_size = 0;
	int r = read_size(n, name, to, first, &to_size);

	if (r < 0)
		return r;
	memcpy(to, from, to_size < size ? to_size : size);
	memcpy(to, &to_size, sizeof(to_size));
	return 0;
}

int struct_out_check(struct natra *n, const char *name, const void *to,
		     size_t first)
{
	size_t size;

	return read_size(n, name, to, first, &size);
}

/* The bytes that this version reserves can hold options of a newer caller. */
static int check_room(struct natra *n, const char *name, const uint64_t *room,
		      size_t size)
{
	for (size_t i = 0; i < size / sizeof(*room); i++) {
		if (room[i])
			return refuse(n, -EINVAL,
				      "%s: has options that this version lacks",
				      name);
	}
	return 0;
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

	r = struct_in(n, "target", &t, FIRST_TARGET, sizeof(t), target);
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
		r = struct_in(n, "classes", &list[i], sizeof(list[i]),
			      sizeof(list[i]), class);
		if (r == 0)
			r = check_room(n, "classes", list[i].room,
				       sizeof(list[i].room));
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
	r = struct_in(n, "automatic_group", ret_automatic, FIRST_GROUP,
		      sizeof(*ret_automatic), policy->automatic_group);
	policy->automatic_group = ret_automatic;
	if (policy->group[0])
		policy->group_is_automatic = 1;
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
	int r = struct_in(n, "policy", &p, sizeof(p), sizeof(p), policy);

	if (r == 0)
		r = check_room(n, "policy", p.room, sizeof(p.room));
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

	if (!n)
		return -EINVAL;
	return finish(n, policy_in(n, policy, &p, &automatic, &subnets));
}
