/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a file of libcni's cache, whole and torn, and what its pod should have: there is no
 * crash, and what counts as an interface has an id. The input begins with two bytes that say
 * where the file is torn.
 */
#include "../../tools/pods/cached.h"
#include "../../tools/pods/wish.h"
#include "fuzz.h"

static void look(const struct cached *cached)
{
	struct natra *n;
	struct wish wish;
	struct failure failure = {0};
	struct log log = LOG_INIT;
	const struct wish_source source = {NULL, NULL};

	require(natra_open(&n, NULL) == 0);
	require((wish_read(&wish, cached, &source, NULL, n, &log, &failure) ==
		 0) == (failure.msg[0] == '\0'));
	if (!failure.msg[0])
		require(natra_policy_check(n, &wish.settings.policy) == 0 ||
			natra_error(n)[0]);
	wish_free(&wish);
	natra_close(n);
}

static enum cached_kind judge(const char *text)
{
	char id[NATRA_ID_MAX + 1], pod[NATRA_NAME_MAX + 1];
	struct cached cached;
	enum cached_kind kind = cached_read(text, &cached);

	require(cached.json && cached.pod_uid && cached.netns);
	cached_pod(&cached, pod, sizeof(pod));
	if (kind == CACHED_INTERFACE) {
		require(cJSON_IsObject(cached.list));
		if (cached_id(&cached, id, sizeof(id)))
			require(strlen(id) >= strlen("n/c/i"));
		look(&cached);
	}
	cached_free(&cached);
	return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;
	size_t at;

	if (size < 3)
		return 0;
	text = text_of(data + 2, size - 2);
	if (!text)
		return 0;
	(void)judge(text);
	at = (data[0] << 8 | data[1]) % (size - 2);
	text[at] = '\0';
	/* An object that lacks its end is none. */
	if (judge(text) != CACHED_UNREADABLE)
		require(text[0] != '{' || strchr(text, '}'));
	free(text);
	return 0;
}
