/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define FIRST_BYTES 16384

/* Returns whether to try again: the call was interrupted, or the descriptor is
 * non-blocking and is ready now. */
static bool may_go_on(int fd, short events)
{
	struct pollfd pollfd = {.fd = fd, .events = events};

	if (errno == EAGAIN)
		(void)poll(&pollfd, 1, -1);
	return errno == EAGAIN || errno == EINTR;
}

int stream_read_all(int fd, char **ret_text, size_t *ret_len)
{
	size_t size = FIRST_BYTES, len = 0;
	char *text = memory_new(size);
	int r = 0;

	for (;;) {
		ssize_t more = read(fd, text + len, size - 1 - len);

		if (more < 0 && may_go_on(fd, POLLIN))
			continue;
		r = more < 0 ? -errno : 0;
		if (more <= 0)
			break;
		len += (size_t)more;
		if (len + 1 < size)
			continue;
		r = size >= STREAM_MOST_BYTES ? -EFBIG : 0;
		if (r < 0)
			break;
		size *= 2;
		text = memory_grow(text, size);
	}
	if (r < 0) {
		free(text);
		return r;
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int stream_write(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t r = write(fd, text, len);

		if (r < 0 && may_go_on(fd, POLLOUT))
			continue;
		if (r < 0)
			return -errno;
		text += r;
		len -= (size_t)r;
	}
	return 0;
}

void stream_never_wait(int fd)
{
	char path[32];
	struct stat st;
	int anew;

	if (fstat(fd, &st) < 0 ||
	    (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	anew = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (anew < 0)
		return;
	(void)dup2(anew, fd);
	(void)close(anew);
}

ssize_t stream_try(int fd, const char *text, size_t len)
{
	ssize_t r = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r < 0 && errno == ENOTSOCK)
		r = write(fd, text, len);
	return r < 0 ? -errno : r;
}
