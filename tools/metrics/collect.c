/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../common/memory.h"
#include "counters.h"

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

/* Returns whether a text is a name as Kubernetes gives it: a DNS label, or
 * several of them with dots. */
static bool is_name(const char *text, size_t len, bool may_have_dots)
{
	char before = '.';

	for (size_t i = 0; i < len; i++) {
		bool is_dot = text[i] == '.' && may_have_dots;
		bool is_edge = before == '.' || before == '-';

		if (!is_dot && !is_name_byte(text[i]))
			return false;
		if ((is_dot && is_edge) || (text[i] == '-' && before == '.'))
			return false;
		before = text[i];
	}
	return before != '.' && before != '-';
}

bool split_label(const char *label, char *ret_namespace, char *ret_pod)
{
	size_t namespace_len = strcspn(label, "/");
	const char *pod = label + namespace_len + 1;
	bool is_pod = namespace_len <= NAMESPACE_MAX &&
		      label[namespace_len] == '/' && strlen(pod) <= POD_MAX &&
		      is_name(label, namespace_len, false) &&
		      is_name(pod, strlen(pod), true);

	ret_namespace[0] = '\0';
	ret_pod[0] = '\0';
	if (!is_pod)
		return false;
	memcpy(ret_namespace, label, namespace_len);
	ret_namespace[namespace_len] = '\0';
	memcpy(ret_pod, pod, strlen(pod) + 1);
	return true;
}

/* Doubles the list when it is full, which it is at each power of two. */
static void make_room(struct node_metrics *node)
{
	size_t room = node->len ? 2 * node->len : 1;

	if (!(node->len & (node->len - 1)))
		node->list =
			memory_grow(node->list, room * sizeof(*node->list));
}

static int add(void *arg, const struct natra_info *info,
	       const struct natra_stats *stats)
{
	struct node_metrics *node = arg;
	struct pod_metrics *pod;

	make_room(node);
	node->of_other_abi += info->other_abi;
	pod = &node->list[node->len++];
	*pod = (struct pod_metrics){.info = *info, .has_stats = stats};
	if (stats)
		pod->stats = *stats;
	(void)split_label(info->label, pod->namespace, pod->pod);
	return 0;
}

static int compare_names(const struct pod_metrics *a,
			 const struct pod_metrics *b)
{
	int r = strcmp(a->namespace, b->namespace);

	if (r == 0)
		r = strcmp(a->pod, b->pod);
	return r ? r : strcmp(a->info.ifname, b->info.ifname);
}

static int compare(const void *a, const void *b)
{
	const struct pod_metrics *x = a, *y = b;
	int r = compare_names(x, y);

	return r ? r : strcmp(x->info.id, y->info.id);
}

/* Adds the counters of a class to those of its pod. There is room. */
static int add_class(void *arg, const struct natra_class *class,
		     const struct natra_stats *stats)
{
	struct pod_metrics *pod = arg;
	struct class_metrics *made = &pod->classes[pod->classes_len];

	if (pod->classes_len > NATRA_CLASSES_MAX)
		return -ENOSPC;
	*made = (struct class_metrics){
		.ingress_bytes_per_sec =
			bytes_of_bits(class->ingress_rate_bits_per_sec),
		.egress_bytes_per_sec =
			bytes_of_bits(class->egress_rate_bits_per_sec),
		.stats = *stats,
	};
	(void)snprintf(made->name, sizeof(made->name), "%s", class->name);
	pod->classes_len++;
	add_all_stats(&pod->stats, stats);
	return 0;
}

/* Fills the list of a pod, which begins with the rest, the packets that are in no class. A
 * pod whose classes cannot be read has gone meanwhile, and has only that. */
static int read_classes(struct natra *n, struct pod_metrics *pod,
			struct class_metrics *list)
{
	int r;

	list[0] = (struct class_metrics){
		.ingress_bytes_per_sec = bytes_of_bits(
			pod->info.effective.ingress_rate_bits_per_sec),
		.egress_bytes_per_sec = bytes_of_bits(
			pod->info.effective.egress_rate_bits_per_sec),
		.stats = pod->stats,
	};
	pod->classes = list;
	pod->classes_len = 1;
	r = natra_foreach_class_stats(n, pod->info.id, add_class, pod);
	return r == -ENOSPC ? r : 0;
}

static bool has_classes(const struct pod_metrics *pod)
{
	return pod->has_stats && pod->info.policy.classes_len;
}

static int read_all_classes(struct natra *n, struct node_metrics *node)
{
	const size_t each = 1 + NATRA_CLASSES_MAX;
	struct class_metrics *list;
	size_t pods = 0;
	int r = 0;

	for (size_t i = 0; i < node->len; i++)
		pods += has_classes(&node->list[i]);
	if (!pods)
		return 0;
	list = memory_new(pods * each * sizeof(*list));
	node->classes = list;
	for (size_t i = 0; i < node->len && r == 0; i++) {
		if (!has_classes(&node->list[i]))
			continue;
		r = read_classes(n, &node->list[i], list);
		list += each;
	}
	return r;
}

static int add_group(void *arg, const struct natra_group_info *group)
{
	struct node_metrics *node = arg;
	struct group_metrics *list = memory_grow(
		node->groups, (node->groups_len + 1) * sizeof(*list));

	node->groups = list;
	list += node->groups_len++;
	(void)snprintf(list->name, sizeof(list->name), "%s", group->name);
	list->info = *group;
	return 0;
}

int node_metrics_read(struct natra *n, struct node_metrics *node)
{
	int r;

	*node = (struct node_metrics){
		.date_ns = clock_ns(CLOCK_REALTIME),
		.began_ns = clock_ns(CLOCK_BOOTTIME),
	};
	r = natra_foreach_stats(n, add, node);
	if (r == 0)
		r = read_all_classes(n, node);
	if (r == 0)
		r = natra_foreach_group(n, add_group, node);
	/* Something else is pinned in the place of the groups: the pods have series. */
	if (r == -ESTALE)
		r = 0;
	if (r < 0 || !node->len)
		return r;
	qsort(node->list, node->len, sizeof(*node->list), compare);
	for (size_t i = 1; i < node->len; i++)
		node->list[i].is_again =
			compare_names(&node->list[i - 1], &node->list[i]) == 0;
	return 0;
}

void node_metrics_free(struct node_metrics *node)
{
	free(node->classes);
	free(node->list);
	free(node->groups);
	*node = (struct node_metrics){0};
}

static int note_before(void *arg, const struct natra_neighbour *neighbour)
{
	bool *is_before = arg;

	*is_before |= neighbour->is_before_ours;
	return 0;
}

/* Returns whether a check says nothing of the pod: its interface is gone, since it has ended,
 * another ABI has attached it, or this process lacks what it needs. All else is a check that has
 * failed: who can disturb one would have no series otherwise. */
static bool says_nothing(int r)
{
	switch (-r) {
	case ENODEV:
	case ENOENT:
	case ESTALE:
	case EBUSY:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EPERM:
		return true;
	default:
		return false;
	}
}

static void inspect(struct natra *n, struct pod_metrics *pod)
{
	int r = natra_check(n, pod->info.id, NULL);

	if (says_nothing(r))
		return;
	pod->is_inspected = true;
	pod->check_failed = r < 0;
	(void)natra_foreach_neighbour(n, pod->info.id, note_before,
				      &pod->program_before);
}

int node_metrics_inspect(struct natra *n, struct node_metrics *node)
{
	int r;

	node->features = (struct natra_features)NATRA_INIT(node->features);
	r = natra_probe(n, &node->features);
	if (r < 0)
		return r;
	node->has_features = true;
	for (size_t i = 0; i < node->len; i++) {
		if (!node->list[i].info.unshaped)
			inspect(n, &node->list[i]);
	}
	return 0;
}

void node_metrics_apply(struct node_metrics *node, const struct finding *list,
			size_t len)
{
	for (size_t i = 0; i < len; i++) {
		/* Both lists have nearly the same order. */
		for (size_t j = 0; j < node->len; j++) {
			struct pod_metrics *pod =
				&node->list[(i + j) % node->len];

			if (strcmp(pod->info.id, list[i].id) != 0)
				continue;
			pod->is_inspected = !pod->info.unshaped;
			pod->check_failed = list[i].check_failed;
			pod->program_before = list[i].program_before;
			break;
		}
	}
}
