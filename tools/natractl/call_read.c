/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../src/policy/fields.h"
#include "../../src/util/str.h"

/* Doubles, which cJSON's numbers are, are exact below this. Larger numbers have to be
 * given as strings. */
#define EXACT_BELOW 9007199254740992.0

int call_refuse(struct request *request, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(request->error, sizeof(request->error), format, args);
	va_end(args);
	str_one_line(request->error);
	return -EINVAL;
}

int call_read_known(struct request *request, const char *what,
		    const cJSON *object, const char *const *names)
{
	const cJSON *member;

	cJSON_ArrayForEach(member, object)
	{
		size_t i = 0;

		while (names[i] && strcmp(names[i], member->string) != 0)
			i++;
		if (!names[i])
			return call_refuse(
				request, "%s%s: natractl %s does not know it",
				what, member->string, natra_version());
	}
	return 0;
}

int call_read_text_of(struct request *request, const char *what,
		      const char *name, const cJSON *value,
		      const char **ret_text)
{
	if (!value || cJSON_IsNull(value))
		return 0;
	if (!cJSON_IsString(value))
		return call_refuse(request, "%s%s: is not a string", what,
				   name);
	*ret_text = value->valuestring;
	return 0;
}

int call_read_text(struct request *request, const char *name,
		   const char **ret_text)
{
	return call_read_text_of(
		request, "", name,
		cJSON_GetObjectItemCaseSensitive(request->json, name),
		ret_text);
}

static bool digits_to_u64(const char *text, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!text[0] || text[strspn(text, "0123456789")])
		return false;
	for (; *text; text++) {
		const unsigned int digit = (unsigned int)(*text - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

int call_read_number_of(struct request *request, const char *what,
			const char *name, const cJSON *value, uint64_t max,
			uint64_t *ret_number)
{
	uint64_t number = 0;
	bool good = false;

	if (!value || cJSON_IsNull(value))
		return 0;
	if (cJSON_IsString(value)) {
		good = digits_to_u64(value->valuestring, &number);
	} else if (cJSON_IsNumber(value) && value->valuedouble >= 0 &&
		   value->valuedouble < EXACT_BELOW) {
		number = (uint64_t)value->valuedouble;
		good = (double)number == value->valuedouble;
	}
	if (!good || number > max)
		return call_refuse(
			request,
			"%s%s: is not a whole number from 0 to %" PRIu64, what,
			name, max);
	*ret_number = number;
	return 0;
}

int call_read_number(struct request *request, const char *name, uint64_t max,
		     uint64_t *ret_number)
{
	return call_read_number_of(
		request, "", name,
		cJSON_GetObjectItemCaseSensitive(request->json, name), max,
		ret_number);
}

int call_read_bool(struct request *request, const char *name, bool *ret_bool)
{
	const cJSON *value =
		cJSON_GetObjectItemCaseSensitive(request->json, name);

	if (!value)
		return 0;
	if (!cJSON_IsBool(value))
		return call_refuse(request, "%s: is neither true nor false",
				   name);
	*ret_bool = cJSON_IsTrue(value);
	return 0;
}

/* Sets *ret_object to NULL if there is none. */
static int object_of(struct request *request, const char *name,
		     const cJSON **ret_object)
{
	const cJSON *value =
		cJSON_GetObjectItemCaseSensitive(request->json, name);

	if (value && !cJSON_IsNull(value) && !cJSON_IsObject(value))
		return call_refuse(request, "%s: is not an object", name);
	*ret_object = value && cJSON_IsObject(value) ? value : NULL;
	return 0;
}

int call_read_target(struct request *request, struct natra_target *target,
		     const struct natra_target **ret)
{
	static const char *const names[] = {
		"id", "ifname", "netns", "network", "label", "netns_fd", NULL};
	const char **const texts[] = {&target->id, &target->ifname,
				      &target->netns, &target->network,
				      &target->label};
	uint64_t fd = 0;
	const cJSON *json;
	int r = object_of(request, "target", &json);

	if (r < 0 || !json)
		return r;
	r = call_read_known(request, "target.", json, names);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && r == 0; i++)
		r = call_read_text_of(
			request, "target.", names[i],
			cJSON_GetObjectItemCaseSensitive(json, names[i]),
			texts[i]);
	if (r == 0)
		r = call_read_number_of(
			request, "target.", "netns_fd",
			cJSON_GetObjectItemCaseSensitive(json, "netns_fd"),
			INT32_MAX, &fd);
	if (r < 0)
		return r;
	target->netns_fd = (int)fd;
	*ret = target;
	return 0;
}

/* A field that has words can be given as a word or, as the library has it, a number. */
static int read_field(struct request *request, const struct policy_field *field,
		      const cJSON *value, struct natra_policy *policy)
{
	uint64_t number = 0;
	int r;

	if (cJSON_IsString(value) &&
	    policy_field_parse_word(field, value->valuestring, &number) == 0) {
		policy_field_set(field, policy, number);
		return 0;
	}
	r = call_read_number_of(request, "policy.", field->name, value,
				field->size == sizeof(uint64_t) ? UINT64_MAX
								: UINT32_MAX,
				&number);
	if (r == 0)
		policy_field_set(field, policy, number);
	return r;
}

int call_read_texts(struct request *request, const char *what,
		    const cJSON *array, const char ***ret_texts,
		    size_t *ret_len)
{
	const cJSON *item;
	const char **texts;
	size_t len = 0;

	if (!array || cJSON_IsNull(array))
		return 0;
	if (!cJSON_IsArray(array))
		return call_refuse(request, "%s: is not an array", what);
	texts = cJSON_malloc(sizeof(*texts) *
			     ((size_t)cJSON_GetArraySize(array) + 1));
	cJSON_ArrayForEach(item, array)
	{
		if (!cJSON_IsString(item)) {
			cJSON_free(texts);
			return call_refuse(request, "%s: has what is no string",
					   what);
		}
		texts[len++] = item->valuestring;
	}
	*ret_texts = texts;
	*ret_len = len;
	return 0;
}

static int read_subnets(struct request *request, const cJSON *json,
			struct natra_policy *policy)
{
	int r = call_read_texts(
		request, "policy.shaped_subnets",
		cJSON_GetObjectItemCaseSensitive(json, "shaped_subnets"),
		&request->shaped, &policy->shaped_subnets_len);

	if (r == 0)
		r = call_read_texts(request, "policy.unshaped_subnets",
				    cJSON_GetObjectItemCaseSensitive(
					    json, "unshaped_subnets"),
				    &request->unshaped,
				    &policy->unshaped_subnets_len);
	policy->shaped_subnets = request->shaped;
	policy->unshaped_subnets = request->unshaped;
	return r;
}

int call_read_policy(struct request *request, struct natra_policy *policy,
		     const struct natra_policy **ret)
{
	const char *names[POLICY_FIELDS_LEN + 4] = {
		"shaped_subnets", "unshaped_subnets", "classes"};
	const cJSON *json;
	int r = object_of(request, "policy", &json);

	if (r < 0 || !json)
		return r;
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++)
		names[i + 3] = policy_fields[i].name;
	r = call_read_known(request, "policy.", json, names);
	for (size_t i = 0; i < POLICY_FIELDS_LEN && r == 0; i++) {
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(
			json, policy_fields[i].name);

		if (value)
			r = read_field(request, &policy_fields[i], value,
				       policy);
	}
	if (r == 0)
		r = read_subnets(request, json, policy);
	if (r == 0)
		r = call_read_classes(request, json, policy);
	if (r < 0)
		return r;
	*ret = policy;
	return 0;
}

static int read_pod(struct request *request, const cJSON *pod,
		    struct natra_annotations *ret)
{
	const cJSON *item;
	int r = 0;

	request->annotations =
		cJSON_malloc(sizeof(*ret->annotations) *
			     ((size_t)cJSON_GetArraySize(pod) + 1));
	ret->annotations = request->annotations;
	cJSON_ArrayForEach(item, pod)
	{
		struct natra_annotation *one =
			&request->annotations[ret->annotations_len++];

		*one = (struct natra_annotation){.name = item->string};
		r = call_read_text_of(request, "annotations.", item->string,
				      item, &one->value);
		if (r < 0)
			break;
	}
	return r;
}

int call_read_annotations(struct request *request,
			  struct natra_annotations *ret)
{
	const cJSON *pod;
	int r = object_of(request, "annotations", &pod);

	if (r == 0)
		r = call_read_bool(request, "skip_bad", &ret->skip_bad);
	if (r == 0)
		r = call_read_bool(request, "allow_all", &ret->allow_all);
	if (r == 0)
		r = call_read_texts(request, "allowed",
				    cJSON_GetObjectItemCaseSensitive(
					    request->json, "allowed"),
				    &request->allowed, &ret->allowed_len);
	ret->allowed = request->allowed;
	return r < 0 ? r : read_pod(request, pod, ret);
}

void call_read_free(struct request *request)
{
	cJSON_free(request->annotations);
	cJSON_free(request->allowed);
	cJSON_free(request->shaped);
	cJSON_free(request->unshaped);
	call_classes_free(request);
	request->shaped = NULL;
	request->unshaped = NULL;
	request->annotations = NULL;
	request->allowed = NULL;
}
