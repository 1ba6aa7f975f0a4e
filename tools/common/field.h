/* SPDX-License-Identifier: BSD-2-Clause */
/* A field of the policy as JSON, in a key of the configuration or of the namespaces' file. */
#ifndef NATRA_COMMON_FIELD_H
#define NATRA_COMMON_FIELD_H

#include <stdbool.h>

#include "../../src/policy/fields.h"
#include "json.h"

/* Puts a value into the policy, if it is one that the field can have, or says what
 * is wrong. */
struct policy_mistake field_read(const struct policy_field *field,
				 const cJSON *value,
				 struct natra_policy *policy);

#endif
