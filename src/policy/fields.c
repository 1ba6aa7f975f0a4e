/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MEMBER(member)                                                         \
	.name = #member, .offset = offsetof(struct natra_policy, member),      \
	.size = sizeof(((struct natra_policy *)0)->member)
#define OF(member) .of = offsetof(struct natra_policy, member)

#define KUBERNETES "kubernetes.io/"
#define CALICO     "qos.projectcalico.org/"

const struct policy_field policy_fields[POLICY_FIELDS_LEN] = {
	{
		MEMBER(ingress_rate_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 0,
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.surfaces = POLICY_ON_KEY,
		.annotation = KUBERNETES "ingress-bandwidth",
		.alias = CALICO "ingressBandwidth",
		.help = "limit into the pod",
		.otherwise = "unlimited",
		.title = "ingress",
	},
	{
		MEMBER(egress_rate_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 8,
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.surfaces = POLICY_ON_KEY,
		.annotation = KUBERNETES "egress-bandwidth",
		.alias = CALICO "egressBandwidth",
		.help = "limit out of the pod",
		.otherwise = "unlimited",
		.title = "egress",
	},
	{
		MEMBER(ingress_burst_bits),
		.unit = POLICY_BURST,
		.pinned = 16,
		OF(ingress_rate_bits_per_sec),
		.max = UINT64_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "what heavy flows may send at once after a pause",
		.otherwise =
			"0.5 s of the rate; paced, the pace limit's if less",
		.title = "burst",
	},
	{
		MEMBER(egress_burst_bits),
		.unit = POLICY_BURST,
		.pinned = 24,
		OF(egress_rate_bits_per_sec),
		.max = UINT64_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "what heavy flows may send at once after a pause",
		.otherwise = "0.5 s of the rate",
		.title = "burst",
	},
	{
		MEMBER(heavy_hitter_threshold_bytes),
		.unit = POLICY_SIZE,
		.pinned = 32,
		.max = UINT64_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "a flow with more in one or two seconds is heavy",
		.otherwise = "0.1 s of the rate",
		.title = "heavy from",
	},
	{
		MEMBER(horizon_ns),
		.unit = POLICY_TIME,
		.pinned = 40,
		.max = POLICY_DELAY_MAX_NS,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "longest delay of egress pacing",
		.otherwise = "4 MB of the rate, 100ms to 2s; 2s in a group",
		.title = "horizon",
	},
	{
		MEMBER(fast_pass),
		.unit = POLICY_FAST_PASS,
		.pinned = 60,
		.max = NATRA_FAST_PASS_MAX - 1,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.words = "free|strict|off",
		.help = "whether small flows pass at once",
		.otherwise = "free",
		.title = "fast pass",
	},
	{
		MEMBER(fast_pass_share_percent),
		.unit = POLICY_PERCENT,
		.pinned = 56,
		OF(fast_pass),
		.of_value = NATRA_FAST_PASS_STRICT,
		.max = 1000,
		.standard = 80,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "their share of the rate if strict",
		.otherwise = "80",
		.title = "",
		.suffix = " % of the rate",
	},
	{
		MEMBER(ingress_packet_rate_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 96,
		OF(ingress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.alias = CALICO "ingressPacketRate",
		.help = "most packets in a second into the pod",
		.otherwise = "unlimited",
		.title = "packets/s",
	},
	{
		MEMBER(egress_packet_rate_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 112,
		OF(egress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.alias = CALICO "egressPacketRate",
		.help = "most packets in a second out of the pod",
		.otherwise = "unlimited",
		.title = "packets/s",
	},
	{
		MEMBER(ingress_connection_rate_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 128,
		OF(ingress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "most new TCP connections in a second into the pod",
		.otherwise = "unlimited",
		.title = "connections/s",
	},
	{
		MEMBER(egress_connection_rate_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 144,
		OF(egress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "most new TCP connections in a second out of the pod",
		.otherwise = "unlimited",
		.title = "connections/s",
	},
	{
		MEMBER(group),
		.unit = POLICY_GROUP,
		.max = 1,
		.help = "share this group's rate, too",
		.otherwise = "none",
		.title = "group",
	},
	{
		MEMBER(group_weight),
		.unit = POLICY_NUMBER,
		.pinned = 196,
		OF(group),
		.max = NATRA_WEIGHT_MAX,
		.standard = 1,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "its part of the group beside others",
		.otherwise = "1",
		.title = "weight",
	},
	{
		MEMBER(group_floor_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 200,
		OF(group),
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "what the group never takes from it",
		.otherwise = "none",
		.title = "floor",
	},
	{
		MEMBER(attach_mode),
		.unit = POLICY_MODE,
		.pinned = 68,
		.max = NATRA_ATTACH_MODE_MAX - 1,
		.is_fixed = true,
		.surfaces = POLICY_ON_KEY,
		.words = "auto|tcx-podside|clsact-podside|tcx-hostside|"
			 "clsact-hostside",
		.help = "where the programs sit",
		.otherwise = "auto",
	},
	{
		MEMBER(edt_pacing),
		.unit = POLICY_EDT,
		.pinned = 72,
		.max = NATRA_EDT_PACING_MAX - 1,
		.is_fixed = true,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.words = "auto|on|off",
		.help = "pace egress by departure times and fq",
		.otherwise = "auto",
	},
	{
		MEMBER(ingress_mode),
		.unit = POLICY_INGRESS_MODE,
		.pinned = 64,
		.max = NATRA_INGRESS_MODE_MAX - 1,
		.is_fixed = true,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.words = "police|pace",
		.help = "mark and drop, or hold in fq",
		.otherwise = "police",
		.title = "ingress mode",
	},
	{
		MEMBER(pace_limit_ns),
		.unit = POLICY_TIME,
		.pinned = 48,
		.max = POLICY_DELAY_MAX_NS,
		.standard = 50000000,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.help = "longest delay of ingress and of what is forwarded",
		.otherwise = "50ms",
		.title = "pace limit",
	},
	{
		MEMBER(sli),
		.unit = POLICY_SLI,
		.pinned = 88,
		.max = NATRA_SLI_MAX - 1,
		.is_fixed = true,
		.surfaces = POLICY_ON_KEY | POLICY_ON_ANNOTATION,
		.words = "off|on",
		.help = "measure how long connections take to be accepted",
		.otherwise = "off",
		.title = "sli",
	},
};

uint64_t policy_field_get(const struct policy_field *field,
			  const struct natra_policy *policy)
{
	const char *member = (const char *)policy + field->offset;
	uint64_t number;
	uint32_t small;

	if (field->unit == POLICY_GROUP)
		return policy->group[0] != '\0';
	if (field->size == sizeof(number)) {
		memcpy(&number, member, sizeof(number));
		return number;
	}
	memcpy(&small, member, sizeof(small));
	return small;
}

void policy_field_set(const struct policy_field *field,
		      struct natra_policy *policy, uint64_t number)
{
	char *member = (char *)policy + field->offset;
	uint32_t small = (uint32_t)number;

	if (field->unit == POLICY_GROUP) {
		if (number)
			return; /* it has its name */
		memset(member, 0, field->size);
		policy->group_is_automatic = false;
		policy->automatic_group = NULL;
	} else if (field->size == sizeof(number))
		memcpy(member, &number, sizeof(number));
	else
		memcpy(member, &small, sizeof(small));
}

void policy_take_group(struct natra_policy *policy,
		       const struct natra_policy *from)
{
	memcpy(policy->group, from->group, sizeof(policy->group));
	policy->group_is_automatic = from->group_is_automatic;
	policy->automatic_group = from->automatic_group;
	policy->group_weight = from->group_weight;
	policy->group_floor_bits_per_sec = from->group_floor_bits_per_sec;
}

static void lower(uint64_t *rate, uint64_t of_group)
{
	if (of_group && (!*rate || *rate > of_group))
		*rate = of_group;
}

void policy_lower_to_group(struct natra_policy *policy,
			   const struct natra_group_info *group)
{
	lower(&policy->ingress_rate_bits_per_sec,
	      group->ingress_rate_bits_per_sec);
	lower(&policy->egress_rate_bits_per_sec,
	      group->egress_rate_bits_per_sec);
}

void policy_leave_group(struct natra_policy *policy,
			const struct natra_group_info *group)
{
	static const struct natra_policy none = {0};

	if (group)
		policy_lower_to_group(policy, group);
	policy_take_group(policy, &none);
	policy_fields_drop_alone(policy);
}

bool policy_same_group(const struct natra_policy *a,
		       const struct natra_policy *b)
{
	return strcmp(a->group, b->group) == 0 &&
	       (!a->group[0] || a->group_is_automatic == b->group_is_automatic);
}

const struct policy_field *
policy_fields_difference(const struct natra_policy *a,
			 const struct natra_policy *b, bool only_fixed)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if ((field->is_fixed || !only_fixed) &&
		    (policy_field_get(field, a) != policy_field_get(field, b) ||
		     (field->unit == POLICY_GROUP && !policy_same_group(a, b))))
			return field;
	}
	return NULL;
}

bool policy_same(const struct natra_policy *a, const struct natra_policy *b)
{
	return !policy_fields_difference(a, b, false) &&
	       a->automatic_group == b->automatic_group &&
	       a->shaped_subnets == b->shaped_subnets &&
	       a->shaped_subnets_len == b->shaped_subnets_len &&
	       a->unshaped_subnets == b->unshaped_subnets &&
	       a->unshaped_subnets_len == b->unshaped_subnets_len &&
	       a->classes == b->classes && a->classes_len == b->classes_len;
}

bool policy_field_is_direction(const struct policy_field *field)
{
	return field->unit == POLICY_RATE && !field->of;
}

bool policy_field_is_bandwidth(const struct policy_field *field)
{
	return policy_field_is_direction(field) || field->unit == POLICY_BURST;
}

bool policy_field_counts(const struct policy_field *field,
			 const struct natra_policy *policy)
{
	if (policy->group[0] && policy_field_is_count(field))
		return true;
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *of = &policy_fields[i];
		uint64_t value = policy_field_get(of, policy);

		if (field->of == of->offset)
			return field->of_value ? value == field->of_value
					       : value != 0;
	}
	return true;
}

bool policy_field_is_of_group(const struct policy_field *field)
{
	return field->of == offsetof(struct natra_policy, group);
}

bool policy_field_is_count(const struct policy_field *field)
{
	return field->unit == POLICY_COUNT &&
	       (field->of == offsetof(struct natra_policy,
				      ingress_rate_bits_per_sec) ||
		field->of == offsetof(struct natra_policy,
				      egress_rate_bits_per_sec));
}

void policy_fields_drop_alone(struct natra_policy *policy)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if ((policy_field_is_count(field) ||
		     field->unit == POLICY_BURST ||
		     policy_field_is_of_group(field)) &&
		    !policy_field_counts(field, policy))
			policy_field_set(field, policy, 0);
	}
}

bool policy_has_rates(const struct natra_policy *policy)
{
	for (size_t i = 0; i < policy->classes_len; i++) {
		if (policy->classes[i].ingress_rate_bits_per_sec ||
		    policy->classes[i].egress_rate_bits_per_sec)
			return true;
	}
	return policy->ingress_rate_bits_per_sec ||
	       policy->egress_rate_bits_per_sec;
}

bool policy_has_limits(const struct natra_policy *policy)
{
	return policy->group[0] || policy_has_rates(policy);
}

const char *policy_field_word(const struct policy_field *field, uint64_t value)
{
	if (value > field->max)
		return NULL;
	switch (field->unit) {
	case POLICY_FAST_PASS:
		return natra_fast_pass_name((enum natra_fast_pass)value);
	case POLICY_MODE:
		return natra_attach_mode_name((enum natra_attach_mode)value);
	case POLICY_EDT:
		return natra_edt_pacing_name((enum natra_edt_pacing)value);
	case POLICY_INGRESS_MODE:
		return natra_ingress_mode_name((enum natra_ingress_mode)value);
	case POLICY_SLI:
		return natra_sli_name((enum natra_sli)value);
	default:
		return NULL;
	}
}

/* Writes "is not auto, on or off", in the order in which natractl lists the words. */
static void list_words(const struct policy_field *field,
		       struct policy_mistake *mistake)
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

struct policy_mistake policy_field_mistake(const struct policy_field *field)
{
	static const char *const quantities[] = {
		[POLICY_RATE] = "is not a rate such as 10M",
		[POLICY_BURST] = "is not a number of bits such as 8M",
		[POLICY_SIZE] = "is not a size such as 125000 or 125k",
		[POLICY_TIME] = "is not a time from 1ns to 9s, such as 50ms",
		[POLICY_PERCENT] = "is not a percentage from 1 to 1000",
		[POLICY_COUNT] = "is not a number from 1 to 10^9, such as 10k",
		[POLICY_NUMBER] = "is not a number from 1 to 64",
	};
	struct policy_mistake mistake;

	if (field->unit < sizeof(quantities) / sizeof(quantities[0]))
		(void)snprintf(mistake.text, sizeof(mistake.text), "%s",
			       quantities[field->unit]);
	else
		list_words(field, &mistake);
	return mistake;
}

int policy_field_parse_word(const struct policy_field *field, const char *text,
			    uint64_t *ret_value)
{
	const char *word;

	for (uint64_t value = 0; (word = policy_field_word(field, value));
	     value++) {
		if (!text || strcmp(word, text) != 0)
			continue;
		*ret_value = value;
		return 0;
	}
	return -EINVAL;
}

/* Reads a decimal number from 1 on. */
static int parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!text || !*text || text[strspn(text, "0123456789")])
		return -EINVAL;
	for (; *text && number <= max; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	if (number < 1 || number > max)
		return -ERANGE;
	*ret_number = number;
	return 0;
}

int policy_field_parse(const struct policy_field *field,
		       struct natra_policy *policy, const char *text)
{
	uint64_t value = 0;
	int r;

	switch (field->unit) {
	case POLICY_RATE:
		r = natra_parse_rate(text, &value);
		break;
	case POLICY_BURST:
	case POLICY_SIZE:
	case POLICY_COUNT:
		r = natra_parse_size(text, &value);
		break;
	case POLICY_TIME:
		r = natra_parse_time(text, &value);
		break;
	case POLICY_PERCENT:
	case POLICY_NUMBER:
		r = parse_number(text, field->max, &value);
		break;
	default:
		r = policy_field_parse_word(field, text, &value);
	}
	if (r == 0 && value > field->max)
		r = -ERANGE;
	if (r == 0)
		policy_field_set(field, policy, value);
	return r;
}
