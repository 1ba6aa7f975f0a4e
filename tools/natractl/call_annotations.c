/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_annotations.h"

#include <errno.h>

#include "../../cni/annotations.h"
#include "../../cni/classes.h"
#include "../../cni/field.h"
#include "info.h"

static int read_allowed(struct request *request, unsigned int *ret_bits)
{
	const char **names = NULL;
	size_t len = 0;
	int r = call_read_texts(request, "allowAnnotations",
				cJSON_GetObjectItemCaseSensitive(
					request->json, "allowAnnotations"),
				&names, &len);

	for (size_t i = 0; i < len && r == 0; i++) {
		unsigned int bit = field_annotation_bit(names[i]);

		if (!bit)
			r = call_refuse(
				request,
				"allowAnnotations: '%s' is not an annotation that natra knows",
				names[i]);
		*ret_bits |= bit;
	}
	cJSON_free(names);
	return r;
}

/* Makes the part of the plugin's configuration in which it looks for annotations. */
static cJSON *make_conf(const struct request *request)
{
	cJSON *conf = cJSON_CreateObject();

	cJSON_AddItemToObject(
		cJSON_AddObjectToObject(conf, "runtimeConfig"),
		"io.kubernetes.cri.pod-annotations",
		cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(request->json,
								 "annotations"),
				true));
	return conf;
}

int call_annotations(struct request *request, struct natra *n,
		     const struct natra_policy *policy, natra_log_fn log_fn,
		     cJSON **ret)
{
	struct conf conf = {.json = make_conf(request)};
	struct settings settings = {.policy = *policy};
	struct log log = {
		.path = "", .fd = -1, .fn = log_fn, .level = NATRA_LOG_INFO};
	struct failure failure = {0};
	int r;

	r = call_read_bool(request, "continue", &settings.continue_on_error);
	if (r == 0)
		r = read_allowed(request, &settings.allowed_annotations);
	if (r == 0 &&
	    (annotations_read(&settings.policy, &settings, &conf, &log,
			      &failure) ||
	     classes_read_annotation(&settings, &conf, n, &log, &failure)))
		r = call_refuse(request, "%s", failure.msg);
	if (r == 0)
		*ret = policy_json(&settings.policy);
	settings_free(&settings);
	cJSON_Delete(conf.json);
	return r;
}
