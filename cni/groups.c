/* SPDX-License-Identifier: BSD-2-Clause */
#include "groups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../src/policy/fields.h"
#include "field.h"
#include "../tools/common/template.h"

static int refuse_key(const char *key, const cJSON *value, const char *wanted,
		      struct failure *failure)
{
	return refuse(failure, CNI_BAD_CONFIG, "group%s%s: %s %s",
		      key[0] ? "." : "", key, json_show(value).text, wanted);
}

/* Reads a text, which is NULL if there is no such key. */
static int read_text(const cJSON *object, const char *key, const char **ret,
		     struct failure *failure)
{
	const cJSON *value = json_get(object, key);

	*ret = json_text(value);
	if (value && (!*ret || !**ret || strlen(*ret) > NATRA_GROUP_NAME_MAX))
		return refuse_key(key, value, "is not a name of 1 to 127 bytes",
				  failure);
	for (const char *c = *ret; c && *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 127)
			return refuse_key(key, value, "has a control character",
					  failure);
	}
	return 0;
}

static int read_weight(const cJSON *object, uint32_t *ret,
		       struct failure *failure)
{
	const cJSON *value = json_get(object, "weight");
	uint64_t weight = 0;

	if (value && (json_u64(value, &weight) < 0 || weight < 1 ||
		      weight > NATRA_WEIGHT_MAX))
		return refuse_key("weight", value,
				  "is not a number from 1 to 64", failure);
	*ret = (uint32_t)weight;
	return 0;
}

static int read_members(const cJSON *object, struct natra_group_info *group,
			struct failure *failure)
{
	const struct {
		const char *key;
		uint64_t *rate;
	} rates[] = {{"ingressRate", &group->ingress_rate_bits_per_sec},
		     {"egressRate", &group->egress_rate_bits_per_sec},
		     {"floor", &group->floor_bits_per_sec}};
	int r = read_text(object, "parent", &group->parent, failure);

	for (size_t i = 0; i < 3 && r == 0; i++) {
		const cJSON *value = json_get(object, rates[i].key);

		if (value && field_read_rate(value, rates[i].rate) < 0)
			r = refuse_key(rates[i].key, value,
				       "is not a rate such as 10M", failure);
	}
	return r ? r : read_weight(object, &group->weight, failure);
}

static bool has_rates(const struct natra_group_info *group)
{
	return group->ingress_rate_bits_per_sec ||
	       group->egress_rate_bits_per_sec;
}

/* The library would refuse it, too, but only at each ADD, and by the names of its fields. */
static int check_floor(const cJSON *object, const struct natra_group_info *g,
		       struct failure *failure)
{
	const uint64_t in = g->ingress_rate_bits_per_sec;
	const uint64_t out = g->egress_rate_bits_per_sec;
	const bool over_in = in && g->floor_bits_per_sec > in;

	if (!over_in && (!out || g->floor_bits_per_sec <= out))
		return 0;
	return refuse_key("floor", json_get(object, "floor"),
			  over_in ? "is over ingressRate"
				  : "is over egressRate",
			  failure);
}

int groups_read_limits(const cJSON *object, struct natra_group_info *ret,
		       struct failure *failure)
{
	/* A rate that is misspelt would leave the group without a limit. */
	static const char *const known[] = {
		"name",   "ingressRate", "egressRate",       "parent",
		"weight", "floor",       "acrossNamespaces", NULL};
	struct natra_group_info group = NATRA_INIT(group);
	const cJSON *unknown = json_find_unknown(object, known);
	int r;

	if (!cJSON_IsObject(object))
		return refuse_key("", object, "is not an object", failure);
	if (unknown)
		return refuse_key(unknown->string, unknown,
				  "is no key of a group", failure);
	r = read_members(object, &group, failure);
	if (r)
		return r;
	if (group.parent && !has_rates(&group))
		return refuse(failure, CNI_BAD_CONFIG,
			      "group.parent: '%s' without a rate",
			      group.parent);
	if (!group.parent && (group.weight || group.floor_bits_per_sec))
		return refuse(failure, CNI_BAD_CONFIG,
			      "group.%s: without a parent",
			      group.weight ? "weight" : "floor");
	r = check_floor(object, &group, failure);
	if (r == 0)
		*ret = group;
	return r;
}

/* A tenant chooses its pods' annotations, and so names that other tenants have. */
static int check_template(const cJSON *object, const char *name,
			  struct failure *failure)
{
	const cJSON *across = json_get(object, "acrossNamespaces");
	const char *wrong = template_wrong(name);

	if (across && !cJSON_IsBool(across))
		return refuse_key("acrossNamespaces", across,
				  "is not true or false", failure);
	if (!wrong && !cJSON_IsTrue(across) && !template_keeps_apart(name))
		wrong = "can be the same in two namespaces: put \"/\" between "
			"{namespace} and the rest, or set acrossNamespaces";
	return wrong ? refuse(failure, CNI_BAD_CONFIG, "group.name: \"%s\" %s",
			      name, wrong)
		     : 0;
}

static int read_name(const cJSON *object, struct natra_group_info *group,
		     struct failure *failure)
{
	int r = read_text(object, "name", &group->name, failure);

	if (r)
		return r;
	if (!group->name)
		return refuse(failure, CNI_BAD_CONFIG, "group.name: missing");
	if (group->parent && !strchr(group->name, '{') &&
	    strcmp(group->name, group->parent) == 0)
		return refuse(failure, CNI_BAD_CONFIG,
			      "group.parent: '%s' is the group itself",
			      group->parent);
	return check_template(object, group->name, failure);
}

static void set_name(struct natra_policy *policy, const char *name)
{
	(void)snprintf(policy->group, sizeof(policy->group), "%s", name);
}

int groups_read(struct settings *s, const cJSON *keys, struct failure *failure)
{
	const cJSON *object = json_get(keys, "group");
	struct natra_group_info group = NATRA_INIT(group);
	int r;

	s->group = group;
	s->group_absence[0] = '\0';
	if (!object) {
		if (s->policy.group_weight ||
		    s->policy.group_floor_bits_per_sec)
			return refuse(failure, CNI_BAD_CONFIG,
				      "%s: without a group",
				      s->policy.group_weight ? "groupWeight"
							     : "groupFloor");
		return 0;
	}
	r = groups_read_limits(object, &group, failure);
	if (r == 0)
		r = read_name(object, &group, failure);
	if (r)
		return r;
	s->group = group;
	/* Until the pod is known, so that it can have a weight and a floor. */
	set_name(&s->policy, group.name);
	if (has_rates(&group))
		s->policy.automatic_group = &s->group;
	s->policy.group_is_automatic = has_rates(&group);
	return 0;
}

/* Takes the policy out of the group that it would be in. */
static void leave(struct settings *s)
{
	static const struct natra_policy none = {0};

	policy_take_group(&s->policy, &none);
	policy_fields_drop_alone(&s->policy);
}

static void leave_absent(struct settings *s)
{
	(void)snprintf(s->group_absence, sizeof(s->group_absence),
		       "there is no group '%s'", s->policy.group);
	leave(s);
}

bool groups_are_for_all(const struct natra_group_info *group)
{
	return has_rates(group) && !template_has_annotation(group->name, NULL);
}

/* Writes the name of the pod's group. Returns 0; -ENOENT if the pod lacks what the
 * template needs; or a code, with the text in *failure. */
static int name_of(const struct natra_group_info *group,
		   const struct asker *asker, struct template_name *ret,
		   struct failure *failure)
{
	int r = template_expand(group->name, asker->pod, &asker->annotations,
				ret);

	if (r == -ENAMETOOLONG)
		return refuse(failure, CNI_BAD_CONFIG,
			      "group.name: \"%s\" becomes more than %d bytes",
			      group->name, NATRA_GROUP_NAME_MAX);
	return r;
}

bool groups_make(const struct settings *s, const struct asker *asker)
{
	struct template_name name;
	struct failure failure;

	return s->group.name && has_rates(&s->group) &&
	       name_of(&s->group, asker, &name, &failure) == 0;
}

static int is_it(void *arg, const struct natra_group_info *group)
{
	const char *const *name = arg;

	return !group->automatic && strcmp(group->name, *name) == 0;
}

int groups_find(struct natra *n, const char *name)
{
	return natra_foreach_group(n, is_it, &name);
}

int groups_join(struct settings *s, const struct asker *asker, struct natra *n,
		struct log *log, struct failure *failure)
{
	struct template_name name;
	int r;

	if (!s->group.name)
		return 0;
	r = name_of(&s->group, asker, &name, failure);
	if (r == -ENOENT) {
		(void)snprintf(
			s->group_absence, sizeof(s->group_absence),
			"the pod lacks what the name of its group needs: %s",
			s->group.name);
		leave(s);
		return 0;
	}
	if (r && s->continue_on_error) {
		log_write(log, NATRA_LOG_ERROR, "%s: the pod is in no group",
			  failure->msg);
		leave(s);
		return 0;
	}
	if (r)
		return r;
	set_name(&s->policy, name.text);
	/* If it cannot be found out, attaching finds out. */
	if (!s->policy.automatic_group && groups_find(n, s->policy.group) == 0)
		leave_absent(s);
	return 0;
}

int groups_attach(struct settings *s, struct natra *n, struct log *log,
		  int (*attach)(void *arg, const struct natra_policy *policy),
		  void *arg)
{
	int r = attach(arg, &s->policy);
	const bool is_absent =
		r < 0 && natra_error_code(n) == NATRA_CODE_NO_GROUP;
	struct failure failure = {0};

	if (r == 0 || !s->policy.group[0])
		return r;
	/* It has been removed since it was looked for. */
	if (is_absent && !s->policy.automatic_group) {
		leave_absent(s);
		return attach(arg, &s->policy);
	}
	if (!s->continue_on_error ||
	    (!is_absent && r != -ENOSPC && r != -ERANGE))
		return r;
	(void)refuse_natra(&failure, n, r, CNI_NOT_SHAPED);
	leave(s);
	/* Without its group it would have no limit, which the caller has to say. */
	if (!policy_has_limits(&s->policy))
		return r;
	r = attach(arg, &s->policy);
	if (r == 0)
		log_write(log, NATRA_LOG_ERROR, "%s: the pod is in no group",
			  failure.msg);
	return r;
}
