/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects what the checks need of a pod's interface: the result that libcni keeps,
 * natra's attachment, and what the kernel has there. */
#ifndef NATRA_DOCTOR_POD_H
#define NATRA_DOCTOR_POD_H

#include "../pods/cached.h"
#include "../pods/interface.h"
#include "../pods/wish.h"
#include "link.h"
#include "node.h"

struct pod {
	char id[NATRA_ID_MAX + 1];
	char name[NATRA_NAME_MAX + 1]; /* "<namespace>/<pod>", or "" */

	bool has_result;
	struct cached cached;
	struct wish wish; /* what it should have */
	int wish_code;    /* 0, or why that cannot be read */
	struct failure wish_failure;

	bool has_info;
	struct natra_info info; /* of its attachment */

	char *netns; /* the path of its network namespace; NULL: not known */
	int netns_error; /* 0, or why the namespace could not be looked into */
	bool is_there;   /* its interface exists */
	char *enter;     /* see pod_enter */
	char why[INTERFACE_WHY_MAX]; /* its interface is another one, or "" */
	struct natra_leftovers left;
	struct link_facts inside, outside; /* both ends of its veth */
};

/* A file of libcni's cache that cannot be read, and the pod that it is of, as far as that can
 * be told: "" if not. */
struct unreadable {
	char *path, *namespace, *name;
};

struct pods {
	struct pod **items;
	size_t len;
	struct unreadable *unreadable;
	size_t unreadable_len;
};

/* Finds all pods of the node, or those that the request means. Returns 0 or
 * -errno, with a text in *ret_error. */
int pods_look(struct pods *pods, const struct node *node, char **ret_error);
void pods_free(struct pods *pods);

/* Returns the name of a pod in findings. */
const char *pod_title(const struct pod *pod);
/* Returns the pod's network namespace, which the caller closes; -1 if it is this
 * process's own, or is not known. */
int pod_open_netns(const struct pod *pod, const struct node *node);
/* Returns whether the pod has limits of natra's that hold. */
bool pod_is_limited(const struct pod *pod);
/* Returns what stands before a command so that it runs in the pod's network
 * namespace: "nsenter --net=PATH ", or "". */
const char *pod_enter(const struct pod *pod);
/* Returns the command that attaches a policy to the pod, which the caller frees. */
char *pod_attach_command(const struct pod *pod, const struct node *node,
			 const struct natra_policy *policy);

#endif
