/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that a pod's packets have no way that natra does not know. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../common/text.h"
#include "../pods/interface.h"
#include "check.h"

#define REPORTED_MAX 8

struct unnamed {
	const struct finder *f;
	int reported;
};

/* Returns whether an earlier one of the node's pods is another interface of this one. */
static bool is_looked_at(const struct finder *f)
{
	for (size_t i = 0; f->pods->items[i] != f->pod; i++) {
		const struct pod *pod = f->pods->items[i];

		if (pod->has_result && pod_is_limited(pod) &&
		    strcmp(pod->cached.container_id,
			   f->pod->cached.container_id) == 0)
			return true;
	}
	return false;
}

/* Returns whether natra is attached there, which may be under another name by now. */
static bool is_attached(const struct finder *f, uint32_t ifindex)
{
	for (size_t i = 0; i < f->pods->len; i++) {
		const struct pod *pod = f->pods->items[i];

		if (pod->has_info && pod->info.ifindex == ifindex &&
		    pod->info.netns_inode == f->pod->info.netns_inode)
			return true;
	}
	return false;
}

static int report(void *arg, const struct pod_link *link, const char *to)
{
	struct unnamed *u = arg;
	const bool is_device = link->leads == LINK_IS_DEVICE;
	char what[256];

	if (is_attached(u->f, link->ifindex))
		return 0;
	(void)snprintf(
		what, sizeof(what),
		"its interface '%s' (%s), which no cached result names, leads to %s%s%sthe node",
		link->ifname, is_device ? "device" : link->kind,
		to[0] ? "'" : "", to, to[0] ? "' of " : "");
	found(u->f, "what", what, "ifname", link->ifname, "enter",
	      pod_enter(u->f->pod), NULL);
	return ++u->reported == REPORTED_MAX;
}

void unnamed_interface(const struct finder *f)
{
	const struct pod *pod = f->pod;
	struct unnamed u = {.f = f};
	cleanup_close int fd = -1;

	/* What other programs than libcni have made, nobody names. */
	if (!pod->has_result || !pod_is_limited(pod) || is_looked_at(f))
		return;
	fd = pod_open_netns(pod, f->node);
	if (fd >= 0 &&
	    interface_foreach_unnamed(f->node->i->root_fd, &pod->cached, fd,
				      report, &u) == -E2BIG)
		found(f, "what",
		      "it has too many interfaces to look at them, and may have one of its own that leads out",
		      "ifname", pod->info.ifname, "enter", pod_enter(pod),
		      NULL);
}
