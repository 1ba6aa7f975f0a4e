/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/order.h"

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

struct record order_record(const struct order *order)
{
	struct record record = {
		.magic = NATRA_PIN_MAGIC,
		.abi = NATRA_PIN_ABI,
		.size = sizeof(record),
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
