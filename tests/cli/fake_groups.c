/* SPDX-License-Identifier: BSD-2-Clause */
/* What natractl asks the library of classes and groups, made up: with NATRA_FAKE_GROUPS there
 * are the group "blue" and an automatic one of that name, and pod 1 has a class. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <natra/natra.h>

/* Returns how much something sends that sends a megabyte in a second. */
static uint64_t bytes_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int natra_foreach_class_stats(struct natra *n, const char *id,
			      natra_class_stats_fn fn, void *arg)
{
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_class class = NATRA_INIT(class);

	if (strcmp(id, "bare") != 0 && strcmp(id, "pod-1") != 0)
		return -ENOENT;
	class.name = "cluster";
	class.egress_rate_bits_per_sec = 1000000001;
	stats.egress.paced.packets = strlen(class.name);
	stats.egress.paced.bytes = bytes_now();
	stats.egress.over_limit_time_ns = 1000;
	stats.egress.over_limit_percent = 150;
	stats.egress_heavy_flows = 3;
	return fn(arg, &class, &stats);
}

int natra_foreach_group(struct natra *n, natra_group_fn fn, void *arg)
{
	struct natra_group_info group = {
		.sz = sizeof(group),
		.name = "blue",
		.egress_rate_bits_per_sec = 10000000,
		.members = 2,
		.egress_charged = {.packets = 1, .bytes = bytes_now()},
		.free_bytes = {0, bytes_now()},
	};
	int r;

	if (!getenv("NATRA_FAKE_GROUPS"))
		return 0;
	r = fn(arg, &group);
	group.automatic = 1;
	group.egress_charged.bytes = group.free_bytes[1] = 0;
	return r ? r : fn(arg, &group);
}
