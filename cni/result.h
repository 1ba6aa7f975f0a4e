/* SPDX-License-Identifier: BSD-2-Clause */
/* The result that ADD prints: prevResult, converted to the version of the
 * request. */
#ifndef NATRA_CNI_RESULT_H
#define NATRA_CNI_RESULT_H

#include "conf.h"

/* Makes the result from the configuration's prevResult, which it may change. The caller
 * frees the text. */
int result_make(struct conf *conf, char **ret_text, struct failure *failure);

#endif
