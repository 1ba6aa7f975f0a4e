/* SPDX-License-Identifier: BSD-2-Clause */
/* What a pod asks for itself, as far as the operator lets it. */
#pragma once

#include "log.h"
#include "settings.h"

/* Of an entry of allowAnnotations, with or without "natra.io/"; 0: unknown, or
 * NULL. */
unsigned int annotations_bit(const char *name);

/*
 * Puts the pod's annotations into the policy, which has its rates already. A
 * bad value is an error, or is logged and ignored with "onError": "continue".
 */
int annotations_read(struct natra_policy *policy,
		     const struct settings *settings, const struct conf *conf,
		     struct log *log, struct failure *failure);
