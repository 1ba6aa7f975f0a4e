/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of upstream's bandwidth plugin, written in the configuration or sent
 * by the runtime: rates in bit/s, bursts in bits, and its 1.5's subnets. */
#pragma once

#include "settings.h"

/* Puts them into the policy, chosen by `precedence`. The policy points into
 * *settings and into the configuration. */
int bandwidth_read(struct settings *settings, const struct conf *conf,
		   struct natra *n, struct failure *failure);

/* Rounded up. */
uint64_t bandwidth_bytes(uint64_t bits);
