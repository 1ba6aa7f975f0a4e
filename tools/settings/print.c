/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the table of settings as JSON, of which `write` makes pages. */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "../../src/policy/fields.h"

static const char *unit_name(enum policy_unit unit)
{
	static const char *const names[] = {
		[POLICY_RATE] = "rate",       [POLICY_BURST] = "bits",
		[POLICY_SIZE] = "bytes",      [POLICY_TIME] = "time",
		[POLICY_PERCENT] = "percent", [POLICY_COUNT] = "count",
		[POLICY_NUMBER] = "number",   [POLICY_GROUP] = "name",
	};

	return unit < sizeof(names) / sizeof(names[0]) ? names[unit] : "word";
}

static void add_text(cJSON *row, const char *key, const char *text)
{
	if (text)
		cJSON_AddStringToObject(row, key, text);
}

static cJSON *row_of(const struct policy_field *field)
{
	cJSON *row = cJSON_CreateObject();
	char max[32];

	add_text(row, "member", field->name);
	add_text(row, "option", policy_field_option(field));
	add_text(row, "form", policy_field_form(field));
	add_text(row, "key", policy_field_key(field));
	add_text(row, "annotation", policy_field_annotation(field));
	add_text(row, "kubernetes", field->annotation);
	add_text(row, "alias", field->alias);
	add_text(row, "unit", unit_name(field->unit));
	add_text(row, "words", field->words);
	add_text(row, "help", field->help);
	add_text(row, "otherwise", field->otherwise);
	/* A double has not all digits of it. */
	(void)snprintf(max, sizeof(max), "%llu",
		       (unsigned long long)field->max);
	add_text(row, "max", max);
	cJSON_AddBoolToObject(row, "fixed", field->is_fixed);
	cJSON_AddBoolToObject(row, "bandwidth",
			      policy_field_is_bandwidth(field));
	return row;
}

int main(void)
{
	cJSON *rows = cJSON_CreateArray();
	char *text;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++)
		cJSON_AddItemToArray(rows, row_of(&policy_fields[i]));
	text = cJSON_Print(rows);
	if (!text || puts(text) < 0)
		return EXIT_FAILURE;
	cJSON_free(text);
	cJSON_Delete(rows);
	return EXIT_SUCCESS;
}
