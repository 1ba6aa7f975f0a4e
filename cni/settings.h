/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's own keys in the network configuration. */
#pragma once

#include "conf.h"

/* Where a rate comes from, if the configuration and the runtime have one. */
enum precedence {
	PRECEDENCE_STATIC, /* the configuration's hide the runtime's: upstream */
	PRECEDENCE_RUNTIME, /* of each direction, the runtime's if it has one */
	PRECEDENCE_LOWEST,  /* of each direction, the lower one */
	PRECEDENCE_MAX
};

struct settings {
	struct natra_policy policy;
	/* What the policy's subnets point to; the texts are the
	 * configuration's. */
	const char *subnets[NATRA_SUBNETS_MAX];
	enum precedence precedence;
	bool continue_on_error;
	bool replace_bandwidth;
	unsigned int allowed_annotations; /* bits, see annotations.h */
};

/* All but rates, bursts and subnets, see bandwidth.h. The library checks
 * ranges. */
int settings_read(struct settings *ret_settings, const struct conf *conf,
		  struct natra *n, struct failure *failure);

struct log_settings {
	const char *file; /* "": no log */
	enum natra_log_level level;
};

/* For the commands that must not fail for a bad configuration too: what cannot
 * be used is as if it were absent. settings_read refuses it. */
struct log_settings settings_log(const struct conf *conf);
