/* SPDX-License-Identifier: BSD-2-Clause */
/* What libbpf prints goes to the log of the handle that calls it, line by line. */
#include "cm.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/libbpf_log.h"

static char logged[4096];

static void note(void *arg, enum natra_log_level level, const char *line)
{
	size_t len = strlen(logged);

	assert_int_equal(level, NATRA_LOG_DEBUG);
	(void)snprintf(logged + len, sizeof(logged) - len, "<%s>", line);
}

/* Prints as libbpf does. */
__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	libbpf_print_fn_t fn = libbpf_set_print(NULL);
	va_list args;

	(void)libbpf_set_print(fn);
	va_start(args, format);
	(void)fn(LIBBPF_WARN, format, args);
	va_end(args);
}

TH_TEST(all_lines_are_logged)
{
	struct natra n = {.log_fn = note};
	char verifier[1000];

	memset(verifier, 'v', sizeof(verifier) - 1);
	verifier[sizeof(verifier) - 1] = '\0';
	memcpy(verifier + 700, "\n\nlast\n", 7);
	logged[0] = '\0';
	{
		LIBBPF_LOG_SCOPE(&n);

		print("libbpf: -- BEGIN PROG LOAD LOG --\n%s-- END --\n",
		      verifier);
	}
	assert_non_null(strstr(logged, "<libbpf: -- BEGIN PROG LOAD LOG -->"
				       "<vvv"));
	assert_non_null(strstr(logged, "vvv><last><vvv"));
	assert_non_null(strstr(logged, "vvv-- END -->"));
	assert_null(strstr(logged, "<>"));
}

TH_TEST(nobody_listens)
{
	struct natra n = {0};

	logged[0] = '\0';
	{
		LIBBPF_LOG_SCOPE(&n);

		print("libbpf: two\nlines\n");
	}
	assert_string_equal(logged, "");
}

TH_MAIN(NULL, NULL)
