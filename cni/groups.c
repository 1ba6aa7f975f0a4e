/* SPDX-License-Identifier: BSD-2-Clause */
#include "groups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../src/policy/fields.h"
#include "../tools/common/group.h"
#include "../tools/common/json.h"
#include "../tools/common/template.h"

/* A tenant chooses its pods' annotations, and so names that other tenants have. */
static int check_template(const cJSON *object, const char *name,
			  struct failure *failure)
{
	const cJSON *across = json_get(object, "acrossNamespaces");
	const char *wrong = template_wrong(name);

	if (across && !cJSON_IsBool(across))
		return failure_set(
			failure, CNI_BAD_CONFIG,
			"group.acrossNamespaces: %s is not true or false",
			json_show(across).text);
	if (!wrong && !cJSON_IsTrue(across) && !template_keeps_apart(name))
		wrong = "can be the same in two namespaces: put \"/\" between "
			"{namespace} and the rest, or set acrossNamespaces";
	return wrong ? failure_set(failure, CNI_BAD_CONFIG,
				   "group.name: \"%s\" %s", name, wrong)
		     : 0;
}

static int check_name(const cJSON *object, const struct natra_group_info *group,
		      struct failure *failure)
{
	if (!group->name)
		return failure_set(failure, CNI_BAD_CONFIG,
				   "group.name: missing");
	if (group->parent && !strchr(group->name, '{') &&
	    strcmp(group->name, group->parent) == 0)
		return failure_set(failure, CNI_BAD_CONFIG,
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
	struct group_error error;
	int r;

	s->group = group;
	s->group_absence[0] = '\0';
	s->group_is_impossible = false;
	if (!object) {
		if (s->policy.group_weight ||
		    s->policy.group_floor_bits_per_sec)
			return failure_set(
				failure, CNI_BAD_CONFIG, "%s: without a group",
				s->policy.group_weight ? "groupWeight"
						       : "groupFloor");
		return 0;
	}
	if (group_read(object, &group, &error) < 0)
		return failure_set(failure, CNI_BAD_CONFIG, "%s", error.text);
	r = check_name(object, &group, failure);
	if (r)
		return r;
	s->group = group;
	/* Until the pod is known, so that it can have a weight and a floor. */
	set_name(&s->policy, group.name);
	if (group_has_rates(&group))
		s->policy.automatic_group = &s->group;
	s->policy.group_is_automatic = group_has_rates(&group);
	s->group_is_for_all = group_has_rates(&group) &&
			      !template_has_annotation(group.name, NULL);
	return 0;
}

/* Takes the policy out of a group that is impossible for this pod, which keeps the rates that all
 * members would have: a tenant must not get rid of a limit by what it writes. */
static void leave_with_rates(struct settings *s)
{
	policy_leave_group(&s->policy, s->policy.automatic_group);
	policy_leave_group(&s->plain, s->plain.automatic_group);
}

void groups_keep_rates(struct settings *s)
{
	if (!s->group_is_impossible)
		return;
	policy_lower_to_group(&s->policy, &s->group);
	policy_lower_to_group(&s->plain, &s->group);
}

static void leave_absent(struct settings *s)
{
	(void)snprintf(s->group_absence, sizeof(s->group_absence),
		       "there is no group '%s'", s->policy.group);
	leave_with_rates(s);
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
		return failure_set(
			failure, CNI_BAD_CONFIG,
			"group.name: \"%s\" becomes more than %d bytes",
			group->name, NATRA_GROUP_NAME_MAX);
	return r;
}

bool groups_make(const struct settings *s, const struct asker *asker)
{
	struct template_name name;
	struct failure failure;

	return s->group.name && group_has_rates(&s->group) &&
	       name_of(&s->group, asker, &name, &failure) == 0;
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
		policy_leave_group(&s->policy, NULL);
		return 0;
	}
	if (r && s->continue_on_error) {
		log_write(log, NATRA_LOG_ERROR, "%s: the pod is in no group",
			  failure->msg);
		s->group_is_impossible = s->policy.automatic_group;
		leave_with_rates(s);
		return 0;
	}
	if (r)
		return r;
	set_name(&s->policy, name.text);
	/* If it cannot be found out, attaching finds out. */
	if (!s->policy.automatic_group &&
	    group_find(n, s->policy.group, false, NULL) == 0)
		leave_absent(s);
	return 0;
}

/* Attaches, and tries once more without what natra's annotations ask for: each value may be
 * possible by itself, but not with the pod's rate, its group or this kernel, and a pod that goes
 * on would get rid of its limits by that. They stay if it is as impossible without them. */
static int attach_annotated(struct settings *s, struct natra *n,
			    groups_attach_fn attach, void *arg)
{
	struct failure failure = {0};
	int r = attach(arg, &s->policy);

	if (!s->continue_on_error)
		return r;
	/* An error that may pass is no annotation's fault. */
	if (r == -ENOMEM || r == -EINTR || r == -EAGAIN)
		r = attach(arg, &s->policy);
	if (r == 0 || r == -EBUSY || policy_same(&s->policy, &s->plain) ||
	    natra_error_code(n) == NATRA_CODE_NO_GROUP)
		return r;
	(void)failure_of_natra(&failure, n, r, CNI_NOT_SHAPED);
	r = attach(arg, &s->plain);
	if (r < 0)
		return r;
	s->policy = s->plain;
	(void)snprintf(s->dropped, sizeof(s->dropped), "%s", failure.msg);
	return 0;
}

int groups_attach(struct settings *s, struct natra *n, struct log *log,
		  groups_attach_fn attach, void *arg)
{
	int r = attach_annotated(s, n, attach, arg);
	struct failure failure = {0};

	/* It has been removed since it was looked for. */
	if (r < 0 && s->policy.group[0] && !s->policy.automatic_group &&
	    natra_error_code(n) == NATRA_CODE_NO_GROUP) {
		leave_absent(s);
		return attach_annotated(s, n, attach, arg);
	}
	while (r < 0 && r != -EBUSY && s->continue_on_error &&
	       s->policy.group[0]) {
		/* The floors of the pods before it are all that the group can promise, or
		 * its floor is over its own rate. */
		const bool is_floor = s->plain.group_floor_bits_per_sec &&
				      (r == -ERANGE || r == -EINVAL);

		(void)failure_of_natra(&failure, n, r, CNI_NOT_SHAPED);
		s->policy.group_floor_bits_per_sec = 0;
		s->plain.group_floor_bits_per_sec = 0;
		if (!is_floor)
			leave_with_rates(s);
		/* Without its group it would have no limit, which the caller has to say. */
		if (!policy_has_limits(&s->policy))
			return r;
		if (!policy_has_limits(&s->plain))
			s->plain = s->policy;
		r = attach_annotated(s, n, attach, arg);
		if (r == 0)
			log_write(log, NATRA_LOG_ERROR, "%s: the pod %s",
				  failure.msg,
				  is_floor ? "has no floor" : "is in no group");
	}
	return r;
}
