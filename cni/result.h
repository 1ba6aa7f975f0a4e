/* SPDX-License-Identifier: BSD-2-Clause */
/* What ADD prints: prevResult as it came, in the version of the request. */
#pragma once

#include "conf.h"

/* Takes prevResult out of the configuration. The text is the caller's to
 * free. */
int result_make(struct conf *conf, char **ret_text, struct failure *failure);
