/* SPDX-License-Identifier: BSD-2-Clause */
#include "field.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "natra.io/"

/* allowed_annotations has a bit for each row of the table, and two more. */
_Static_assert(POLICY_FIELDS_LEN < 31, "a bit for each field");

static bool is_named(const char *name, const char *annotation)
{
	return strcmp(name, annotation) == 0 ||
	       strcmp(name, annotation + strlen(PREFIX)) == 0;
}

bool field_is_ignored(const char *annotation)
{
	return strcmp(annotation, "qos.projectcalico.org/ingressPacketBurst") ==
		       0 ||
	       strcmp(annotation, "qos.projectcalico.org/egressPacketBurst") ==
		       0;
}

unsigned int field_annotation_bit(const char *name)
{
	if (name && field_is_ignored(name))
		return FIELD_IGNORED_BIT;
	if (name && is_named(name, CLASSES_ANNOTATION))
		return FIELD_CLASSES_BIT;
	for (size_t i = 0; name && i < POLICY_FIELDS_LEN; i++) {
		const char *full = policy_field_annotation(&policy_fields[i]);

		if (full && is_named(name, full))
			return 1U << i;
		if (policy_fields[i].alias &&
		    strcmp(name, policy_fields[i].alias) == 0)
			return 1U << i;
	}
	return 0;
}

/* Returns whether a number without a unit may stand for it. */
static bool is_quantity(const struct policy_field *field)
{
	return field->unit <= POLICY_NUMBER && field->unit != POLICY_TIME;
}

static bool read_value(const struct policy_field *field, const cJSON *value,
		       struct natra_policy *policy)
{
	uint64_t number;

	if (!is_quantity(field) || !cJSON_IsNumber(value))
		return policy_field_parse(field, policy, json_text(value)) == 0;
	if (json_u64(value, &number) < 0 || number < 1 || number > field->max)
		return false;
	policy_field_set(field, policy, number);
	return true;
}

/* Writes "is not auto, on or off", in the order in which natractl lists the words. */
static void list_words(const struct policy_field *field,
		       struct mistake *mistake)
{
	const char *word = field->words, *end;
	size_t len = (size_t)snprintf(mistake->text, sizeof(mistake->text),
				      "is not ");

	for (; (end = strchr(word, '|')); word = end + 1)
		len += (size_t)snprintf(mistake->text + len,
					sizeof(mistake->text) - len, "%.*s%s",
					(int)(end - word), word,
					strchr(end + 1, '|') ? ", " : " or ");
	(void)snprintf(mistake->text + len, sizeof(mistake->text) - len, "%s",
		       word);
}

struct mistake field_mistake(const struct policy_field *field)
{
	static const char *const quantities[] = {
		[POLICY_RATE] = "is not a rate such as 10M",
		[POLICY_BURST] = "is not a number of bits such as 8M",
		[POLICY_SIZE] = "is not a size such as 125000 or 125k",
		[POLICY_TIME] = "is not a time such as 50ms",
		[POLICY_PERCENT] = "is not a percentage from 1 to 100",
		[POLICY_COUNT] = "is not a number from 1 to 10^9, such as 10k",
		[POLICY_NUMBER] = "is not a number from 1 to 64",
	};
	struct mistake mistake;

	if (field->unit < sizeof(quantities) / sizeof(quantities[0]))
		(void)snprintf(mistake.text, sizeof(mistake.text), "%s",
			       quantities[field->unit]);
	else
		list_words(field, &mistake);
	return mistake;
}

int field_read_rate(const cJSON *value, uint64_t *ret_bits_per_sec)
{
	uint64_t rate = 0;
	int r = cJSON_IsNumber(value)
			? json_u64(value, &rate)
			: natra_parse_rate(json_text(value), &rate);

	if (r < 0 || rate > NATRA_RATE_MAX_BITS_PER_SEC)
		return -EINVAL;
	*ret_bits_per_sec = rate;
	return 0;
}

struct mistake field_read(const struct policy_field *field, const cJSON *value,
			  struct natra_policy *policy)
{
	if (read_value(field, value, policy))
		return (struct mistake){""};
	return field_mistake(field);
}
