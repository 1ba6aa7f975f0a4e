/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/fields.h"

#include <stdio.h>
#include <string.h>

#define ANNOTATION_PREFIX "natra.io/"

/* The names of a setting. */
struct names {
	char option[40];
	char key[40];
	char annotation[48];
};

static struct names spelt[POLICY_FIELDS_LEN];

/* Returns how long the member's name is without its unit. */
static size_t bare_len(const struct policy_field *field)
{
	static const char *const units[] = {
		[POLICY_RATE] = "_bits_per_sec", [POLICY_BURST] = "_bits",
		[POLICY_SIZE] = "_bytes",        [POLICY_TIME] = "_ns",
		[POLICY_PERCENT] = "_percent",   [POLICY_COUNT] = "_per_sec",
	};
	const char *unit =
		field->unit <= POLICY_COUNT ? units[field->unit] : "";

	return strlen(field->name) - strlen(unit);
}

static void spell(struct names *names, const char *name, size_t len)
{
	char *key = names->key, *dash;

	(void)snprintf(names->option, sizeof(names->option), "--%.*s", (int)len,
		       name);
	while ((dash = strchr(names->option, '_')))
		*dash = '-';
	(void)snprintf(names->annotation, sizeof(names->annotation),
		       ANNOTATION_PREFIX "%s", names->option + 2);
	for (const char *c = names->option + 2; *c; c++) {
		const bool upper = *c == '-';

		c += upper;
		*key++ = (char)(upper ? *c - 'a' + 'A' : *c);
	}
}

/* The names are made before main() begins, so that threads find them. */
__attribute__((constructor)) static void spell_all(void)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		spell(&spelt[i], field->name, bare_len(field));
	}
}

const char *policy_field_setting(const struct policy_field *field)
{
	return policy_field_option(field) + 2;
}

const char *policy_field_option(const struct policy_field *field)
{
	return spelt[field - policy_fields].option;
}

const char *policy_field_key(const struct policy_field *field)
{
	return field->surfaces & POLICY_ON_KEY
		       ? spelt[field - policy_fields].key
		       : NULL;
}

const char *policy_field_annotation(const struct policy_field *field)
{
	return field->surfaces & POLICY_ON_ANNOTATION
		       ? spelt[field - policy_fields].annotation
		       : NULL;
}

const char *policy_field_form(const struct policy_field *field)
{
	static const char *const forms[] = {
		[POLICY_RATE] = "RATE",       [POLICY_BURST] = "BITS",
		[POLICY_SIZE] = "SIZE",       [POLICY_TIME] = "TIME",
		[POLICY_PERCENT] = "PERCENT", [POLICY_COUNT] = "N",
		[POLICY_NUMBER] = "N",        [POLICY_GROUP] = "NAME",
	};

	return field->words ? field->words : forms[field->unit];
}

/* Returns whether an entry of a list of annotations is this one, which may be NULL. */
static bool is_named(const char *entry, const char *annotation)
{
	const size_t prefix = sizeof(ANNOTATION_PREFIX) - 1;

	return annotation &&
	       (strcmp(entry, annotation) == 0 ||
		(strncmp(annotation, ANNOTATION_PREFIX, prefix) == 0 &&
		 strcmp(entry, annotation + prefix) == 0));
}

const char *policy_field_asked(const struct policy_field *field)
{
	return field->annotation ? field->annotation
				 : policy_field_annotation(field);
}

const char *policy_annotation(const char *name)
{
	static const char *const others[] = {POLICY_CLASSES_ANNOTATION,
					     POLICY_IGNORED_ANNOTATION,
					     POLICY_IGNORED_TOO};

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (is_named(name, policy_field_asked(field)) ||
		    is_named(name, field->alias))
			return policy_field_asked(field);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (is_named(name, others[i]))
			return others[i];
	}
	return NULL;
}
