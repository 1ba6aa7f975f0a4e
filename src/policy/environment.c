/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/str.h"

int environment_read(struct natra_policy *p, char *ret_error, size_t size)
{
	const char *mode = secure_getenv("NATRA_ATTACH_MODE");
	const char *edt = secure_getenv("NATRA_EDT_PACING");
	int len = 0;

	if (mode && p->attach_mode == NATRA_ATTACH_MODE_AUTO &&
	    natra_parse_attach_mode(mode, &p->attach_mode) < 0)
		len = snprintf(ret_error, size,
			       "NATRA_ATTACH_MODE: '%s' is not a mode", mode);
	else if (edt && p->edt_pacing == NATRA_EDT_PACING_AUTO &&
		 natra_parse_edt_pacing(edt, &p->edt_pacing) < 0)
		len = snprintf(ret_error, size,
			       "NATRA_EDT_PACING: '%s' is not auto, on or off",
			       edt);
	if (!len)
		return 0;
	str_one_line(ret_error);
	return -EINVAL;
}
