/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets packets that wait in upstream's limits leave before these are removed. Removing a
 * queue drops all that a TCP sender has on the way: nothing is acknowledged any
 * more, and the sender's timeout is as long as the queue was, several seconds.
 *
 * Each bucket is filled again, with as much as containerd asks the plugin for
 * when a pod starts. So the queue leaves at the peak rate, and so does what
 * senders send because of it, until their estimates of the round trip have
 * followed. The rates stay, so a process that is killed here leaves limits that
 * hold as for a pod that has just started.
 *
 * Whoever fills a bucket and cannot remove it afterwards tries again later. A bucket is
 * filled a few times only: else the pod would have no limit as long as that goes on. How
 * often it was filled is in the peak rate, which grows by as much each time, and which
 * upstream's plugin leaves out. Another peak rate is somebody else's and says nothing.
 *
 * An htb gets a higher rate instead (plugin_htb.c), until enough has passed: whoever is
 * killed meanwhile leaves it so, until the next drain or until the htb is removed.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <time.h>

#include "attach/leftovers.h"
#include "util/clock.h"

#define BUCKET_BYTES     (1U << 29)
/* Nobody else chooses a peak rate that is so much above a round one. */
#define PEAK_MARK        7U
/* No packet is longer, BIG TCP's neither: it would never leave. */
#define PEAK_BURST_BYTES (1U << 20)
/* A shorter queue makes no timeout long. */
#define WAIT_MIN_MS      100U
/* An estimate of the round trip falls by an eighth with each acknowledgement, but
 * what it has for deviations falls by a quarter with each window only. A window of
 * which the acknowledgements wait in the other queue is not seen here, so that the least
 * is for some that are as large as Linux makes them, 4 to 6 MB. */
#define WINDOWS          32
#define WANT_MIN         (128ULL << 20)
/* Half of the bucket is for the time until upstream's limits are removed. */
#define WANT_MAX         (BUCKET_BYTES / 2ULL)
#define LOOK_MS          5
#define DRAIN_MAX_MS     1000
/* One of them by a process that is killed. */
#define FILLS_MAX        3

static uint32_t wait_ms(const struct limiting *root)
{
	uint64_t ms = root->bytes_per_sec
			      ? root->qdisc.backlog_bytes * 1000ULL /
					root->bytes_per_sec
			      : 0;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

uint64_t leftovers_wait_ns(const struct leftovers *l)
{
	uint32_t in = wait_ms(&l->root), out = wait_ms(&l->ifb_root);
	uint32_t longest = in > out ? in : out;

	return longest >= WAIT_MIN_MS ? longest * NS_PER_MS : 0;
}

/* Returns the peak rate of a bucket that was filled once. */
static uint64_t peak_rate(const struct qdisc *tbf)
{
	uint64_t peak = 2 * tbf->tbf_bytes_per_sec;

	return PEAK_MARK +
	       (peak < DRAIN_BYTES_PER_SEC ? DRAIN_BYTES_PER_SEC : peak);
}

/* Returns how often a bucket was filled. */
static uint64_t fills(const struct qdisc *tbf)
{
	const uint64_t peak = tbf->tbf_peak_bytes_per_sec;
	const uint64_t times = peak / peak_rate(tbf);

	return peak % peak_rate(tbf) == 0 && times <= FILLS_MAX ? times : 0;
}

static bool is_htb(const struct limiting *root)
{
	return root->htb.bytes_per_sec != 0;
}

static bool may_fill(const struct limiting *root)
{
	const uint64_t times =
		is_htb(root) ? root->htb.fills : fills(&root->qdisc);

	return root->qdisc.kind[0] && times < FILLS_MAX;
}

static int put_options(struct nl_msg *msg, const struct qdisc *tbf)
{
	struct tc_tbf_qopt options = tbf->tbf;
	uint64_t peak = peak_rate(tbf) * (fills(tbf) + 1);

	options.peakrate = options.rate;
	options.peakrate.rate = peak < UINT32_MAX ? (uint32_t)peak : UINT32_MAX;
	if (nla_put(msg, TCA_TBF_PARMS, sizeof(options), &options) < 0 ||
	    nla_put_u64(msg, TCA_TBF_RATE64, tbf->tbf_bytes_per_sec) < 0 ||
	    nla_put_u64(msg, TCA_TBF_PRATE64, peak) < 0 ||
	    nla_put_u32(msg, TCA_TBF_BURST, BUCKET_BYTES) < 0)
		return -ENOMEM;
	return nla_put_u32(msg, TCA_TBF_PBURST, PEAK_BURST_BYTES);
}

static int refill(struct natra *n, struct netlink *nl,
		  const struct link_info *link, const struct qdisc *tbf)
{
	cleanup_nlmsg struct nl_msg *msg = netlink_tc(
		RTM_NEWQDISC, 0, link->ifindex, TC_H_ROOT, tbf->handle);
	struct nlattr *options;
	int r;

	if (!msg || nla_put_string(msg, TCA_KIND, tbf->kind) < 0 ||
	    !(options = nla_nest_start(msg, TCA_OPTIONS)) ||
	    put_options(msg, tbf) < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	(void)nla_nest_end(msg, options);
	r = netlink_request(nl, msg, NULL, NULL);
	/* The pod has ended, and the qdisc with it. */
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	return r < 0 ? fail_errno(n, r, "fill the bucket of '%s' (%s)",
				  link->ifname, nl->extack)
		     : 0;
}

/* Lets what waits leave faster. */
static int release(struct natra *n, struct netlink *nl,
		   const struct link_info *link, struct limiting *root)
{
	if (!may_fill(root))
		return 0;
	return is_htb(root) ? plugin_htb_raise(n, nl, link, &root->htb)
			    : refill(n, nl, link, &root->qdisc);
}

/* Returns 1 if enough has passed since `root` was looked at, 0 if not. */
static int has_passed(struct natra *n, struct netlink *nl, uint32_t ifindex,
		      const struct limiting *root, uint64_t want)
{
	struct qdisc now = {0};
	int r;

	/* Acknowledgements alone do not make much. */
	if (wait_ms(root) < WAIT_MIN_MS)
		return 1;
	r = qdisc_get(n, nl, ifindex, TC_H_ROOT, &now);
	if (r < 0)
		return r;
	return strcmp(now.kind, root->qdisc.kind) != 0 ||
	       now.sent_bytes - root->qdisc.sent_bytes >= want;
}

static uint64_t wanted(const struct leftovers *l)
{
	uint64_t bytes = WINDOWS * ((uint64_t)l->root.qdisc.backlog_bytes +
				    l->ifb_root.qdisc.backlog_bytes);

	if (bytes < WANT_MIN)
		return WANT_MIN;
	return bytes < WANT_MAX ? bytes : WANT_MAX;
}

/* Waits, for a second at most, until as much has passed as senders need. */
static int wait_until_passed(struct natra *n, struct netlink *nl,
			     const struct leftovers *l)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	const uint64_t want = wanted(l);
	const uint64_t end =
		clock_ns(CLOCK_MONOTONIC) + DRAIN_MAX_MS * NS_PER_MS;
	int r = 0;

	while (r == 0 && clock_ns(CLOCK_MONOTONIC) < end) {
		(void)nanosleep(&pause, NULL);
		r = has_passed(n, nl, l->host.ifindex, &l->root, want);
		if (r > 0)
			r = has_passed(n, nl, l->ifb.ifindex, &l->ifb_root,
				       want);
	}
	return r < 0 ? r : 0;
}

int leftovers_drain(struct natra *n, struct netlink *nl,
		    const struct leftovers *l)
{
	struct limiting root = l->root, ifb_root = l->ifb_root;
	int r = 0, in, out;

	if (leftovers_wait_ns(l) && (may_fill(&root) || may_fill(&ifb_root))) {
		r = release(n, nl, &l->host, &root);
		if (r == 0)
			r = release(n, nl, &l->ifb, &ifb_root);
		if (r == 0)
			r = wait_until_passed(n, nl, l);
	}
	/* A process that was killed may have left one raised, too. */
	in = plugin_htb_restore(n, nl, &l->host, &root.htb);
	out = plugin_htb_restore(n, nl, &l->ifb, &ifb_root.htb);
	if (r == 0)
		r = in;
	return r < 0 ? r : out;
}
