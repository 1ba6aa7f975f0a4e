/* SPDX-License-Identifier: BSD-2-Clause */
#include "dirwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "../common/dir.h"
#include "../common/text.h"

/* Not every owner of a file replaces it in one step, hence IN_MODIFY. */
#define EVENTS                                                                 \
	(IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |  \
	 IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

#define QUIET_WAIT_MAX_MS 500

/* The temporary names that natra's installers use, see tools/common/dir.h. They can be
 * ignored: each change ends with an event of another name. */
#define OWN_PREFIX ".natra-install."

static bool is_own(const struct inotify_event *event)
{
	return event->len &&
	       strncmp(event->name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

static bool is_removal(const struct inotify_event *event)
{
	return event->len && (event->mask & IN_CREATE) &&
	       strcmp(event->name, DIR_REMOVAL) == 0;
}

struct seen {
	bool change, removal;
};

/* Reads some of the events that wait. Returns false if there were none. */
static bool read_events(const struct dirwatch *watch, struct seen *seen)
{
	union {
		struct inotify_event event;
		char bytes[4096];
	} buffer;
	ssize_t len = read(watch->source.fd, &buffer, sizeof(buffer));

	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event =
			(const void *)(buffer.bytes + at);

		seen->change |= !is_own(event);
		seen->removal |= is_removal(event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return len > 0;
}

static void watch_ready(void *arg, uint32_t events)
{
	struct dirwatch *watch = arg;
	struct seen seen = {0};

	(void)events;
	(void)read_events(watch, &seen);
	if (seen.removal)
		watch->removed(watch->arg);
	else if (seen.change)
		watch->changed(watch->arg);
}

bool dirwatch_drain(const struct dirwatch *watch)
{
	struct seen seen = {0};

	while (read_events(watch, &seen))
		continue;
	return seen.removal;
}

bool dirwatch_note(struct unseen *unseen)
{
	const uint64_t now_ms = clock_ms();

	if (!unseen->is_changed)
		unseen->first_ms = now_ms;
	unseen->is_changed = true;
	return now_ms - unseen->first_ms < QUIET_WAIT_MAX_MS;
}

void dirwatch_pause(struct dirwatch *watch)
{
	(void)loop_change(watch->loop, &watch->source, 0);
}

void dirwatch_resume(struct dirwatch *watch)
{
	(void)loop_change(watch->loop, &watch->source, EPOLLIN);
}

int dirwatch_open(struct dirwatch *watch, struct loop *loop)
{
	int r, fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	watch->loop = loop;
	watch->source = (struct source){fd, watch_ready, watch};
	if (fd < 0)
		return -errno;
	r = loop_add(loop, &watch->source, EPOLLIN);
	if (r < 0)
		dirwatch_close(watch);
	return r;
}

bool dirwatch_is_open(const struct dirwatch *watch)
{
	return watch->source.fd >= 0;
}

int dirwatch_add(struct dirwatch *watch, int dir_fd)
{
	char path[64];
	int number;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	number = inotify_add_watch(watch->source.fd, path, EVENTS);
	if (number < 0)
		return -errno;
	if (number <= watch->newest)
		return 0;
	watch->newest = number;
	return 1;
}

void dirwatch_add_file(struct dirwatch *watch, const char *path)
{
	cleanup_text char *copy = text_copy(path);
	cleanup_close int fd =
		open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && dirwatch_is_open(watch))
		(void)dirwatch_add(watch, fd);
}

void dirwatch_close(struct dirwatch *watch)
{
	if (watch->loop)
		loop_close_source(watch->loop, &watch->source);
}
