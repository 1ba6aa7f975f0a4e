/* SPDX-License-Identifier: BSD-2-Clause */
#include "groups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../src/policy/fields.h"
#include "field.h"
#include "template.h"

/* More often than this a group does not disappear by chance. */
#define MAKE_TRIES 4

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

static int read_rate(const cJSON *object, const char *key, uint64_t *ret,
		     struct failure *failure)
{
	const cJSON *value = json_get(object, key);

	if (value && field_read_rate(value, ret) < 0)
		return refuse_key(key, value, "is not a rate such as 10M",
				  failure);
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
	int r = read_text(object, "parent", &group->parent, failure);

	if (r == 0)
		r = read_rate(object, "ingressRate",
			      &group->ingress_rate_bits_per_sec, failure);
	if (r == 0)
		r = read_rate(object, "egressRate",
			      &group->egress_rate_bits_per_sec, failure);
	if (r == 0)
		r = read_rate(object, "floor", &group->floor_bits_per_sec,
			      failure);
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
	const char *over = NULL;

	if (g->egress_rate_bits_per_sec &&
	    g->floor_bits_per_sec > g->egress_rate_bits_per_sec)
		over = "is over egressRate";
	if (g->ingress_rate_bits_per_sec &&
	    g->floor_bits_per_sec > g->ingress_rate_bits_per_sec)
		over = "is over ingressRate";
	return over ? refuse_key("floor", json_get(object, "floor"), over,
				 failure)
		    : 0;
}

int groups_read_limits(const cJSON *object, struct natra_group_info *ret,
		       struct failure *failure)
{
	/* A rate that is misspelt would leave the group without a limit. */
	static const char *const known[] = {
		"name",   "ingressRate", "egressRate", "parent",
		"weight", "floor",       NULL};
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
	return template_check(group->name, failure);
}

int groups_read(struct settings *s, const cJSON *keys, struct failure *failure)
{
	const cJSON *object = json_get(keys, "group");
	struct natra_group_info group = NATRA_INIT(group);
	int r;

	s->group = group;
	s->group_name[0] = '\0';
	s->group_is_absent = s->only_looks = false;
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
	s->policy.group = GROUP_UNKNOWN;
	return 0;
}

/* Takes the policy out of the group that it would be in, with its weight and floor. */
static void leave(struct settings *s)
{
	s->policy.group = 0;
	policy_fields_drop_alone(&s->policy);
}

/* A group that somebody else has made. */
struct found {
	const char *name;
	struct natra_group_info info;
};

static int look_at(void *arg, const struct natra_group_info *group)
{
	struct found *found = arg;

	if (strcmp(group->name, found->name) != 0)
		return 0;
	found->info = *group;
	/* These texts are the caller's. */
	found->info.name = found->name;
	found->info.parent = NULL;
	return 1;
}

/* Makes the group, or sets its rates. The DEL of its last member may remove it again
 * before its number is found. */
static int make(struct natra *n, struct natra_group_info *group)
{
	for (int tries = 1;; tries++) {
		int r = natra_group_set(n, group);

		if (r < 0)
			return r;
		r = natra_find_group(n, group->name, &group->number);
		if (r != -ENOENT || tries == MAKE_TRIES)
			return r;
	}
}

/* Finds the group, whose number is 0 if there is none, after making it if its rates
 * are the configuration's. */
static int find(const struct settings *s, const char *name, struct natra *n,
		struct natra_group_info *ret)
{
	struct found found = {.name = name};
	int r;

	if (has_rates(&s->group) && !s->only_looks) {
		struct natra_group_info group = s->group;

		group.name = name;
		group.automatic = true;
		r = make(n, &group);
		*ret = group;
		return r;
	}
	r = natra_foreach_group(n, look_at, &found);
	*ret = found.info;
	if (has_rates(&s->group)) {
		/* It has these rates once it is made. */
		*ret = s->group;
		ret->number =
			found.info.number ? found.info.number : GROUP_UNKNOWN;
	}
	return r < 0 ? r : 0;
}

/* Limits packets and connections as the keys ask for. This was dropped in a direction
 * without a rate, which may have one by its group now, or none any more. */
static void fill_counts(struct settings *s)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (policy_field_is_count(field) &&
		    !policy_field_get(field, &s->policy))
			policy_field_set(field, &s->policy,
					 policy_field_get(field, &s->keys));
	}
	policy_fields_drop_alone(&s->policy);
}

/* The highest rate stands for none: the group's changes while the pod runs. */
static void fill_rates(struct settings *s, const struct natra_group_info *group)
{
	struct natra_policy *p = &s->policy;

	s->ingress_is_filled = !p->ingress_rate_bits_per_sec &&
			       group->ingress_rate_bits_per_sec;
	s->egress_is_filled =
		!p->egress_rate_bits_per_sec && group->egress_rate_bits_per_sec;
	if (s->ingress_is_filled)
		p->ingress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	if (s->egress_is_filled)
		p->egress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	fill_counts(s);
}

/* Takes back what the group that the pod was to join before has filled in. */
static void clear_rates(struct settings *s)
{
	if (s->ingress_is_filled)
		s->policy.ingress_rate_bits_per_sec = 0;
	if (s->egress_is_filled)
		s->policy.egress_rate_bits_per_sec = 0;
	s->ingress_is_filled = s->egress_is_filled = false;
}

bool groups_are_for_all(const struct natra_group_info *group)
{
	return has_rates(group) && !template_has_annotation(group->name);
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

/* Reports what the library says about the group, some of whose texts begin with it. */
static int fail(struct natra *n, const char *name, int r,
		struct failure *failure)
{
	char about[NATRA_GROUP_NAME_MAX + 16];
	const char *text = natra_error(n);
	int code = refuse_natra(failure, n, r, CNI_NOT_SHAPED);

	(void)snprintf(about, sizeof(about), "group '%s': ", name);
	if (strncmp(text, about, strlen(about)) == 0)
		return code;
	return refuse(failure, failure->code, "%s%s", about,
		      text[0] ? text : strerror(-r));
}

static int join(struct settings *s, const char *name, struct natra *n,
		struct failure *failure)
{
	struct natra_group_info group;
	int r = find(s, name, n, &group);

	if (r < 0)
		return fail(n, name, r, failure);
	(void)snprintf(s->group_name, sizeof(s->group_name), "%s", name);
	if (!group.number) {
		s->group_is_absent = true;
		leave(s);
		return 0;
	}
	s->policy.group = group.number;
	fill_rates(s, &group);
	return 0;
}

int groups_join(struct settings *s, const struct asker *asker, struct natra *n,
		struct log *log, struct failure *failure)
{
	struct template_name name;
	int r;

	if (!s->group.name)
		return 0;
	clear_rates(s);
	s->group_name[0] = '\0';
	s->group_is_absent = false;
	r = name_of(&s->group, asker, &name, failure);
	if (r == 0)
		r = join(s, name.text, n, failure);
	if (r == -ENOENT) {
		s->group_is_absent = true;
		leave(s);
		return 0;
	}
	if (r == 0 || !s->continue_on_error)
		return r;
	log_write(log, NATRA_LOG_ERROR, "%s: the pod is in no group",
		  failure->msg);
	leave(s);
	return 0;
}

/* Returns whether the pod's group still has the number that groups_join found. A group
 * with a member keeps its number: ask this once the pod is one. */
static bool hold(const struct settings *s, const struct asker *asker,
		 struct natra *n)
{
	struct template_name name;
	struct failure failure;
	uint32_t number;

	return name_of(&s->group, asker, &name, &failure) == 0 &&
	       natra_find_group(n, name.text, &number) == 0 &&
	       number == s->policy.group;
}

const char *groups_absence(const struct settings *s, struct groups_absence *ret)
{
	if (!s->group_is_absent)
		return NULL;
	if (s->group_name[0])
		(void)snprintf(ret->text, sizeof(ret->text),
			       "there is no group '%s'", s->group_name);
	else
		(void)snprintf(
			ret->text, sizeof(ret->text),
			"the pod lacks what the name of its group needs: %s",
			s->group.name);
	return ret->text;
}

/* Keeps the pod out of a group that has the number of its own by now. */
static void stay_out(const struct groups_attach *a)
{
	clear_rates(a->settings);
	leave(a->settings);
	(void)a->attach(a->arg, &a->settings->policy);
}

int groups_attach(const struct groups_attach *a)
{
	struct settings *s = a->settings;
	int r;

	for (int tries = 1; tries <= MAKE_TRIES; tries++) {
		r = a->attach(a->arg, &s->policy);
		if (!s->group.name || !s->policy.group ||
		    (r < 0 && (r != -ENOENT || tries == MAKE_TRIES)) ||
		    (r == 0 && hold(s, a->asker, a->n)))
			return r;
		if (tries == MAKE_TRIES)
			break;
		r = groups_join(s, a->asker, a->n, a->log, a->failure);
		if (r) {
			stay_out(a);
			return r;
		}
	}
	r = refuse(a->failure, CNI_TRY_AGAIN,
		   "group '%s': was removed each time that the pod joined it",
		   s->group_name);
	stay_out(a);
	if (!s->continue_on_error)
		return r;
	log_write(a->log, NATRA_LOG_ERROR, "%s: the pod is in no group",
		  a->failure->msg);
	return 0;
}

void groups_leave(const cJSON *keys, const struct asker *asker, struct natra *n,
		  struct log *log)
{
	struct settings s = {.policy = NATRA_INIT(s.policy)};
	struct template_name name;
	struct failure failure;
	int r;

	/* DEL must not fail for a bad configuration. */
	if (groups_read(&s, keys, &failure) || !has_rates(&s.group) ||
	    name_of(&s.group, asker, &name, &failure))
		return;
	r = natra_group_remove(n, name.text);
	/* Others are in it, or it is a parent of groups. */
	if (r < 0 && r != -EBUSY)
		log_write(log, NATRA_LOG_WARN, "group '%s' stays: %s",
			  name.text, natra_error(n));
}

struct sweep {
	struct natra *n;
	struct log *log;
	size_t removed;
};

static int sweep_one(void *arg, const struct natra_group_info *group)
{
	struct sweep *sweep = arg;
	int r;

	if (group->members || !group->automatic)
		return 0;
	r = natra_group_remove(sweep->n, group->name);
	if (r == 0)
		sweep->removed++;
	else if (r != -EBUSY)
		log_write(sweep->log, NATRA_LOG_WARN, "group '%s' stays: %s",
			  group->name, natra_error(sweep->n));
	return 0;
}

size_t groups_sweep(struct natra *n, struct log *log)
{
	struct sweep sweep = {.n = n, .log = log};

	if (natra_foreach_group(n, sweep_one, &sweep) < 0)
		log_write(log, NATRA_LOG_WARN, "groups: %s", natra_error(n));
	return sweep.removed;
}
