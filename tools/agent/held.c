/* SPDX-License-Identifier: BSD-2-Clause */
#include "held.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/policy/fields.h"
#include "../common/template.h"

/* The texts of what is taken out: the first one counts. */
struct note {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static void say(const struct note *note,
						      const char *format, ...)
{
	va_list args;

	if (note->text[0])
		return;
	va_start(args, format);
	(void)vsnprintf(note->text, note->size, format, args);
	va_end(args);
}

static bool is_lower_rate(uint64_t has, uint64_t wanted)
{
	return wanted && (!has || wanted < has);
}

/* Returns whether the value follows the pod's present annotations. That of a rate may also
 * be the configuration's, by its precedence. */
static bool follows(const struct policy_field *field, const struct wish *wish)
{
	const char *name = wish->settings.group.name;

	if (policy_field_is_direction(field))
		return true;
	if (field->unit == POLICY_GROUP)
		return name && template_has_annotation(name, wish_follows);
	name = policy_field_asked(field);
	return name && settings_allow(&wish->settings, name);
}

static struct shown {
	char text[64]; /* the longest word is what a burst is by the rate */
} show(const struct policy_field *field, uint64_t value)
{
	const char *word = policy_field_word(field, value);
	struct shown shown;

	if (!word && !value)
		word = field->otherwise;
	if (word)
		(void)snprintf(shown.text, sizeof(shown.text), "%s", word);
	else
		(void)snprintf(shown.text, sizeof(shown.text), "%" PRIu64,
			       value);
	return shown;
}

static void hold_group(const struct natra_policy *has,
		       struct natra_policy *wanted, const struct note *note)
{
	say(note, "group: stays '%s', not '%s'", has->group, wanted->group);
	memcpy(wanted->group, has->group, sizeof(wanted->group));
	wanted->group_is_automatic = has->group_is_automatic;
	wanted->automatic_group = NULL;
}

static void hold_field(const struct policy_field *field,
		       const struct natra_policy *has,
		       struct natra_policy *wanted, const struct note *note)
{
	const uint64_t value = policy_field_get(field, has);

	if (field->unit == POLICY_GROUP) {
		hold_group(has, wanted, note);
		return;
	}
	say(note, "%s: stays %s, not %s", policy_field_asked(field),
	    show(field, value).text,
	    show(field, policy_field_get(field, wanted)).text);
	policy_field_set(field, wanted, value);
}

static bool is_same(const struct policy_field *field,
		    const struct natra_policy *has,
		    const struct natra_policy *wanted)
{
	return field->unit == POLICY_GROUP
		       ? policy_same_group(has, wanted)
		       : policy_field_get(field, has) ==
				 policy_field_get(field, wanted);
}

static void hold_fields(const struct natra_policy *has, bool may_lower,
			struct wish *wish, const struct note *note)
{
	struct natra_policy *wanted = &wish->settings.policy;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (is_same(field, has, wanted) || !follows(field, wish) ||
		    (may_lower &&
		     policy_field_is_lower(field, has,
					   policy_field_get(field, wanted))))
			continue;
		hold_field(field, has, wanted, note);
	}
}

static bool is_same_peers(const struct natra_class *a,
			  const struct natra_class *b)
{
	if (a->dscps != b->dscps || a->subnets_len != b->subnets_len)
		return false;
	for (size_t i = 0; i < a->subnets_len; i++) {
		if (strcmp(a->subnets[i], b->subnets[i]) != 0)
			return false;
	}
	return true;
}

/* Lowers a rate of a held class to what is wanted. Returns whether it is what is wanted. */
static bool lower_rate(uint64_t *has, uint64_t wanted, bool may_lower)
{
	if (may_lower && is_lower_rate(*has, wanted))
		*has = wanted;
	return *has == wanted;
}

/* Returns whether the attachment has the wanted peers, which may be written in another way
 * than the library lists them. */
static bool has_peers(const struct podif *podif, const struct held *held,
		      const struct natra_policy *wanted)
{
	struct natra_class asked[NATRA_CLASSES_MAX];
	struct natra_policy policy = held->policy;
	int r;

	if (!held->owned_len || wanted->classes_len != held->owned_len)
		return false;
	for (size_t i = 0; i < held->owned_len; i++) {
		const struct natra_class *has = &held->classes[i];

		asked[i] = wanted->classes[i];
		asked[i].ingress_rate_bits_per_sec =
			has->ingress_rate_bits_per_sec;
		asked[i].egress_rate_bits_per_sec =
			has->egress_rate_bits_per_sec;
	}
	policy.classes = asked;
	r = natra_check(podif->n, podif->id, &policy);
	/* A process that holds the lock may be changing the classes. */
	return r != -EBUSY &&
	       (r != -EBADE ||
		natra_error_code(podif->n) != NATRA_CODE_CLASSES_DIFFER);
}

static bool lower_class(struct natra_class *has, const struct natra_policy *p,
			bool may_lower, bool is_same)
{
	for (size_t i = 0; i < p->classes_len; i++) {
		const struct natra_class *wanted = &p->classes[i];
		bool is_done;

		if (strcmp(wanted->name, has->name) != 0)
			continue;
		is_done = lower_rate(&has->ingress_rate_bits_per_sec,
				     wanted->ingress_rate_bits_per_sec,
				     may_lower);
		is_done &=
			lower_rate(&has->egress_rate_bits_per_sec,
				   wanted->egress_rate_bits_per_sec, may_lower);
		return is_done && (is_same || is_same_peers(has, wanted));
	}
	return false;
}

/* Keeps the classes, because a peer that leaves a class is charged to the pod's own rate and
 * one that enters it no more; their rates may be lowered. */
static void hold_classes(struct held *held, const struct podif *podif,
			 bool may_lower, struct wish *wish,
			 const struct note *note)
{
	struct natra_policy *wanted = &wish->settings.policy;
	const size_t len = held->policy.classes_len;
	bool is_same;

	if (!settings_allow(&wish->settings, POLICY_CLASSES_ANNOTATION))
		return;
	is_same = has_peers(podif, held, wanted);
	if (wanted->classes_len > len)
		say(note, "%s: %zu classes stay, not %zu",
		    POLICY_CLASSES_ANNOTATION, len, wanted->classes_len);
	for (size_t i = 0; i < len; i++) {
		if (!lower_class(&held->classes[i], wanted, may_lower, is_same))
			say(note, "%s: class %s stays",
			    POLICY_CLASSES_ANNOTATION, held->classes[i].name);
	}
	wanted->classes = held->classes;
	wanted->classes_len = len;
}

static int copy_class(void *arg, const struct natra_class *class)
{
	struct held *held = arg;
	struct natra_class **copy = &held->owned[held->owned_len];
	int r = natra_parse_class(class->name, class, copy, NULL);

	if (r < 0)
		return r;
	held->classes[held->owned_len++] = **copy;
	return held->owned_len == NATRA_CLASSES_MAX;
}

/* A start that cannot be read has given the pod no limits. */
static void read_start(struct held *held, const struct podif *podif)
{
	struct failure failure = {0};
	struct log none = LOG_INIT;

	held->has_start = true;
	if (wish_read(&held->start, podif->cached, podif->source, NULL,
		      podif->n, &none, &failure))
		return;
	held->policy = held->start.settings.policy;
	for (size_t i = 0; i < held->policy.classes_len; i++)
		held->classes[i] = held->policy.classes[i];
}

static int read_held(struct held *held, const struct podif *podif,
		     const struct natra_info *info)
{
	int r = 0;

	if (info) {
		held->policy = info->policy;
		if (held->policy.classes_len)
			r = natra_foreach_class(podif->n, podif->id, copy_class,
						held);
		held->policy.classes_len = held->owned_len;
	} else {
		read_start(held, podif);
	}
	held->policy.classes = held->classes;
	return r < 0 ? r : 0;
}

int held_hold(struct held *held, const struct podif *podif,
	      const struct natra_info *info, struct wish *wish, char *ret_text,
	      size_t size)
{
	const bool may_lower = podif->jobs->edits == EDITS_LOWER;
	const struct note note = {ret_text, size};
	int r;

	ret_text[0] = '\0';
	if (podif->jobs->edits == EDITS_ANY)
		return 0;
	r = read_held(held, podif, info);
	/* Whatever is asked for is a limit where there was none. */
	if (r < 0 || (may_lower && !policy_has_limits(&held->policy)))
		return r;
	hold_fields(&held->policy, may_lower, wish, &note);
	hold_classes(held, podif, may_lower, wish, &note);
	return 0;
}

void held_free(struct held *held)
{
	if (held->has_start)
		wish_free(&held->start);
	for (size_t i = 0; i < held->owned_len; i++)
		free(held->owned[i]);
}
