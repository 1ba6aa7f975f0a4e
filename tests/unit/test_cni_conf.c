/* SPDX-License-Identifier: BSD-2-Clause */
#include "cni_input.h"

#include <stdlib.h>

#include "json.h"

/* Checks that a text is refused with this code and a message with this word. */
static void refused(const char *text, size_t len, int code, const char *word)
{
	struct failure failure = {0};
	struct conf conf;
	int r = conf_parse(&conf, text, len, &failure);

	if (r != code)
		fail_msg("'%.60s': %d, not %d: %s", text, r, code, failure.msg);
	says(&failure, text, word, "");
	conf_free(&conf);
}

TH_TEST(what_is_not_json_is_refused)
{
	static const char *const texts[] = {"",
					    "{",
					    "{\"a\":",
					    "{\"a\":1,}",
					    "{\"a\":1 \"b\":2}",
					    "{a:1}",
					    "{\"a\":1}}",
					    "{\"a\":1} x",
					    "{\"a\":[1,]}",
					    "{\"a\":[1 2]}",
					    "{\"a\":01}",
					    "{\"a\":-}",
					    "{\"a\":1.}",
					    "{\"a\":+1}",
					    "{\"a\":NaN}",
					    "{\"a\":tru}",
					    "{\"a\":\"x}",
					    "{\"a\":\"\\x\"}",
					    "{\"a\":\"\\u12g4\"}",
					    "{\"a\":\"\\u12",
					    "{\"a\":\"\\",
					    "{\"a\":\"\x01\"}",
					    "{\"a\":\"\n\"}",
					    "{\"a\":1\x01}",
					    "\xef\xbb\xbf{\"a\":1}"};

	for (size_t i = 0; i < TH_LEN(texts); i++)
		refused(texts[i], strlen(texts[i]), CNI_DECODE, "not JSON");
	refused("{}\0", 3, CNI_DECODE, "byte 2 of 3");
	refused("{\"a\0\":1}", 9, CNI_DECODE, "byte 3");
}

TH_TEST(what_is_not_an_object_is_refused)
{
	static const char *const texts[] = {"1", "\"x\"", "[]", "null", "true"};

	for (size_t i = 0; i < TH_LEN(texts); i++)
		refused(texts[i], strlen(texts[i]), CNI_DECODE,
			"not an object");
}

/* The greatest depth is accepted, and one level more is refused. */
TH_TEST(depth_is_bounded)
{
	char *text = calloc(1, 4 * JSON_DEPTH_MAX + 128);
	struct failure failure = {0};
	struct conf conf;

	assert_non_null(text);
	for (int excess = 0; excess < 2; excess++) {
		char *c = text + sprintf(text, "{\"cniVersion\":\"1.0.0\","
					       "\"name\":\"n\",\"a\":");
		int depth = JSON_DEPTH_MAX - 1 + excess;

		memset(c, '[', (size_t)depth);
		memset(c + depth, ']', (size_t)depth);
		memcpy(c + 2 * (size_t)depth, "}", 2);
		assert_int_equal(
			conf_parse(&conf, text, strlen(text), &failure),
			excess ? CNI_DECODE : 0);
		conf_free(&conf);
	}
	free(text);
}

/* The scanner already refuses it, since a parser would need a stack of this
 * depth. */
TH_TEST(depth_of_millions_is_refused)
{
	static const char begin[] = "{\"a\":";
	const size_t depth = 8U << 20;
	char *text = calloc(1, depth + 1);
	struct failure failure = {0};
	struct conf conf;

	assert_non_null(text);
	memset(text, '[', depth);
	for (size_t i = 0; begin[i]; i++)
		text[i] = begin[i];
	assert_int_equal(conf_parse(&conf, text, depth, &failure), CNI_DECODE);
	conf_free(&conf);
	free(text);
}

TH_TEST(name_and_version_are_required)
{
	static const struct {
		const char *text;
		int code;
		const char *word;
	} cases[] = {
		{"{}", CNI_BAD_CONFIG, "missing network name"},
		{"{\"cniVersion\":\"1.0.0\",\"name\":\"\"}", CNI_BAD_CONFIG,
		 "name"},
		{"{\"cniVersion\":\"1.0.0\",\"name\":\"a/b\"}", CNI_BAD_CONFIG,
		 "name"},
		{"{\"cniVersion\":\"1.0.0\",\"name\":\"-a\"}", CNI_BAD_CONFIG,
		 "name"},
		{"{\"cniVersion\":\"1.0.0\",\"name\":5}", CNI_DECODE, "name"},
		{"{\"name\":\"n\"}", CNI_INCOMPATIBLE_VERSION, "versions"},
		{"{\"cniVersion\":\"\",\"name\":\"n\"}",
		 CNI_INCOMPATIBLE_VERSION, "versions"},
		{"{\"cniVersion\":\"0.2.0\",\"name\":\"n\"}",
		 CNI_INCOMPATIBLE_VERSION, "versions"},
		{"{\"cniVersion\":\"1.0.0 \",\"name\":\"n\"}",
		 CNI_INCOMPATIBLE_VERSION, "versions"},
		{"{\"cniVersion\":1.0,\"name\":\"n\"}", CNI_DECODE,
		 "cniVersion"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++)
		refused(cases[i].text, strlen(cases[i].text), cases[i].code,
			cases[i].word);
}

TH_TEST(an_unknown_version_is_told_as_upstream_does)
{
	static const char text[] = "{\"name\":\"n\"}";
	struct failure failure = {0};
	struct conf conf;

	assert_int_equal(conf_parse(&conf, text, strlen(text), &failure),
			 CNI_INCOMPATIBLE_VERSION);
	assert_string_equal(failure.msg, "incompatible CNI versions");
	assert_string_equal(
		failure.details,
		"config is \"0.1.0\", plugin supports [\"0.3.0\" \"0.3.1\" \"0.4.0\" \"1.0.0\" \"1.1.0\"]");
	/* The error object is written in the newest version. */
	assert_int_equal(conf.version, VERSION_NEWEST);
	conf_free(&conf);
}

TH_TEST(every_version_of_the_list_is_known)
{
	static const char *const texts[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0",
					    "1.1.0"};

	assert_int_equal(TH_LEN(texts), VERSION_MAX);
	for (size_t i = 0; i < TH_LEN(texts); i++) {
		struct conf conf;
		char text[80];

		(void)snprintf(text, sizeof(text),
			       " {\"NAME\":\"n\",\"CniVersion\":\"%s\"}\n",
			       texts[i]);
		conf = conf_of(text);
		assert_string_equal(version_name(conf.version), texts[i]);
		assert_string_equal(conf.name, "n");
		conf_free(&conf);
	}
}

TH_TEST(keys_are_found_as_in_go)
{
	static const char text[] = CONF("\"a\":1,\"A\":2,\"b\":3,\"B\":null,"
					"\"c\\u0044\":4,\"sub\":{\"x\":5},"
					"\"n\":null");
	struct conf conf = conf_of(text);
	size_t len = 0;
	uint64_t value = 0;

	assert_int_equal(json_u64(json_get(conf.json, "a"), &value), 0);
	assert_int_equal(value, 2);
	assert_null(json_get(conf.json, "b"));
	assert_non_null(json_member(conf.json, "n"));
	assert_null(json_member(conf.json, "x"));
	assert_non_null(json_get(conf.json, "CD"));
	assert_int_equal(json_get_exact(conf.json, "a")->valuedouble, 1);
	assert_null(json_get_exact(conf.json, "NAME"));
	/* A search in the text finds the same values. */
	assert_memory_equal(json_find_text(text, "A", &len), "2", 1);
	assert_int_equal(len, 1);
	assert_memory_equal(json_find_text(text, "b", &len), "null", 4);
	assert_memory_equal(json_find_text(text, "Cd", &len), "4", 1);
	assert_memory_equal(json_find_text(text, "SUB", &len), "{\"x\":5}", 7);
	assert_int_equal(len, 7);
	assert_null(json_find_text(text, "x", &len));
	assert_null(json_find_text("{ }", "x", &len));
	conf_free(&conf);
}

TH_TEST(numbers_are_whole_and_saturate)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t value;
	} cases[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"1", true, 1},
		{"10.0", true, 10},
		{"1e3", true, 1000},
		{"4294967295", true, 4294967295},
		{"34359738359", true, 34359738359},
		{"9007199254740992", true, 1ULL << 53},
		{"9223372036854775808", true, 1ULL << 63},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", true, UINT64_MAX},
		{"1e300", true, UINT64_MAX},
		{"1e999", true, UINT64_MAX},
		{"-1", false, 0},
		{"-1e999", false, 0},
		{"0.5", false, 0},
		{"1000.5", false, 0},
		{"\"1\"", false, 0},
		{"true", false, 0},
		{"[1]", false, 0},
		{"{}", false, 0},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		cJSON *json = cJSON_Parse(cases[i].text);
		uint64_t value = 0;
		int r = json_u64(json, &value);

		if ((r == 0) != cases[i].ok || value != cases[i].value)
			fail_msg("%s: %d, %llu", cases[i].text, r,
				 (unsigned long long)value);
		cJSON_Delete(json);
	}
	assert_true(json_u64(NULL, &(uint64_t){0}) < 0);
}

TH_TEST(values_are_shown_in_one_short_line)
{
	static const struct {
		const char *text;
		const char *shown;
	} cases[] = {
		{"5", "5"},
		{"-1.5", "-1.5"},
		{"1000000000000", "1000000000000"},
		{"\"x\"", "'x'"},
		{"\"\"", "''"},
		{"{\"a\": 1}", "{\"a\":1}"},
		{"[1, \"x\"]", "[1,\"x\"]"},
		{"true", "true"},
		{"false", "false"},
		{"null", "null"},
		{"\"1234567890123456789012345678901234567890"
		 "123456789012345678901234\"",
		 "'1234567890123456789012345678901234567890"
		 "123456789012345678901234'"},
		{"\"1234567890123456789012345678901234567890"
		 "1234567890123456789012345\"",
		 "'1234567890123456789012345678901234567890"
		 "123456789012345678901234'..."},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		cJSON *json = cJSON_Parse(cases[i].text);

		assert_string_equal(json_show(json).text, cases[i].shown);
		cJSON_Delete(json);
	}
}

TH_TEST(large_numbers_are_printed_in_digits)
{
	static const struct {
		const char *text;
		const char *printed;
	} cases[] = {
		{"[1,-2,0.5,1500]", "[1,-2,0.5,1500]"},
		{"{\"a\":1000000000000000}", "{\"a\":1000000000000000}"},
		{"[9007199254740992]", "[9007199254740992]"},
		{"[-9007199254740992]", "[-9007199254740992]"},
		{"[123456789012345678]", "[123456789012345680]"},
		{"[1e20]", "[100000000000000000000]"},
		{"[1e21]", "[1e+21]"},
		{"1000000000000000", "1000000000000000"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		cJSON *json = cJSON_Parse(cases[i].text);
		char *printed = json_dump(json);

		assert_string_equal(printed, cases[i].printed);
		cJSON_free(printed);
		cJSON_Delete(json);
	}
}

TH_MAIN(NULL, NULL)
