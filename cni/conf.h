/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the network configuration that every command needs. */
#ifndef NATRA_CNI_CONF_H
#define NATRA_CNI_CONF_H

#include "failure.h"
#include "../tools/common/json.h"

/* Versions of the CNI specification that natra speaks. */
enum version {
	VERSION_0_3_0,
	VERSION_0_3_1,
	VERSION_0_4_0,
	VERSION_1_0_0,
	VERSION_1_1_0,
	VERSION_MAX
};

#define VERSION_NEWEST VERSION_1_1_0

const char *version_name(enum version version);
/* Returns -EINVAL if natra does not speak this version. */
int version_parse(const char *text, enum version *ret_version);

struct conf {
	const char *text; /* it belongs to the caller */
	cJSON *json;
	const char *name; /* the network's */
	enum version version;
};

/* Parses `len` bytes, which end in a terminator and must live as long as `conf`. Even
 * after a failure, `version` is the one to answer in, and conf_free must be called. */
int conf_parse(struct conf *conf, const char *text, size_t len,
	       struct failure *failure);
void conf_free(struct conf *conf);

/* Finds the object at `key`. *ret is NULL if it is absent. */
int conf_object(const cJSON *parent, const char *key, const char *path,
		const cJSON **ret, struct failure *failure);

#endif
