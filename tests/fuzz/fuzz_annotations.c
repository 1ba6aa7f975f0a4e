/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a pod's annotations, which the tenant writes: there is no crash, the
 * library accepts what the plugin accepts, and an annotation that is not
 * allowed changes nothing. The input begins with which annotations are allowed;
 * then come their values in the order of the table, each ended by '\0'.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "annotations.h"
#include "classes.h"
#include "field.h"

static const char *const names[] = {
	"natra.io/ingress-burst", "natra.io/egress-burst",
	"natra.io/fast-pass",     "natra.io/fast-pass-guard",
	"natra.io/ingress-mode",  "natra.io/heavy-hitter-threshold",
	"natra.io/edt-pacing",    "natra.io/sli",
	CLASSES_ANNOTATION,
};

static cJSON *make_conf(const char *text, const char *end)
{
	cJSON *conf = cJSON_CreateObject();
	cJSON *runtime = cJSON_AddObjectToObject(conf, "runtimeConfig");
	cJSON *pod = cJSON_AddObjectToObject(
		runtime, "io.kubernetes.cri.pod-annotations");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		/* An empty value stands for no annotation. */
		if (*text)
			cJSON_AddStringToObject(pod, names[i], text);
		text += strlen(text);
		text += text < end;
	}
	return conf;
}

static void judge(const struct conf *conf, unsigned int allowed,
		  bool continue_on_error, bool limited)
{
	struct settings settings = {
		.policy = NATRA_INIT(settings.policy),
		.allowed_annotations = allowed,
		.continue_on_error = continue_on_error,
	};
	struct failure failure = {0};
	struct natra_policy before;
	struct log log = LOG_INIT;
	struct natra *n;
	int r;

	if (limited) {
		settings.policy.ingress_rate_bits_per_sec = 10000000;
		settings.policy.egress_rate_bits_per_sec = 20000000;
	}
	before = settings.policy;
	require(natra_open(&n, NULL) == 0);
	r = annotations_read(&settings.policy, &settings, conf, &log, &failure);
	if (r == 0)
		r = classes_read_annotation(&settings, conf, n, &log, &failure);
	require((r == 0) == (failure.msg[0] == '\0'));
	require(!r || !continue_on_error);
	/* Annotations cannot change rates. */
	require(settings.policy.ingress_rate_bits_per_sec ==
			before.ingress_rate_bits_per_sec &&
		settings.policy.egress_rate_bits_per_sec ==
			before.egress_rate_bits_per_sec);
	if (!allowed)
		require(r == 0 &&
			memcmp(&before, &settings.policy, sizeof(before)) == 0);
	/* The library accepts what the plugin accepts. */
	require(r || natra_policy_check(n, &settings.policy) == 0);
	settings_free(&settings);
	natra_close(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;
	struct conf conf = {.name = "net"};

	if (size < 1)
		return 0;
	text = text_of(data + 1, size - 1);
	if (!text)
		return 0;
	conf.json = make_conf(text, text + size - 1);
	judge(&conf,
	      (data[0] & 0x1f) |
		      (data[0] & 0x20 ? FIELD_CLASSES_BIT | 0x20 : 0),
	      data[0] & 0x40, data[0] & 0x80);
	judge(&conf, 0, false, true);
	conf_free(&conf);
	free(text);
	return 0;
}
