/* SPDX-License-Identifier: BSD-2-Clause */
/* The network configuration, as far as every command needs it. */
#pragma once

#include "failure.h"
#include "json.h"
#include "version.h"

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
