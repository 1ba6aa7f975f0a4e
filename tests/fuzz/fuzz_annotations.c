/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a pod's annotations, which the tenant writes: there is no crash, what is accepted
 * makes a policy that is valid, and an annotation that is not allowed changes nothing. The
 * input begins with a byte of options; then come the values in the order of the table, each
 * ended by '\0'.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <natra/natra.h>

#include "fuzz.h"

static const char *const names[] = {
	"natra.io/ingress-burst", "natra.io/egress-burst",
	"natra.io/fast-pass",     "natra.io/fast-pass-share",
	"natra.io/ingress-mode",  "natra.io/heavy-hitter-threshold",
	"natra.io/edt-pacing",    "natra.io/sli",
	"natra.io/classes",
};

#define NAMES (sizeof(names) / sizeof(names[0]))

/* Each bit of `allowed` is for a name of the table. */
static void judge(const struct natra_annotation *list, unsigned int allowed,
		  bool skip_bad, bool limited)
{
	const char *may[NAMES];
	struct natra_annotations asked = {.sz = sizeof(asked),
					  .annotations = list,
					  .annotations_len = NAMES,
					  .allowed = may,
					  .skip_bad = skip_bad};
	struct natra_policy policy = NATRA_INIT(policy), before;
	struct natra_class *classes = NULL;
	struct natra *n;
	int r;

	for (size_t i = 0; i < NAMES; i++) {
		if (allowed & 1U << i)
			may[asked.allowed_len++] = names[i];
	}
	if (limited) {
		policy.ingress_rate_bits_per_sec = 10000000;
		policy.egress_rate_bits_per_sec = 20000000;
	}
	before = policy;
	require(natra_open(&n, NULL) == 0);
	r = natra_policy_annotate(n, &policy, &asked, &classes);
	require((r == 0) == (natra_error(n)[0] == '\0'));
	require(!r || !skip_bad);
	if (!allowed || r)
		require(memcmp(&before, &policy, sizeof(before)) == 0);
	if (!allowed)
		require(r == 0);
	require(r || natra_policy_check(n, &policy) == 0);
	free(classes);
	natra_close(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct natra_annotation list[NAMES] = {0};
	const char *at, *end;
	char *text;

	if (size < 1)
		return 0;
	text = text_of(data + 1, size - 1);
	if (!text)
		return 0;
	at = text;
	end = text + size - 1;
	for (size_t i = 0; i < NAMES; i++) {
		/* An empty value stands for no annotation. */
		list[i] = (struct natra_annotation){names[i], *at ? at : NULL};
		at += strlen(at);
		at += at < end;
	}
	judge(list, (data[0] & 0x1f) | (data[0] & 0x20 ? 0x1e0 : 0),
	      data[0] & 0x40, data[0] & 0x80);
	judge(list, 0, false, true);
	free(text);
	return 0;
}
