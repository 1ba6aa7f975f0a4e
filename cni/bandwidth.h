/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of upstream's bandwidth plugin: rates in bit/s, bursts in bits,
 * written in the configuration or sent by the runtime. */
#pragma once

#include "settings.h"

/* Puts rates and bursts into the policy, chosen by `precedence`. */
int bandwidth_read(struct natra_policy *policy, enum precedence precedence,
		   const struct conf *conf, struct failure *failure);

/* Rounded up. */
uint64_t bandwidth_bytes(uint64_t bits);
