/* SPDX-License-Identifier: BSD-2-Clause */
#include "kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

/* Returns whether no counter has fallen, as it does when an interface is attached
 * again. */
static bool has_grown(const struct natra_direction_stats *before,
		      const struct natra_direction_stats *now)
{
	for (size_t i = 0; i < VERDICTS; i++) {
		if (row_count(now, i)->packets < row_count(before, i)->packets)
			return false;
	}
	return now->delay_ns_sum >= before->delay_ns_sum;
}

static bool is_still_there(const struct node_metrics *node,
			   const struct kept *kept)
{
	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];

		if (strcmp(pod->info.id, kept->id) == 0 &&
		    strcmp(pod->namespace, kept->namespace) == 0)
			return pod->has_stats &&
			       has_grown(&kept->ingress, &pod->stats.ingress) &&
			       has_grown(&kept->egress, &pod->stats.egress) &&
			       has_grown(&kept->backstop, &pod->stats.backstop);
	}
	return false;
}

/* Adds to the sum of a namespace, which is made if there is none. There is room. */
static void add_gone(struct kept *list, size_t *len, const struct kept *kept)
{
	struct kept *sum = list;

	while (sum < list + *len &&
	       strcmp(sum->namespace, kept->namespace) != 0)
		sum++;
	if (sum == list + *len) {
		*sum = (struct kept){0};
		memcpy(sum->namespace, kept->namespace, sizeof(sum->namespace));
		++*len;
	}
	add_stats(&sum->ingress, &kept->ingress);
	add_stats(&sum->egress, &kept->egress);
	add_stats(&sum->backstop, &kept->backstop);
}

static struct kept kept_of(const struct pod_metrics *pod)
{
	struct kept kept = {
		.ingress = pod->stats.ingress,
		.egress = pod->stats.egress,
		.backstop = pod->stats.backstop,
	};

	memcpy(kept.id, pod->info.id, sizeof(kept.id));
	memcpy(kept.namespace, pod->namespace, sizeof(kept.namespace));
	return kept;
}

int kept_update(struct node_metrics *node, const struct kept *last, size_t len,
		struct kept **ret_list, size_t *ret_len)
{
	struct kept *list = calloc(len + node->len + 1, sizeof(*list));
	size_t list_len = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		if (!last[i].id[0] || !is_still_there(node, &last[i]))
			add_gone(list, &list_len, &last[i]);
	}
	node->gone = list;
	node->gone_len = list_len;
	for (size_t i = 0; i < node->len; i++) {
		if (node->list[i].has_stats)
			list[list_len++] = kept_of(&node->list[i]);
	}
	*ret_list = list;
	*ret_len = list_len;
	return 0;
}
