/* SPDX-License-Identifier: BSD-2-Clause */
#include "cached.h"

#include <stdio.h>
#include <string.h>

#include "../common/interfaces.h"
#include "../common/name.h"
#include "element.h"
#include "results.h"

static const char *text_at(const cJSON *object, const char *key)
{
	const char *text = json_text(json_get_exact(object, key));

	return text ? text : "";
}

/* Returns the value of a variable that the runtime has passed, of which libcni
 * keeps pairs. */
static const char *find_arg(const cJSON *json, const char *key)
{
	const cJSON *pair;

	cJSON_ArrayForEach(pair, json_get_exact(json, "cniArgs"))
	{
		const char *name = json_text(cJSON_GetArrayItem(pair, 0));
		const char *value = json_text(cJSON_GetArrayItem(pair, 1));

		if (name && value && strcmp(name, key) == 0)
			return value;
	}
	return "";
}

static void fill(struct cached *c)
{
	c->container_id = text_at(c->json, "containerId");
	c->ifname = text_at(c->json, "ifName");
	c->network = text_at(c->json, "networkName");
	c->netns = text_at(c->json, "netns");
	/* An older libcni keeps it in the result only. */
	if (!c->netns[0])
		c->netns = interfaces_sandbox(json_get_exact(c->json, "result"),
					      c->ifname);
	if (!c->netns)
		c->netns = "";
	c->pod_namespace = find_arg(c->json, "K8S_POD_NAMESPACE");
	c->pod_name = find_arg(c->json, "K8S_POD_NAME");
	c->pod_uid = find_arg(c->json, "K8S_POD_UID");
}

/* Returns whether the list only calls Multus. Then the interface has a second result,
 * that of the list to which Multus delegates. */
static bool is_relayed(const cJSON *list)
{
	return element_find(list, "multus") ||
	       element_find(list, "multus-shim");
}

static enum cached_kind kind_of(const struct cached *c, bool is_whole)
{
	const bool is_wrong = name_wrong(c->container_id) ||
			      name_wrong(c->network) || !c->ifname[0] ||
			      !cJSON_IsObject(c->list);

	if (is_whole && !is_wrong)
		return is_relayed(c->list) ? CACHED_OTHER : CACHED_INTERFACE;
	return !is_whole || strcmp(text_at(c->json, "kind"), "cniCacheV1") == 0
		       ? CACHED_UNREADABLE
		       : CACHED_OTHER;
}

enum cached_kind cached_read(const char *text, struct cached *ret)
{
	/* libcni writes those that name the pod before the long ones. */
	static const char *const keys[] = {"kind",    "containerId", "ifName",
					   "config",  "networkName", "netns",
					   "cniArgs", NULL};
	cJSON *whole = cJSON_Parse(text ? text : "");

	*ret = (struct cached){
		.json = whole ? whole : json_pick(text ? text : "", keys),
	};
	fill(ret);
	ret->list = results_list(ret->json);
	return kind_of(ret, whole);
}

void cached_read_head(const char *text, struct cached *ret)
{
	static const char *const keys[] = {"ifName", "cniArgs", NULL};

	*ret = (struct cached){
		.json = json_pick_to(text ? text : "", keys, "cniArgs"),
	};
	fill(ret);
}

void cached_free(struct cached *cached)
{
	cJSON_Delete(cached->json);
	cJSON_Delete(cached->list);
	cached->json = cached->list = NULL;
}

bool cached_id(const struct cached *cached, char *ret_id, size_t size)
{
	int len = snprintf(ret_id, size, "%s/%s/%s", cached->network,
			   cached->container_id, cached->ifname);

	return len >= 0 && (size_t)len < size;
}

void cached_pod(const struct cached *cached, char *ret_pod, size_t size)
{
	ret_pod[0] = '\0';
	if (cached->pod_namespace[0] && cached->pod_name[0])
		(void)snprintf(ret_pod, size, "%s/%s", cached->pod_namespace,
			       cached->pod_name);
}
