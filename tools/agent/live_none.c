/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for live.c in a build without libcurl. */
#include <errno.h>

#include "live.h"

int live_open(struct live **ret, const struct live_options *options,
	      const struct jobs *jobs, struct health *health,
	      struct workers *workers)
{
	(void)ret;
	(void)options;
	(void)jobs;
	(void)health;
	(void)workers;
	return -EOPNOTSUPP;
}

void live_begin(struct live *live)
{
	(void)live;
}

void live_again(struct live *live)
{
	(void)live;
}

void live_close(struct live *live)
{
	(void)live;
}
