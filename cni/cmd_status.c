/* SPDX-License-Identifier: BSD-2-Clause */
/* STATUS: whether ADD can work. Asked every few seconds, and an error makes the
 * node unready. */
#include "command.h"

int cmd_status(struct call *call)
{
	if (natra_status(call->n) < 0)
		return refuse(&call->failure, CNI_NOT_AVAILABLE, "%s",
			      natra_error(call->n));
	call->outcome = "ready";
	return 0;
}
