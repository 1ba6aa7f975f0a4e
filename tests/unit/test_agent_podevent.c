/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "podevent.h"

#define META(more)                                                              \
	"\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u1\"," \
	"\"resourceVersion\":\"42\"" more "}"

static const struct {
	const char *line;
	enum podevent_type type;
} lines[] = {
	{"{\"type\":\"ADDED\",\"object\":{" META("") "}}", PODEVENT_PRESENT},
	{"{\"type\":\"MODIFIED\",\"object\":{" META("") "}}", PODEVENT_PRESENT},
	{"{\"type\":\"DELETED\",\"object\":{" META("") "}}", PODEVENT_GONE},
	{"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
	 "\"resourceVersion\":\"42\"}}}",
	 PODEVENT_BOOKMARK},
	{"{\"type\":\"ERROR\",\"object\":{\"code\":410}}", PODEVENT_EXPIRED},
	{"{\"type\":\"ERROR\",\"object\":{\"code\":500}}", PODEVENT_ERROR},
	{"{\"type\":\"ERROR\",\"object\":null}", PODEVENT_ERROR},
	{"{\"type\":\"SOMETHING\",\"object\":{" META("") "}}", PODEVENT_OTHER},
	{"", PODEVENT_GARBAGE},
	{"{", PODEVENT_GARBAGE},
	{"null", PODEVENT_UNREADABLE},
	{"[]", PODEVENT_UNREADABLE},
	{"{}", PODEVENT_UNREADABLE},
	{"{\"type\":1,\"object\":{" META("") "}}", PODEVENT_UNREADABLE},
	{"{\"type\":\"ADDED\"}", PODEVENT_UNREADABLE},
	{"{\"type\":\"ADDED\",\"object\":7}", PODEVENT_UNREADABLE},
	{"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}",
	 PODEVENT_UNREADABLE},
	{"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"web\","
	 "\"namespace\":\"shop\",\"resourceVersion\":\"42\"}}}",
	 PODEVENT_UNREADABLE},
	{"{\"type\":\"ADDED\",\"object\":{" META("") "}} more",
	 PODEVENT_GARBAGE},
};

TH_TEST(test_types)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct podevent event;

		podevent_read(&event, lines[i].line);
		if (event.type != lines[i].type)
			fail_msg("%s: is %d", lines[i].line, event.type);
		/* Only these two are of pods that were there before. */
		assert_int_equal(event.is_change,
				 strstr(lines[i].line, "MODIFIED") ||
					 strstr(lines[i].line, "DELETED"));
		podevent_free(&event);
	}
}

TH_TEST(test_texts)
{
	struct podevent event;

	podevent_read(&event, lines[0].line);
	assert_string_equal(event.name, "web");
	assert_string_equal(event.namespace, "shop");
	assert_string_equal(event.uid, "u1");
	assert_string_equal(event.version, "42");
	assert_null(event.annotations->child);
	assert_true(podevent_has_names(&event));
	podevent_free(&event);
}

/* Each of the three is a name, however short it is. */
TH_TEST(test_names)
{
	static const struct {
		const char *namespace, *name, *uid;
		bool has;
	} rows[] = {
		{"a", "b", "c", true},
		{"", "b", "c", false},
		{"a", "", "c", false},
		{"a", "b", "", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct podevent event = {.namespace = rows[i].namespace,
					       .name = rows[i].name,
					       .uid = rows[i].uid};

		assert_int_equal(podevent_has_names(&event), rows[i].has);
	}
}

/* An event without its end names its pod if it goes so far. */
TH_TEST(test_torn)
{
	static const char *const torn[] = {
		"{\"type\":\"ADDED\",\"object\":{" META(""),
		"{\"type\":\"ADDED\",\"object\":{" META(
			",\"annotations\":{\"a\":\"b\",\"c"),
		"{\"object\":{\"kind\":{\"a\":[1]}," META(",,"),
	};

	for (size_t i = 0; i < sizeof(torn) / sizeof(torn[0]); i++) {
		struct podevent event;

		podevent_read(&event, torn[i]);
		assert_int_equal(event.type, PODEVENT_GARBAGE);
		assert_string_equal(event.name, "web");
		assert_string_equal(event.namespace, "shop");
		assert_string_equal(event.uid, "u1");
		podevent_free(&event);
	}
}

/* A uid of a static pod is kept if it can be one. */
TH_TEST(test_mirrored)
{
	static const char *const rows[][2] = {
		{"\"0123456789abcdef0123456789abcdef\"",
		 "0123456789abcdef0123456789abcdef"},
		{"\"\"", ""},
		{"7", ""},
		{"\"01234567890123456789012345678901234567890123456789"
		 "0123456789abcdef\"",
		 ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct podevent event;
		char line[512];

		(void)snprintf(line, sizeof(line),
			       "{\"type\":\"ADDED\",\"object\":{" META(
				       ",\"annotations\":{\"kubernetes.io/"
				       "config.mirror\":%s}") "}}",
			       rows[i][0]);
		podevent_read(&event, line);
		assert_string_equal(event.mirrored, rows[i][1]);
		assert_null(event.annotations->child);
		podevent_free(&event);
	}
}

/* Returns those that matter, as text. */
static char *relevant(const char *annotations)
{
	char line[1024];
	struct podevent event;
	char *text;

	(void)snprintf(line, sizeof(line),
		       "{\"type\":\"ADDED\",\"object\":{"
		       "\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","
		       "\"uid\":\"u1\",\"resourceVersion\":\"42\","
		       "\"annotations\":%s}}}",
		       annotations);
	podevent_read(&event, line);
	assert_int_equal(event.type, PODEVENT_PRESENT);
	text = cJSON_PrintUnformatted(event.annotations);
	podevent_free(&event);
	return text;
}

TH_TEST(test_relevant)
{
	static const char *const cases[][2] = {
		{"{\"a\":\"b\",\"kubernetes.io/ingress-bandwidth\":\"1M\","
		 "\"natra.io/fast-pass\":\"off\",\"xnatra.io/\":\"\"}",
		 "{\"kubernetes.io/ingress-bandwidth\":\"1M\","
		 "\"natra.io/fast-pass\":\"off\"}"},
		{"{\"kubernetes.io/egress-bandwidth\":7}",
		 "{\"kubernetes.io/egress-bandwidth\":7}"},
		{"{\"kubernetes.io/ingress-bandwidth.x\":\"1M\"}", "{}"},
		{"{\"natra.io\\u002fsli\":\"off\"}",
		 "{\"natra.io/sli\":\"off\"}"},
		{"null", "{}"},
		{"[\"natra.io/fast-pass\"]", "{}"},
		{"\"natra.io/fast-pass\"", "{}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = relevant(cases[i][0]);

		assert_string_equal(text, cases[i][1]);
		free(text);
	}
}

/* Returns how much is kept of a value of `count` times this text. */
static size_t len_of_kept(const char *name, const char *part, size_t count)
{
	const size_t size = count * strlen(part) + 512;
	char *line = calloc(1, size);
	size_t at = (size_t)snprintf(
		line, size,
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{"
		"\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u1\","
		"\"resourceVersion\":\"42\",\"annotations\":{\"%s\":\"",
		name);
	struct podevent event;
	char *text;
	size_t len;

	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(line + at, size - at, "%s", part);
	(void)snprintf(line + at, size - at, "\"}}}}");
	podevent_read(&event, line);
	assert_int_equal(event.type, PODEVENT_PRESENT);
	text = cJSON_PrintUnformatted(event.annotations);
	len = strlen(text);
	free(text);
	free(line);
	podevent_free(&event);
	return len;
}

/* A value that is too long to be valid costs next to nothing, whatever JSON makes of it. */
TH_TEST(test_kept)
{
	static const char classes[] = "natra.io/classes";

	assert_in_range(len_of_kept(classes, "a", 98304), 98304, 98400);
	assert_in_range(len_of_kept(classes, "\\\"", 49152), 98304, 98400);
	assert_in_range(len_of_kept(classes, "a", 98305), 64, 200);
	assert_in_range(len_of_kept(classes, "\\u0001", 16384), 98304, 98400);
	assert_in_range(len_of_kept(classes, "\\u0001", 16385), 64, 500);
	assert_in_range(len_of_kept("natra.io/fast-pass", "a", 256), 256, 300);
	assert_in_range(len_of_kept("natra.io/fast-pass", "a", 257), 64, 200);
	assert_in_range(
		len_of_kept("kubernetes.io/egress-bandwidth", "1", 60000), 64,
		200);
}

TH_MAIN(NULL, NULL)
