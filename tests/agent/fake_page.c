/* SPDX-License-Identifier: BSD-2-Clause */
/* Pods for the agent's page, made up: with NATRA_FAKE_ROWS=N there are N. Their names are those
 * of a node, but that number 11 tries to be markup; 2 and 12 have no limits, and the reason of
 * 12 tries the same. Number 3 has a class of peers, and 100 no counters. With a file error-stats
 * in FAKE_STATE they cannot be read. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <natra/natra.h>

#define MARKUP "<img src=x onerror=\"document.title='owned'\">&lt;b&gt;"

int __real_natra_foreach_stats(struct natra *n, natra_stats_fn fn, void *arg);

static const char *const apps[] = {"checkout", "web", "search", "billing",
				   "images"};

static void name_pod(struct natra_info *info, int number)
{
	snprintf(info->id, sizeof(info->id), "k8s-pod-network/%064x/eth0",
		 number);
	snprintf(info->ifname, sizeof(info->ifname), "eth0");
	if (number == 11)
		snprintf(info->label, sizeof(info->label), "shop/" MARKUP);
	else
		snprintf(info->label, sizeof(info->label),
			 "shop/%s-%08x-%c%dx%c%d", apps[number % 5],
			 0x6d4b75cbU + (unsigned int)(number % 5),
			 'b' + number % 17, number % 10, 'k' + number % 7,
			 number / 5 % 10);
}

/* Returns a pod that sends a part of its limit of 10 Mbit/s, which each has another of. */
static struct natra_stats stats_of(int number)
{
	struct natra_stats stats = NATRA_INIT(stats);
	struct timespec now;
	uint64_t us;

	clock_gettime(CLOCK_MONOTONIC, &now);
	us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	stats.ingress.admitted.bytes =
		us * 10 / 8 * (uint64_t)(number * 37 % 100) / 100;
	stats.egress.paced.bytes =
		us * 10 / 8 * (uint64_t)(number * 53 % 100) / 100;
	/* Two seconds of eight lose 2 Mbit/s, which are others for each pod. */
	us += (uint64_t)number * 1000000;
	if (number % 7 == 3)
		stats.ingress.dropped_rate.bytes =
			(us / 8000000 * 2000000 +
			 (us % 8000000 < 2000000 ? us % 8000000 : 2000000)) /
			4;
	return stats;
}

static bool is_failing(void)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/error-stats", getenv("FAKE_STATE"));
	return access(path, F_OK) == 0;
}

int __wrap_natra_foreach_stats(struct natra *n, natra_stats_fn fn, void *arg)
{
	const char *rows = getenv("NATRA_FAKE_ROWS");
	const int count = rows ? (int)strtol(rows, NULL, 10) : 0;
	int r = rows && is_failing() ? -EIO : 0;

	if (!rows)
		return __real_natra_foreach_stats(n, fn, arg);
	for (int i = 0; i < count && r == 0; i++) {
		struct natra_info info = NATRA_INIT(info);
		const struct natra_stats stats = stats_of(i);

		name_pod(&info, i);
		info.mode = NATRA_ATTACH_MODE_TCX_HOSTSIDE;
		info.edt_active = true;
		info.effective.ingress_rate_bits_per_sec = 10000000;
		info.effective.egress_rate_bits_per_sec = i % 3 ? 10000000 : 0;
		info.unshaped = i == 2 || i == 12;
		if (info.unshaped)
			snprintf(info.reason, sizeof(info.reason),
				 "no veth: %s",
				 i == 2 ? "the pod has the node's network"
					: MARKUP);
		info.policy.classes_len = i == 3;
		r = fn(arg, &info, info.unshaped || i == 100 ? NULL : &stats);
	}
	return r;
}

int __wrap_natra_foreach_class_stats(struct natra *n, const char *id,
				     natra_class_stats_fn fn, void *arg)
{
	struct natra_class class = NATRA_INIT(class);
	const struct natra_stats stats = stats_of(3);

	class.name = "cluster";
	class.egress_rate_bits_per_sec = 100000000;
	return fn(arg, &class, &stats);
}

int __wrap_natra_top(struct natra *n, const char *id,
		     enum natra_direction direction,
		     struct natra_flow *ret_flows, size_t *inout_len)
{
	const struct natra_stats stats = stats_of(1);
	const struct natra_flow flows[] = {
		{.saddr = {10, 0, 0, 1},
		 .daddr = {10, 0, 0, 2},
		 .sport = 443,
		 .dport = 5000,
		 .ip_version = 4,
		 .protocol = 6,
		 .bytes = stats.ingress.admitted.bytes},
		{.saddr = {0xfd, 1},
		 .daddr = {0xfd, 2},
		 .sport = 53,
		 .dport = 5001,
		 .ip_version = 6,
		 .protocol = 17,
		 .bytes = 2000,
		 .idle_ns = 3000000000},
	};

	*inout_len = direction == NATRA_DIRECTION_EGRESS ? 0 : 2;
	memcpy(ret_flows, flows, *inout_len * sizeof(flows[0]));
	return 0;
}
