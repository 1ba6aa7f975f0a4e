/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "util/str.h"

static void text_that_fits_is_copied(void **state)
{
	char to[5] = "xxxx";

	(void)state;
	assert_true(str_copy(to, sizeof(to), "abcd"));
	assert_string_equal(to, "abcd");
	assert_true(str_copy(to, sizeof(to), ""));
	assert_string_equal(to, "");
}

static void text_that_does_not_fit_is_cut_and_told(void **state)
{
	char to[6] = "xxxxx";

	(void)state;
	assert_false(str_copy(to, 4, "abcd"));
	assert_string_equal(to, "abc");
	assert_int_equal(to[4], 'x');
	assert_false(str_copy(to, 1, "a"));
	assert_string_equal(to, "");
	assert_true(str_copy(to, 1, ""));
}

static void null_is_the_empty_text(void **state)
{
	char to[4] = "xxx";

	(void)state;
	assert_true(str_copy(to, sizeof(to), NULL));
	assert_string_equal(to, "");
}

static void control_characters_become_question_marks(void **state)
{
	char text[] = "a\nb\tc\x1b[2J\x7f\r\x01";

	(void)state;
	str_one_line(text);
	assert_string_equal(text, "a?b?c?[2J???");
}

static void printable_text_and_utf8_are_kept(void **state)
{
	char text[] = " ~veth0 'gr\xc3\xbc\xc3\x9f' \xff";
	char before[sizeof(text)];

	(void)state;
	memcpy(before, text, sizeof(text));
	str_one_line(text);
	assert_string_equal(text, before);
	text[0] = '\0';
	str_one_line(text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_that_fits_is_copied),
		cmocka_unit_test(text_that_does_not_fit_is_cut_and_told),
		cmocka_unit_test(null_is_the_empty_text),
		cmocka_unit_test(control_characters_become_question_marks),
		cmocka_unit_test(printable_text_and_utf8_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
