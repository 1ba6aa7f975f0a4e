/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups as JSON has them, in the plugin's key `group` and in the agent's file, and as the
 * library has them. */
#ifndef NATRA_COMMON_GROUP_H
#define NATRA_COMMON_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <natra/natra.h>

/* Reads a number of bit/s, or a quantity such as "10M". Returns -EINVAL. */
int group_read_rate(const cJSON *value, uint64_t *ret_bits_per_sec);

struct group_error {
	char text[512];
};

/* Reads a group, of which everything may be missing. Its texts belong to `object`. Returns 0,
 * or -EINVAL and a line about the key that is wrong. */
int group_read(const cJSON *object, struct natra_group_info *ret,
	       struct group_error *error);

/* Returns what is wrong with a floor beside these rates, or NULL; 0 stands for none. The library
 * would refuse it, too, but only at each ADD, and by the names of its fields. */
const char *group_floor_wrong(uint64_t floor, uint64_t ingress,
			      uint64_t egress);

bool group_has_rates(const struct natra_group_info *group);

/* A group that was found, with room for the name of its parent. The name is that of the
 * search. */
struct group_found {
	struct natra_group_info info;
	char parent[NATRA_GROUP_NAME_MAX + 1];
};

/* Finds a group that an administrator has made, or an automatic one. `ret` may be NULL. Returns 1,
 * 0 if there is none, or -errno. */
int group_find(struct natra *n, const char *name, bool is_automatic,
	       struct group_found *ret);

#endif
