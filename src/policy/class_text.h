/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes as text: "NAME=10.0.0.0/8,fd00::/8,ingress-rate=1G,egress-rate=1G,dscp=46", of which
 * natra_parse_class reads one. */
#ifndef NATRA_POLICY_CLASS_TEXT_H
#define NATRA_POLICY_CLASS_TEXT_H

#include <stddef.h>

#include <natra/natra.h>

/* Does what natra_parse_class does, for a class of this version's size. */
int class_parse(const char *text, const struct natra_class *base,
		struct natra_class **ret_class, const char **ret_item);

/* Reads one to NATRA_CLASSES_MAX classes, which semicolons separate. *ret_list is one piece
 * of memory, which the caller frees. Returns 0, or -ENOMEM, or -EINVAL and what is wrong
 * with the list. */
int class_list_parse(const char *text, struct natra_class **ret_list,
		     size_t *ret_len, char *ret_wrong, size_t size);

#endif
