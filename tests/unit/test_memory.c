/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that is out of memory says so in its own words, and ends. */
#include "cm.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

static void *too_much(void)
{
	return memory_new(SIZE_MAX / 2);
}

static void *too_much_for_cjson(void)
{
	return cJSON_malloc(SIZE_MAX / 2);
}

static void expect_end(void *(*allocate)(void))
{
	char text[64] = "";
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		memory_init(fds[1], "last words\n");
		free(allocate());
		_exit(EXIT_SUCCESS);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
	assert_int_equal(close(fds[1]), 0);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "last words\n");
	assert_int_equal(close(fds[0]), 0);
}

TH_TEST(test_ends)
{
	expect_end(too_much);
	expect_end(too_much_for_cjson);
}

TH_MAIN(NULL, NULL)
