/* SPDX-License-Identifier: BSD-2-Clause */
#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

int template_check(const char *name, struct failure *failure)
{
	for (const char *at = name; (at = strpbrk(at, "{}"));) {
		const char *annotation;
		size_t len;

		if (!find_braces(at, &annotation, &len))
			return refuse(
				failure, CNI_BAD_CONFIG,
				"group.name: \"%s\" has braces that are neither {namespace} nor {annotation:KEY}",
				name);
		at += len;
	}
	return 0;
}

bool template_has_annotation(const char *name)
{
	return strstr(name, "{annotation:") != NULL;
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
			     const char *key, const char *end)
{
	char exact[256];
	const char *value;

	if ((size_t)(end - key) >= sizeof(exact))
		return -ENOENT;
	(void)snprintf(exact, sizeof(exact), "%.*s", (int)(end - key), key);
	value = annotations_find(annotations, exact);
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
						      annotation, at - 1);
			else
				r = pod[0] ? append(ret, pod, strcspn(pod, "/"))
					   : -ENOENT;
		}
		if (r < 0)
			return r;
	}
	return 0;
}
