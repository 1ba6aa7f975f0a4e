/* SPDX-License-Identifier: BSD-2-Clause */
/* A field of the policy as JSON: in a key of the configuration, or in a pod's
 * annotation. */
#ifndef NATRA_CNI_FIELD_H
#define NATRA_CNI_FIELD_H

#include <stdbool.h>

#include "../src/policy/fields.h"
#include "../tools/common/json.h"

/* The text says what is wrong with a value, such as "is not auto, on or
 * off", and is "" if nothing is. It is returned by value, so that the caller
 * needs no buffer. */
struct mistake {
	char text[128];
};

/* Puts a value into the policy, if it is one that the field can have. The library
 * checks the range of a time. */
struct mistake field_read(const struct policy_field *field, const cJSON *value,
			  struct natra_policy *policy);
/* Returns what is wrong with any value that the field cannot have. */
struct mistake field_mistake(const struct policy_field *field);

/* Reads a number of bit/s, or a quantity such as "10M". Returns -EINVAL. */
int field_read_rate(const cJSON *value, uint64_t *ret_bits_per_sec);

/* The annotation by which a pod asks for classes, see classes.h, is that of no field; and
 * its bit in allowed_annotations. */
#define CLASSES_ANNOTATION "natra.io/classes"
#define FIELD_CLASSES_BIT  (1U << 31)

/* Calico's annotations of bursts may be allowed, and are ignored: natra's bursts of
 * packets are fixed. */
#define FIELD_IGNORED_BIT (1U << 30)
bool field_is_ignored(const char *annotation);

/* Returns the bit in allowed_annotations for an entry of allowAnnotations, with
 * or without "natra.io/"; 0 if it is unknown or NULL. */
unsigned int field_annotation_bit(const char *name);

#endif
