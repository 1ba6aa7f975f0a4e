/* SPDX-License-Identifier: BSD-2-Clause */
#include "classes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "annotations.h"
#include "field.h"

/* What a message shows of an item of the annotation. */
#define ITEM_SHOWN_MAX 48

/* The class that is being read, and where. */
struct reading {
	const cJSON *object;
	int number;
	struct failure *failure;
};

static int refuse_key(const struct reading *r, const char *key,
		      const cJSON *value, const char *wanted)
{
	return refuse(r->failure, CNI_BAD_CONFIG, "classes[%d].%s: %s %s",
		      r->number, key, json_show(value).text, wanted);
}

/* 0 stands for no limit. */
static int read_rate(const struct reading *reading, const char *key,
		     uint64_t *ret_rate)
{
	const cJSON *value = json_get(reading->object, key);

	if (value && field_read_rate(value, ret_rate) < 0)
		return refuse_key(reading, key, value,
				  "is not a rate such as 10M");
	return 0;
}

static int read_dscps(const struct reading *reading, uint64_t *ret_dscps)
{
	const cJSON *list = json_get(reading->object, "dscps"), *item;

	if (list && !cJSON_IsArray(list))
		return refuse_key(reading, "dscps", list,
				  "is not a list of numbers from 0 to 63");
	cJSON_ArrayForEach(item, list)
	{
		uint64_t dscp;

		if (json_u64(item, &dscp) < 0 || dscp > POLICY_DSCP_MAX)
			return refuse_key(reading, "dscps", item,
					  "is not a number from 0 to 63");
		*ret_dscps |= UINT64_C(1) << dscp;
	}
	return 0;
}

/* All lists together have room for as many texts as a policy may have. */
static int read_subnets(const struct reading *reading, struct settings *s,
			size_t *used, struct natra_class *class)
{
	const cJSON *list = json_get(reading->object, "subnets"), *item;

	if (list && !cJSON_IsArray(list))
		return refuse_key(reading, "subnets", list,
				  "is not a list of CIDR blocks");
	class->subnets = &s->subnets[*used];
	cJSON_ArrayForEach(item, list)
	{
		if (!json_text(item))
			return refuse_key(reading, "subnets", item,
					  "is not a CIDR block");
		if (*used == NATRA_SUBNETS_MAX)
			return refuse(reading->failure, CNI_BAD_CONFIG,
				      "classes: more than %d subnets",
				      NATRA_SUBNETS_MAX);
		s->subnets[(*used)++] = item->valuestring;
		class->subnets_len++;
	}
	return 0;
}

/* A key that is misspelt would leave the class without a limit. */
static int check_keys(const struct reading *reading)
{
	static const char *const known[] = {
		"name", "subnets", "dscps", "ingressRate", "egressRate", NULL};
	const cJSON *item = json_find_unknown(reading->object, known);

	return item ? refuse_key(reading, item->string, item,
				 "is no key of a class")
		    : 0;
}

static int read_class(const struct reading *reading, struct settings *s,
		      size_t *used)
{
	struct natra_class *class = &s->classes[reading->number];
	int r;

	*class = (struct natra_class)NATRA_INIT(*class);
	class->name = json_text(json_get(reading->object, "name"));
	if (!class->name)
		return refuse(reading->failure, CNI_BAD_CONFIG,
			      "classes[%d].name: missing", reading->number);
	r = check_keys(reading);
	if (r == 0)
		r = read_rate(reading, "ingressRate",
			      &class->ingress_rate_bits_per_sec);
	if (r == 0)
		r = read_rate(reading, "egressRate",
			      &class->egress_rate_bits_per_sec);
	if (r == 0)
		r = read_dscps(reading, &class->dscps);
	return r ? r : read_subnets(reading, s, used, class);
}

int classes_read(struct settings *s, const struct conf *conf, struct natra *n,
		 struct failure *failure)
{
	const cJSON *list = json_get(conf->json, "classes"), *item;
	struct natra_policy checked = s->policy;
	struct reading reading = {.failure = failure};
	size_t used =
		s->policy.shaped_subnets_len + s->policy.unshaped_subnets_len;

	if (!list)
		return 0;
	if (!cJSON_IsArray(list))
		return refuse(failure, CNI_BAD_CONFIG,
			      "classes: %s is not a list of classes",
			      json_show(list).text);
	cJSON_ArrayForEach(item, list)
	{
		int r;

		if (reading.number == NATRA_CLASSES_MAX)
			return refuse(failure, CNI_BAD_CONFIG,
				      "classes: %d are more than %d",
				      cJSON_GetArraySize(list),
				      NATRA_CLASSES_MAX);
		reading.object = item;
		r = read_class(&reading, s, &used);
		if (r)
			return r;
		reading.number++;
	}
	checked.classes = s->classes;
	checked.classes_len = (size_t)reading.number;
	/* These are dropped once the annotations have been read. */
	policy_fields_drop_alone(&checked);
	if (natra_policy_check(n, &checked) < 0)
		return refuse(failure, CNI_BAD_CONFIG, "%s", natra_error(n));
	s->policy.classes = checked.classes;
	s->policy.classes_len = checked.classes_len;
	return 0;
}

static int refuse_asked(const cJSON *value, const char *wrong,
			struct failure *failure)
{
	return refuse(failure, CNI_BAD_CONFIG, "annotation %s: %s: %s",
		      CLASSES_ANNOTATION, json_show(value).text, wrong);
}

/* Classes that a pod asks for. The settings keep those that they have until all of
 * these are read. */
struct asking {
	struct settings *settings;
	const cJSON *value;
	struct natra_class list[NATRA_CLASSES_MAX];
	size_t len;
};

static int ask_for(struct asking *a, const char *text, struct failure *failure)
{
	struct natra_class **made = &a->settings->asked[a->len];
	const char *item = text;
	char wrong[128];
	int r = natra_parse_class(text, NULL, made, &item);
	size_t len;

	if (r == 0) {
		a->list[a->len++] = **made;
		return 0;
	}
	len = strcspn(item, ",");
	(void)snprintf(
		wrong, sizeof(wrong), "'%.*s' is %s",
		len < ITEM_SHOWN_MAX ? (int)len : ITEM_SHOWN_MAX, item,
		r == -ERANGE
			? "out of range"
			: "not CIDR, ingress-rate=RATE, egress-rate=RATE or dscp=N");
	return refuse_asked(
		a->value, r == -ENOMEM ? "there is no memory" : wrong, failure);
}

/* Lets the library check the classes, and whether they may stand beside what the pod
 * has; its numbers are checked later. */
static int check_asked(const struct asking *a, struct natra *n,
		       struct failure *failure)
{
	const struct natra_policy *have = &a->settings->policy;
	struct natra_policy checked = NATRA_INIT(checked);

	checked.ingress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	checked.egress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	checked.group = have->group;
	checked.shaped_subnets = have->shaped_subnets;
	checked.shaped_subnets_len = have->shaped_subnets_len;
	checked.unshaped_subnets = have->unshaped_subnets;
	checked.unshaped_subnets_len = have->unshaped_subnets_len;
	checked.classes = a->list;
	checked.classes_len = a->len;
	return natra_policy_check(n, &checked) < 0
		       ? refuse_asked(a->value, natra_error(n), failure)
		       : 0;
}

/* Drops the space beside what separates classes and their items, and lets other space be
 * one blank, which no item has. */
static void drop_space(char *text)
{
	static const char ends[] = ",;";
	char *to = text;

	for (const char *at = text; *at;) {
		const size_t space = strspn(at, " \t\r\n");
		const char *next = at + space;

		if (space && to > text && !strchr(ends, to[-1]) &&
		    !strchr(ends, *next))
			*to++ = ' ';
		if (*next)
			*to++ = *next++;
		at = next;
	}
	*to = '\0';
}

/* Reads classes that are separated by semicolons. */
static int read_asked(struct asking *a, struct natra *n,
		      struct failure *failure)
{
	cleanup_json cJSON *copy = cJSON_Duplicate(a->value, true);
	char *rest = copy->valuestring, *one;
	int r = 0;

	if (!json_text(copy))
		return refuse_asked(a->value, "is not a string", failure);
	drop_space(rest);
	while (r == 0 && (one = strsep(&rest, ";"))) {
		if (*one && a->len == NATRA_CLASSES_MAX)
			return refuse_asked(a->value, "has more classes than 8",
					    failure);
		if (*one)
			r = ask_for(a, one, failure);
	}
	if (r == 0 && !a->len)
		r = refuse_asked(a->value, "has no class", failure);
	return r ? r : check_asked(a, n, failure);
}

int classes_read_annotation(struct settings *s, const struct conf *conf,
			    struct natra *n, struct log *log,
			    struct failure *failure)
{
	struct asking asking = {.settings = s};
	struct failure wrong;
	const cJSON *pod;
	int r = annotations_find(conf, &pod, failure);

	if (r)
		return r;
	asking.value = json_get_exact(pod, CLASSES_ANNOTATION);
	if (!asking.value)
		return 0;
	if (!(s->allowed_annotations & FIELD_CLASSES_BIT)) {
		log_write(log, NATRA_LOG_INFO,
			  "annotation %s is not in allowAnnotations: ignored",
			  CLASSES_ANNOTATION);
		return 0;
	}
	r = read_asked(&asking, n, &wrong);
	if (r == 0) {
		memcpy(s->classes, asking.list, sizeof(s->classes));
		s->policy.classes = s->classes;
		s->policy.classes_len = asking.len;
		return 0;
	}
	if (!s->continue_on_error) {
		*failure = wrong;
		return r;
	}
	log_write(log, NATRA_LOG_ERROR, "%s: ignored", wrong.msg);
	return 0;
}
