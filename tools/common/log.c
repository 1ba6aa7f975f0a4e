/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../src/util/escape.h"
#include "stream.h"

#define LOG_FILE_MAX (8 << 20)

const char *log_read_level(const char *name, enum natra_log_level *ret_level)
{
	for (int i = 0; i < NATRA_LOG_MAX; i++) {
		if (name && strcmp(natra_log_level_name(i), name) == 0) {
			*ret_level = (enum natra_log_level)i;
			return NULL;
		}
	}
	return "is not error, warn, info or debug";
}

static void add_bytes(struct log_words *words, const char *bytes, size_t len)
{
	/* Two bytes stay free for the newline and the terminator. */
	size_t room = sizeof(words->text) - 2 - words->len;

	if (len > room)
		len = room;
	memcpy(words->text + words->len, bytes, len);
	words->len += len;
	words->text[words->len] = '\0';
}

static bool is_plain_word(const char *value)
{
	for (const char *c = value; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f || strchr("\"\\=", *c))
			return false;
	}
	return value[0] != '\0';
}

static void add_escaped(struct log_words *words, const char *value)
{
	for (; *value; value++) {
		struct escaped byte = escape_byte(*value);

		if (*value == '"' || *value == '\\')
			add_bytes(words, "\\", 1);
		add_bytes(words, byte.text, strlen(byte.text));
	}
}

void log_add(struct log_words *words, const char *key, const char *value)
{
	if (words->len)
		add_bytes(words, " ", 1);
	add_bytes(words, key, strlen(key));
	add_bytes(words, "=", 1);
	if (is_plain_word(value)) {
		add_bytes(words, value, strlen(value));
		return;
	}
	add_bytes(words, "\"", 1);
	add_escaped(words, value);
	add_bytes(words, "\"", 1);
}

void log_add_u64(struct log_words *words, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	log_add(words, key, text);
}

static int open_path(const char *path)
{
	/* A link that somebody put there is not followed, and a FIFO without a
	 * reader does not block. */
	return open(path,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
			    O_NONBLOCK | O_NOCTTY,
		    0600);
}

/* Renames a file that has grown too large, which replaces the old file that was kept so
 * far. If several plugins try this at once, one does it, and the others find under the
 * lock that the name is another file's by now. */
static void rotate(struct log *log)
{
	struct stat own, named;
	char old[PATH_MAX];
	int len;

	if (fstat(log->fd, &own) < 0 || own.st_size < LOG_FILE_MAX ||
	    !S_ISREG(own.st_mode) || flock(log->fd, LOCK_EX | LOCK_NB) < 0)
		return;
	len = snprintf(old, sizeof(old), "%s.1", log->path);
	if (len < (int)sizeof(old) && lstat(log->path, &named) == 0 &&
	    named.st_ino == own.st_ino && named.st_dev == own.st_dev)
		(void)rename(log->path, old);
	(void)close(log->fd);
	log->fd = open_path(log->path);
}

/* Opens the file for the first line: most calls of STATUS and CHECK log none. */
static int open_file(struct log *log)
{
	if (log->fd < 0 && log->path[0]) {
		log->fd = open_path(log->path);
		if (log->fd >= 0)
			rotate(log);
	}
	return log->fd;
}

void log_close(struct log *log)
{
	if (log->fd >= 0)
		(void)close(log->fd);
	log->fd = -1;
}

static void add_time(struct log_words *line)
{
	struct timespec now;
	struct tm utc;
	char seconds[32], text[48];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &utc);
	(void)strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text, sizeof(text), "%s.%03ldZ", seconds,
		       now.tv_nsec / 1000000);
	log_add(line, "time", text);
}

void log_never_wait(struct log *log)
{
	uint64_t *lost = mmap(NULL, sizeof(*lost), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (lost == MAP_FAILED)
		return;
	log->lost = lost;
	stream_never_wait(log->fd);
}

static void begin_line(struct log_words *line, enum natra_log_level level)
{
	add_time(line);
	log_add(line, "level", natra_log_level_name(level));
}

/* Writes a line that may be lost, as a whole or not at all as far as readers see it: a stream
 * socket can take a part, which is ended before the next line. */
static bool try_whole(struct log *log, const char *line, size_t len)
{
	ssize_t done;

	if (log->is_cut && stream_try(log->fd, "\n", 1) != 1)
		return false;
	done = stream_try(log->fd, line, len);
	log->is_cut = done > 0 && (size_t)done < len;
	return done == (ssize_t)len;
}

/* Says how many lines are lost. Returns false if that is lost, too. */
static bool say_lost(struct log *log)
{
	uint64_t lost = __atomic_exchange_n(log->lost, 0, __ATOMIC_RELAXED);
	struct log_words line = {0};

	if (!lost)
		return true;
	begin_line(&line, NATRA_LOG_WARN);
	log_add(&line, "msg", "lines are lost here, since nobody read them");
	log_add_u64(&line, "lines", lost);
	line.text[line.len++] = '\n';
	if (try_whole(log, line.text, line.len))
		return true;
	__atomic_add_fetch(log->lost, lost, __ATOMIC_RELAXED);
	return false;
}

static bool put(struct log *log, const char *line, size_t len)
{
	/* A full disk is no reason to keep a pod from starting. */
	if (!log->lost)
		return write(log->fd, line, len) == (ssize_t)len;
	return say_lost(log) && try_whole(log, line, len);
}

size_t log_copy(struct log *log, const char *lines, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const char *end = memchr(lines + done, '\n', len - done);
		size_t part =
			end ? (size_t)(end + 1 - (lines + done)) : len - done;

		/* A pipe takes this as a whole or not at all. */
		if (part > LOG_LINE_MAX)
			part = LOG_LINE_MAX;
		if (!put(log, lines + done, part))
			break;
		done += part;
	}
	return done;
}

void log_line(struct log *log, enum natra_log_level level, const char *msg,
	      const struct log_words *words)
{
	struct log_words line = {0};

	if (log->fn && level <= log->level)
		log->fn(NULL, level, msg);
	if (log->fn || level > log->level || open_file(log) < 0)
		return;
	begin_line(&line, level);
	if (log->about.len) {
		add_bytes(&line, " ", 1);
		add_bytes(&line, log->about.text, log->about.len);
	}
	if (msg[0])
		log_add(&line, "msg", msg);
	if (words && words->len) {
		add_bytes(&line, " ", 1);
		add_bytes(&line, words->text, words->len);
	}
	line.text[line.len++] = '\n';
	if (!put(log, line.text, line.len) && log->lost)
		__atomic_add_fetch(log->lost, 1, __ATOMIC_RELAXED);
}

void log_write(struct log *log, enum natra_log_level level, const char *format,
	       ...)
{
	char msg[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(msg, sizeof(msg), format, args);
	va_end(args);
	log_line(log, level, msg, NULL);
}
