/* SPDX-License-Identifier: BSD-2-Clause */
/* An attachment on paper. */
#pragma once

#include "cli.h"
#include "json.h"

struct info_list {
	struct natra_info *items;
	size_t len;
};

/* All attachments; 0 or an error code of the library. */
int info_list_read(struct natra *n, struct info_list *ret_list);
void info_list_free(struct info_list *list);
/* Columns of the widest id. */
int info_list_id_width(const struct info_list *list);

/* State of an ABI that this library does not know: only abi and pin_path. */
bool info_is_foreign(const struct natra_info *info);
/* These two also ask for its subnets. */
void info_print(struct natra *n, const struct natra_info *info);
cJSON *info_json(struct natra *n, const struct natra_info *info);
