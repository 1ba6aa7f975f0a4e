/* SPDX-License-Identifier: BSD-2-Clause */
#include "kubelet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../common/memory.h"
#include "podproto.h"

#define ANSWER_MAX_MS 15000
#define WATCH_MS      290000
/* A watch that has lasted this long does not count as failed. */
#define LIFE_MS       5000
#define WINDOW        65535 /* HTTP/2's at first */
/* gRPC's: whether the message is compressed, and its length. */
#define MESSAGE_HEAD  5
#define MESSAGE_MAX   (16 * 1024 * 1024)

/* Types and flags of frames, RFC 9113. */
enum {
	FRAME_DATA = 0,
	FRAME_HEADERS = 1,
	FRAME_RESET = 3,
	FRAME_SETTINGS = 4,
	FRAME_PING = 6,
	FRAME_GOAWAY = 7,
	FRAME_WINDOW = 8,
};
#define FLAG_END    0x1
#define FLAG_ACK    0x1
#define FLAG_PADDED 0x8

/* The whole of what is asked, as stream 1: the settings say that no state of compressed headers
 * is kept and nothing may be pushed; the headers are literal (RFC 7541); the message is empty. */
static const char question[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			       "\0\0\x0c\x04\0\0\0\0\0"
			       "\0\1\0\0\0\0"
			       "\0\2\0\0\0\0"
			       "\0\0\x47\x01\x04\0\0\0\1"
			       "\x83\x86"
			       "\x04\x18/v1alpha1.Pods/WatchPods"
			       "\x01\x09localhost"
			       "\x0f\x10\x10"
			       "application/grpc"
			       "\0\x02te\x08trailers"
			       "\0\0\5\0\1\0\0\0\1"
			       "\0\0\0\0\0";

static void disconnect(struct kubelet *k)
{
	loop_close_source(k->loop, &k->source);
	free(k->message);
	k->message = NULL;
	k->frame_len = k->message_len = k->message_size = k->taken = 0;
}

static void failed(struct kubelet *k, const char *why)
{
	if (k->is_answered && clock_ms() - k->since_ms >= LIFE_MS)
		backoff_reset(&k->backoff);
	disconnect(k);
	health_fail(k->feed->health, PART_API, NATRA_LOG_WARN,
		    "the kubelet: %s; edits of annotations wait", why);
	timer_set(&k->timer, backoff_next_ms(&k->backoff, 0));
}

/* Returns NULL, or why that has failed. It is a few bytes, for which there is always room where
 * the kubelet reads. */
static const char *say(const struct kubelet *k, const void *bytes, size_t len)
{
	ssize_t n = send(k->source.fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)len ? NULL : "does not read";
}

static size_t number_of(const uint8_t *bytes, size_t len)
{
	size_t number = 0;

	while (len--)
		number = number << 8 | *bytes++;
	return number;
}

/* Lets it send as many bytes again as it has sent, on the stream and in all, once they are half
 * of what it may: one answer to each small frame would fill the socket. */
static const char *widen(struct kubelet *k, size_t len)
{
	uint8_t frames[2][KUBELET_HEAD + 4] = {
		{[2] = 4, [3] = FRAME_WINDOW},
		{[2] = 4, [3] = FRAME_WINDOW, [8] = 1},
	};

	k->taken += len;
	if (k->taken < WINDOW / 2)
		return NULL;
	for (int i = 0; i < 2; i++) {
		frames[i][KUBELET_HEAD + 2] = (uint8_t)(k->taken >> 8);
		frames[i][KUBELET_HEAD + 3] = (uint8_t)k->taken;
	}
	k->taken = 0;
	return say(k, frames, sizeof(frames));
}

static const char *take_message(struct kubelet *k, const uint8_t *bytes,
				size_t len)
{
	static const char why[] = "it is not as Kubernetes writes it";
	struct podevent event;
	const char *wrong;

	podproto_read(&event, bytes, len);
	if (!k->is_answered)
		timer_set(&k->timer, WATCH_MS);
	k->is_answered = true;
	wrong = podfeed_event(k->feed, &event);
	if (event.type == PODEVENT_UNREADABLE)
		podfeed_unreadable(k->feed, &event, why);
	podevent_free(&event);
	return wrong;
}

static const char *take_data(struct kubelet *k, const uint8_t *bytes,
			     size_t len)
{
	size_t at = 0;

	if (k->message_len + len > k->message_size) {
		k->message_size = 2 * (k->message_len + len);
		k->message = memory_grow(k->message, k->message_size);
	}
	if (len)
		memcpy(k->message + k->message_len, bytes, len);
	k->message_len += len;
	while (k->message_len - at >= MESSAGE_HEAD) {
		const uint8_t *head = k->message + at;
		size_t size = number_of(head + 1, 4);
		const char *wrong;

		if (head[0] || size > MESSAGE_MAX)
			return "sends an event that is compressed or over 16 MiB";
		if (k->message_len - at < MESSAGE_HEAD + size)
			break;
		wrong = take_message(k, head + MESSAGE_HEAD, size);
		if (wrong)
			return wrong;
		at += MESSAGE_HEAD + size;
	}
	k->message_len -= at;
	if (at && k->message_len)
		memmove(k->message, k->message + at, k->message_len);
	return NULL;
}

/* Returns NULL, or why the watch has ended. */
static const char *take_frame(struct kubelet *k, uint8_t *frame, size_t len)
{
	uint8_t *flags = &frame[4], *payload = frame + KUBELET_HEAD;
	const char *wrong = NULL;

	switch (frame[3]) {
	case FRAME_DATA:
		if (*flags & FLAG_PADDED)
			return "pads its answer";
		wrong = take_data(k, payload, len);
		if (!wrong)
			wrong = widen(k, len);
		break;
	case FRAME_HEADERS:
		break;
	case FRAME_RESET:
	case FRAME_GOAWAY:
		return "ends the watch";
	case FRAME_SETTINGS:
	case FRAME_PING:
		if (*flags & FLAG_ACK)
			return NULL;
		/* A ping comes back as it is, and the answer to settings is empty. */
		*flags = FLAG_ACK;
		if (frame[3] == FRAME_SETTINGS)
			frame[0] = frame[1] = frame[2] = 0;
		return say(k, frame,
			   KUBELET_HEAD + (frame[3] == FRAME_PING ? len : 0));
	default:
		return NULL;
	}
	return !wrong && *flags & FLAG_END
		       ? "ends the watch, or has no pods API v1alpha1"
		       : wrong;
}

static const char *take_frames(struct kubelet *k)
{
	size_t at = 0;

	while (k->frame_len - at >= KUBELET_HEAD) {
		size_t len = number_of(k->frame + at, 3);
		const char *wrong;

		if (len > KUBELET_FRAME_MAX)
			return "does not speak HTTP/2";
		if (k->frame_len - at < KUBELET_HEAD + len)
			break;
		wrong = take_frame(k, k->frame + at, len);
		if (wrong)
			return wrong;
		at += KUBELET_HEAD + len;
	}
	k->frame_len -= at;
	if (at && k->frame_len)
		memmove(k->frame, k->frame + at, k->frame_len);
	return NULL;
}

static void ready(void *arg, uint32_t events)
{
	struct kubelet *k = arg;
	const char *wrong;
	ssize_t n = recv(k->source.fd, k->frame + k->frame_len,
			 sizeof(k->frame) - k->frame_len, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		k->frame_len += (size_t)n;
	wrong = n < 0    ? strerror(errno)
		: n == 0 ? "ends the connection"
			 : take_frames(k);
	if (wrong)
		failed(k, wrong);
}

static int start(struct kubelet *k)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(k->path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, k->path, strlen(k->path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	k->source = (struct source){fd, ready, k};
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return loop_add(k->loop, &k->source, EPOLLIN);
}

static void begin(struct kubelet *k)
{
	int r = start(k);
	const char *wrong =
		r < 0 ? strerror(-r) : say(k, question, sizeof(question) - 1);

	k->since_ms = clock_ms();
	k->is_answered = false;
	if (wrong)
		failed(k, wrong);
	else
		timer_set(&k->timer, ANSWER_MAX_MS);
}

static void time_over(void *arg)
{
	struct kubelet *k = arg;

	if (k->source.fd >= 0 && !k->is_answered) {
		failed(k, "no answer");
		return;
	}
	disconnect(k);
	begin(k);
}

int kubelet_open(struct kubelet *k)
{
	int r = timer_open(&k->timer, k->loop, time_over, k);

	k->source = (struct source)SOURCE_INIT;
	if (r < 0)
		return r;
	health_expect(k->feed->health, PART_API);
	return 0;
}

void kubelet_begin(struct kubelet *k)
{
	timer_set(&k->timer, 0);
}

void kubelet_again(struct kubelet *k)
{
	/* If there is no connection, it waits to begin. */
	if (k->source.fd < 0)
		return;
	disconnect(k);
	begin(k);
}

void kubelet_close(struct kubelet *k)
{
	if (!k->timer.expired)
		return;
	disconnect(k);
	timer_close(&k->timer, k->loop);
}
