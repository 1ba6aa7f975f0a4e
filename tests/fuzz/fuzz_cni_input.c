/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a runtime writes to the CNI plugin: there is no crash, and each
 * result that is printed is JSON. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "env.h"
#include "command.h"
#include "result.h"
#include "wanted.h"
#include "../../tools/common/annotations.h"

/* Requires a text with each error code, and none after success. */
static int told(int r, const struct failure *failure)
{
	require((r == 0) == (failure->msg[0] == '\0'));
	require(r == 0 || r == (int)failure->code);
	return r;
}

static void read_limits(const struct conf *conf, struct natra *n)
{
	struct call call = {.conf = *conf, .n = n};
	struct settings s = {0};
	struct natra_class *classes = NULL;

	if (told(call_read_asker(&call), &call.failure) == 0 &&
	    told(wanted_read_keys(&s, conf->json, &call.asker, n,
				  &call.failure),
		 &call.failure) == 0) {
		/* The fuzzer allows all annotations, not only those that the
		 * input allows. */
		call.asker.annotations.allow_all = true;
		/* The library accepts what it has read. */
		if (natra_policy_annotate(n, &s.policy, &call.asker.annotations,
					  &classes) == 0)
			require(natra_policy_check(n, &s.policy) == 0);
	}
	free(classes);
	settings_free(&s);
	annotations_free(&call.asker.annotations);
}

static void make_result(struct conf *conf)
{
	struct failure failure = {0};
	char *result = NULL;
	struct conf again;
	size_t at = 0;

	if (told(result_make(conf, &result, &failure), &failure)) {
		require(!result);
		return;
	}
	require(json_check(result, strlen(result), &at));
	/* The result has the version of the request. */
	again = (struct conf){.json = cJSON_Parse(result)};
	require(strcmp(json_text(json_get(again.json, "cniVersion")),
		       version_name(conf->version)) == 0);
	conf_free(&again);
	cJSON_free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct failure failure = {0};
	char *text = text_of(data, size), pod[NATRA_NAME_MAX + 1];
	struct conf conf;
	struct natra *n;

	if (!text)
		return 0;
	require(natra_open(&n, NULL) == 0);
	if (told(conf_parse(&conf, text, size, &failure), &failure) == 0) {
		require(settings_log(conf.json).file != NULL);
		read_limits(&conf, n);
		make_result(&conf);
	}
	conf_free(&conf);
	/* The same bytes are also read as CNI_ARGS. */
	env_pod(text, pod, sizeof(pod));
	natra_close(n);
	free(text);
	return 0;
}
