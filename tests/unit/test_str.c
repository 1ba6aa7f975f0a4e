/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "util/str.h"

TH_TEST(text_that_fits_is_copied)
{
	char to[5] = "xxxx";

	assert_true(str_copy(to, sizeof(to), "abcd"));
	assert_string_equal(to, "abcd");
	assert_true(str_copy(to, sizeof(to), ""));
	assert_string_equal(to, "");
}

TH_TEST(text_that_does_not_fit_is_cut_and_told)
{
	char to[6] = "xxxxx";

	assert_false(str_copy(to, 4, "abcd"));
	assert_string_equal(to, "abc");
	assert_int_equal(to[4], 'x');
	assert_false(str_copy(to, 1, "a"));
	assert_string_equal(to, "");
	assert_true(str_copy(to, 1, ""));
}

TH_TEST(null_is_the_empty_text)
{
	char to[4] = "xxx";

	assert_true(str_copy(to, sizeof(to), NULL));
	assert_string_equal(to, "");
}

TH_TEST(control_characters_become_question_marks)
{
	char text[] = "a\nb\tc\x1b[2J\x7f\r\x01";

	str_one_line(text);
	assert_string_equal(text, "a?b?c?[2J???");
}

TH_TEST(printable_text_and_utf8_are_kept)
{
	char text[] = " ~veth0 'gr\xc3\xbc\xc3\x9f' \xff";
	char before[sizeof(text)];

	memcpy(before, text, sizeof(text));
	str_one_line(text);
	assert_string_equal(text, before);
	text[0] = '\0';
	str_one_line(text);
	assert_string_equal(text, "");
}

TH_MAIN(NULL, NULL)
