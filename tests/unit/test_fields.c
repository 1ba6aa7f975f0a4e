/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdio.h>
#include <string.h>

#include "natra_shared.h"
#include "policy/fields.h"

static void covered_by(bool *covered, size_t offset, size_t size)
{
	memset(covered + offset, true, size);
}

TH_TEST(each_number_and_word_has_a_row)
{
	const size_t begin = offsetof(struct natra_policy, sz) + sizeof(size_t);
	const size_t end = offsetof(struct natra_policy, shaped_subnets);
	bool covered[sizeof(struct natra_policy)] = {false};

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		for (size_t j = 0; j < field->size; j++) {
			if (covered[field->offset + j])
				fail_msg("%s has two rows", field->name);
			covered[field->offset + j] = true;
		}
	}
	/* These say more of the group. */
	covered_by(covered, offsetof(struct natra_policy, group_is_automatic),
		   sizeof(uint32_t));
	covered_by(covered, offsetof(struct natra_policy, automatic_group),
		   sizeof(void *));
	for (size_t j = begin; j < end; j++) {
		if (!covered[j])
			fail_msg("byte %zu of the policy has no row", j);
	}
}

/* Records of other builds are read by these places. */
TH_TEST(each_field_is_pinned_in_its_place)
{
	static const struct {
		const char *name;
		size_t pinned;
	} places[] = {
		{"ingress_rate_bits_per_sec", 0},
		{"egress_rate_bits_per_sec", 8},
		{"ingress_burst_bits", 16},
		{"egress_burst_bits", 24},
		{"heavy_hitter_threshold_bytes", 32},
		{"horizon_ns", 40},
		{"pace_limit_ns", 48},
		{"fast_pass_share_percent", 56},
		{"fast_pass", 60},
		{"ingress_mode", 64},
		{"attach_mode", 68},
		{"edt_pacing", 72},
		{"sli", 88},
		{"ingress_packet_rate_per_sec", 96},
		{"egress_packet_rate_per_sec", 112},
		{"ingress_connection_rate_per_sec", 128},
		{"egress_connection_rate_per_sec", 144},
		{"group_weight", 196},
		{"group_floor_bits_per_sec", 200},
	};
	bool taken[POLICY_PINNED_SIZE] = {false};

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->unit == POLICY_GROUP)
			continue; /* it has a place of its own */
		assert_in_range(field->pinned, 0,
				POLICY_PINNED_SIZE - field->size);
		for (size_t j = 0; j < field->size; j++) {
			assert_false(taken[field->pinned + j]);
			taken[field->pinned + j] = true;
		}
		for (size_t j = 0; j < sizeof(places) / sizeof(places[0]);
		     j++) {
			if (strcmp(places[j].name, field->name) == 0)
				assert_int_equal(field->pinned,
						 places[j].pinned);
		}
	}
}

/* Takes a word out of a list such as "auto|on|off|". */
static bool take_word(char *list, const char *word)
{
	size_t len = strlen(word);

	for (char *at = list; *at; at = strchr(at, '|') + 1) {
		if (strncmp(at, word, len) == 0 && at[len] == '|') {
			memmove(at, at + len + 1, strlen(at + len + 1) + 1);
			return true;
		}
	}
	return false;
}

/* natractl and the plugin's messages list the words as `words` does. */
TH_TEST(words_are_listed)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		char words[128];

		if (!policy_field_word(field, 0))
			continue;
		(void)snprintf(words, sizeof(words), "%s|", field->words);
		for (uint64_t value = 0; value <= field->max; value++) {
			struct natra_policy p = NATRA_INIT(p);
			const char *word = policy_field_word(field, value);

			assert_non_null(word);
			assert_int_equal(policy_field_parse(field, &p, word),
					 0);
			assert_int_equal(policy_field_get(field, &p), value);
			assert_true(take_word(words, word ? word : ""));
		}
		assert_string_equal(words, "");
	}
}

/* Each later one of these limits mice more. */
TH_TEST(fast_passes_are_listed_by_strictness)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (policy_fields[i].unit == POLICY_FAST_PASS)
			assert_string_equal(policy_fields[i].words,
					    "free|strict|off");
	}
}

/* Each setting has one name, spelt for its surface, and none but these. */
TH_TEST(names_follow_from_the_members)
{
	static const struct {
		const char *member, *option, *key, *annotation;
	} names[POLICY_FIELDS_LEN] = {
		{"ingress_rate_bits_per_sec", "--ingress-rate", "ingressRate",
		 NULL},
		{"egress_rate_bits_per_sec", "--egress-rate", "egressRate",
		 NULL},
		{"ingress_burst_bits", "--ingress-burst", "ingressBurst",
		 "natra.io/ingress-burst"},
		{"egress_burst_bits", "--egress-burst", "egressBurst",
		 "natra.io/egress-burst"},
		{"heavy_hitter_threshold_bytes", "--heavy-hitter-threshold",
		 "heavyHitterThreshold", "natra.io/heavy-hitter-threshold"},
		{"horizon_ns", "--horizon", "horizon", "natra.io/horizon"},
		{"fast_pass", "--fast-pass", "fastPass", "natra.io/fast-pass"},
		{"fast_pass_share_percent", "--fast-pass-share",
		 "fastPassShare", "natra.io/fast-pass-share"},
		{"ingress_packet_rate_per_sec", "--ingress-packet-rate",
		 "ingressPacketRate", "natra.io/ingress-packet-rate"},
		{"egress_packet_rate_per_sec", "--egress-packet-rate",
		 "egressPacketRate", "natra.io/egress-packet-rate"},
		{"ingress_connection_rate_per_sec", "--ingress-connection-rate",
		 "ingressConnectionRate", "natra.io/ingress-connection-rate"},
		{"egress_connection_rate_per_sec", "--egress-connection-rate",
		 "egressConnectionRate", "natra.io/egress-connection-rate"},
		{"group", "--group", NULL, NULL},
		{"group_weight", "--group-weight", "groupWeight",
		 "natra.io/group-weight"},
		{"group_floor_bits_per_sec", "--group-floor", "groupFloor",
		 "natra.io/group-floor"},
		{"attach_mode", "--attach-mode", "attachMode", NULL},
		{"edt_pacing", "--edt-pacing", "edtPacing",
		 "natra.io/edt-pacing"},
		{"ingress_mode", "--ingress-mode", "ingressMode",
		 "natra.io/ingress-mode"},
		{"pace_limit_ns", "--pace-limit", "paceLimit",
		 "natra.io/pace-limit"},
		{"sli", "--sli", "sli", "natra.io/sli"},
	};

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const char *key = policy_field_key(field);
		const char *annotation = policy_field_annotation(field);

		assert_string_equal(field->name, names[i].member);
		assert_string_equal(policy_field_option(field),
				    names[i].option);
		assert_string_equal(key ? key : "",
				    names[i].key ? names[i].key : "");
		assert_string_equal(annotation ? annotation : "",
				    names[i].annotation ? names[i].annotation
							: "");
	}
}

static void only_first_is_lower(const struct natra_policy *has,
				const char *name, uint64_t lower,
				uint64_t other)
{
	const struct policy_field *field = policy_fields;

	while (strcmp(field->name, name) != 0)
		field++;
	if (!policy_field_is_lower(field, has, lower) ||
	    policy_field_is_lower(field, has, other))
		fail_msg("%s", name);
}

/* Each row is a policy, and a value that is lower beside one that is not. */
TH_TEST(what_is_lower_limits_more)
{
	const struct natra_policy limited = {
		.ingress_rate_bits_per_sec = 10,
		.egress_rate_bits_per_sec = 100,
		.egress_burst_bits = 60,
		.heavy_hitter_threshold_bytes = 50,
		.fast_pass = NATRA_FAST_PASS_STRICT,
		.egress_packet_rate_per_sec = 8,
		.group = "g",
		.group_floor_bits_per_sec = 4,
	};
	static const struct {
		const char *name;
		uint64_t lower, higher;
	} rows[] = {
		{"ingress_rate_bits_per_sec", 9, 0},
		{"ingress_burst_bits", 4, 5},
		{"egress_burst_bits", 59, 0},
		{"heavy_hitter_threshold_bytes", 49, 0},
		{"fast_pass", NATRA_FAST_PASS_OFF, NATRA_FAST_PASS_FREE},
		{"fast_pass_share_percent", 79, 81},
		{"ingress_packet_rate_per_sec", 1, 0},
		{"egress_packet_rate_per_sec", 7, 0},
		{"group_floor_bits_per_sec", 0, 5},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++)
		only_first_is_lower(&limited, rows[i].name, rows[i].lower,
				    rows[i].higher);
}

/* What a policy does not name counts with its default: a paced burst has the pacer's length, and the
 * threshold is that of the slower direction. */
TH_TEST(what_is_lower_than_a_default_limits_more)
{
	const struct natra_policy limited = {
		.ingress_rate_bits_per_sec = 8000000,
		.egress_rate_bits_per_sec = 80000000,
		.ingress_mode = NATRA_INGRESS_MODE_PACE,
	};
	static const struct {
		const char *name;
		uint64_t lower, other;
	} rows[] = {
		{"ingress_burst_bits", 399999, 400000},
		{"egress_burst_bits", 39999999, 40000000},
		{"heavy_hitter_threshold_bytes", 99999, 100000},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++)
		only_first_is_lower(&limited, rows[i].name, rows[i].lower,
				    rows[i].other);
}

TH_TEST(longest_delay_is_that_of_the_programs)
{
	assert_true(POLICY_DELAY_MAX_NS == NATRA_DELAY_MAX_NS);
}

TH_MAIN(NULL, NULL)
