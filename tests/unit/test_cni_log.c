/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

static char dir[64];
static char path[64];

static int setup(void **state)
{
	(void)strcpy(dir, "/tmp/natra-test-cni-log-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)unlink(path);
	return rmdir(dir);
}

static char *file_text(void)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	(void)fclose(f);
	return text;
}

static struct log log_of(const char *file, enum natra_log_level level)
{
	struct log log = LOG_INIT;

	log.path = file;
	log.level = level;
	return log;
}

TH_TEST(values_are_quoted_and_escaped_as_needed)
{
	static const struct {
		const char *value;
		const char *word;
	} cases[] = {
		{"plain", "k=plain"},
		{"/a/b-c_d.e:f", "k=/a/b-c_d.e:f"},
		{"", "k=\"\""},
		{"two words", "k=\"two words\""},
		{"a=b", "k=\"a=b\""},
		{"say \"x\"", "k=\"say \\\"x\\\"\""},
		{"back\\slash", "k=\"back\\\\slash\""},
		{"\x1b[31mred", "k=\"\\x1b[31mred\""},
		{"line\nlevel=error", "k=\"line\\x0alevel=error\""},
		{"tab\there", "k=\"tab\\x09here\""},
		{"\x7f", "k=\"\\x7f\""},
		{"caf\xc3\xa9", "k=\"caf\\xc3\\xa9\""},
		{"\x9b", "k=\"\\x9b\""},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct log_words words = {0};

		log_add(&words, "k", cases[i].value);
		assert_string_equal(words.text, cases[i].word);
	}
}

TH_TEST(words_are_joined_and_cut)
{
	struct log_words words = {0};
	char longer[LOG_LINE_MAX + 10];

	log_add_u64(&words, "n", UINT64_MAX);
	log_add(&words, "a", "b");
	assert_string_equal(words.text, "n=18446744073709551615 a=b");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	log_add(&words, "long", longer);
	log_add(&words, "more", "\n");
	assert_int_equal(strlen(words.text), words.len);
	assert_int_equal(words.len, LOG_LINE_MAX - 2);
}

TH_TEST(a_line_has_time_level_origin_message_and_words)
{
	struct log log = log_of(path, NATRA_LOG_INFO);
	struct log_words words = {0};
	regex_t pattern;
	char *text;

	log_add(&log.about, "command", "ADD");
	log_add_u64(&words, "code", 7);
	log_line(&log, NATRA_LOG_ERROR, "it is\nbad", &words);
	log_write(&log, NATRA_LOG_INFO, "%s %d", "twice", 2);
	log_close(&log);
	text = file_text();
	assert_int_equal(
		regcomp(&pattern,
			"^time=20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:"
			"[0-5][0-9]:[0-6][0-9][.][0-9]{3}Z level=error "
			"command=ADD msg=\"it is.x0abad\" code=7\n"
			"time=[^ ]+ level=info command=ADD msg=\"twice 2\"\n$",
			REG_EXTENDED | REG_NOSUB),
		0);
	if (regexec(&pattern, text, 0, NULL, 0) != 0)
		fail_msg("%s", text);
	regfree(&pattern);
}

TH_TEST(levels_below_are_left_out)
{
	struct log log = log_of(path, NATRA_LOG_WARN);

	log_write(&log, NATRA_LOG_INFO, "no");
	/* The line does not even create the file. */
	assert_int_equal(access(path, F_OK), -1);
	log_write(&log, NATRA_LOG_WARN, "yes");
	log_write(&log, NATRA_LOG_DEBUG, "no");
	log_close(&log);
	assert_non_null(strstr(file_text(), "msg=yes"));
	assert_null(strstr(file_text(), "msg=no"));
}

TH_TEST(the_file_is_for_its_owner_whatever_the_umask)
{
	struct log log = log_of(path, NATRA_LOG_INFO);
	mode_t before = umask(0);
	struct stat st;

	log_write(&log, NATRA_LOG_INFO, "x");
	(void)umask(before);
	log_close(&log);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

TH_TEST(what_cannot_be_written_is_let_go)
{
	static const char *const paths[] = {"", "/nosuch/dir/log", "/proc/log",
					    "/tmp", "/dev/full"};

	for (size_t i = 0; i < TH_LEN(paths); i++) {
		struct log log = log_of(paths[i], NATRA_LOG_DEBUG);

		log_write(&log, NATRA_LOG_ERROR, "x");
		log_close(&log);
	}
}

TH_TEST(a_link_is_not_followed_and_a_pipe_not_waited_for)
{
	struct log log = log_of(path, NATRA_LOG_INFO);
	char target[80];

	(void)snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, path), 0);
	log_write(&log, NATRA_LOG_ERROR, "x");
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	log_write(&log, NATRA_LOG_ERROR, "x");
	log_close(&log);
}

/* Two processes write as fast as they can, and no line is torn. */
TH_TEST(lines_of_two_processes_do_not_mix)
{
	enum { LINES = 300 };
	char padding[1000], *line, *rest, *text;
	int seen = 0, status;
	pid_t pid;

	memset(padding, 'p', sizeof(padding) - 1);
	padding[sizeof(padding) - 1] = '\0';
	pid = fork();
	assert_true(pid >= 0);
	for (int i = 0; i < LINES; i++) {
		struct log log = log_of(path, NATRA_LOG_INFO);

		log_add(&log.about, "who", pid ? "parent" : "child");
		log_write(&log, NATRA_LOG_INFO, "%s", padding);
		log_close(&log);
	}
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	text = file_text();
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		assert_int_equal(strncmp(line, "time=", 5), 0);
		assert_int_equal(strspn(strstr(line, "msg=") + 4, "p"),
				 strlen(padding));
		assert_string_equal(strstr(line, "msg=") + 4, padding);
		seen++;
	}
	assert_int_equal(seen, 2 * LINES);
}

/* Reads what there is. Returns how many bytes. */
static size_t drain(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, size - 1 - len, MSG_DONTWAIT)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return len;
}

/* As the journal's is; the kernel takes a part of a line where there is no room for all. */
TH_TEST(line_behind_a_part_of_one_begins_a_line)
{
	static char text[1 << 16], line[3001];
	const int small = 1;
	struct log log = log_of("", NATRA_LOG_INFO);
	int ends[2];
	size_t len = 1;

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small,
				    sizeof(small)),
			 0);
	log.fd = ends[0];
	log_never_wait(&log);
	/* How many short lines leave room for a part only depends on the kernel. */
	for (int lines = 0; lines < 20 && text[len - 1] != 'x'; lines++) {
		for (int i = 0; i < lines; i++)
			(void)log_copy(&log, "y\n", 2);
		(void)log_copy(&log, line, sizeof(line));
		len = drain(ends[1], text, sizeof(text));
		assert_true(len > 0);
	}
	assert_int_equal(text[len - 1], 'x');
	log_write(&log, NATRA_LOG_INFO, "short");
	assert_true(drain(ends[1], text, sizeof(text)) > 0);
	assert_memory_equal(text, "\ntime=", 6);
	assert_non_null(strstr(text, "msg=short\n"));
	(void)close(ends[0]);
	(void)close(ends[1]);
}

TH_MAIN_EACH(setup, teardown)
