/* SPDX-License-Identifier: BSD-2-Clause */
/* The log file, of which two are kept. Each line is one write(2), so that plugins that run at the same
 * time do not mix their lines. The plugin does not fail if it cannot log. */
#ifndef NATRA_COMMON_LOG_H
#define NATRA_COMMON_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <natra/natra.h>

#define LOG_LINE_MAX 4096

/* Words of the form key=value. What does not fit is cut off. */
struct log_words {
	size_t len;
	char text[LOG_LINE_MAX];
};

struct log {
	const char *path; /* "": no log */
	/* Gets the lines in place of a file, without time and further words. */
	void (*fn)(void *arg, enum natra_log_level level, const char *msg);
	enum natra_log_level level;
	int fd;
	/* Lines that nobody has taken in time, of this process and of its children; NULL: a
	 * line waits for that. */
	uint64_t *lost;
	bool is_cut;            /* the last line of this process has no end */
	struct log_words about; /* in each line: the command and the pod */
};

#define LOG_INIT                                                               \
	{                                                                      \
		.path = "", .fd = -1                                           \
	}

/* Reads the name of a level. Returns NULL, or what is wrong with it. */
const char *log_read_level(const char *name, enum natra_log_level *ret_level);

/* Adds a word. A value that is not one plain word is quoted, and its control
 * characters, quotes and bytes beyond ASCII are escaped, so that it cannot
 * forge a line. */
void log_add(struct log_words *words, const char *key, const char *value);
void log_add_u64(struct log_words *words, const char *key, uint64_t value);

void log_close(struct log *log);

/* Loses the lines that nobody reads, and says in the next one that somebody does how many
 * they were. Without memory for their number, lines wait. */
void log_never_wait(struct log *log);
/* Writes whole lines. Returns the length of those that were written. */
size_t log_copy(struct log *log, const char *lines, size_t len);

__attribute__((format(printf, 3, 4))) void
log_write(struct log *log, enum natra_log_level level, const char *format, ...);

/* Logs a line with further words. `msg` may be "", and `words` may be NULL. */
void log_line(struct log *log, enum natra_log_level level, const char *msg,
	      const struct log_words *words);

#endif
