/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/order.h"

#include <errno.h>

#include "attach/attachment.h"
#include "attach/check.h"
#include "attach/identity.h"
#include "attach/teardown.h"
#include "state/journal.h"
#include "util/cleanup.h"
#include "util/str.h"

void order_set_link(struct record_link *link, const struct link_info *info,
		    const struct netns_id *netns)
{
	link->ifindex = info->ifindex;
	link->netns_inode = netns->inode;
	link->netns_cookie = netns->cookie;
	(void)str_copy(link->ifname, sizeof(link->ifname), info->ifname);
}

void order_set_names(struct record *record, const struct order *order)
{
	(void)str_copy(record->id, sizeof(record->id), order->id);
	(void)str_copy(record->network, sizeof(record->network),
		       order->network);
	(void)str_copy(record->label, sizeof(record->label), order->label);
}

static struct record_port port_of(const struct link_info *info)
{
	struct record_port port = {
		.is_known = 1,
		.peer_ifindex = info->peer_ifindex,
		.peer_nsid = info->peer_nsid,
	};

	(void)str_copy(port.kind, sizeof(port.kind), info->kind);
	return port;
}

struct record order_record(const struct order *order)
{
	struct record record = {
		.magic = NATRA_PIN_MAGIC,
		.abi = NATRA_PIN_ABI,
		.size = sizeof(record),
		.port = port_of(&order->scene.pod),
		.is_changing = order->keeps_half,
	};

	order_set_link(&record.pod, &order->scene.pod, &order->scene.pod_netns);
	record_set_policy(&record, &order->policy);
	order_set_names(&record, order);
	return record;
}

bool order_is_for(const struct record *record, const struct scene *scene)
{
	return record->pod.ifindex == scene->pod.ifindex &&
	       record->pod.netns_cookie == scene->pod_netns.cookie;
}

static bool has_netns(struct natra *n, const struct pin_gen *before)
{
	cleanup_close int fd = -1;

	return attachment_open_netns(n, &before->record.pod, -1, &fd) == 0;
}

/* Returns as check_exists does. The kernel takes down the interfaces of a namespace a while after
 * that cannot be found any more, and TCX links stay on them until then. */
static int exists_for_good(struct natra *n, const struct pin_gen *before)
{
	int r = check_exists(n, before);

	for (int i = 0; i < DYING_LOOKS && r == 1 && !has_netns(n, before);
	     i++) {
		attachment_wait_dying();
		r = check_exists(n, before);
	}
	return r;
}

/* Refuses to take the limits away from an interface that still exists. If none hold there, it is
 * on record that they do not. */
static int refuse_move(struct natra *n, const struct pin_gen *before)
{
	const struct record *record = &before->record;
	int r = record->unshaped ? 0 : exists_for_good(n, before);

	return r == 1 ? with_code(
				n, NATRA_CODE_OTHER_INTERFACE,
				refuse(n, -EBADE,
				       "interface '%s' in another netns has the limits of '%s', and still exists",
				       record->pod.ifname, record->id))
		      : r;
}

int order_look_before(struct natra *n, const struct pin_dir *dir,
		      const struct scene *scene, struct pin_gen *ret_before)
{
	int r = dir->is_new ? -ENOENT : pin_find_gen(n, dir->path, ret_before);

	/* What natra of another ABI has attached is replaced like this one's. */
	if (r < 0 && r != -ESTALE)
		return r == -ENOENT ? 0 : r;
	identity_follow(n, ret_before);
	r = identity_check(n, ret_before, scene->pod_fd, scene->pod.ifindex,
			   NULL);
	/* In another namespace it may be the same one, which somebody has moved. */
	if (r == -EBADE &&
	    ret_before->record.pod.netns_cookie != scene->pod_netns.cookie)
		r = refuse_move(n, ret_before);
	return r < 0 ? r : 1;
}

int order_complete(struct natra *n, const struct order *order,
		   const struct pin_gen *before, struct pin_gen *gen)
{
	const struct record_link *pod = &gen->record.pod;
	int r = 0;

	if (before && before->record.pod.netns_cookie == pod->netns_cookie)
		r = identity_check(n, before, order->scene.pod_fd, pod->ifindex,
				   &gen->record);
	if (r == 0)
		r = journal_write(n, gen, JOURNAL_COMPLETE);
	if (r < 0)
		teardown_undo(n, gen, before ? &before->record : NULL,
			      order->scene.pod_fd);
	return r;
}
