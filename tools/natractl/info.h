/* SPDX-License-Identifier: BSD-2-Clause */
/* How an attachment is shown. */
#ifndef NATRACTL_INFO_H
#define NATRACTL_INFO_H

#include "cli.h"
#include "json.h"

struct info_list {
	struct natra_info *items;
	size_t len;
};

/* Reads all attachments. Returns 0 or an error code of the library. */
int info_list_read(struct natra *n, struct info_list *ret_list);
void info_list_free(struct info_list *list);
/* Returns the columns that the widest id takes. */
int info_list_id_width(const struct info_list *list);

/* Both ask the library for its subnets, too. */
void info_print(struct natra *n, const struct natra_info *info);
/* Has the policy's lists as well; info_json has those of the attachment beside it. */
cJSON *policy_json(const struct natra_policy *policy);
cJSON *info_json(struct natra *n, const struct natra_info *info);

#endif
