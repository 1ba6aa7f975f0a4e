/* SPDX-License-Identifier: BSD-2-Clause */
#include "pluginlog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/dir.h"
#include "../common/text.h"
#include "../pods/wish.h"

#define LOOK_MS      1000
/* At most this much is repeated at a time, and the rest later. If far more is left, the
 * agent skips it, and logs how much. */
#define LOOK_BYTES   16384
#define BEHIND_BYTES ((off_t)16 * LOOK_BYTES)

_Static_assert(LOOK_BYTES > LOG_LINE_MAX, "a line is read as a whole");

static int open_file(const struct pluginlog *p, struct stat *ret_st)
{
	int fd = dir_open_path(p->root_fd, p->file, O_RDONLY);

	if (fd >= 0 && (fstat(fd, ret_st) < 0 || !S_ISREG(ret_st->st_mode))) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void leave_out(struct pluginlog *p, off_t size)
{
	off_t to = size - LOOK_BYTES;

	log_write(p->log, NATRA_LOG_WARN,
		  "%s: %" PRIu64
		  " bytes are left out here, too many in a short time",
		  p->file, (uint64_t)(to - p->at));
	p->at = to;
}

static void repeat(struct pluginlog *p)
{
	char text[LOOK_BYTES];
	ssize_t len = pread(p->fd, text, sizeof(text), p->at);
	const char *end = len > 0 ? memrchr(text, '\n', (size_t)len) : NULL;

	/* The plugin writes a line in one piece. A part of a line is another writer's,
	 * and may wait for its rest up to a limit. */
	if (end)
		len = end + 1 - text;
	else if (len < LOG_LINE_MAX)
		return;
	/* What nobody reads now is in the file later, too. */
	p->at += (off_t)log_copy(p->log, text, (size_t)len);
}

/* Repeats what is new in the file. Returns whether something was. */
static bool go_on(struct pluginlog *p)
{
	struct stat st;
	off_t from;

	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return false;
	/* It was copied and truncated. */
	if (st.st_size < p->at)
		p->at = 0;
	from = p->at;
	if (st.st_size - p->at > BEHIND_BYTES)
		leave_out(p, st.st_size);
	if (st.st_size > p->at)
		repeat(p);
	return p->at != from;
}

static bool is_same(int fd, const struct stat *other)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == other->st_ino &&
	       st.st_dev == other->st_dev;
}

/* Opens the file that has the name now, unless it is the same one. Returns whether
 * there is another. */
static bool take_next(struct pluginlog *p)
{
	struct stat st;
	int fd = open_file(p, &st);

	if (fd < 0)
		return false;
	if (is_same(p->fd, &st)) {
		(void)close(fd);
		return false;
	}
	if (p->fd >= 0)
		(void)close(p->fd);
	p->fd = fd;
	p->at = 0;
	return true;
}

static void look(void *arg)
{
	struct pluginlog *p = arg;

	/* A file that was renamed is read to its end first. */
	if (p->file[0] && !go_on(p) && take_next(p))
		(void)go_on(p);
	timer_set(&p->timer, LOOK_MS);
}

/* Lines that are in the file already are older than this agent. */
static void pass_over(struct pluginlog *p)
{
	struct stat st = {0};

	p->fd = p->file[0] ? open_file(p, &st) : -1;
	p->at = st.st_size;
}

static char *file_of(cJSON *conf)
{
	return text_copy(wish_log_file(conf));
}

int pluginlog_open(struct pluginlog *p, const char *root, cJSON *conf,
		   struct loop *loop)
{
	int r;

	p->root_fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root_fd < 0)
		return -errno;
	p->loop = loop;
	p->file = file_of(conf);
	pass_over(p);
	r = timer_open(&p->timer, loop, look, p);
	if (r == 0)
		timer_set(&p->timer, LOOK_MS);
	return r;
}

void pluginlog_change(struct pluginlog *p, cJSON *conf)
{
	char *file = file_of(conf);

	if (strcmp(file, p->file) == 0) {
		free(file);
		return;
	}
	free(p->file);
	p->file = file;
	if (p->fd >= 0)
		(void)close(p->fd);
	pass_over(p);
	log_write(p->log, NATRA_LOG_INFO, "repeats the plugin's log: '%s'",
		  file);
}

void pluginlog_close(struct pluginlog *p)
{
	if (!p->loop)
		return;
	timer_close(&p->timer, p->loop);
	free(p->file);
	if (p->fd >= 0)
		(void)close(p->fd);
	(void)close(p->root_fd);
}
