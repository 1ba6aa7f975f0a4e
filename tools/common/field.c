/* SPDX-License-Identifier: BSD-2-Clause */
#include "field.h"

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

struct policy_mistake field_read(const struct policy_field *field,
				 const cJSON *value,
				 struct natra_policy *policy)
{
	if (read_value(field, value, policy))
		return (struct policy_mistake){""};
	return policy_field_mistake(field);
}
