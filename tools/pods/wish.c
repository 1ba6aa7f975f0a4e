/* SPDX-License-Identifier: BSD-2-Clause */
#include "wish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cni/field.h"
#include "../install/element.h"

/* Annotations that begin with these are natra's own, or Calico's, of which some stand for
 * natra's. */
#define PREFIX "natra.io/"
#define CALICO "qos.projectcalico.org/"
#define BRACES "{annotation:"

#define ANNOTATIONS_CAPABILITY "io.kubernetes.cri.pod-annotations"

/* containerd refuses a pod with a rate beyond these. */
#define RATE_MIN_BITS_PER_SEC 1000ULL

static const cJSON *find_element(const cJSON *list, const char *type)
{
	const cJSON *plugin;

	cJSON_ArrayForEach(plugin, json_get_exact(list, "plugins"))
	{
		if (element_has_type(plugin, type))
			return plugin;
	}
	return NULL;
}

/* Returns a copy of natra's element, or the one that an installation makes. */
static cJSON *make_element(const cJSON *list, const cJSON *conf)
{
	const cJSON *own = find_element(list, "natra");

	return own ? cJSON_Duplicate(own, true)
		   : element_json(conf, find_element(list, "bandwidth"));
}

/* Reads one of Kubernetes' annotations into the number that a runtime makes of
 * it, 0 if it is not there. */
static int read_rate(const cJSON *annotations, const char *name,
		     uint64_t *ret_bits_per_sec, struct failure *failure)
{
	const cJSON *value = json_get_exact(annotations, name);
	const char *text = json_text(value);

	*ret_bits_per_sec = 0;
	if (!value)
		return 0;
	if (!text || natra_parse_rate(text, ret_bits_per_sec) < 0 ||
	    *ret_bits_per_sec < RATE_MIN_BITS_PER_SEC)
		return refuse(failure, CNI_BAD_CONFIG,
			      "annotation %s: %s is not a rate from 1k to 1P",
			      name, json_show(value).text);
	return 0;
}

/* Returns the object that runtimes make of the annotations, or NULL. */
static int make_bandwidth(const cJSON *annotations, cJSON **ret,
			  struct failure *failure)
{
	uint64_t in, out;
	int r = read_rate(annotations, WISH_INGRESS, &in, failure);

	if (r == 0)
		r = read_rate(annotations, WISH_EGRESS, &out, failure);
	if (r)
		return r;
	*ret = cJSON_CreateObject();
	/* Rates up to 10^15 are exact in a double. */
	cJSON_AddNumberToObject(*ret, "ingressRate", (double)in);
	cJSON_AddNumberToObject(*ret, "egressRate", (double)out);
	return 0;
}

bool wish_follows(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 ||
	       strncmp(name, CALICO, strlen(CALICO)) == 0 ||
	       strcmp(name, WISH_INGRESS) == 0 ||
	       strcmp(name, WISH_EGRESS) == 0;
}

/* Returns the present annotations that limits follow, and the others of the pod's
 * start. */
static cJSON *merge_annotations(const cJSON *start, const cJSON *present)
{
	cJSON *merged = cJSON_CreateObject();
	const cJSON *const from[] = {start, present};

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		const cJSON *item;

		cJSON_ArrayForEach(item, from[i])
		{
			if (wish_follows(item->string) == (i == 1))
				cJSON_AddItemToObject(
					merged, item->string,
					cJSON_Duplicate(item, true));
		}
	}
	return merged;
}

/* Adds what the runtime passes on, as far as the element asks for it. */
static int add_runtime(cJSON *element, const cJSON *args,
		       const cJSON *annotations, struct failure *failure)
{
	cJSON *runtime = cJSON_AddObjectToObject(element, "runtimeConfig");
	const cJSON *capability;

	cJSON_ArrayForEach(capability, json_get_exact(element, "capabilities"))
	{
		const char *name = capability->string;
		cJSON *value = NULL;
		int r = 0;

		/* A list has members without names. */
		if (!name || !cJSON_IsTrue(capability))
			continue;
		if (annotations && strcmp(name, "bandwidth") == 0)
			r = make_bandwidth(annotations, &value, failure);
		else if (annotations &&
			 strcmp(name, ANNOTATIONS_CAPABILITY) == 0)
			value = merge_annotations(json_get_exact(args, name),
						  annotations);
		else
			value = cJSON_Duplicate(json_get_exact(args, name),
						true);
		if (r)
			return r;
		if (value)
			cJSON_AddItemToObject(runtime, name, value);
	}
	return 0;
}

static int make_text(struct wish *wish, const struct cached *cached,
		     const cJSON *conf, const cJSON *annotations,
		     struct failure *failure)
{
	cleanup_json cJSON *element = make_element(cached->list, conf);
	const char *version = json_text(json_get(cached->list, "cniVersion"));
	int r;

	cJSON_DeleteItemFromObject(element, "runtimeConfig");
	r = add_runtime(element, json_get_exact(cached->json, "capabilityArgs"),
			annotations, failure);
	if (r)
		return r;
	cJSON_AddStringToObject(element, "cniVersion",
				version ? version : "0.3.1");
	cJSON_AddStringToObject(element, "name", cached->network);
	/* Only ADD may let a pod start although something is wrong. */
	cJSON_DeleteItemFromObject(element, "onError");
	wish->text = json_dump(element);
	return 0;
}

static int make_conf(struct wish *wish, const struct cached *cached,
		     const cJSON *conf, const cJSON *annotations,
		     struct failure *failure)
{
	int r;

	*wish = (struct wish){0};
	r = make_text(wish, cached, conf, annotations, failure);
	return r ? r
		 : conf_parse(&wish->conf, wish->text, strlen(wish->text),
			      failure);
}

static int check(const struct wish *wish, struct natra *n,
		 struct failure *failure)
{
	if (natra_policy_check(n, &wish->settings.policy) < 0)
		return refuse(failure, CNI_BAD_CONFIG, "%s", natra_error(n));
	return 0;
}

int wish_read(struct wish *wish, const struct cached *cached, const cJSON *conf,
	      const cJSON *annotations, struct natra *n, struct log *log,
	      struct failure *failure)
{
	char pod[NATRA_NAME_MAX + 1];
	int r = make_conf(wish, cached, conf, annotations, failure);

	cached_pod(cached, pod, sizeof(pod));
	if (r == 0)
		r = wanted_read(&wish->settings, &wish->conf, pod, n, log,
				failure);
	return r ? r : check(wish, n, failure);
}

int wish_look(struct wish *wish, const struct cached *cached, struct natra *n,
	      struct failure *failure)
{
	char pod[NATRA_NAME_MAX + 1];
	struct log none = LOG_INIT;
	int r = make_conf(wish, cached, NULL, NULL, failure);

	cached_pod(cached, pod, sizeof(pod));
	if (r == 0)
		r = wanted_look(&wish->settings, &wish->conf, pod, n, &none,
				failure);
	return r ? r : check(wish, n, failure);
}

bool wish_has_classes(const struct wish *wish)
{
	return (wish->settings.allowed_annotations & FIELD_CLASSES_BIT) ||
	       json_get(wish->conf.json, "classes");
}

bool wish_may_join(const struct cached *cached, const cJSON *conf)
{
	const cJSON *own = find_element(cached->list, "natra");
	const cJSON *group = json_get(own ? own : conf, "group");
	const char *name = json_text(json_get(group, "name"));
	const char *at = name ? strstr(name, BRACES) : NULL;

	for (; at; at = strstr(at, BRACES)) {
		char annotation[256];

		at += strlen(BRACES);
		(void)snprintf(annotation, sizeof(annotation), "%.*s",
			       (int)strcspn(at, "}"), at);
		if (wish_follows(annotation))
			return false;
	}
	return name;
}

void wish_free(struct wish *wish)
{
	settings_free(&wish->settings);
	conf_free(&wish->conf);
	cJSON_free(wish->text);
}
