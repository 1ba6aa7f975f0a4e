/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One row for each number and word of struct natra_policy. By these rows the
 * library checks ranges and fills in defaults, the plugin reads keys and
 * annotations, the installer knows the keys, natractl has its options, its text and
 * its JSON, and the record is pinned. `ninja settings` makes the schema of the chart, the
 * completion and the tables of the manuals of them. A new limit is a member of struct natra_policy, a row in
 * fields.c, and what policy_limits() makes of it for the data path.
 */
#ifndef NATRA_POLICY_FIELDS_H
#define NATRA_POLICY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <natra/natra.h>

enum policy_unit {
	POLICY_RATE,  /* bit/s */
	POLICY_BURST, /* bits */
	POLICY_SIZE,  /* bytes */
	POLICY_TIME,  /* ns */
	POLICY_PERCENT,
	POLICY_COUNT, /* a number such as 10k */
	POLICY_NUMBER,
	POLICY_GROUP, /* the name of a group, whose number is 1, or 0 for none */
	/* Words, each kind from the enum of its name. */
	POLICY_FAST_PASS,
	POLICY_MODE,
	POLICY_EDT,
	POLICY_INGRESS_MODE,
	POLICY_SLI,
};

struct policy_field {
	const char *name; /* the member's; see policy_field_setting */
	size_t offset, size;
	/* The field without which this one means nothing: its offset, 0 if there
	 * is none, and the value that it needs; 0 stands for any value but 0. */
	size_t of;
	uint64_t of_value;
	uint64_t max;
	/* The value that a 0 stands for; 0 if the rest of the policy decides that. */
	uint64_t standard;
	/* Its offset in the bytes of the record that are the policy's. This
	 * never changes; a new field comes behind all others. */
	size_t pinned;
	enum policy_unit unit;
	bool is_fixed;         /* natra_configure cannot change it */
	unsigned int surfaces; /* bits of enum policy_surface */
	const char *words; /* "off|on", as they are listed; NULL: a number */
	/* One line of help, and what holds if the setting is not given. */
	const char *help, *otherwise;
	/* The texts that natractl shows before the value and behind it. */
	const char *title, *suffix;
	/* An annotation that Kubernetes has for it, which each pod may have, in
	 * place of natra's own; and one of others, which stands for natra's as
	 * well. NULL: none. */
	const char *annotation, *alias;
};

/* natractl has an option for each row. */
enum policy_surface {
	POLICY_ON_KEY = 1,        /* of the plugin's configuration */
	POLICY_ON_ANNOTATION = 2, /* natra.io/..., if it is allowed */
};

/* fq itself drops what would have to wait longer than its horizon of 10 s. */
#define POLICY_DELAY_MAX_NS 9000000000
#define POLICY_COUNT_MAX    1000000000
/* A DSCP has six bits (RFC 2474). */
#define POLICY_DSCP_MAX     63

#define POLICY_FIELDS_LEN 20
extern const struct policy_field policy_fields[POLICY_FIELDS_LEN];

/* The bytes of the record for all rows, see pinned, and for rows to come, which are
 * 0 until then. */
#define POLICY_PINNED_SIZE 256

uint64_t policy_field_get(const struct policy_field *field,
			  const struct natra_policy *policy);

void policy_field_set(const struct policy_field *field,
		      struct natra_policy *policy, uint64_t number);

/* Gives a policy the group of another one, with what that is in it; or takes it out of its
 * group. */
void policy_take_group(struct natra_policy *policy,
		       const struct natra_policy *from);

/* Lowers the rates of a policy to those of the group. */
void policy_lower_to_group(struct natra_policy *policy,
			   const struct natra_group_info *group);

/* Takes a policy out of its group, with the rates of `group` as its own ones; NULL: with none. */
void policy_leave_group(struct natra_policy *policy,
			const struct natra_group_info *group);

/* Returns whether both policies are in one group, or in none. */
bool policy_same_group(const struct natra_policy *a,
		       const struct natra_policy *b);

/* Returns a field that differs, of all or of those that are fixed while attached, or NULL. */
const struct policy_field *
policy_fields_difference(const struct natra_policy *a,
			 const struct natra_policy *b, bool only_fixed);

/* Returns whether both policies ask for the same, by the same lists. */
bool policy_same(const struct natra_policy *a, const struct natra_policy *b);

/* Returns whether the field is the rate of a direction, without which that is not
 * limited. */
bool policy_field_is_direction(const struct policy_field *field);

/* Returns whether the field is a rate or a burst of bytes, which runtimes send. */
bool policy_field_is_bandwidth(const struct policy_field *field);

/* Returns whether the field means anything beside the others. */
bool policy_field_counts(const struct policy_field *field,
			 const struct natra_policy *policy);

/* Returns whether the field is what an attachment is in its group. */
bool policy_field_is_of_group(const struct policy_field *field);

/* Returns whether the field is a limit of packets or connections, which needs a direction
 * that has a rate, or that a group limits. */
bool policy_field_is_count(const struct policy_field *field);

/* Returns whether a policy with this value in its place limits a pod more than it does now. No
 * mode and no delay does. */
bool policy_field_is_lower(const struct policy_field *field,
			   const struct natra_policy *has, uint64_t wanted);

/* Gives each field of a policy by which a pod could get more than by `ceilings` the value that it
 * has there, and calls lowered() with the one before. What `ceilings` does not limit stays. */
void policy_lower_to(struct natra_policy *policy,
		     const struct natra_policy *ceilings,
		     void (*lowered)(void *arg,
				     const struct policy_field *field,
				     uint64_t asked),
		     void *arg);
/* Lowers the rates of a policy to what its classes leave of the rates of `ceilings`, and its bursts
 * so that all classes and the rest have one of `ceilings` together. If they leave nothing, or one
 * of them has no rate, the policy loses its classes, and false is returned. */
bool policy_lower_to_classes(struct natra_policy *policy,
			     const struct natra_policy *ceilings);

/* Removes the limits of packets and connections of a direction that nothing limits, the burst
 * of one without a rate, and what the policy is in a group if it is in none. */
void policy_fields_drop_alone(struct natra_policy *policy);

/* Returns the word for a value; NULL if the field has none for it, as a number
 * has none at all. */
const char *policy_field_word(const struct policy_field *field, uint64_t value);

/* Return whether a policy has rates, for the rest or for a class; and whether it limits
 * anything, be it by a group alone. */
bool policy_has_rates(const struct natra_policy *policy);
bool policy_has_limits(const struct natra_policy *policy);

/* The annotation by which a pod asks for classes, which are no field. */
#define POLICY_CLASSES_ANNOTATION "natra.io/classes"
/* Calico's annotations of bursts may be allowed, and are ignored: natra's bursts of packets
 * are fixed. */
#define POLICY_IGNORED_ANNOTATION "qos.projectcalico.org/ingressPacketBurst"
#define POLICY_IGNORED_TOO        "qos.projectcalico.org/egressPacketBurst"

/* Returns the name by which a pod asks for a field: natra's own, or Kubernetes'. NULL: it
 * cannot. */
const char *policy_field_asked(const struct policy_field *field);

/* Returns the first name of an annotation, for any name of it, or natra's without
 * "natra.io/". NULL: natra knows none. Two names mean the same if the result is the same
 * pointer. */
const char *policy_annotation(const char *name);

/* The text says what is wrong with a value, such as "is not auto, on or off", and is "" if
 * nothing is. It is returned by value, so that the caller needs no buffer. */
struct policy_mistake {
	char text[128];
};

/* Returns what is wrong with any value that the field cannot have. */
struct policy_mistake policy_field_mistake(const struct policy_field *field);

/* Reads a word. Returns 0, or -EINVAL, also if `text` is NULL. */
int policy_field_parse_word(const struct policy_field *field, const char *text,
			    uint64_t *ret_value);

/* Reads a quantity with its unit, or a word. Returns 0; -EINVAL, also if `text` is NULL;
 * or -ERANGE if the field cannot have so much or so little. */
int policy_field_parse(const struct policy_field *field,
		       struct natra_policy *policy, const char *text);

/*
 * The names of a setting, by spelling.c. They follow
 * from the member's: ingress_packet_rate_per_sec, without its unit, is ingress-packet-rate,
 * so there are the option --ingress-packet-rate, the key ingressPacketRate and the
 * annotation natra.io/ingress-packet-rate. natractl's JSON has the member's name. All texts
 * are static.
 */
const char *policy_field_setting(const struct policy_field *field);
const char *policy_field_option(const struct policy_field *field);
/* NULL: the configuration has no such key. */
const char *policy_field_key(const struct policy_field *field);
/* NULL: there is none of natra's own. */
const char *policy_field_annotation(const struct policy_field *field);
/* Returns what stands for the value in the help, such as "RATE" or "off|on". */
const char *policy_field_form(const struct policy_field *field);

#endif
