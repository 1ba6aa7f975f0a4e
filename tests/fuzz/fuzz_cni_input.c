/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a runtime writes to the CNI plugin: there is no crash, and each
 * result that is printed is JSON. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "annotations.h"
#include "bandwidth.h"
#include "env.h"
#include "groups.h"
#include "result.h"
#include "json.h"

/* Requires a text with each error code, and none after success. */
static int told(int r, const struct failure *failure)
{
	require((r == 0) == (failure->msg[0] == '\0'));
	require(r == 0 || r == (int)failure->code);
	return r;
}

static void read_limits(const struct conf *conf, struct natra *n)
{
	struct failure failure = {0};
	struct log log = LOG_INIT;
	struct settings s;

	if (told(settings_read(&s, conf, n, &failure), &failure))
		return;
	/* The fuzzer allows all annotations, not only those that the input
	 * allows. */
	s.allowed_annotations = ~0U;
	if (told(bandwidth_read(&s, conf, n, &failure), &failure) ||
	    told(groups_read(&s, conf, &failure), &failure) ||
	    told(annotations_read(&s.policy, &s, conf, &log, &failure),
		 &failure))
		return;
	/* The library accepts what the plugin accepts. */
	require(natra_policy_check(n, &s.policy) == 0);
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
		require(settings_log(&conf).file != NULL);
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
