/* SPDX-License-Identifier: BSD-2-Clause */
/* The form of a check: a function that looks for a fault, the text that describes the
 * fault, and the command that mends it. */
#ifndef NATRA_DOCTOR_CHECK_H
#define NATRA_DOCTOR_CHECK_H

#include "doctor.h"
#include "node.h"
#include "pod.h"

struct finder;

struct check {
	const char *name;
	/* Both have words in braces, such as {file}, which are replaced by the values
	 * that the check gives. In the command they are quoted for a shell, except in
	 * {=command}, which is a command already. {subject} and {=natractl} are there
	 * without that: whom the finding is about, and how natractl is called here. */
	const char *text, *mend;
	void (*look)(const struct finder *f);
};

/* Changes a setting of Cilium's at once, and no version of it, as `helm upgrade` might. */
#define CILIUM_SET(key, value)                                                 \
	"kubectl -n kube-system get configmap cilium-config -o yaml"           \
	" | sed 's/ " key ": .*/ " key ": \"" value                            \
	"\"/' | kubectl replace -f -"                                          \
	" && kubectl -n kube-system rollout restart ds/cilium"                 \
	" && kubectl -n kube-system rollout status ds/cilium"

struct finder {
	const struct check *check;
	const struct node *node;
	const struct pods *pods; /* all of them */
	const struct pod *pod;   /* NULL in checks of the node */
	struct doctor_report *report;
};

/* Reports what the check has found. The arguments are pairs of a word and its value,
 * and NULL behind the last one. */
void found(const struct finder *f, ...) __attribute__((sentinel));
/* Reports, in the same way, something that is no fault. */
void found_note(const struct finder *f, ...) __attribute__((sentinel));

/* The checks of each table run in its order. The table ends with an empty row. */
extern const struct check checks_of_node[];
extern const struct check checks_of_list[];
extern const struct check checks_of_plugin[];
/* These three are about one pod. */
extern const struct check checks_of_order[];
extern const struct check checks_of_limits[];
extern const struct check checks_of_link[];

/* The check of limits that looks at all interfaces of a pod. */
void unnamed_interface(const struct finder *f);

#endif
