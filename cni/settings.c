/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "../src/policy/fields.h"
#include "../tools/common/field.h"
#include "groups.h"
#include "../tools/common/keys.h"
#include "../tools/common/log.h"
#include "../tools/common/memory.h"

#define DEFAULT_LOG_FILE "/var/log/natra-cni.log"

/* A reader returns NULL, or a text that says which values are valid. */
typedef const char *(*read_fn)(struct settings *s, const cJSON *value);

static int index_of(const cJSON *value, const char *const *names, int len)
{
	const char *text = json_text(value);

	for (int i = 0; text && i < len; i++) {
		if (strcmp(names[i], text) == 0)
			return i;
	}
	return -1;
}

static const char *read_precedence(struct settings *s, const cJSON *value)
{
	static const char *const names[PRECEDENCE_MAX] = {
		[PRECEDENCE_STATIC] = "static",
		[PRECEDENCE_RUNTIME] = "runtime",
		[PRECEDENCE_LOWEST] = "lowest",
	};
	int i = index_of(value, names, PRECEDENCE_MAX);

	if (i < 0)
		return "is not static, runtime or lowest";
	s->precedence = (enum precedence)i;
	return NULL;
}

static const char *read_on_error(struct settings *s, const cJSON *value)
{
	static const char *const names[] = {"fail", "continue"};
	int i = index_of(value, names, 2);

	if (i < 0)
		return "is not fail or continue";
	s->continue_on_error = i == 1;
	return NULL;
}

static const char *read_bool(const cJSON *value, bool *ret)
{
	if (!cJSON_IsBool(value))
		return "is not true or false";
	*ret = cJSON_IsTrue(value);
	return NULL;
}

static const char *read_replace_bandwidth(struct settings *s,
					  const cJSON *value)
{
	return read_bool(value, &s->replace_bandwidth);
}

static const char *read_require_namespaces(struct settings *s,
					   const cJSON *value)
{
	return read_bool(value, &s->require_namespaces);
}

/* The library judges the names, see check_allowed. */
static const char *read_allow_annotations(struct settings *s,
					  const cJSON *value)
{
	const cJSON *item;

	if (!cJSON_IsArray(value))
		return "is not a list of annotations";
	s->allowed = memory_new(sizeof(*s->allowed) *
				((size_t)cJSON_GetArraySize(value) + 1));
	cJSON_ArrayForEach(item, value)
	{
		if (!json_text(item))
			return "is not a list of annotations";
		s->allowed[s->allowed_len++] = item->valuestring;
	}
	return NULL;
}

static const char *parse_log_file(const cJSON *value, const char **ret_file)
{
	const char *text = json_text(value);

	if (!text || (text[0] && text[0] != '/'))
		return "is neither an absolute path nor empty";
	*ret_file = text;
	return NULL;
}

static const char *parse_log_level(const cJSON *value,
				   enum natra_log_level *ret_level)
{
	return log_read_level(json_text(value), ret_level);
}

static const char *read_log_file(struct settings *s, const cJSON *value)
{
	const char *file;

	(void)s;
	return parse_log_file(value, &file);
}

static const char *read_log_level(struct settings *s, const cJSON *value)
{
	enum natra_log_level level;

	(void)s;
	return parse_log_level(value, &level);
}

#define KEY(key, name) {#key, read_##name},

static const struct {
	const char *key;
	read_fn read;
} keys[] = {CONF_KEYS(KEY)};

static int read_policy(struct settings *s, const cJSON *all,
		       struct failure *failure)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const char *key = policy_field_key(field);
		const cJSON *value = key ? json_get(all, key) : NULL;
		struct policy_mistake mistake;

		if (!value || policy_field_is_bandwidth(field))
			continue;
		mistake = field_read(field, value, &s->policy);
		if (mistake.text[0])
			return failure_set(failure, CNI_BAD_CONFIG, "%s: %s %s",
					   key, json_show(value).text,
					   mistake.text);
	}
	return 0;
}

static int read_keys(struct settings *s, const cJSON *all,
		     struct failure *failure)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const cJSON *value = json_get(all, keys[i].key);
		const char *wanted = value ? keys[i].read(s, value) : NULL;

		if (wanted)
			return failure_set(failure, CNI_BAD_CONFIG, "%s: %s %s",
					   keys[i].key, json_show(value).text,
					   wanted);
	}
	return 0;
}

static int check_allowed(const struct settings *s, struct natra *n,
			 struct failure *failure)
{
	struct natra_policy policy = s->policy;
	struct natra_annotations none = NATRA_INIT(none);
	struct natra_class *classes;

	none.allowed = s->allowed;
	none.allowed_len = s->allowed_len;
	if (s->allowed_len &&
	    natra_policy_annotate(n, &policy, &none, &classes) < 0)
		return failure_set(failure, CNI_BAD_CONFIG, "%s",
				   natra_error(n));
	return 0;
}

int settings_read(struct settings *s, const cJSON *all, struct natra *n,
		  struct failure *failure)
{
	int r;

	*s = (struct settings){.policy = NATRA_INIT(s->policy)};
	r = read_policy(s, all, failure);
	if (r == 0)
		r = read_keys(s, all, failure);
	return r ? r : check_allowed(s, n, failure);
}

int settings_read_namespace(struct settings *s, const struct asker *asker,
			    struct failure *failure)
{
	struct namespaces_error error;

	if (asker->namespaces_wrong)
		return failure_set(failure, asker->namespaces_code, "%s: %s",
				   NAMESPACES_FILE, asker->namespaces_wrong);
	/* The agent has not written it yet. */
	if (s->require_namespaces && !asker->namespaces)
		return failure_set(failure, CNI_TRY_AGAIN, "%s: is not there",
				   NAMESPACES_FILE);
	if (namespaces_find(asker->namespaces, asker->pod, &s->rule, &error) <
	    0)
		return failure_set(failure, CNI_BAD_CONFIG, "%s: %s",
				   NAMESPACES_FILE, error.text);
	if (s->rule.has_allowed) {
		free(s->allowed);
		s->allowed = namespace_allowed(&s->rule, &s->allowed_len);
	}
	s->has_limits = namespace_limits(&s->rule, &s->policy, &s->limits);
	namespace_fill(&s->rule, &s->policy);
	return 0;
}

void settings_lower(struct settings *s, struct natra_policy *policy)
{
	if (s->has_limits)
		namespace_lower(&s->limits,
				settings_allow(s, POLICY_CLASSES_ANNOTATION) &&
					policy->classes != s->classes,
				policy, &s->lowered);
}

bool settings_allow(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->allowed_len; i++) {
		if (policy_annotation(s->allowed[i]) == policy_annotation(name))
			return true;
	}
	return false;
}

void settings_free(struct settings *s)
{
	free(s->allowed);
	free(s->asked);
	s->allowed = NULL;
	s->asked = NULL;
}

struct log_settings settings_log(const cJSON *all)
{
	struct log_settings log = {DEFAULT_LOG_FILE, NATRA_LOG_INFO};
	const cJSON *file = json_get(all, "logFile");
	const cJSON *level = json_get(all, "logLevel");

	if (file)
		(void)parse_log_file(file, &log.file);
	if (level)
		(void)parse_log_level(level, &log.level);
	return log;
}
