/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes of peers: the option --class, and how classes are shown. */
#ifndef NATRACTL_CLASSES_H
#define NATRACTL_CLASSES_H

#include "cli.h"
#include "json.h"

/* The classes of a policy, each of which is owned, and which it points to. */
struct class_list {
	struct natra_class *items[2 * NATRA_CLASSES_MAX];
	struct natra_class list[2 * NATRA_CLASSES_MAX];
	size_t len;
};

void class_list_free(struct class_list *list);

/* Reads the classes of an attachment. Returns 0 or an error code of the library. */
int class_list_read(struct natra *n, const char *id, struct class_list *list);

/* Puts those of the options into the list, in place of those of the same name, of which
 * they keep what they do not give, and the list into `policy`. Lets the library check
 * them. Returns 0, or an exit code after printing the error. */
int class_list_apply(const struct cli *cli, struct class_list *list,
		     struct natra_policy *policy);

void classes_print(struct natra *n, const struct natra_info *info);
cJSON *class_json(const struct natra_class *class);
/* Returns an array, or null if the classes cannot be read. */
cJSON *classes_json(struct natra *n, const struct natra_info *info);

#endif
