/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>

#include <natra/natra.h>

static const char *const bad[] = {"",    "Auto", "auto ", " auto",
				  "tcx", "aut",  "autoo", "0"};

#define CHECK_ENUM(kind, first, max, ...)                                      \
	do {                                                                   \
		const char *const names[] = {__VA_ARGS__};                     \
		enum natra_##kind value = (first);                             \
		assert_int_equal(TH_LEN(names), max);                          \
		for (unsigned int i = 0; i < TH_LEN(names); i++) {             \
			assert_string_equal(                                   \
				natra_##kind##_name((enum natra_##kind)i),     \
				names[i]);                                     \
			assert_int_equal(natra_parse_##kind(names[i], &value), \
					 0);                                   \
			assert_int_equal(value, i);                            \
		}                                                              \
		assert_null(natra_##kind##_name(max));                         \
		assert_null(natra_##kind##_name((enum natra_##kind) - 1));     \
		value = (first);                                               \
		for (unsigned int i = 0; i < TH_LEN(bad); i++)                 \
			assert_int_equal(natra_parse_##kind(bad[i], &value),   \
					 -EINVAL);                             \
		assert_int_equal(natra_parse_##kind(NULL, &value), -EINVAL);   \
		assert_int_equal(natra_parse_##kind(names[0], NULL), -EINVAL); \
		assert_int_equal(value, first);                                \
	} while (0)

TH_TEST(modes_have_their_names)
{
	CHECK_ENUM(attach_mode, NATRA_ATTACH_MODE_CLSACT_PODSIDE,
		   NATRA_ATTACH_MODE_MAX, "auto", "tcx-podside",
		   "clsact-podside", "tcx-hostside", "clsact-hostside");
}

TH_TEST(edt_settings_have_their_names)
{
	CHECK_ENUM(edt_pacing, NATRA_EDT_PACING_ON, NATRA_EDT_PACING_MAX,
		   "auto", "on", "off");
}

TH_TEST(fast_passes_have_their_names)
{
	CHECK_ENUM(fast_pass, NATRA_FAST_PASS_STRICT, NATRA_FAST_PASS_MAX,
		   "free", "strict", "off");
}

TH_TEST(ingress_modes_have_their_names)
{
	CHECK_ENUM(ingress_mode, NATRA_INGRESS_MODE_PACE,
		   NATRA_INGRESS_MODE_MAX, "police", "pace");
}

#define CHECK_NAMES(kind, max, ...)                                            \
	do {                                                                   \
		const char *const names[] = {__VA_ARGS__};                     \
		assert_int_equal(TH_LEN(names), max);                          \
		for (unsigned int i = 0; i < TH_LEN(names); i++)               \
			assert_string_equal(                                   \
				natra_##kind##_name((enum natra_##kind)i),     \
				names[i]);                                     \
		assert_null(natra_##kind##_name(max));                         \
		assert_null(natra_##kind##_name((enum natra_##kind) - 1));     \
	} while (0)

TH_TEST(what_is_reported_has_names)
{
	CHECK_NAMES(direction, NATRA_DIRECTION_MAX, "ingress", "egress");
	assert_string_equal(natra_direction_name(NATRA_DIRECTION_NONE), "");
	CHECK_NAMES(log_level, NATRA_LOG_MAX, "error", "warn", "info", "debug");
	CHECK_NAMES(event_reason, NATRA_EVENT_MAX, "heavy", "dropped_rate",
		    "dropped_horizon", "mice_over_share", "over_limit");
}

TH_MAIN(NULL, NULL)
