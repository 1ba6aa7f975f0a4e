/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/annotation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/class_check.h"
#include "policy/class_text.h"
#include "policy/fields.h"
#include "policy/policy.h"
#include "util/cleanup.h"

/* What a message shows of a value. */
#define SHOWN_MAX      48
/* Kubernetes refuses a lower rate in an annotation. */
#define ASKED_RATE_MIN 1000

static int check_allowed(struct natra *n, const struct natra_annotations *a)
{
	for (size_t i = 0; i < a->allowed_len; i++) {
		const char *entry = a->allowed[i] ? a->allowed[i] : "";

		if (!policy_annotation(entry))
			return refuse(
				n, -EINVAL,
				"allowAnnotations: '%.*s' is not an annotation that natra knows",
				SHOWN_MAX, entry);
	}
	return 0;
}

/* Returns whether a pod may use an annotation, by whatever name it is allowed. */
static bool is_allowed(const struct natra_annotations *a, const char *name)
{
	for (size_t i = 0; i < a->allowed_len; i++) {
		if (policy_annotation(a->allowed[i]) == policy_annotation(name))
			return true;
	}
	return a->allow_all;
}

/* Returns the last annotation of this name, as Go's decoder of JSON does; or NULL. */
static const struct natra_annotation *find(const struct natra_annotations *a,
					   const char *name)
{
	for (size_t i = a->annotations_len; name && i; i--) {
		const struct natra_annotation *one = &a->annotations[i - 1];

		if (one->name && strcmp(one->name, name) == 0)
			return one->value ? one : NULL;
	}
	return NULL;
}

static int refuse_value(struct natra *n, const struct natra_annotation *one,
			const char *wrong)
{
	return with_name(n, NATRA_CODE_ANNOTATION, one->name,
			 refuse(n, -EINVAL, "annotation %s: '%.*s'%s: %s",
				one->name, SHOWN_MAX, one->value,
				strlen(one->value) > SHOWN_MAX ? "..." : "",
				wrong));
}

/* Says that an annotation does not count, and why. */
static int ignore(struct natra *n, const struct natra_annotation *one,
		  const char *why)
{
	log_line(n, NATRA_LOG_WARN, "annotation %s%s: ignored", one->name, why);
	return 0;
}

static struct policy_mistake mistake_of(const struct policy_field *field)
{
	if (policy_field_is_direction(field))
		return (struct policy_mistake){"is not a rate from 1k to 1P"};
	return policy_field_mistake(field);
}

/* Returns what is wrong with a value that was read; "" if nothing is. */
static struct policy_mistake judge(const struct policy_field *field,
				   const struct natra_policy *policy)
{
	const uint64_t value = policy_field_get(field, policy);

	if (policy_field_is_direction(field) && value < ASKED_RATE_MIN)
		return mistake_of(field);
	if (field->unit == POLICY_BURST && !policy_field_counts(field, policy))
		return (struct policy_mistake){
			"if burst is set, rate must also be set"};
	if (field->unit == POLICY_COUNT && !policy_field_counts(field, policy))
		return (struct policy_mistake){
			"needs a rate, which is not set"};
	return (struct policy_mistake){""};
}

static int read_field(struct natra *n, const struct policy_field *field,
		      const struct natra_annotation *one,
		      struct natra_policy *policy)
{
	struct natra_policy changed = *policy;
	struct policy_mistake mistake;

	if (policy_field_parse(field, &changed, one->value) < 0)
		return refuse_value(n, one, mistake_of(field).text);
	mistake = judge(field, &changed);
	if (mistake.text[0])
		return refuse_value(n, one, mistake.text);
	*policy = changed;
	return 0;
}

/* Returns r, or 0 if a wrong value is to be left out. */
static int skip(struct natra *n, const struct natra_annotations *a, int r)
{
	if (r != -EINVAL || !a->skip_bad)
		return r;
	log_line(n, NATRA_LOG_ERROR, "%s: ignored", last_error(n));
	return 0;
}

static int ask_for_field(struct natra *n, const struct natra_annotations *a,
			 const struct policy_field *field,
			 struct natra_policy *policy)
{
	const struct natra_annotation *one = find(a, policy_field_asked(field));

	if (!one)
		one = find(a, field->alias);
	if (!one)
		return 0;
	if (!is_allowed(a, policy_field_asked(field))) {
		/* Those of rates are there for the runtime, too, which reads them. */
		return policy_field_is_direction(field)
			       ? 0
			       : ignore(n, one, " is not in allowAnnotations");
	}
	if (policy_field_is_of_group(field) && !policy->group[0])
		return ignore(n, one, ": the pod is in no group");
	return skip(n, a, read_field(n, field, one, policy));
}

/* Checks them by themselves, and together with the policy's lists of blocks. */
static int check_classes(const struct natra_policy *policy, char *ret_wrong,
			 size_t size)
{
	cleanup_subnets struct subnets subnets = {0};
	int r = classes_check(policy, ret_wrong, size);

	if (r == 0)
		r = subnets_read(policy, &subnets);
	return r < 0 ? r : subnets_check(&subnets, ret_wrong, size);
}

static int read_classes(struct natra *n, const struct natra_annotation *one,
			struct natra_policy *policy, struct natra_class **ret)
{
	cleanup_free struct natra_class *list = NULL;
	struct natra_policy changed = *policy;
	char wrong[256] = "";
	int r = class_list_parse(one->value, &list, &changed.classes_len, wrong,
				 sizeof(wrong));

	changed.classes = list;
	if (r == 0)
		r = check_classes(&changed, wrong, sizeof(wrong));
	if (r == -EINVAL)
		return refuse_value(n, one, wrong);
	if (r < 0)
		return fail_errno(n, r, "read annotation %s", one->name);
	*policy = changed;
	*ret = TAKE_PTR(list);
	return 0;
}

static int ask_for_classes(struct natra *n, const struct natra_annotations *a,
			   struct natra_policy *policy,
			   struct natra_class **ret)
{
	const struct natra_annotation *one = find(a, POLICY_CLASSES_ANNOTATION);

	if (!one)
		return 0;
	if (!is_allowed(a, POLICY_CLASSES_ANNOTATION))
		return ignore(n, one, " is not in allowAnnotations");
	return skip(n, a, read_classes(n, one, policy, ret));
}

/* Says once that natra's bursts of packets are fixed. */
static void ignore_bursts(struct natra *n, const struct natra_annotations *a)
{
	const struct natra_annotation *one = find(a, POLICY_IGNORED_ANNOTATION);

	if (!one)
		one = find(a, POLICY_IGNORED_TOO);
	if (one)
		(void)ignore(n, one, ": the burst is that of 0.1 s");
}

/* Reads the rates, or all but the rates. */
static int ask_for_fields(struct natra *n, const struct natra_annotations *a,
			  bool rates, struct natra_policy *policy)
{
	int r = 0;

	for (size_t i = 0; i < POLICY_FIELDS_LEN && r == 0; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (policy_field_is_direction(field) == rates)
			r = ask_for_field(n, a, field, policy);
	}
	return r;
}

int policy_annotate(struct natra *n, struct natra_policy *policy,
		    const struct natra_annotations *asked,
		    struct natra_class **ret_classes)
{
	struct natra_policy changed = *policy;
	struct natra_class *classes = NULL;
	int r = with_field(n, policy_check_ranges(policy, error_room(n),
						  HANDLE_ERROR_MAX));

	/* The classes that a pod asks for are judged beside them. */
	if (r == 0)
		r = with_field(n, policy_check_subnets(policy, error_room(n),
						       HANDLE_ERROR_MAX));
	if (r == 0)
		r = check_allowed(n, asked);
	if (r == 0)
		ignore_bursts(n, asked);
	if (r == 0)
		r = ask_for_fields(n, asked, true, &changed);
	policy_fields_drop_alone(&changed);
	if (r == 0)
		r = ask_for_fields(n, asked, false, &changed);
	if (r == 0)
		r = ask_for_classes(n, asked, &changed, &classes);
	if (r < 0)
		return r;
	*policy = changed;
	*ret_classes = classes;
	return 0;
}
