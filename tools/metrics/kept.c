/* SPDX-License-Identifier: BSD-2-Clause */
#include "kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../src/util/clock.h"
#include "../common/memory.h"
#include "../common/text.h"
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
	return now->delay_sum_ns >= before->delay_sum_ns;
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

/* The sums at the beginning of a list, by the names of their namespaces, of which a node of short
 * jobs has seen thousands. */
struct sums {
	struct kept *list;
	size_t len;
	uint32_t *places; /* one more than the index; 0: free */
	size_t mask;
};

/* Returns a list with room for the pods and for what was kept of others. */
static struct sums make_sums(const struct node_metrics *node, size_t len)
{
	/* Each pod has a place and at most one sum. */
	const size_t room = len + 2 * node->len;
	struct sums sums = {.mask = 15};

	while (sums.mask < 2 * room)
		sums.mask = 2 * sums.mask + 1;
	sums.list = memory_new(room * sizeof(*sums.list));
	sums.places = memory_new((sums.mask + 1) * sizeof(*sums.places));
	return sums;
}

/* Returns the place of a namespace, or the free one where it belongs. */
static uint32_t *place_of(const struct sums *sums, const char *namespace)
{
	size_t at = text_hash(namespace) & sums->mask;

	while (sums->places[at] &&
	       strcmp(sums->list[sums->places[at] - 1].namespace, namespace) !=
		       0)
		at = (at + 1) & sums->mask;
	return &sums->places[at];
}

/* Returns the sum of a namespace, which is made if there is none. There is room. */
static struct kept *sum_of(struct sums *sums, const char *namespace)
{
	uint32_t *place = place_of(sums, namespace);

	if (!*place) {
		memcpy(sums->list[sums->len].namespace, namespace,
		       sizeof(sums->list->namespace));
		*place = (uint32_t)++sums->len;
	}
	return &sums->list[*place - 1];
}

/* Notes that the namespace, which may have a sum, has pods. */
static void touch(const struct sums *sums, const char *namespace,
		  uint64_t now_ns)
{
	const uint32_t *place = place_of(sums, namespace);

	if (!*place)
		return;
	sums->list[*place - 1].misses = 0;
	sums->list[*place - 1].seen_ns = now_ns;
}

/* Takes the sums of namespaces without pods out that are too old, or too many, of which those
 * that were made first go. */
static void drop_idle(struct sums *sums, uint64_t now_ns)
{
	size_t len = 0, idle = 0;

	for (size_t i = 0; i < sums->len; i++)
		idle += sums->list[i].misses > 0;
	for (size_t i = 0; i < sums->len; i++) {
		const struct kept *sum = &sums->list[i];

		if (sum->misses && (idle > KEPT_IDLE_MAX ||
				    now_ns - sum->seen_ns > KEPT_IDLE_NS)) {
			idle--;
			continue;
		}
		if (len < i)
			sums->list[len] = *sum;
		len++;
	}
	sums->len = len;
}

static struct kept kept_of(const struct pod_metrics *pod)
{
	struct kept kept = {.stats = pod->stats};

	memcpy(kept.id, pod->info.id, sizeof(kept.id));
	memcpy(kept.namespace, pod->namespace, sizeof(kept.namespace));
	return kept;
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
	struct sums sums = make_sums(node, 0);

	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];

		if (pod->has_stats)
			subtract_all_stats(
				&sum_of(&sums, pod->namespace)->stats,
				&pod->stats);
		touch(&sums, pod->namespace, node->began_ns);
	}
	free(sums.places);
	add_pods(node, sums.list, &sums.len);
	*ret_len = sums.len;
	return sums.list;
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

/* Leaves the sums of those that are gone. */
static struct sums sum_up(const struct node_metrics *node,
			  const struct kept *last, size_t len)
{
	struct sums sums = make_sums(node, len);

	for (size_t i = 0; i < len; i++) {
		struct kept *sum;

		if (!is_gone(node, &last[i]))
			continue;
		sum = sum_of(&sums, last[i].namespace);
		add_all_stats(&sum->stats, &last[i].stats);
		if (last[i].id[0]) {
			sum->seen_ns = node->began_ns;
		} else {
			sum->misses = last[i].misses + 1;
			sum->seen_ns = last[i].seen_ns;
		}
	}
	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];

		if (was_unreadable(node, pod, last, len))
			subtract_all_stats(
				&sum_of(&sums, pod->namespace)->stats,
				&pod->stats);
		touch(&sums, pod->namespace, node->began_ns);
	}
	for (size_t i = 0; i < len; i++) {
		if (last[i].id[0])
			touch(&sums, last[i].namespace, node->began_ns);
	}
	free(sums.places);
	drop_idle(&sums, node->began_ns);
	return sums;
}

struct kept *kept_update(struct node_metrics *node, const struct kept *last,
			 size_t len, size_t *ret_len)
{
	struct sums sums = sum_up(node, last, len);

	/* The pods come behind the sums. */
	for (size_t i = 0; i < len; i++) {
		if (!is_missed(node, &last[i]))
			continue;
		sums.list[sums.len] = last[i];
		sums.list[sums.len++].misses++;
	}
	add_pods(node, sums.list, &sums.len);
	*ret_len = sums.len;
	return sums.list;
}
