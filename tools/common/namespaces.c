/* SPDX-License-Identifier: BSD-2-Clause */
#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dir.h"
#include "field.h"
#include "memory.h"
#include "text.h"

#define PARENT        "/var/lib"
#define DIRECTORY     "natra"
#define NAME          "namespaces.json"
#define FILE_MAX      (1 << 20)
#define NAMESPACE_MAX 63

__attribute__((format(printf, 2, 3))) static int
wrong(struct namespaces_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	/* A key may have anything in it. */
	for (char *c = error->text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	}
	return -EINVAL;
}

static int wrong_key(const cJSON *rule, const char *path, const cJSON *value,
		     const char *wanted, struct namespaces_error *error)
{
	return wrong(error, "'%s': %s%s: %s %s", rule->string, path,
		     value->string, json_show(value).text, wanted);
}

/* Returns whether it is the name of a namespace, or the beginning of one and "*". */
static bool is_pattern(const char *text)
{
	const size_t len =
		strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	if (len > NAMESPACE_MAX || (text[len] && strcmp(text + len, "*") != 0))
		return false;
	return text[0] != '\0';
}

static const struct policy_field *find_field(const char *key, bool only_rates)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const bool is_bound = policy_field_is_bandwidth(field) ||
				      policy_field_is_count(field);

		if ((only_rates ? policy_field_is_direction(field)
				: is_bound) &&
		    strcmp(policy_field_key(field), key) == 0)
			return field;
	}
	return NULL;
}

/* Reads "default" or "max". Keys are exact, so that no value hides another one. */
static int read_limits(const cJSON *rule, const char *name,
		       struct natra_policy *ret, struct namespaces_error *error)
{
	const bool only_rates = strcmp(name, "default") == 0;
	const char *path = only_rates ? "default." : "max.";
	const cJSON *object = json_get_exact(rule, name), *item;

	if (object && !cJSON_IsObject(object))
		return wrong_key(rule, "", object, "is not an object", error);
	cJSON_ArrayForEach(item, object)
	{
		const struct policy_field *field =
			find_field(item->string, only_rates);
		struct policy_mistake mistake;

		if (!field)
			return wrong_key(rule, path, item,
					 only_rates ? "is not the key of a rate"
						    : "is not a key of a limit",
					 error);
		mistake = field_read(field, item, ret);
		if (mistake.text[0])
			return wrong_key(rule, path, item, mistake.text, error);
	}
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (policy_field_is_bandwidth(field) ||
		    policy_field_is_count(field)) {
			if (!policy_field_get(field, ret) ||
			    policy_field_counts(field, ret))
				continue;
			return wrong_key(
				rule, path,
				json_get_exact(object, policy_field_key(field)),
				"needs a rate of its direction", error);
		}
	}
	return 0;
}

/* A default over the maximum would never be what a pod has. */
static int check_defaults(const cJSON *rule, const struct namespace_rule *r,
			  struct namespaces_error *error)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const uint64_t max = policy_field_get(field, &r->max);

		if (policy_field_is_direction(field) && max &&
		    policy_field_get(field, &r->standard) > max)
			return wrong_key(
				rule, "default.",
				json_get_exact(json_get_exact(rule, "default"),
					       policy_field_key(field)),
				"is over the maximum", error);
	}
	return 0;
}

static int read_fast_pass(const cJSON *rule, struct natra_policy *max,
			  struct namespaces_error *error)
{
	const cJSON *value = json_get_exact(rule, "fastPass");
	const char *text = json_text(value);

	if (value &&
	    (!text || natra_parse_fast_pass(text, &max->fast_pass) < 0))
		return wrong_key(rule, "", value, "is not free, strict or off",
				 error);
	return 0;
}

static int read_allowed(const cJSON *rule, struct namespace_rule *ret,
			struct namespaces_error *error)
{
	const cJSON *list = json_get_exact(rule, "allowAnnotations"), *item;

	ret->has_allowed = list != NULL;
	ret->allowed = list;
	if (list && !cJSON_IsArray(list))
		return wrong_key(rule, "", list, "is not a list of annotations",
				 error);
	cJSON_ArrayForEach(item, list)
	{
		if (!json_text(item) || !policy_annotation(json_text(item)))
			return wrong(error,
				     "'%s': allowAnnotations: %s is not an"
				     " annotation that natra knows",
				     rule->string, json_show(item).text);
	}
	return 0;
}

/* Returns a member whose key is none of this file, letter case included. */
static const cJSON *find_unknown(const cJSON *rule)
{
	static const char *const known[] = {"default", "max", "fastPass",
					    "allowAnnotations"};

	for (const cJSON *item = rule->child; item; item = item->next) {
		size_t i = 0;

		while (i < 4 && strcmp(item->string, known[i]) != 0)
			i++;
		if (i == 4)
			return item;
	}
	return NULL;
}

static int read_rule(const cJSON *rule, struct namespace_rule *ret,
		     struct namespaces_error *error)
{
	const cJSON *unknown;
	int r;

	*ret = (struct namespace_rule){.standard = NATRA_INIT(ret->standard),
				       .max = NATRA_INIT(ret->max)};
	if (!is_pattern(rule->string))
		return wrong(error,
			     "'%.100s': is neither the name of a namespace nor"
			     " its beginning and \"*\"",
			     rule->string);
	if (!cJSON_IsObject(rule))
		return wrong(error, "'%s': %s is not an object", rule->string,
			     json_show(rule).text);
	unknown = find_unknown(rule);
	if (unknown)
		return wrong_key(rule, "", unknown, "is no key of this file",
				 error);
	ret->name = rule->string;
	r = read_limits(rule, "default", &ret->standard, error);
	if (r == 0)
		r = read_limits(rule, "max", &ret->max, error);
	if (r == 0)
		r = check_defaults(rule, ret, error);
	if (r == 0)
		r = read_fast_pass(rule, &ret->max, error);
	return r < 0 ? r : read_allowed(rule, ret, error);
}

/* Parses a text without a look at its rules. */
static int parse(const char *text, cJSON **ret, struct namespaces_error *error)
{
	const size_t len = strlen(text);
	cleanup_json cJSON *file = NULL;
	size_t at = len;

	if (len > FILE_MAX)
		return wrong(error, "is over %d bytes", FILE_MAX);
	if (json_check(text, len, &at))
		file = cJSON_Parse(text);
	if (!file)
		return wrong(error, "is not JSON at byte %zu of %zu", at, len);
	if (!cJSON_IsObject(file))
		return wrong(error, "%s is not an object",
			     json_show(file).text);
	if (cJSON_GetArraySize(file) > NAMESPACES_MAX)
		return wrong(error, "%d namespaces are more than %d",
			     cJSON_GetArraySize(file), NAMESPACES_MAX);
	*ret = file;
	file = NULL;
	return 0;
}

int namespaces_parse(const char *text, cJSON **ret,
		     struct namespaces_error *error)
{
	cleanup_json cJSON *file = NULL;
	const cJSON *item;
	int r = parse(text, &file, error);

	cJSON_ArrayForEach(item, file)
	{
		struct namespace_rule rule;

		/* The last one of a name counts, and null is none. */
		if (r == 0 && json_get_exact(file, item->string) == item)
			r = read_rule(item, &rule, error);
	}
	if (r == 0) {
		*ret = file;
		file = NULL;
	}
	return r;
}

int namespaces_load(const char *path, cJSON **ret,
		    struct namespaces_error *error)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cleanup_text char *text = NULL;
	int r = fd < 0 ? -errno : dir_read_fd(fd, &text);

	*ret = NULL;
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == 0)
		return parse(text, ret, error);
	(void)wrong(error, "%s", strerror(-r));
	return r;
}

int namespaces_store(int root_fd, const char *text)
{
	cleanup_close int parent = -1;
	cleanup_dir struct dir dir = DIR_INIT;
	int r = text ? dir_make(root_fd, PARENT "/" DIRECTORY) : 0;

	if (r == 0)
		r = dir_open(&dir, root_fd, PARENT "/" DIRECTORY);
	if (r == 0 && text)
		return dir_write(&dir, NAME, text);
	if (r == -ENOENT && !text)
		return 0;
	if (r == 0 && dir_has(&dir, NAME))
		r = dir_remove(&dir, NAME);
	if (r == 0)
		parent = dir_open_path(root_fd, PARENT, O_PATH | O_DIRECTORY);
	/* It stays if something else is in it. */
	if (parent >= 0)
		(void)unlinkat(parent, DIRECTORY, AT_REMOVEDIR);
	return r;
}

/* Returns how well a key fits a namespace; 0: not at all. */
static size_t fits(const char *key, const char *namespace, size_t len)
{
	const size_t key_len = strlen(key);

	if (key_len && key[key_len - 1] == '*')
		return key_len - 1 <= len &&
				       strncmp(key, namespace, key_len - 1) == 0
			       ? key_len
			       : 0;
	return key_len == len && strncmp(key, namespace, len) == 0 ? SIZE_MAX
								   : 0;
}

int namespaces_find(const cJSON *file, const char *pod,
		    struct namespace_rule *ret, struct namespaces_error *error)
{
	const char *slash = strchr(pod, '/');
	const size_t len = slash ? (size_t)(slash - pod) : 0;
	const cJSON *item, *best = NULL;
	size_t best_fits = 0;

	*ret = (struct namespace_rule){.name = NULL};
	cJSON_ArrayForEach(item, file)
	{
		const size_t now = fits(item->string, pod, len);

		if (now > best_fits &&
		    json_get_exact(file, item->string) == item) {
			best = item;
			best_fits = now;
		}
	}
	return best ? read_rule(best, ret, error) : 0;
}

const char **namespace_allowed(const struct namespace_rule *rule,
			       size_t *ret_len)
{
	const int len = cJSON_GetArraySize(rule->allowed);
	const char **texts = memory_new(sizeof(*texts) * ((size_t)len + 1));
	const cJSON *item;

	*ret_len = 0;
	cJSON_ArrayForEach(item, rule->allowed) texts[(*ret_len)++] =
		json_text(item);
	return texts;
}

static void fill(uint64_t *rate, uint64_t standard, uint64_t max)
{
	if (!*rate)
		*rate = standard ? standard : max;
}

void namespace_fill(const struct namespace_rule *rule,
		    struct natra_policy *policy)
{
	if (!rule->name)
		return;
	fill(&policy->ingress_rate_bits_per_sec,
	     rule->standard.ingress_rate_bits_per_sec,
	     rule->max.ingress_rate_bits_per_sec);
	fill(&policy->egress_rate_bits_per_sec,
	     rule->standard.egress_rate_bits_per_sec,
	     rule->max.egress_rate_bits_per_sec);
}

/* The configuration's burst was chosen for its own rate, which may be far above the maximum. */
static void limit_burst(uint64_t *burst, uint64_t rate, uint64_t of_conf)
{
	if (*burst)
		return;
	*burst = rate && of_conf > rate / 2 ? rate / 2 : of_conf;
}

bool namespace_limits(const struct namespace_rule *rule,
		      const struct natra_policy *conf,
		      struct natra_policy *ret_limits)
{
	struct natra_policy limits = rule->max;

	if (!rule->name || (!limits.ingress_rate_bits_per_sec &&
			    !limits.egress_rate_bits_per_sec &&
			    limits.fast_pass == NATRA_FAST_PASS_FREE))
		return false;
	limit_burst(&limits.ingress_burst_bits,
		    limits.ingress_rate_bits_per_sec, conf->ingress_burst_bits);
	limit_burst(&limits.egress_burst_bits, limits.egress_rate_bits_per_sec,
		    conf->egress_burst_bits);
	limits.heavy_hitter_threshold_bytes =
		conf->heavy_hitter_threshold_bytes;
	limits.fast_pass_share_percent = conf->fast_pass_share_percent;
	*ret_limits = limits;
	return true;
}

static void say(struct namespace_note *note, const char *text)
{
	if (!note->text[0])
		(void)snprintf(note->text, sizeof(note->text), "%s", text);
}

/* A pod that has no rate, or whose small flows are free, has not asked for more. */
static void note_lowered(void *arg, const struct policy_field *field,
			 uint64_t asked)
{
	const char *word = policy_field_word(field, asked);
	char text[sizeof(((struct namespace_note *)0)->text)];

	if (!asked)
		return;
	if (word)
		(void)snprintf(text, sizeof(text),
			       "%s: %s is over the maximum of the namespace, "
			       "which holds",
			       policy_field_asked(field), word);
	else
		(void)snprintf(text, sizeof(text),
			       "%s: %" PRIu64
			       " is over the maximum of the namespace, "
			       "which holds",
			       policy_field_asked(field), asked);
	say(arg, text);
}

void namespace_lower(const struct natra_policy *limits, bool own_classes,
		     struct natra_policy *policy, struct namespace_note *note)
{
	uint64_t in, out;

	policy_lower_to(policy, limits, note_lowered, note);
	if (own_classes && policy->classes_len &&
	    !policy_lower_to_classes(policy, limits))
		say(note, POLICY_CLASSES_ANNOTATION
		    ": the classes have no rate, or more than the maximum of "
		    "the namespace together: they do not count");
	/* What a group leaves a pod in any case is at most what the pod may have. */
	in = policy->ingress_rate_bits_per_sec;
	out = policy->egress_rate_bits_per_sec;
	if (in && policy->group_floor_bits_per_sec > in)
		policy->group_floor_bits_per_sec = in;
	if (out && policy->group_floor_bits_per_sec > out)
		policy->group_floor_bits_per_sec = out;
}
