/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects what the checks need of the node: what the kernel can do, and which list
 * the runtime uses. */
#ifndef NATRA_DOCTOR_NODE_H
#define NATRA_DOCTOR_NODE_H

#include <stdint.h>

#include "../install/lists.h"
#include "doctor.h"

struct node {
	const struct doctor_request *request;
	struct natra *n;

	uint64_t lacks; /* see privilege.h */
	struct natra_features features;
	int probe; /* 0, or why the kernel could not be asked */
	char probe_error[256];
	const char *bpffs;

	struct install *i;
	int net_error, bin_error; /* 0, or why the directory cannot be read */
	const char *net_dir, *bin_dir;
	/* The node has a runtime's directory, so that there is a chain. */
	bool has_chain;
	struct lists lists;
	const struct list *used; /* that the runtime takes; NULL: none */
	const char *type;        /* the name of natra's plugin in lists */
	/* natra's element in the list that the runtime takes, or in a drop-in
	 * for it; NULL: there is none. */
	const cJSON *element;
	char *element_path; /* the file that the element is in */
	cJSON *dropin;      /* the drop-in that calls natra; NULL: none */
	char *dropin_path, *dropin_bandwidth; /* the latter calls that plugin */
	char *dropin_wrong, *dropin_why; /* that the runtime refuses, and why */
	/* The answer of natra-agent's /readyz; NULL: there is none, and agent_error says why as -errno. */
	char *agent_said;
	int agent_error;
	cJSON *namespaces;      /* see namespaces.h */
	char *namespaces_wrong; /* why they cannot be read, or NULL */
	/* How a command for the node's shell begins: "natractl", and the bpffs that was given. */
	char *natractl;
	char *install_first; /* the command that installs natra here */
	char *install; /* the same, with the configuration that natra has */
};

/* Looks at the node. Returns 0 or -errno, with a text in *ret_error. */
int node_look(struct node *node, struct natra *n,
	      const struct doctor_request *request, char **ret_error);
/* Returns whether natra's element is in a file that is natra's own. */
bool node_has_own_element(const struct node *node);
/* Returns the command that installs natra anew, with what somebody has set in an
 * element (NULL: none) that it replaces. The caller frees it. */
char *node_install_with(const struct node *node, const cJSON *element);
/* Returns a command that has natra installed with one option more. An agent that installs would
 * undo what natractl does by other options than its own, so its DaemonSet gets the option then.
 * Else it is put behind `install`. The caller frees it. */
char *node_install_option(const struct node *node, const char *install,
			  const char *option, const char *value);
/* Returns whether the node's agent installs natra again by its own options. */
bool node_agent_installs(const struct node *node);
/* Reads a file that has an object. Returns -EBADMSG if it has something else, and
 * -EIO if it cannot be read. The caller deletes *ret_object. */
int node_read_object(const struct node *node, const char *path,
		     cJSON **ret_object);
void node_free(struct node *node);

#endif
