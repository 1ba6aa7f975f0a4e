/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/fields.h"

#include <errno.h>
#include <string.h>

#define POLICY_FIELD(member)                                                   \
	.name = #member, .offset = offsetof(struct natra_policy, member),      \
	.size = sizeof(((struct natra_policy *)0)->member)

/* natractl applies its options in this order, so a row comes behind those that
 * it needs. */
const struct policy_field policy_fields[POLICY_FIELDS_LEN] = {
	{
		POLICY_FIELD(ingress_rate_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 0,
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.option = "--ingress",
		.form = "RATE",
		.help = "limit into the pod, bit/s: 10M, 1.5G, unlimited",
		.title = "ingress",
	},
	{
		POLICY_FIELD(egress_rate_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 8,
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.option = "--egress",
		.form = "RATE",
		.help = "limit out of the pod",
		.title = "egress",
	},
	{
		POLICY_FIELD(ingress_burst_bytes),
		.unit = POLICY_BURST,
		.pinned = 16,
		.of = offsetof(struct natra_policy, ingress_rate_bits_per_sec),
		.max = UINT64_MAX,
		.option = "--ingress-burst",
		.form = "SIZE",
		.help = "bytes (0.5 s of the rate)",
		.title = "burst",
		.annotation = "natra.io/ingress-burst",
	},
	{
		POLICY_FIELD(egress_burst_bytes),
		.unit = POLICY_BURST,
		.pinned = 24,
		.of = offsetof(struct natra_policy, egress_rate_bits_per_sec),
		.max = UINT64_MAX,
		.option = "--egress-burst",
		.form = "SIZE",
		.help = "bytes (0.5 s of the rate)",
		.title = "burst",
		.annotation = "natra.io/egress-burst",
	},
	{
		POLICY_FIELD(heavy_hitter_threshold_bytes),
		.unit = POLICY_SIZE,
		.pinned = 32,
		.max = UINT64_MAX,
		.option = "--heavy-hitter-threshold",
		.form = "SIZE",
		.help = "bytes from which a flow is heavy (0.1 s of the rate)",
		.title = "heavy from",
		.standard_text = "0.1 s of the rate",
		.key = "heavyHitterThreshold",
		.annotation = "natra.io/heavy-hitter-threshold",
	},
	{
		POLICY_FIELD(horizon_ns),
		.unit = POLICY_TIME,
		.pinned = 40,
		.max = POLICY_DELAY_MAX_NS,
		.option = "--horizon",
		.form = "TIME",
		.help = "longest delay of egress pacing (of 4 MB, 100ms to 2s)",
		.title = "horizon",
		.key = "horizon",
		.annotation = "natra.io/horizon",
	},
	{
		POLICY_FIELD(fast_pass),
		.unit = POLICY_FAST_PASS,
		.pinned = 60,
		.max = NATRA_FAST_PASS_MAX - 1,
		.option = "--fast-pass",
		.form = "free|guarded|charged|off",
		.help = "small flows pass at once (free)",
		.title = "fast pass",
		.key = "fastPass",
		.annotation = "natra.io/fast-pass",
	},
	{
		POLICY_FIELD(fast_pass_share_percent),
		.unit = POLICY_PERCENT,
		.pinned = 56,
		.of = offsetof(struct natra_policy, fast_pass),
		.of_value = NATRA_FAST_PASS_CHARGED,
		.max = 100,
		.standard = 80,
		.option = "--fast-pass-share",
		.form = "PERCENT",
		.help = "their share of the rate if charged (80)",
		.title = "",
		.suffix = " % of the rate",
		.key = "fastPassShare",
	},
	{
		POLICY_FIELD(fast_pass_guard_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 80,
		.of = offsetof(struct natra_policy, fast_pass),
		.of_value = NATRA_FAST_PASS_GUARDED,
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.option = "--fast-pass-guard",
		.form = "RATE",
		.help = "their ceiling if guarded (the rate)",
		.title = "up to",
		.standard_text = "the rate",
		.key = "fastPassGuard",
		.annotation = "natra.io/fast-pass-guard",
	},
	{
		POLICY_FIELD(ingress_packets_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 96,
		.of = offsetof(struct natra_policy, ingress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.option = "--ingress-packets",
		.form = "N",
		.help = "most packets in a second into the pod",
		.title = "packets/s",
		.key = "ingressPacketRate",
		.annotation = "natra.io/ingress-packet-rate",
		.alias = "qos.projectcalico.org/ingressPacketRate",
	},
	{
		POLICY_FIELD(egress_packets_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 112,
		.of = offsetof(struct natra_policy, egress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.option = "--egress-packets",
		.form = "N",
		.help = "most packets in a second out of the pod",
		.title = "packets/s",
		.key = "egressPacketRate",
		.annotation = "natra.io/egress-packet-rate",
		.alias = "qos.projectcalico.org/egressPacketRate",
	},
	{
		POLICY_FIELD(ingress_connections_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 128,
		.of = offsetof(struct natra_policy, ingress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.option = "--ingress-connections",
		.form = "N",
		.help = "most new TCP connections in a second into the pod",
		.title = "connections/s",
		.key = "ingressConnectionRate",
		.annotation = "natra.io/ingress-connection-rate",
	},
	{
		POLICY_FIELD(egress_connections_per_sec),
		.unit = POLICY_COUNT,
		.pinned = 144,
		.of = offsetof(struct natra_policy, egress_rate_bits_per_sec),
		.max = POLICY_COUNT_MAX,
		.option = "--egress-connections",
		.form = "N",
		.help = "most new TCP connections in a second out of the pod",
		.title = "connections/s",
		.key = "egressConnectionRate",
		.annotation = "natra.io/egress-connection-rate",
	},
	{
		POLICY_FIELD(group),
		.unit = POLICY_GROUP,
		.pinned = 192,
		.max = NATRA_GROUPS_MAX,
		.option = "--group",
		.form = "NAME",
		.help = "share this group's rate, too; none",
		.title = "group",
	},
	{
		POLICY_FIELD(group_weight),
		.unit = POLICY_NUMBER,
		.pinned = 196,
		.of = offsetof(struct natra_policy, group),
		.max = NATRA_WEIGHT_MAX,
		.standard = 1,
		.option = "--weight",
		.form = "N",
		.help = "its part of the group beside others, up to 64 (1)",
		.title = "weight",
		.key = "groupWeight",
		.annotation = "natra.io/group-weight",
	},
	{
		POLICY_FIELD(group_floor_bits_per_sec),
		.unit = POLICY_RATE,
		.pinned = 200,
		.of = offsetof(struct natra_policy, group),
		.max = NATRA_RATE_MAX_BITS_PER_SEC,
		.option = "--floor",
		.form = "RATE",
		.help = "what the group never takes from it (0)",
		.title = "floor",
		.standard_text = "none",
		.key = "groupFloor",
		.annotation = "natra.io/group-floor",
	},
	{
		POLICY_FIELD(mode),
		.unit = POLICY_MODE,
		.pinned = 68,
		.max = NATRA_MODE_MAX - 1,
		.is_fixed = true,
		.option = "--mode",
		.form = "auto|tcx-podside|clsact-podside|tcx-hostside|"
			"clsact-hostside",
		.help = "where the programs sit (auto)",
		.key = "attachMode",
	},
	{
		POLICY_FIELD(edt),
		.unit = POLICY_EDT,
		.pinned = 72,
		.max = NATRA_EDT_MAX - 1,
		.is_fixed = true,
		.option = "--edt",
		.form = "auto|on|off",
		.help = "pace egress by departure times and fq (auto)",
		.key = "edtPacing",
		.annotation = "natra.io/edt-pacing",
	},
	{
		POLICY_FIELD(ingress_mode),
		.unit = POLICY_INGRESS_MODE,
		.pinned = 64,
		.max = NATRA_INGRESS_MODE_MAX - 1,
		.is_fixed = true,
		.option = "--ingress-mode",
		.form = "police|pace",
		.help = "mark and drop, or hold in fq (police)",
		.title = "ingress mode",
		.key = "ingressMode",
		.annotation = "natra.io/ingress-mode",
	},
	{
		POLICY_FIELD(pace_limit_ns),
		.unit = POLICY_TIME,
		.pinned = 48,
		.max = POLICY_DELAY_MAX_NS,
		.standard = 50000000,
		.option = "--pace-limit",
		.form = "TIME",
		.help = "longest delay of ingress and of what is forwarded (50ms)",
		.title = "pace limit",
		.key = "paceLimit",
		.annotation = "natra.io/pace-limit",
	},
	{
		POLICY_FIELD(sli),
		.unit = POLICY_SLI,
		.pinned = 88,
		.max = NATRA_SLI_MAX - 1,
		.is_fixed = true,
		.option = "--sli",
		.form = "off|on",
		.help = "measure how long connections take to be accepted (off)",
		.title = "sli",
		.key = "sli",
		.annotation = "natra.io/sli",
	},
};

uint64_t policy_field_get(const struct policy_field *field,
			  const struct natra_policy *policy)
{
	const char *member = (const char *)policy + field->offset;
	uint64_t number;
	uint32_t small;

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

	if (field->size == sizeof(number))
		memcpy(member, &number, sizeof(number));
	else
		memcpy(member, &small, sizeof(small));
}

uint64_t policy_field_rate(const struct policy_field *burst,
			   const struct natra_policy *policy)
{
	uint64_t rate;

	memcpy(&rate, (const char *)policy + burst->of, sizeof(rate));
	return rate;
}

bool policy_field_is_direction(const struct policy_field *field)
{
	return field->unit == POLICY_RATE && !field->of;
}

bool policy_field_counts(const struct policy_field *field,
			 const struct natra_policy *policy)
{
	if (policy->group && policy_field_is_count(field))
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
		     policy_field_is_of_group(field)) &&
		    !policy_field_counts(field, policy))
			policy_field_set(field, policy, 0);
	}
}

const char *policy_field_word(const struct policy_field *field, uint64_t value)
{
	if (value > field->max)
		return NULL;
	switch (field->unit) {
	case POLICY_FAST_PASS:
		return natra_fast_pass_name((enum natra_fast_pass)value);
	case POLICY_MODE:
		return natra_mode_name((enum natra_mode)value);
	case POLICY_EDT:
		return natra_edt_name((enum natra_edt)value);
	case POLICY_INGRESS_MODE:
		return natra_ingress_mode_name((enum natra_ingress_mode)value);
	case POLICY_SLI:
		return natra_sli_name((enum natra_sli)value);
	default:
		return NULL;
	}
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
	case POLICY_NUMBER:
		r = natra_parse_size(text, &value);
		/* The member may be too small for it. */
		if (r == 0 && value > field->max)
			r = -ERANGE;
		break;
	default:
		r = policy_field_parse_word(field, text, &value);
	}
	if (r == 0)
		policy_field_set(field, policy, value);
	return r;
}
