/* SPDX-License-Identifier: BSD-2-Clause */
/* STATUS: whether ADD can work. Asked every few seconds, and an error makes the
 * node unready. */
#include "bandwidth.h"
#include "command.h"

int cmd_status(struct call *call)
{
	struct settings settings;
	int r;

	/* A wrong key in the configuration would make each ADD fail. */
	r = settings_read(&settings, &call->conf, call->n, &call->failure);
	if (r == 0)
		r = bandwidth_read(&settings, &call->conf, call->n,
				   &call->failure);
	if (r)
		return r;
	if (natra_status(call->n) < 0)
		return refuse(&call->failure, CNI_NOT_AVAILABLE, "%s",
			      natra_error(call->n));
	call->outcome = "ready";
	return 0;
}
