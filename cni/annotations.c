/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotations.h"

#include "field.h"

/* Bursts are in bits, as in the keys of upstream's plugin. */
static struct mistake read_burst(const struct policy_field *field,
				 const char *text, struct natra_policy *policy)
{
	uint64_t bits;

	if (natra_parse_size(text, &bits) < 0)
		return field_mistake(field);
	if (!policy_field_rate(field, policy))
		return (struct mistake){
			"if burst is set, rate must also be set"};
	policy_field_set(field, policy, bits);
	return (struct mistake){""};
}

/* Checks what the library would refuse the whole policy for: a time that is too long, and
 * a limit of packets without a rate. */
static struct mistake read_field(const struct policy_field *field,
				 const cJSON *value,
				 struct natra_policy *policy)
{
	uint64_t before = policy_field_get(field, policy);
	struct mistake mistake = field_read(field, value, policy);
	bool is_count = field->unit == POLICY_COUNT;

	if (mistake.text[0])
		return mistake;
	if (is_count && !policy_field_counts(field, policy)) {
		policy_field_set(field, policy, before);
		return (struct mistake){"needs a rate, which is not set"};
	}
	if ((field->unit != POLICY_TIME && !is_count) ||
	    policy_field_get(field, policy) <= field->max)
		return mistake;
	policy_field_set(field, policy, before);
	return is_count ? field_mistake(field)
			: (struct mistake){"is more than 9s"};
}

static int read_one(const struct policy_field *field, const char *name,
		    const cJSON *value, struct natra_policy *policy,
		    struct failure *failure)
{
	const char *text = json_text(value);
	struct mistake mistake = {"is not a string"};

	if (text)
		mistake = field->unit == POLICY_BURST
				  ? read_burst(field, text, policy)
				  : read_field(field, value, policy);
	if (!mistake.text[0])
		return 0;
	return refuse(failure, CNI_BAD_CONFIG, "annotation %s: %s: %s", name,
		      json_show(value).text, mistake.text);
}

/* Returns the field's annotation, by natra's own name or else by the other one. */
static const cJSON *find(const cJSON *pod, const struct policy_field *field,
			 const char **ret_name)
{
	const char *const names[] = {policy_field_annotation(field),
				     field->alias};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name = names[i];
		const cJSON *value = name ? json_get_exact(pod, name) : NULL;

		*ret_name = name;
		if (value)
			return value;
	}
	return NULL;
}

int annotations_find(const struct conf *conf, const cJSON **ret,
		     struct failure *failure)
{
	const cJSON *runtime;
	int r = conf_object(conf->json, "runtimeConfig", "runtimeConfig",
			    &runtime, failure);

	*ret = NULL;
	return r ? r
		 : conf_object(
			   runtime, "io.kubernetes.cri.pod-annotations",
			   "runtimeConfig.io.kubernetes.cri.pod-annotations",
			   ret, failure);
}

static void log_ignored(const cJSON *pod, struct log *log)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, pod)
	{
		if (!field_is_ignored(item->string))
			continue;
		log_write(log, NATRA_LOG_INFO,
			  "annotation %s: the burst is that of 0.1 s: ignored",
			  item->string);
		return;
	}
}

int annotations_read(struct natra_policy *policy,
		     const struct settings *settings, const struct conf *conf,
		     struct log *log, struct failure *failure)
{
	const cJSON *pod;
	int r = annotations_find(conf, &pod, failure);

	if (r)
		return r;
	log_ignored(pod, log);
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const char *name = NULL;
		const cJSON *value = find(pod, field, &name);
		struct failure wrong;

		if (!value)
			continue;
		if (!(settings->allowed_annotations & 1U << i)) {
			log_write(
				log, NATRA_LOG_INFO,
				"annotation %s is not in allowAnnotations: ignored",
				name);
			continue;
		}
		if (policy_field_is_of_group(field) && !policy->group) {
			log_write(
				log, NATRA_LOG_INFO,
				"annotation %s: the pod is in no group: ignored",
				name);
			continue;
		}
		r = read_one(field, name, value, policy, &wrong);
		if (r && !settings->continue_on_error) {
			*failure = wrong;
			return r;
		}
		if (r)
			log_write(log, NATRA_LOG_ERROR, "%s: ignored",
				  wrong.msg);
	}
	return 0;
}
