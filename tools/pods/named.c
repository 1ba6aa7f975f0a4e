/* SPDX-License-Identifier: BSD-2-Clause */
#include "named.h"

#include <string.h>
#include <strings.h>

#include "cached.h"
#include "results.h"

struct naming {
	const char *container_id;
	const struct pod_net *net;
	struct pod_links *links;
};

static const char *text_at(const cJSON *object, const char *key)
{
	const char *text = json_text(json_get_exact(object, key));

	return text ? text : "";
}

/* Returns whether the other end of an interface is on the node. */
static bool note_pair(const struct naming *naming, const char *host)
{
	struct pod_links *links = naming->links;
	uint32_t below, ifindex = links_other_end(naming->net, host, &below);

	for (size_t i = 0; ifindex && i < links->len; i++) {
		struct pod_link *link = &links->items[i];

		link->is_named |= link->ifindex == ifindex &&
				  link->below == below &&
				  link->leads == LINK_TO_NODE;
	}
	return ifindex;
}

static void note_name(const struct naming *naming, const char *ifname,
		      const char *mac)
{
	struct pod_links *links = naming->links;

	for (size_t i = 0; i < links->len; i++) {
		struct pod_link *link = &links->items[i];

		link->is_named |= strcmp(link->ifname, ifname) == 0 &&
				  (!mac[0] || strcasecmp(link->mac, mac) == 0);
	}
}

static int note_result(void *arg, const char *path, const char *text)
{
	const struct naming *naming = arg;
	const cJSON *interfaces, *item;
	bool has_pair = false, has_own = false, is_its;
	struct cached cached;

	(void)path;
	(void)cached_read(text, &cached);
	interfaces = json_get_exact(json_get_exact(cached.json, "result"),
				    "interfaces");
	is_its = strcmp(cached.container_id, naming->container_id) == 0;
	cJSON_ArrayForEach(item, interfaces)
	{
		if (!is_its)
			break;
		if (text_at(item, "sandbox")[0])
			has_own = true;
		else
			has_pair |= note_pair(naming, text_at(item, "name"));
	}
	cJSON_ArrayForEach(item, interfaces)
	{
		if (!is_its || has_pair)
			break;
		if (text_at(item, "sandbox")[0])
			note_name(naming, text_at(item, "name"),
				  text_at(item, "mac"));
	}
	/* The oldest results have addresses only. */
	if (is_its && !has_own && !has_pair)
		note_name(naming, cached.ifname, "");
	cached_free(&cached);
	return 0;
}

void named_note(int root_fd, const char *container_id,
		const struct pod_net *net, struct pod_links *links)
{
	struct naming naming = {container_id, net, links};

	/* Without a cache no interface is named. */
	(void)results_foreach_of(root_fd, container_id, note_result, &naming);
}
