/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include <stdio.h>

static void print_and_free(cJSON *json, char *text)
{
	puts(text);
	cJSON_free(text);
	cJSON_Delete(json);
}

void json_print(cJSON *json)
{
	print_and_free(json, cJSON_Print(json));
}

void json_print_line(cJSON *json)
{
	print_and_free(json, cJSON_PrintUnformatted(json));
}
