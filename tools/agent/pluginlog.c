/* SPDX-License-Identifier: BSD-2-Clause */
#include "pluginlog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../cni/settings.h"
#include "../install/dir.h"

#define LOOK_MS      1000
/* So much is repeated at a look, and the rest later; if far more is left, it is left
 * out, and the log says how much. */
#define LOOK_BYTES   16384
#define BEHIND_BYTES ((off_t)16 * LOOK_BYTES)

_Static_assert(LOOK_BYTES > LOG_LINE_MAX, "a line is read as a whole");

/* Opens the file of this moment: it may have been rotated. */
static int open_file(const struct pluginlog *p, struct stat *ret_st)
{
	int fd = dir_open_path(p->root_fd, p->file, O_RDONLY);

	if (fd >= 0 && (fstat(fd, ret_st) < 0 || !S_ISREG(ret_st->st_mode))) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void note_place(struct pluginlog *p, const struct stat *st)
{
	bool is_same = p->inode == st->st_ino && p->device == st->st_dev;

	if (!is_same || st->st_size < p->at)
		p->at = 0;
	p->device = st->st_dev;
	p->inode = st->st_ino;
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

static void repeat(struct pluginlog *p, int fd)
{
	char text[LOOK_BYTES];
	ssize_t r, len = pread(fd, text, sizeof(text), p->at);
	const char *end = len > 0 ? memrchr(text, '\n', (size_t)len) : NULL;

	/* The plugin writes a line in one piece, so a piece of another writer's
	 * may wait; but not without an end. */
	if (end)
		len = end + 1 - text;
	else if (len < LOG_LINE_MAX)
		return;
	r = write(p->log->fd, text, (size_t)len);
	(void)r;
	p->at += len;
}

static void look(void *arg)
{
	struct pluginlog *p = arg;
	struct stat st;
	int fd = open_file(p, &st);

	if (fd >= 0) {
		note_place(p, &st);
		if (st.st_size - p->at > BEHIND_BYTES)
			leave_out(p, st.st_size);
		if (st.st_size > p->at)
			repeat(p, fd);
		(void)close(fd);
	}
	timer_set(&p->timer, LOOK_MS);
}

/* What is in the file already is from before. */
static void pass_over(struct pluginlog *p)
{
	struct stat st;
	int fd = open_file(p, &st);

	if (fd < 0)
		return;
	note_place(p, &st);
	p->at = st.st_size;
	(void)close(fd);
}

int pluginlog_open(struct pluginlog *p, const char *root, cJSON *conf,
		   struct loop *loop)
{
	const struct conf keys = {.json = conf};
	int r;

	p->file = settings_log(&keys).file;
	if (!p->file[0])
		return 0;
	p->root_fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root_fd < 0)
		return -errno;
	p->loop = loop;
	r = timer_open(&p->timer, loop, look, p);
	if (r < 0)
		return r;
	pass_over(p);
	timer_set(&p->timer, LOOK_MS);
	return 0;
}

void pluginlog_close(struct pluginlog *p)
{
	if (!p->loop)
		return;
	timer_close(&p->timer, p->loop);
	(void)close(p->root_fd);
}
