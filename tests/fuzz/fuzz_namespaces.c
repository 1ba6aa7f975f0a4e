/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the file of namespaces: there is no crash, what is refused is named in one line, and no pod
 * has more than the maximum of a rule that was accepted. The input is the file; the pod asks for
 * all that there is.
 */
#include <stdio.h>

#include "../../tools/common/namespaces.h"
#include "fuzz.h"

static void judge(const cJSON *file, const char *pod)
{
	struct natra_policy policy = NATRA_INIT(policy), limits;
	struct namespaces_error error;
	struct namespace_note note = {""};
	struct namespace_rule rule;
	const struct natra_policy conf = policy;

	require(namespaces_find(file, pod, &rule, &error) == 0);
	namespace_fill(&rule, &policy);
	policy.egress_rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	policy.egress_burst_bits = UINT64_MAX;
	if (!namespace_limits(&rule, &conf, &limits))
		return;
	namespace_lower(&limits, true, &policy, &note);
	if (limits.egress_rate_bits_per_sec)
		require(policy.egress_rate_bits_per_sec <=
				limits.egress_rate_bits_per_sec &&
			note.text[0]);
	if (limits.ingress_rate_bits_per_sec)
		require(policy.ingress_rate_bits_per_sec &&
			policy.ingress_rate_bits_per_sec <=
				limits.ingress_rate_bits_per_sec);
	require(policy.fast_pass >= limits.fast_pass);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct namespaces_error error = {""};
	char *text = text_of(data, size);
	cJSON *file = NULL;

	if (!text)
		return 0;
	if (namespaces_parse(text, &file, &error) < 0) {
		require(error.text[0] && !strchr(error.text, '\n') && !file);
	} else {
		const cJSON *item;

		judge(file, "");
		judge(file, "a/b");
		cJSON_ArrayForEach(item, file)
		{
			char pod[80];

			(void)snprintf(pod, sizeof(pod), "%s/p", item->string);
			if (!cJSON_IsNull(item))
				judge(file, pod);
		}
	}
	cJSON_Delete(file);
	free(text);
	return 0;
}
