/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotations.h"

#include <string.h>

#include "bandwidth.h"

#define PREFIX "natra.io/"

/* A reader returns NULL, or what is wrong with the value. */
typedef const char *(*read_fn)(struct natra_policy *policy, const char *text);

static const char *read_burst(const char *text, uint64_t rate,
			      uint64_t *ret_bytes)
{
	uint64_t bits;

	if (natra_parse_size(text, &bits) < 0)
		return "is not a number of bits such as 8M";
	if (!rate)
		return "if burst is set, rate must also be set";
	*ret_bytes = bandwidth_bytes(bits);
	return NULL;
}

static const char *read_ingress_burst(struct natra_policy *p, const char *text)
{
	return read_burst(text, p->ingress_rate_bits_per_sec,
			  &p->ingress_burst_bytes);
}

static const char *read_egress_burst(struct natra_policy *p, const char *text)
{
	return read_burst(text, p->egress_rate_bits_per_sec,
			  &p->egress_burst_bytes);
}

static const char *read_fast_pass(struct natra_policy *p, const char *text)
{
	return natra_parse_fast_pass(text, &p->fast_pass) == 0
		       ? NULL
		       : "is not free, charged or off";
}

static const char *read_ingress_mode(struct natra_policy *p, const char *text)
{
	return natra_parse_ingress_mode(text, &p->ingress_mode) == 0
		       ? NULL
		       : "is not police or pace";
}

static const char *read_threshold(struct natra_policy *p, const char *text)
{
	return natra_parse_size(text, &p->heavy_hitter_threshold_bytes) == 0
		       ? NULL
		       : "is not a number of bytes such as 125k";
}

static const char *read_edt_pacing(struct natra_policy *p, const char *text)
{
	return natra_parse_edt(text, &p->edt) == 0 ? NULL
						   : "is not auto, on or off";
}

/* README.md and natra-cni(8) have the same table. */
static const struct {
	const char *name;
	read_fn read;
} annotations[] = {
	{PREFIX "ingress-burst", read_ingress_burst},
	{PREFIX "egress-burst", read_egress_burst},
	{PREFIX "fast-pass", read_fast_pass},
	{PREFIX "ingress-mode", read_ingress_mode},
	{PREFIX "heavy-hitter-threshold", read_threshold},
	{PREFIX "edt-pacing", read_edt_pacing},
};

static const size_t annotations_len =
	sizeof(annotations) / sizeof(annotations[0]);

unsigned int annotations_bit(const char *name)
{
	for (size_t i = 0; name && i < annotations_len; i++) {
		if (strcmp(name, annotations[i].name) == 0 ||
		    strcmp(name, annotations[i].name + strlen(PREFIX)) == 0)
			return 1U << i;
	}
	return 0;
}

int annotations_read(struct natra_policy *policy,
		     const struct settings *settings, const struct conf *conf,
		     struct log *log, struct failure *failure)
{
	const cJSON *runtime, *pod = NULL;
	int r;

	r = conf_object(conf->json, "runtimeConfig", "runtimeConfig", &runtime,
			failure);
	if (r == 0)
		r = conf_object(
			runtime, "io.kubernetes.cri.pod-annotations",
			"runtimeConfig.io.kubernetes.cri.pod-annotations", &pod,
			failure);
	if (r)
		return r;
	for (size_t i = 0; i < annotations_len; i++) {
		const char *name = annotations[i].name;
		const cJSON *value = json_get_exact(pod, name);
		const char *wrong;

		if (!value)
			continue;
		if (!(settings->allowed_annotations & 1U << i)) {
			log_write(
				log, NATRA_LOG_INFO,
				"annotation %s is not in allowAnnotations: ignored",
				name);
			continue;
		}
		wrong = cJSON_IsString(value)
				? annotations[i].read(policy,
						      value->valuestring)
				: "is not a string";
		if (!wrong)
			continue;
		if (!settings->continue_on_error)
			return refuse(failure, CNI_BAD_CONFIG,
				      "annotation %s: %s: %s", name,
				      json_show(value).text, wrong);
		log_write(log, NATRA_LOG_ERROR,
			  "annotation %s: %s: %s: ignored", name,
			  json_show(value).text, wrong);
	}
	return 0;
}
