/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/group_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

/* The pods of one namespace may be in so many automatic groups, so that one tenant cannot take
 * the places that others need. */
#define NAMESPACE_GROUPS_MAX 16

/* A group that is to be made or changed, and perhaps an attachment that enters it. */
struct change {
	struct natra *n;
	const struct groups *groups;
	uint32_t number;
	struct natra_group_given given;
	const char *id; /* NULL: none enters */
	const char *label;
	uint64_t floor; /* of that attachment */
};

/* Finds the parent of a group, which natra_group_set has made. `number` is 0 for a group
 * that is to be made. */
static int find_parent(const struct change *c,
		       const struct natra_group_info *group,
		       uint32_t *ret_parent)
{
	struct natra *n = c->n;
	uint32_t parent;

	*ret_parent = 0;
	if (!group->parent)
		return 0;
	if (!c->given.automatic && strcmp(group->parent, c->given.name) == 0)
		return refuse(n, -ELOOP, "parent: '%s' is the group itself",
			      group->parent);
	parent = groups_find(c->groups, group->parent, false);
	if (!parent)
		return with_code(n, NATRA_CODE_NO_GROUP,
				 refuse(n, -ENOENT,
					"parent: there is no group '%s'",
					group->parent));
	if (groups_given(c->groups, parent)->parent)
		return refuse(n, -ELOOP, "parent: '%s' has a parent itself",
			      group->parent);
	if (c->number && groups_is_parent(c->groups, c->number))
		return refuse(n, -ELOOP,
			      "parent: '%s' is the parent of other groups",
			      c->given.name);
	*ret_parent = parent;
	return 0;
}

static struct natra_group_given given_of(const struct natra_group_info *group,
					 const char *name, bool automatic)
{
	struct natra_group_given given = {
		.rate_bits_per_sec = {group->ingress_rate_bits_per_sec,
				      group->egress_rate_bits_per_sec},
		.burst_bits = {group->ingress_burst_bits,
			       group->egress_burst_bits},
		.floor_bits_per_sec = group->floor_bits_per_sec,
		.weight = group->weight,
		.automatic = automatic,
	};

	(void)str_copy(given.name, sizeof(given.name), name);
	return given;
}

/* Checks the floors in the group, and those in its parent. */
static int check_floors(const struct change *c, const struct groups *groups)
{
	int r = groups_check_floors(c->n, groups, c->number, c->id, c->floor);

	if (r == 0 && c->given.parent)
		r = groups_check_floors(c->n, groups, c->given.parent, NULL, 0);
	return r;
}

/* Writes what the group shall be, or nothing. It is checked in a copy: a process that is
 * killed while it checks leaves nothing that would be refused. */
static int write_group(struct change *c)
{
	const size_t size = 2 * NATRA_GROUPS * sizeof(struct natra_group);
	cleanup_free struct natra_group *map = malloc(size);
	struct groups changed = GROUPS_INIT;
	int r;

	if (!map)
		return fail_errno(c->n, -ENOMEM, "read the groups");
	memcpy(map, c->groups->map, size);
	changed.map = map;
	*groups_given(&changed, c->number) = c->given;
	r = check_floors(c, &changed);
	/* The groups of other tenants may have all that the parent can promise. */
	if (r == -ERANGE && c->given.automatic && c->given.floor_bits_per_sec) {
		log_line(c->n, NATRA_LOG_WARN, "%s: '%s' has no floor",
			 last_error(c->n), c->given.name);
		c->given.floor_bits_per_sec = 0;
		*groups_given(&changed, c->number) = c->given;
		r = check_floors(c, &changed);
	}
	if (r < 0)
		return r;
	*groups_given(c->groups, c->number) = c->given;
	groups_write_limits(c->groups);
	return 0;
}

static int check_namespace(const struct change *c)
{
	cleanup_free struct groups_members *list = NULL;
	int made = 0, r = groups_list_members(c->n, c->id, c->label, &list);

	for (uint32_t i = 1; i <= NATRA_GROUPS && r == 0; i++)
		made += groups_given(c->groups, i)->automatic &&
			list[i].of_namespace;
	if (r < 0 || made < NAMESPACE_GROUPS_MAX)
		return r;
	return refuse(c->n, -EUSERS,
		      "group '%s': the namespace of '%s' has %d groups already",
		      c->given.name, c->label, made);
}

/* Finds a place for a group that is to be made. */
static int find_place(struct change *c)
{
	const bool automatic = c->given.automatic;
	int r = automatic ? check_namespace(c) : 0;

	if (r < 0)
		return r;
	c->number = groups_find_free(c->groups, automatic);
	/* Processes that were killed may have left some. */
	if (!c->number) {
		r = groups_clear_empty(c->n, c->groups);
		c->number = groups_find_free(c->groups, automatic);
	}
	if (r < 0)
		return r;
	if (!c->number)
		return refuse(c->n, automatic ? -EUSERS : -ENOSPC,
			      "group '%s': there are too many groups",
			      c->given.name);
	groups_clear(c->groups, c->number);
	return 0;
}

static int set(struct change *c, const struct natra_group_info *group)
{
	int r;

	c->number = groups_find(c->groups, c->given.name, c->given.automatic);
	r = find_parent(c, group, &c->given.parent);
	if (r < 0)
		return r;
	if (c->number && memcmp(groups_given(c->groups, c->number), &c->given,
				sizeof(c->given)) == 0) {
		/* A process that was killed may not have written its limits. */
		groups_write_limits(c->groups);
		return c->floor ? check_floors(c, c->groups) : 0;
	}
	if (!c->number)
		r = find_place(c);
	return r < 0 ? r : write_group(c);
}

int group_set(struct natra *n, const struct groups *groups, const char *name,
	      const struct natra_group_info *group)
{
	struct change c = {
		.n = n,
		.groups = groups,
		.given = given_of(group, name, false),
	};

	return set(&c, group);
}

static int refuse_absence(struct natra *n, const struct natra_policy *policy)
{
	return with_code(n, NATRA_CODE_NO_GROUP,
			 refuse(n, -ENOENT, "group: there is no %s'%s'",
				policy->group_is_automatic ? "automatic " : "",
				policy->group));
}

/* Finds a group that has to be there. */
static int find(struct change *c, const struct natra_policy *policy)
{
	c->number = groups_find(c->groups, policy->group,
				policy->group_is_automatic);
	if (!c->number)
		return refuse_absence(c->n, policy);
	groups_write_limits(c->groups);
	return c->floor ? groups_check_floors(c->n, c->groups, c->number, c->id,
					      c->floor)
			: 0;
}

int group_enter(struct natra *n, const char *id, const char *label,
		const struct natra_policy *policy, struct groups *ret,
		uint32_t *ret_number)
{
	const struct natra_group_info *group = policy->automatic_group;
	struct change c = {
		.n = n,
		.groups = ret,
		.id = id,
		.label = label,
		.floor = policy->group_floor_bits_per_sec,
	};
	int r;

	*ret_number = 0;
	if (!policy->group[0])
		return 0;
	/* Programs of members need the map. */
	r = groups_open(n, group || n->enters_no_group, ret);
	if (r == -ENOENT)
		return refuse_absence(n, policy);
	if (n->enters_no_group)
		return r;
	if (r == 0 && group) {
		c.given = given_of(group, policy->group, true);
		r = set(&c, group);
	} else if (r == 0) {
		r = find(&c, policy);
	}
	if (r == 0)
		*ret_number = c.number;
	return r;
}
