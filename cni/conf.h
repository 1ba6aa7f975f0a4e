/* SPDX-License-Identifier: BSD-2-Clause */
/* The network configuration, as far as every command needs it. */
#pragma once

#include "failure.h"
#include "json.h"

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
/* 0; -EINVAL: natra does not speak it. */
int version_parse(const char *text, enum version *ret_version);

struct conf {
	const char *text; /* the caller's */
	cJSON *json;
	const char *name; /* of the network */
	enum version version;
};

/* `len` bytes with a terminator behind them, which are to stay. Also when it
 * fails, `version` is the one to answer in, and conf_free is to be called. */
int conf_parse(struct conf *conf, const char *text, size_t len,
	       struct failure *failure);
void conf_free(struct conf *conf);

/* An object at `key`; NULL in *ret if it is absent. */
int conf_object(const cJSON *parent, const char *key, const char *path,
		const cJSON **ret, struct failure *failure);
