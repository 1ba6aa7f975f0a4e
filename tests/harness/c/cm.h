/* SPDX-License-Identifier: BSD-2-Clause */
/* Includes cmocka.h after the headers that it needs, and collects the tests of a file:
 *
 *	TH_TEST(nothing_is_lost)
 *	{
 *		...
 *	}
 *
 *	TH_MAIN(NULL, NULL)
 */
#ifndef TH_CM_H
#define TH_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TH_LEN(array) (sizeof(array) / sizeof((array)[0]))

#define TH_TESTS_MAX 64

static struct CMUnitTest th_tests[TH_TESTS_MAX];
static char th_names[TH_TESTS_MAX][128];
static size_t th_tests_len;

/* `names` are those of the setups, with a comma between them. */
static inline void th_add(const char *name, CMUnitTestFunction test,
			  const CMFixtureFunction *setups, size_t len,
			  const char *names)
{
	for (size_t i = 0; i < len; i++) {
		const size_t end = strcspn(names, ",");

		if (th_tests_len == TH_TESTS_MAX)
			abort();
		(void)snprintf(th_names[th_tests_len], sizeof(th_names[0]),
			       "%s%s%.*s", name, setups[i] ? " after " : "",
			       setups[i] ? (int)end : 0, names);
		names += end + (names[end] ? 1 : 0);
		th_tests[th_tests_len].name = th_names[th_tests_len];
		th_tests[th_tests_len].test_func = test;
		th_tests[th_tests_len++].setup_func = setups[i];
	}
}

/* Runs the tests; setup and teardown are called for each of them, unless it has a setup
 * of its own. */
static inline int th_run_each(CMFixtureFunction setup,
			      CMFixtureFunction teardown)
{
	for (size_t i = 0; i < th_tests_len; i++) {
		if (!th_tests[i].setup_func)
			th_tests[i].setup_func = setup;
		th_tests[i].teardown_func = teardown;
	}
	/* The macro for it takes an array whose length the compiler knows. */
	return _cmocka_run_group_tests("tests", th_tests, th_tests_len, NULL,
				       NULL);
}

/* Defines a test that runs once after each of these functions. The tests of a file run in
 * its order: a constructor notes each before main runs. */
#define TH_TEST_AFTER(test, ...)                                               \
	static void test(void **state);                                        \
	__attribute__((constructor)) static void th_add_##test(void)           \
	{                                                                      \
		static const CMFixtureFunction setups[] = {__VA_ARGS__};       \
                                                                               \
		th_add(#test, test, setups, TH_LEN(setups), #__VA_ARGS__);     \
	}                                                                      \
	static void test(__attribute__((unused)) void **state)
#define TH_TEST(test) TH_TEST_AFTER(test, NULL)

/* Defines a function for cmocka, a setup or a teardown, that does this. */
#define TH_STEP(name, does)                                                    \
	static int name(void **state)                                          \
	{                                                                      \
		(void)state;                                                   \
		does;                                                          \
		return 0;                                                      \
	}

/* Defines a main with a setup and a teardown for each test, or one for all of them. */
#define TH_MAIN_EACH(setup, teardown)                                          \
	int main(void)                                                         \
	{                                                                      \
		return th_run_each(setup, teardown);                           \
	}
#define TH_MAIN(setup, teardown)                                               \
	int main(void)                                                         \
	{                                                                      \
		return _cmocka_run_group_tests("tests", th_tests,              \
					       th_tests_len, setup, teardown); \
	}

#endif
