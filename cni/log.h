/* SPDX-License-Identifier: BSD-2-Clause */
/* The log file: one line, one write(2), so that plugins that run at once do not
 * mix theirs. What cannot be logged is no failure. */
#pragma once

#include <stddef.h>

#include <natra/natra.h>

#define LOG_LINE_MAX 4096

/* Words of the form key=value; what does not fit is cut. */
struct log_words {
	size_t len;
	char text[LOG_LINE_MAX];
};

struct log {
	const char *path; /* "": no log */
	enum natra_log_level level;
	int fd;
	struct log_words about; /* of each line: which command, which pod */
};

#define LOG_INIT                                                               \
	{                                                                      \
		.path = "", .fd = -1                                           \
	}

extern const char *const log_level_names[NATRA_LOG_MAX];

/* Values that are not one plain word are quoted, and control characters,
 * quotes and bytes beyond ASCII are escaped: a value cannot forge a line. */
void log_add(struct log_words *words, const char *key, const char *value);
void log_add_u64(struct log_words *words, const char *key, uint64_t value);

void log_close(struct log *log);

__attribute__((format(printf, 3, 4))) void
log_write(struct log *log, enum natra_log_level level, const char *format, ...);

/* The same with further words; "" for no message, NULL for no words. */
void log_line(struct log *log, enum natra_log_level level, const char *msg,
	      const struct log_words *words);
