/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of libnatra that touch the kernel, with made-up attachments:
 * "web" is ordinary, "evil" has what a pod could put into names and what the
 * bandwidth plugin left, "gone" has lost its interface, "bare" is unshaped.
 * With NATRA_FAKE_PODS=N there are N pods instead, "pod-0" and so on, whose ids end with
 * NATRA_FAKE_IDS. With the file that NATRA_FAKE_ERROR names no counters can be read.
 * Linked in front of libnatra, which keeps the rest. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <natra/natra.h>

static struct natra_policy current = {
	.sz = sizeof(current),
	.ingress_rate_bits_per_sec = 10000000,
	.egress_rate_bits_per_sec = 1500000000,
	.egress_burst_bits = 32000000,
	.attach_mode = NATRA_ATTACH_MODE_TCX_PODSIDE,
};

/* The label and the network that this process passed to natra_attach. */
static const char *given_label, *given_network;
static bool leftovers_removed;

/* The error code of the last natra_attach or natra_stats that failed; none: the library has it. */
static enum natra_code attach_code;

const char *natra_error(const struct natra *n)
{
	const char *(*get)(const struct natra *n);

	if (attach_code)
		return "pace on 'veth\x1b': qdisc 'tbf' is in the way";
	*(void **)&get = dlsym(RTLD_NEXT, "natra_error");
	return get(n);
}

enum natra_code natra_error_code(const struct natra *n)
{
	return n ? attach_code : NATRA_CODE_NONE;
}

/* Returns the number of one of the N pods, or -1 if the id is none of them. */
static int pod_number(const char *id)
{
	return strncmp(id, "pod-", 4) == 0 ? (int)strtol(id + 4, NULL, 10) : -1;
}

static void fill_pod(struct natra_info *info, const char *id)
{
	*info = (struct natra_info){
		.sz = sizeof(*info),
		.policy = current,
		.effective = current,
		.edt_active = true,
		.abi = 1,
	};
	snprintf(info->id, sizeof(info->id), "%s", id);
	snprintf(info->ifname, sizeof(info->ifname), "veth%d", pod_number(id));
	if (getenv("NATRA_FAKE_LABEL"))
		snprintf(info->label, sizeof(info->label), "%s%d",
			 getenv("NATRA_FAKE_LABEL"), pod_number(id));
	else
		snprintf(info->label, sizeof(info->label), "shop/web-%03d",
			 pod_number(id));
	/* The last rows of a node are its groups; see fake_groups.c. */
	info->policy.classes_len =
		getenv("NATRA_FAKE_GROUPS") && pod_number(id) == 1;
}

/* Pod N sends N permille of 10 Mbit/s into itself; pod 3 loses as much. */
static struct natra_stats stats_of_pod(int number)
{
	struct natra_stats stats = {.sz = sizeof(stats)};
	struct timespec now;
	uint64_t ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	stats.ingress.admitted.bytes = ms * 10000 / 8 * (uint64_t)number;
	stats.ingress.admitted.bytes /= 1000;
	if (number == 3)
		stats.ingress.dropped_rate = stats.ingress.admitted;
	return stats;
}

static int fill(struct natra_info *info, const char *id)
{
	const bool is_evil = strcmp(id, "evil") == 0;
	const bool is_newer = strcmp(id, "newer") == 0;

	if (pod_number(id) >= 0) {
		fill_pod(info, id);
		return 0;
	}
	if (!is_evil && !is_newer && strcmp(id, "web") != 0 &&
	    strcmp(id, "gone") != 0 && strcmp(id, "bare") != 0)
		return -ENOENT;
	*info = (struct natra_info){
		.sz = sizeof(*info),
		.policy = current,
		.effective = current,
		.mode = NATRA_ATTACH_MODE_TCX_PODSIDE,
		.edt_active = true,
		.interface_gone = strcmp(id, "gone") == 0,
		.pace_active = is_evil,
		.program_is_current = !is_evil,
		.upgrade_is_in_place = !getenv("FAKE_LAYOUT"),
		.netns_inode = UINT64_MAX,
		.abi = is_newer ? 99 : 1,
		.other_abi = is_newer,
	};
	info->effective.pace_limit_ns = 50000000;
	if (strcmp(id, "web") == 0)
		info->policy.sli = NATRA_SLI_ON;
	/* Until natra_configure has taken the rate away. */
	if (strcmp(id, "web") == 0 && getenv("FAKE_GROUP") &&
	    current.egress_rate_bits_per_sec) {
		snprintf(info->policy.group, sizeof(info->policy.group), "%s",
			 getenv("FAKE_GROUP"));
		info->policy.egress_packet_rate_per_sec = 1000;
	}
	if (strcmp(id, "bare") == 0) {
		info->policy.classes_len = 1;
		info->unshaped = true;
		info->mode = NATRA_ATTACH_MODE_AUTO;
		snprintf(info->reason, sizeof(info->reason), "no\x1b fq");
	}
	if (is_evil) {
		info->host_prog_id = info->ingress_prog_id = 1;
		info->policy.unshaped_subnets_len = 2;
		info->policy.ingress_mode = NATRA_INGRESS_MODE_PACE;
		info->effective.ingress_mode = NATRA_INGRESS_MODE_PACE;
		info->effective.fast_pass = NATRA_FAST_PASS_STRICT;
		info->policy.fast_pass_share_percent = 70;
		info->effective.fast_pass_share_percent = 70;
	}
	snprintf(info->id, sizeof(info->id), "%s", id);
	snprintf(info->ifname, sizeof(info->ifname), "%s",
		 is_evil ? "\x1b[2J" : "eth0");
	snprintf(info->label, sizeof(info->label), "%s",
		 is_evil       ? "a\nb\xff\xed\xa0\x80\xc2\x9b"
		 : given_label ? given_label
			       : "shop/web-0");
	snprintf(info->network, sizeof(info->network), "%s",
		 given_network ? given_network : "");
	if (!info->effective.ingress_burst_bits)
		info->effective.ingress_burst_bits =
			current.ingress_rate_bits_per_sec / 2;
	return 0;
}

int natra_probe(struct natra *n, struct natra_features *ret_features)
{
	*ret_features = (struct natra_features){
		.sz = sizeof(*ret_features),
		.kernel = "5.10.0",
		.bpf = true,
		.tcx = true,
		.coarse_clock = true,
		.reason = "this kernel lacks atomics",
	};
	return 0;
}

int natra_attach(struct natra *n, const struct natra_target *target,
		 const struct natra_policy *policy, struct natra_info *ret_info)
{
	current = *policy;
	given_label = target->label;
	given_network = target->network;
	if (getenv("NATRA_FAKE_CALLS"))
		fprintf(stderr, "attach to %s\n", target->ifname);
	if (strcmp(target->ifname, "none") == 0)
		return -ENODEV;
	attach_code = NATRA_CODE_NONE;
	if (strcmp(target->ifname, "tied") == 0 && !leftovers_removed)
		attach_code = NATRA_CODE_LEFTOVERS;
	else if (strcmp(target->ifname, "taken") == 0)
		attach_code = NATRA_CODE_OTHER_QDISC;
	if (attach_code)
		return -EBUSY;
	if (strcmp(target->ifname, "stuck") == 0)
		return -EPERM;
	/* `natractl hook` shows nothing itself. */
	if (!ret_info)
		fprintf(stderr,
			"attach %s of %s as %s: %" PRIu64 " %" PRIu64 "%s%s\n",
			target->ifname, target->netns, target->id,
			policy->ingress_rate_bits_per_sec,
			policy->egress_rate_bits_per_sec,
			policy->fast_pass ? " fast pass " : "",
			policy->fast_pass
				? natra_fast_pass_name(policy->fast_pass)
				: "");
	return ret_info ? natra_query(n, target->id ? target->id : "web",
				      ret_info)
			: 0;
}

int natra_configure(struct natra *n, const char *id,
		    const struct natra_policy *policy)
{
	current = *policy;
	return 0;
}

/* Some interfaces and attachment "evil" have leftovers. */
static bool has_leftovers(const struct natra_target *target)
{
	static const char *const names[] = {"old", "tied", "taken", "stuck"};

	if (!target->ifname)
		return strcmp(target->id, "evil") == 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(target->ifname, names[i]) == 0)
			return true;
	}
	return false;
}

int natra_find_leftovers(struct natra *n, const struct natra_target *target,
			 struct natra_leftovers *ret_leftovers)
{
	*ret_leftovers = (struct natra_leftovers){.sz = sizeof(*ret_leftovers)};
	if (!has_leftovers(target))
		return 0;
	ret_leftovers->limits_ingress = true;
	ret_leftovers->waiting_ns = 250000000;
	ret_leftovers->limits_egress = true;
	snprintf(ret_leftovers->host_ifname, sizeof(ret_leftovers->host_ifname),
		 "veth\x1b");
	snprintf(ret_leftovers->ifb_ifname, sizeof(ret_leftovers->ifb_ifname),
		 "bwp0");
	return 0;
}

int natra_drain_leftovers(struct natra *n, const struct natra_target *target)
{
	fprintf(stderr, "drain leftovers of %s\n", target->ifname);
	return 0;
}

int natra_remove_leftovers(struct natra *n, const struct natra_target *target)
{
	fprintf(stderr, "remove leftovers of %s\n", target->ifname);
	leftovers_removed = true;
	return 0;
}

int natra_foreach_subnet(struct natra *n, const char *id, natra_subnet_fn fn,
			 void *arg)
{
	if (strcmp(id, "evil") != 0)
		return -ENOENT;
	return fn(arg, "10.0.0.0/8") || fn(arg, "2001:db8::/32");
}

int natra_foreach_class(struct natra *n, const char *id, natra_class_fn fn,
			void *arg)
{
	static const char *const subnets[] = {"10.0.0.0/8", "fd00::/8"};
	struct natra_class class = NATRA_INIT(class);

	if (strcmp(id, "bare") != 0)
		return -ENOENT;
	class.name = "cluster";
	class.egress_rate_bits_per_sec = 1000000000;
	class.dscps = UINT64_C(1) << 46 | UINT64_C(1) << 8;
	class.subnets = subnets;
	class.subnets_len = 2;
	return fn(arg, &class);
}

int natra_upgrade(struct natra *n, const char *id)
{
	fprintf(stderr, "upgrade %s\n", id);
	if (strcmp(id, "gone") == 0 || strcmp(id, "newer") == 0)
		return id[0] == 'g' ? -ENODEV : -ESTALE;
	/* The other ids were detached after they had been listed. */
	return strcmp(id, "web") == 0 || strcmp(id, "bare") == 0 ? 0 : -ENOENT;
}

int natra_detach(struct natra *n, const struct natra_target *target)
{
	const char *id = target->id ? target->id : "by name";

	fprintf(stderr, "detach %s\n", id);
	return strcmp(id, "none") != 0;
}

int natra_check(struct natra *n, const char *id,
		const struct natra_policy *policy)
{
	if (strcmp(id, "evil") == 0 && getenv("FAKE_CHECK"))
		return -(int)strtol(getenv("FAKE_CHECK"), NULL, 10);
	return strcmp(id, "gone") == 0 ? -ENODEV : 0;
}

int natra_query(struct natra *n, const char *id, struct natra_info *ret_info)
{
	return fill(ret_info, id);
}

int natra_find(struct natra *n, const struct natra_target *target, char *ret_id,
	       size_t size)
{
	if (strcmp(target->ifname, "eth0") != 0 &&
	    strcmp(target->ifname, "old") != 0)
		return -ENOENT;
	snprintf(ret_id, size, "web");
	return 0;
}

/* Gives each counter a different value. */
static struct natra_direction_stats each_different(uint64_t calls)
{
	return (struct natra_direction_stats){
		.mice = {1 * calls, 100 * calls},
		.admitted = {2 * calls, 200 * calls},
		.paced = {3 * calls, 300 * calls},
		.marked = {4 * calls, 400 * calls},
		.dropped_rate = {5 * calls, 500 * calls},
		.dropped_horizon = {6 * calls, 600 * calls},
		.unlimited = {7 * calls, 700 * calls},
		.other = {8 * calls, 800 * calls},
		.delay_sum_ns = 21000000 * calls,
	};
}

static bool is_named_by(const char *variable, const char *id)
{
	const char *name = getenv(variable);

	return name && strcmp(name, id) == 0;
}

int natra_stats(struct natra *n, const char *id, struct natra_stats *ret_stats)
{
	const char *error = getenv("NATRA_FAKE_ERROR");
	static uint64_t calls;

	if (error && access(error, F_OK) == 0)
		return -EPERM;
	/* It was detached, or its counters are gone. */
	attach_code = is_named_by("FAKE_DETACHED", id) ? NATRA_CODE_NOT_ATTACHED
						       : NATRA_CODE_NONE;
	if (attach_code || is_named_by("FAKE_GONE", id))
		return -ENOENT;
	if (pod_number(id) >= 0) {
		*ret_stats = stats_of_pod(pod_number(id));
		return 0;
	}
	calls++;
	*ret_stats = (struct natra_stats){.sz = sizeof(*ret_stats)};
	if (strcmp(id, "bare") == 0) {
		ret_stats->ingress = each_different(calls);
		return 0;
	}
	/* A double cannot hold this number exactly. */
	ret_stats->ingress.mice.packets = (UINT64_C(1) << 60) + calls;
	ret_stats->ingress.mice.bytes = calls * 1500;
	ret_stats->egress.paced = (struct natra_count){calls * 10, calls * 100};
	ret_stats->egress.delay_sum_ns = calls * 10 * 2000000;
	ret_stats->egress_delays.sum_ns = calls * 10 * 2000000;
	ret_stats->egress_delays.count[10] = calls * 6;
	ret_stats->egress_delays.count[11] = calls * 3;
	ret_stats->egress_delays.count[30] = calls;
	/* This counter starts again from 0. */
	ret_stats->egress.marked.packets = calls == 1 ? 1000 : 0;
	ret_stats->egress.over_packets = (struct natra_count){calls * 3, 300};
	ret_stats->egress.over_connections = (struct natra_count){calls, 60};
	ret_stats->egress.events_reported = 5;
	ret_stats->egress.events_suppressed = 7;
	ret_stats->ingress.over_limit_time_ns = 5000;
	ret_stats->ingress.over_limit_percent = 250;
	ret_stats->ingress_heavy_flows = 2;
	ret_stats->egress_connects = (struct natra_connect_stats){
		.begun = 20, .repeated = 4, .refused = 2, .forgotten = 1};
	ret_stats->egress_connects.accepted.sum_ns = 1500000000;
	ret_stats->egress_connects.accepted.count[15] = 9;
	ret_stats->egress_connects.accepted.count[20] = 1;
	return 0;
}

int natra_top(struct natra *n, const char *id, enum natra_direction direction,
	      struct natra_flow *ret_flows, size_t *inout_len)
{
	static const struct natra_flow flows[] = {
		{.saddr = {10, 0, 0, 1},
		 .daddr = {10, 0, 0, 2},
		 .sport = 443,
		 .dport = 5000,
		 .ip_version = 4,
		 .protocol = 6,
		 .bytes = 3000},
		{.saddr = {0xfd, 1},
		 .daddr = {0xfd, 2},
		 .ip_version = 6,
		 .protocol = 89,
		 .bytes = 2000},
	};
	size_t len = *inout_len < 2 ? *inout_len : 2;

	if (direction == NATRA_DIRECTION_EGRESS)
		len = 0;
	memcpy(ret_flows, flows, len * sizeof(flows[0]));
	*inout_len = len;
	return 0;
}

/* There are four events, 10 s apart, the last one now; then a reader that follows gets
 * one more each time. Before the third one, whose attachment is gone, 3 were lost. */
struct natra_events {
	int number;
};

int natra_events_open(struct natra *n, struct natra_events **ret_events)
{
	static struct natra_events events;

	if (getenv("NATRA_FAKE_NO_EVENTS"))
		return -ENOENT;
	*ret_events = &events;
	return 0;
}

int natra_events_fd(const struct natra_events *events)
{
	return STDIN_FILENO; /* /dev/null is always readable */
}

void natra_events_close(struct natra_events *events)
{
}

int natra_events_read(struct natra_events *events,
		      struct natra_event *ret_event)
{
	const int number = events->number++;
	struct natra_info info;
	struct timespec now;

	if (number == 4 || number > 5) {
		events->number = 5;
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	*ret_event = (struct natra_event){
		.sz = sizeof(*ret_event),
		.direction = NATRA_DIRECTION_EGRESS,
		.reason = (enum natra_event_reason)(number < 5 ? number : 4),
		.over_limit_percent = 3720,
		.backstop = number == 1,
		.lost = number == 2 ? 3 : 0,
		.time_ns = ((uint64_t)now.tv_sec -
			    (number < 3 ? 10 * (3 - (uint64_t)number) : 0)) *
				   1000000000 +
			   (uint64_t)now.tv_nsec,
		.flow = {.saddr = {10, 0, 0, 1},
			 .daddr = {10, 0, 0, 2},
			 .sport = 443,
			 .dport = 5000,
			 .ip_version = 4,
			 .protocol = 6},
	};
	if (number == 2) {
		ret_event->direction = NATRA_DIRECTION_NONE;
		return 1;
	}
	fill(&info, number == 1 ? "evil" : "web");
	memcpy(ret_event->id, info.id, sizeof(ret_event->id));
	memcpy(ret_event->label, info.label, sizeof(ret_event->label));
	if (number == 3)
		memcpy(ret_event->class_name, "cluster", sizeof("cluster"));
	return 1;
}

int natra_foreach_neighbour(struct natra *n, const char *id,
			    natra_neighbour_fn fn, void *arg)
{
	struct natra_neighbour entry = {
		.sz = sizeof(entry),
		.ifname = "eth0",
		.hook = "tcx",
		.prog_id = 12,
		.prog_name = "early\x1b",
	};
	int r;

	entry.is_before_ours = strcmp(id, "bare") != 0;
	if ((r = fn(arg, &entry)))
		return r;
	entry.position = 1;
	entry.prog_name = "natra_ingress";
	entry.is_before_ours = false;
	entry.is_ours = true;
	if ((r = fn(arg, &entry)))
		return r;
	entry.position = 2;
	entry.hook = "clsact";
	entry.prog_id = 0;
	entry.prog_name = "u32\x1b";
	entry.priority = 3;
	entry.is_ours = false;
	return fn(arg, &entry);
}

/* Calls fn for each of the N pods. */
static int foreach_pod(natra_attachment_fn fn, void *arg)
{
	const long count = strtol(getenv("NATRA_FAKE_PODS"), NULL, 10);
	struct natra_info info;
	const char *end = getenv("NATRA_FAKE_IDS");
	char id[32];
	int r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		snprintf(id, sizeof(id), "pod-%d%s", i, end ? end : "");
		fill_pod(&info, id);
		r = fn(arg, &info);
	}
	return r;
}

struct stats_walk {
	natra_stats_fn fn;
	void *arg;
};

static int tell_with_stats(void *arg, const struct natra_info *info)
{
	const struct stats_walk *walk = arg;
	struct natra_stats stats;
	int r = natra_stats(NULL, info->id, &stats);

	return r ? r : walk->fn(walk->arg, info, &stats);
}

int natra_foreach_attachment(struct natra *n, natra_attachment_fn fn, void *arg)
{
	static const char *ids[] = {"newer", "bare", "evil", "gone", "web"};
	struct natra_info info;
	int r = 0;

	if (getenv("NATRA_FAKE_PODS"))
		return foreach_pod(fn, arg);
	for (size_t i = 0; i < 5 && r == 0; i++)
		r = fill(&info, ids[i]) ? 0 : fn(arg, &info);
	return r;
}

int natra_foreach_stats(struct natra *n, natra_stats_fn fn, void *arg)
{
	static const char *all[] = {"newer", "web", "bare", "evil", "gone"};
	struct natra_info info;
	struct natra_stats stats;
	bool has_stats;
	int r = 0;

	if (getenv("NATRA_FAKE_PODS"))
		return foreach_pod(tell_with_stats,
				   &(struct stats_walk){fn, arg});
	for (size_t i = 0; i < 5 && r == 0; i++) {
		fill(&info, all[i]);
		info.ingress_prog_id = info.egress_prog_id = 1;
		has_stats = !info.unshaped && !info.other_abi &&
			    natra_stats(n, all[i], &stats) == 0;
		r = fn(arg, &info, has_stats ? &stats : NULL);
	}
	return r;
}

int natra_gc(struct natra *n, const char *network, const char *const *keep,
	     size_t keep_len, size_t *ret_removed)
{
	if (network && strcmp(network, "ends") == 0)
		(void)raise(SIGTERM);
	if (getenv("NATRA_FAKE_CALLS"))
		fputs("gc\n", stderr);
	if (ret_removed)
		*ret_removed = 2;
	return 0;
}
