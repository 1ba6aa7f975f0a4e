/* SPDX-License-Identifier: BSD-2-Clause */
#include "interface.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "../common/memory.h"
#include "../common/text.h"
#include "links.h"
#include "named.h"

#define OWN_NETNS  "/proc/self/ns/net"
#define INIT_NETNS "/proc/1/ns/net"

/* What is known of the interface, and where it is looked for. */
struct search {
	int root_fd;
	const struct cached *cached;
	struct natra *n;
	int netns_fd;
	struct pod_net net;
	char mac[96];     /* "": the result has none */
	char address[64]; /* the same; without the length of its prefix */
	struct pod_interface *found;
	char *why;
};

__attribute__((format(printf, 3, 4))) static int
refuse_interface(char *why, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, INTERFACE_WHY_MAX, format, args);
	va_end(args);
	return r;
}

static bool is_same(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int interface_check_netns(const struct cached *cached, int netns_fd,
			  char *ret_why)
{
	/* Without the node's processes in /proc, process 1 is one of this container. */
	if (!is_same(netns_fd, OWN_NETNS) && !is_same(netns_fd, INIT_NETNS))
		return 0;
	return refuse_interface(
		ret_why, -EBADE,
		"netns: '%s' of the cached result is the node's own",
		cached->netns);
}

static const char *text_at(const cJSON *object, const char *key)
{
	const char *text = json_text(json_get_exact(object, key));

	return text ? text : "";
}

static const cJSON *result_at(const struct search *s, const char *key)
{
	return json_get_exact(json_get_exact(s->cached->json, "result"), key);
}

/* Reads the MAC of the interface, and the first address that is its own or nobody's. */
static void read_result(struct search *s)
{
	const cJSON *item;
	int index = 0, own = -1;

	cJSON_ArrayForEach(item, result_at(s, "interfaces"))
	{
		if (text_at(item, "sandbox")[0] &&
		    strcmp(text_at(item, "name"), s->cached->ifname) == 0) {
			own = index;
			(void)snprintf(s->mac, sizeof(s->mac), "%s",
				       text_at(item, "mac"));
		}
		index++;
	}
	cJSON_ArrayForEach(item, result_at(s, "ips"))
	{
		const cJSON *of = json_get_exact(item, "interface");
		const char *address = text_at(item, "address");

		if (s->address[0] ||
		    (cJSON_IsNumber(of) && of->valueint != own))
			continue;
		(void)snprintf(s->address, sizeof(s->address), "%.*s",
			       (int)strcspn(address, "/"), address);
	}
}

/* Asks for the end on the node of the pod's interface that has this name; "": none. */
static int ask_host(const struct search *s, const char *ifname, char *ret_host)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_leftovers left = NATRA_INIT(left);
	int r;

	target.ifname = ifname;
	target.netns_fd = s->netns_fd;
	r = natra_find_leftovers(s->n, &target, &left);
	if (r < 0)
		return refuse_interface(s->why, r, "%s", natra_error(s->n));
	(void)snprintf(ret_host, IF_NAMESIZE, "%s", left.host_ifname);
	return 0;
}

static int take(const struct search *s, const char *ifname, uint32_t index)
{
	(void)snprintf(s->found->ifname, IF_NAMESIZE, "%s", ifname);
	s->found->ifindex = index;
	return 0;
}

/* Finds the interface whose other end the result names. Returns 1 if there is one, 0 if the
 * result names none that is on the node. */
static int find_by_host(const struct search *s, const char *host)
{
	char ifname[IF_NAMESIZE] = "", found[IF_NAMESIZE] = "";
	uint32_t index = links_other_end(&s->net, host, NULL);
	int r = 0;

	if (!index)
		return 0;
	links_name(s->net.pod, index, ifname);
	if (ifname[0])
		r = ask_host(s, ifname, found);
	if (r < 0)
		return r;
	/* Another interface may have the index. */
	if (strcmp(found, host) != 0)
		return refuse_interface(
			s->why, -EBADE,
			"the other end of '%s', which is the pod's '%s' in the cached result, is not in its network namespace",
			host, s->cached->ifname);
	(void)take(s, ifname, index);
	return 1;
}

static int find_by_hosts(const struct search *s)
{
	const cJSON *item;
	int r = 0;

	cJSON_ArrayForEach(item, result_at(s, "interfaces"))
	{
		if (r == 0 && !text_at(item, "sandbox")[0])
			r = find_by_host(s, text_at(item, "name"));
	}
	return r;
}

/* The interfaces of the pod, and which of them have the address of the result. */
struct looks {
	struct pod_links links;
	uint32_t with_address[LINKS_MAX];
	int with_address_len;
};

static bool has_address(const struct looks *looks, const struct pod_link *link)
{
	for (int i = 0; i < looks->with_address_len; i++) {
		if (looks->with_address[i] == link->ifindex)
			return true;
	}
	return false;
}

/* Returns the interface that has what the result says of it: the one that has the name, or
 * else the only one. */
static const struct pod_link *choose(const struct search *s,
				     const struct looks *looks)
{
	const struct pod_link *found = NULL;
	unsigned int count = 0;

	for (size_t i = 0; i < looks->links.len; i++) {
		const struct pod_link *link = &looks->links.items[i];
		const bool has_name =
			strcmp(link->ifname, s->cached->ifname) == 0;

		if (s->mac[0]       ? strcasecmp(link->mac, s->mac) != 0
		    : s->address[0] ? !has_address(looks, link)
				    : !has_name)
			continue;
		if (has_name)
			return link;
		found = link;
		count++;
	}
	return count == 1 ? found : NULL;
}

/* Refuses what a process in the pod can have made: what leads nowhere; and with privileges on
 * the node also what does, but then the one that the runtime made leads out, too. */
static int take_chosen(const struct search *s, struct looks *looks,
		       const struct pod_link *chosen)
{
	if (!chosen->leads)
		return refuse_interface(
			s->why, -EBADE,
			"interface '%s' does not lead out of the pod, so it is not the one that the runtime made",
			chosen->ifname);
	named_note(s->root_fd, s->cached->container_id, &s->net, &looks->links);
	for (size_t i = 0; i < looks->links.len; i++) {
		const struct pod_link *link = &looks->links.items[i];

		if (link != chosen && link->leads && !link->is_named)
			return refuse_interface(
				s->why, -EBADE,
				"interfaces '%s' and '%s' lead out of the pod, and no cached result says which of them the runtime made",
				chosen->ifname, link->ifname);
	}
	return take(s, chosen->ifname, chosen->ifindex);
}

static int refuse_looks(const struct search *s)
{
	return refuse_interface(
		s->why, -EBADE,
		"no interface of the pod has the %s %s of the cached result",
		s->mac[0]       ? "MAC"
		: s->address[0] ? "address"
				: "name",
		s->mac[0]       ? s->mac
		: s->address[0] ? s->address
				: s->cached->ifname);
}

static int find_by_looks(const struct search *s, struct looks *looks)
{
	const struct pod_link *link;
	int r = links_list(&s->net, &looks->links);

	if (r == 0 && !s->mac[0] && s->address[0])
		r = looks->with_address_len = links_with_address(
			&s->net, s->address, looks->with_address, LINKS_MAX);
	if (r == -E2BIG)
		return refuse_interface(
			s->why, r,
			"the pod has more than %d interfaces or addresses, which are not searched for its '%s'",
			LINKS_MAX, s->cached->ifname);
	if (r < 0)
		return refuse_interface(
			s->why, r, "the pod's interfaces cannot be listed: %s",
			strerror(-r));
	/* The loopback interface is always there. */
	if (looks->links.len <= 1)
		return refuse_interface(s->why, -ENODEV, "no interface '%s'",
					s->cached->ifname);
	link = choose(s, looks);
	return link ? take_chosen(s, looks, link) : refuse_looks(s);
}

int interface_find(int root_fd, const struct cached *cached, struct natra *n,
		   int netns_fd, struct pod_interface *ret, char *ret_why)
{
	struct looks *looks = NULL;
	struct search s = {
		.root_fd = root_fd,
		.cached = cached,
		.n = n,
		.netns_fd = netns_fd,
		.found = ret,
		.why = ret_why,
	};
	int r = links_open(&s.net, netns_fd);

	if (r < 0)
		r = refuse_interface(ret_why, r,
				     "enter the pod's network namespace: %s",
				     strerror(-r));
	if (r == 0)
		r = find_by_hosts(&s);
	if (r == 0) {
		read_result(&s);
		looks = memory_new(sizeof(*looks));
		r = find_by_looks(&s, looks);
	}
	free(looks);
	links_close(&s.net);
	return r < 0 ? r : 0;
}

int interface_foreach_unnamed(int root_fd, const struct cached *cached,
			      int netns_fd, interface_fn fn, void *arg)
{
	struct pod_links *links = memory_new(sizeof(*links));
	cleanup_pod_net struct pod_net net = {0};
	int r = links_open(&net, netns_fd);

	if (r == 0)
		r = links_list(&net, links);
	if (r == 0)
		named_note(root_fd, cached->container_id, &net, links);
	for (size_t i = 0; r == 0 && i < links->len; i++) {
		const struct pod_link *link = &links->items[i];
		char to[sizeof(link->device)] = "";

		if (!link->leads || link->is_named)
			continue;
		if (link->leads == LINK_TO_NODE)
			links_name(net.node, link->below, to);
		r = fn(arg, link,
		       link->leads == LINK_TO_NODE ? to : link->device);
	}
	free(links);
	return r;
}

int interface_confirm(const struct pod_interface *interface, struct natra *n,
		      const struct natra_target *target, char *ret_why)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	if (!interface->ifindex)
		return 0;
	r = natra_query(n, target->id, &info);
	if (r < 0)
		return refuse_interface(ret_why, r, "%s", natra_error(n));
	if (info.ifindex == interface->ifindex)
		return 0;
	return refuse_interface(
		ret_why, -EBADE,
		"interface '%s' has become another one while it was limited",
		interface->ifname);
}
