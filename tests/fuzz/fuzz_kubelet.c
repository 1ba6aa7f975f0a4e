/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads what a kubelet sends, from frames of HTTP/2 to events: there is no crash, and what is
 * read does not depend on how the bytes are cut. The input begins with a byte from which the
 * sizes of the parts follow.
 */
#include "../../tools/agent/kubelet.c"
#include "../../tools/common/log.h"
#include "../../tools/common/text.h"
#include "fake_loop.h"
#include "fuzz.h"

static uint64_t hash;

static bool seen(void *arg, const struct podevent *event)
{
	(void)arg;
	require(podevent_has_names(event));
	hash = hash * 31 + text_hash(event->uid);
	return true;
}

static void unreadable(void *arg, const struct podevent *event, const char *why)
{
	(void)seen(arg, event);
	hash = hash * 31 + text_hash(why);
}

/* Sends the bytes in parts, all at once if `seed` is 0. Returns a hash of what was seen, and
 * whether the watch has ended. */
static uint64_t talk(const uint8_t *data, size_t size, unsigned int seed)
{
	struct log log = LOG_INIT;
	struct health health;
	struct podfeed feed = {&health, seen, unreadable, NULL, 0};
	struct kubelet k = {.feed = &feed};
	char answers[4096];
	int ends[2];

	health_init(&health, &log);
	hash = 0;
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	require(kubelet_open(&k) == 0);
	k.source = (struct source){ends[0], ready, &k};
	while (size && k.source.fd >= 0) {
		size_t part = seed ? 1 + seed % 97 : size;

		seed = seed * 1103515245U + 12345U;
		part = part < size ? part : size;
		require(send(ends[1], data, part, MSG_NOSIGNAL) ==
			(ssize_t)part);
		data += part;
		size -= part;
		ready(&k, 0);
		while (recv(ends[1], answers, sizeof(answers), 0) > 0)
			;
	}
	hash = hash * 31 + (k.source.fd < 0) + 2 * health.unreadable_events;
	kubelet_close(&k);
	(void)close(ends[1]);
	return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > KUBELET_FRAME_MAX)
		return 0;
	require(talk(data + 1, size - 1, 0) ==
		talk(data + 1, size - 1, 1U + data[0]));
	return 0;
}
