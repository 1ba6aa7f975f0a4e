/* SPDX-License-Identifier: BSD-2-Clause */
#include "kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../src/util/clock.h"
#include "../common/memory.h"
#include "counters.h"

/* Returns whether no counter has fallen, as it does when an interface is attached
 * again. */
static bool has_grown(const struct natra_direction_stats *before,
		      const struct natra_direction_stats *now)
{
	for (size_t i = 0; i < VERDICTS; i++) {
		if (verdict_count(now, i)->packets <
		    verdict_count(before, i)->packets)
			return false;
	}
	return now->delay_ns_sum >= before->delay_ns_sum;
}

static const struct pod_metrics *find_pod(const struct node_metrics *node,
					  const struct kept *kept)
{
	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];

		if (strcmp(pod->info.id, kept->id) == 0 &&
		    strcmp(pod->namespace, kept->namespace) == 0)
			return pod;
	}
	return NULL;
}

/* Returns whether this is still the pod whose counters were kept. */
static bool has_gone_on(const struct pod_metrics *pod, const struct kept *kept)
{
	return pod->has_stats &&
	       has_grown(&kept->stats.ingress, &pod->stats.ingress) &&
	       has_grown(&kept->stats.egress, &pod->stats.egress) &&
	       has_grown(&kept->stats.backstop, &pod->stats.backstop);
}

/* Returns the sum of a namespace, which is made if there is none. There is room. */
static struct kept *sum_of(struct kept *list, size_t *len,
			   const char *namespace)
{
	struct kept *sum = list;

	while (sum < list + *len && strcmp(sum->namespace, namespace) != 0)
		sum++;
	if (sum == list + *len) {
		*sum = (struct kept){0};
		memcpy(sum->namespace, namespace, sizeof(sum->namespace));
		++*len;
	}
	return sum;
}

static struct kept kept_of(const struct pod_metrics *pod)
{
	struct kept kept = {.stats = pod->stats};

	memcpy(kept.id, pod->info.id, sizeof(kept.id));
	memcpy(kept.namespace, pod->namespace, sizeof(kept.namespace));
	return kept;
}

/* Returns a list with room for the pods and for what was kept of others. */
static struct kept *make_list(const struct node_metrics *node, size_t len)
{
	/* Each pod has a place and at most one sum. */
	return memory_new((len + 2 * node->len) * sizeof(struct kept));
}

/* Everything in the list so far is gone, or was missed. The pods come behind it. */
static void add_pods(struct node_metrics *node, struct kept *list, size_t *len)
{
	node->gone = list;
	node->gone_len = *len;
	for (size_t i = 0; i < node->len; i++) {
		if (node->list[i].has_stats)
			list[(*len)++] = kept_of(&node->list[i]);
	}
}

struct kept *kept_begin(struct node_metrics *node, size_t *ret_len)
{
	struct kept *list = make_list(node, 0);
	size_t len = 0;

	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];

		if (pod->has_stats)
			subtract_all_stats(
				&sum_of(list, &len, pod->namespace)->stats,
				&pod->stats);
	}
	add_pods(node, list, &len);
	*ret_len = len;
	return list;
}

/* A pod that could not be read this time is missed. One whose counters began again is
 * another one. */
static bool is_missed(const struct node_metrics *node, const struct kept *kept)
{
	return kept->id[0] && kept->misses < KEPT_MISSES_MAX &&
	       !find_pod(node, kept);
}

static bool is_gone(const struct node_metrics *node, const struct kept *kept)
{
	const struct pod_metrics *pod =
		kept->id[0] ? find_pod(node, kept) : NULL;

	return pod ? !has_gone_on(pod, kept) : !is_missed(node, kept);
}

static bool was_kept(const struct pod_metrics *pod, const struct kept *last,
		     size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (strcmp(last[i].id, pod->info.id) == 0 &&
		    strcmp(last[i].namespace, pod->namespace) == 0)
			return true;
	}
	return false;
}

/* A new file has the time of the kernel's last tick. */
#define TICK_NS 10000000

/* Returns whether the pod was attached before the last scrape. Its age is compared with
 * the time since then, because the clock that files have may have been set back between
 * the two: dates that were noted before tell nothing after that. */
static bool is_older(const struct node_metrics *node,
		     const struct pod_metrics *pod)
{
	const uint64_t since_ns = node->began_ns - node->last_began_ns;
	uint64_t made_ns;
	struct stat st;

	if (stat(pod->info.pin_path, &st) < 0)
		return false;
	made_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S +
		  (uint64_t)st.st_mtim.tv_nsec;
	return node->date_ns > made_ns &&
	       node->date_ns - made_ns > since_ns + TICK_NS;
}

/* A pod that the last scrape could not read was there all the same: what it has counted
 * until now is no increase. */
static bool was_unreadable(const struct node_metrics *node,
			   const struct pod_metrics *pod,
			   const struct kept *last, size_t len)
{
	return pod->has_stats && !was_kept(pod, last, len) &&
	       is_older(node, pod);
}

struct kept *kept_update(struct node_metrics *node, const struct kept *last,
			 size_t len, size_t *ret_len)
{
	struct kept *list = make_list(node, len);
	size_t list_len = 0;

	/* The sums come first, so that sum_of() sees nothing else. */
	for (size_t i = 0; i < len; i++) {
		if (is_gone(node, &last[i]))
			add_all_stats(
				&sum_of(list, &list_len, last[i].namespace)
					 ->stats,
				&last[i].stats);
	}
	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];

		if (was_unreadable(node, pod, last, len))
			subtract_all_stats(
				&sum_of(list, &list_len, pod->namespace)->stats,
				&pod->stats);
	}
	for (size_t i = 0; i < len; i++) {
		if (!is_missed(node, &last[i]))
			continue;
		list[list_len] = last[i];
		list[list_len++].misses++;
	}
	add_pods(node, list, &list_len);
	*ret_len = list_len;
	return list;
}
