/* SPDX-License-Identifier: BSD-2-Clause */
#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What the name of a namespace is made of, which is a DNS label. */
#define NAMESPACE_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

/* The key of an annotation. A longer one is cut, and no pod has it. */
struct key {
	char text[320]; /* Kubernetes allows 317 */
};

/* Finds what stands in braces at `at`. Returns false if it is nothing that a
 * template can have. */
static bool find_braces(const char *at, const char **ret_annotation,
			size_t *ret_len)
{
	static const char namespace[] = "{namespace}";
	static const char annotation[] = "{annotation:";
	const char *end = strchr(at, '}');

	*ret_annotation = NULL;
	if (strncmp(at, namespace, sizeof(namespace) - 1) == 0) {
		*ret_len = sizeof(namespace) - 1;
		return true;
	}
	if (!end || strncmp(at, annotation, sizeof(annotation) - 1) != 0 ||
	    end == at + sizeof(annotation) - 1)
		return false;
	*ret_annotation = at + sizeof(annotation) - 1;
	*ret_len = (size_t)(end + 1 - at);
	return true;
}

const char *template_wrong(const char *name)
{
	for (const char *at = name; (at = strpbrk(at, "{}"));) {
		const char *annotation;
		size_t len;

		if (!find_braces(at, &annotation, &len))
			return "has braces that are neither {namespace} nor {annotation:KEY}";
		at += len;
	}
	return NULL;
}

/* Returns the key that stands before the next '}'. */
static struct key key_at(const char *at)
{
	struct key key;

	(void)snprintf(key.text, sizeof(key.text), "%.*s",
		       (int)strcspn(at, "}"), at);
	return key;
}

bool template_has_annotation(const char *name, bool (*does)(const char *key))
{
	for (const char *at = name; (at = strchr(at, '{')); at++) {
		const char *annotation;
		size_t len;

		if (find_braces(at, &annotation, &len) && annotation &&
		    (!does || does(key_at(annotation).text)))
			return true;
	}
	return false;
}

/* Returns whether no namespace has this character. */
static bool separates(char c)
{
	return c && c != '{' && c != '}' && !strchr(NAMESPACE_CHARS, c);
}

/* The namespace ends, or begins, at the first, or last, character that no namespace has. The
 * text beyond it is the same for all pods. */
bool template_keeps_apart(const char *name)
{
	static const char namespace[] = "{namespace}";
	const size_t len = sizeof(namespace) - 1;
	const char *first = strchr(name, '{'), *last = strrchr(name, '{');

	if (!template_has_annotation(name, NULL))
		return true;
	return (strncmp(first, namespace, len) == 0 && separates(first[len])) ||
	       (strncmp(last, namespace, len) == 0 && separates(last[-1]));
}

static int append(struct template_name *name, const char *text, size_t len)
{
	if (len > NATRA_GROUP_NAME_MAX - name->len)
		return -ENAMETOOLONG;
	memcpy(name->text + name->len, text, len);
	name->len += len;
	name->text[name->len] = '\0';
	return 0;
}

static int append_annotation(struct template_name *name,
			     const struct natra_annotations *annotations,
			     const char *key)
{
	const char *value = annotations_find(annotations, key_at(key).text);

	return value && value[0] ? append(name, value, strlen(value)) : -ENOENT;
}

int template_expand(const char *template, const char *pod,
		    const struct natra_annotations *annotations,
		    struct template_name *ret)
{
	const char *at = template;

	*ret = (struct template_name){.len = 0};
	while (*at) {
		size_t len = strcspn(at, "{");
		const char *annotation;
		int r = append(ret, at, len);

		at += len;
		if (r == 0 && *at) {
			(void)find_braces(at, &annotation, &len);
			at += len;
			if (annotation)
				r = append_annotation(ret, annotations,
						      annotation);
			else
				r = pod[0] ? append(ret, pod, strcspn(pod, "/"))
					   : -ENOENT;
		}
		if (r < 0)
			return r;
	}
	return 0;
}
