/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads from libnatra the data for the metrics of a node. */
#ifndef NATRA_METRICS_COLLECT_H
#define NATRA_METRICS_COLLECT_H

#include <stdbool.h>

#include <natra/natra.h>

/* The longest names that Kubernetes has. */
#define NAMESPACE_MAX 63
#define POD_MAX       253

/* What one class has counted, or the peers that are in none. */
struct class_metrics {
	char name[NATRA_CLASS_NAME_MAX + 1]; /* "": in none */
	uint64_t ingress_bytes_per_sec, egress_bytes_per_sec;
	struct natra_stats stats;
};

struct pod_metrics {
	struct natra_info info;
	/* They are "" if the label of the attachment names no pod. */
	char namespace[NAMESPACE_MAX + 1];
	char pod[POD_MAX + 1];
	/* The one before it in the list has the same names and interface. */
	bool is_again;
	bool has_stats;
	struct natra_stats stats; /* of all classes together */
	/* Those of which `stats` is the sum, in the node's list; none if there are no
	 * classes. */
	struct class_metrics *classes;
	size_t classes_len;
	bool is_inspected;
	bool check_failed, program_before;
};

struct group_metrics {
	char name[NATRA_GROUP_NAME_MAX + 1];
	struct natra_group_info info; /* its name and parent mean nothing */
};

struct node_metrics {
	/* Sorted by namespace, pod, interface and id. */
	struct pod_metrics *list;
	size_t len;
	struct class_metrics *classes; /* of all pods, owned */
	size_t of_other_abi;           /* pods in `list` */
	struct group_metrics *groups;
	size_t groups_len;
	bool has_features;
	struct natra_features features;
	/* Sums of what is gone, see kept.h; not owned. */
	const struct kept *gone;
	size_t gone_len;
	/* When the reading of this began, and that of the last scrape, by a clock that
	 * nobody sets. */
	uint64_t began_ns, last_began_ns;
	uint64_t date_ns; /* when it began, by the clock that files have */
};

/* The result of an inspection of one attachment. */
struct finding {
	char id[NATRA_ID_MAX + 1];
	bool check_failed, program_before;
};

/* Reads all attachments with their counters. Returns 0 or an error of the
 * library; node_metrics_free is needed in both cases. */
int node_metrics_read(struct natra *n, struct node_metrics *node);
void node_metrics_free(struct node_metrics *node);

/* Finds out what the kernel can do, and compares it with what was set. This takes
 * about a millisecond for each attachment, unlike the counters. */
int node_metrics_inspect(struct natra *n, struct node_metrics *node);
/* Takes over what an earlier inspection has found. */
void node_metrics_apply(struct node_metrics *node, const struct finding *list,
			size_t len);

/* Splits "NAMESPACE/POD". Returns false if the label is no such text, but free
 * text: both are "" then. */
bool split_label(const char *label, char *ret_namespace, char *ret_pod);

#endif
