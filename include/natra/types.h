/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file types.h
 * @brief The constants, enums and structs of natra.h, which includes it. Those that arrays in
 *        structs have as their size never change; the others may grow.
 */
#ifndef NATRA_TYPES_H
#define NATRA_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <natra/base.h>
#include <natra/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest attachment id in bytes, without the terminator. */
#define NATRA_ID_MAX                255
/** Longest `network` and `label` in bytes, without the terminator. */
#define NATRA_NAME_MAX              255
/** Most subnets of one policy, in all its lists together. */
#define NATRA_SUBNETS_MAX           1024
/** Most classes of one policy, and longest name of one in bytes, without the terminator. */
#define NATRA_CLASSES_MAX           8
#define NATRA_CLASS_NAME_MAX        31
/** Most groups of a node, and longest name of one in bytes, without the terminator. */
#define NATRA_GROUPS_MAX            256
#define NATRA_GROUP_NAME_MAX        127
/** Greatest weight of a member of a group. */
#define NATRA_WEIGHT_MAX            64
/** Limits of a rate. The lowest is 1 bit/s, because upstream's plugin takes any
 *  rate that is not 0; 1 Pbit/s is the most that container runtimes pass on. */
#define NATRA_RATE_MIN_BITS_PER_SEC 1ULL
#define NATRA_RATE_MAX_BITS_PER_SEC 1000000000000000ULL

/** The place where the programs sit. HOSTSIDE modes need a veth whose peer is in the
 *  caller's network namespace. */
enum natra_attach_mode {
	NATRA_ATTACH_MODE_AUTO, /**< first that this kernel can do; see natra_attach */
	NATRA_ATTACH_MODE_TCX_PODSIDE,
	NATRA_ATTACH_MODE_CLSACT_PODSIDE,
	NATRA_ATTACH_MODE_TCX_HOSTSIDE,
	NATRA_ATTACH_MODE_CLSACT_HOSTSIDE,
	NATRA_ATTACH_MODE_MAX
};

/** Earliest departure time pacing of egress, which needs the `fq` qdisc on the pod's
 *  interface. At rates under 105 Mbit/s natra lowers the interface's gso_max_segs for
 *  as long as it is attached, unless another program has set it. */
enum natra_edt_pacing {
	NATRA_EDT_PACING_AUTO, /**< if the kernel can, and no other qdisc is there */
	NATRA_EDT_PACING_ON, /**< fail without it, where egress is limited */
	NATRA_EDT_PACING_OFF, /**< leave the root qdisc of the pod's interface alone */
	NATRA_EDT_PACING_MAX
};

/** The treatment of flows under the heavy-hitter threshold. */
enum natra_fast_pass {
	NATRA_FAST_PASS_FREE,   /**< pass at once, not charged */
	NATRA_FAST_PASS_STRICT, /**< pass first, charged: a strict cap */
	NATRA_FAST_PASS_OFF,    /**< every flow is treated as heavy */
	NATRA_FAST_PASS_MAX
};

/** The way in which ingress is held to its rate. */
enum natra_ingress_mode {
	NATRA_INGRESS_MODE_POLICE, /**< mark ECN, else drop; on the host side, but in groups */
	NATRA_INGRESS_MODE_PACE, /**< hold in fq on the host-side veth */
	NATRA_INGRESS_MODE_MAX
};

/** Whether connections are measured, see struct natra_connect_stats. The
 *  direction without a rate gets a program, too, which limits nothing. */
enum natra_sli { NATRA_SLI_OFF, NATRA_SLI_ON, NATRA_SLI_MAX };

enum natra_direction {
	NATRA_DIRECTION_INGRESS, /**< into the pod */
	NATRA_DIRECTION_EGRESS,  /**< out of the pod */
	NATRA_DIRECTION_MAX,
	NATRA_DIRECTION_NONE = 255 /**< of an event whose attachment is gone */
};

enum natra_log_level {
	NATRA_LOG_ERROR,
	NATRA_LOG_WARN,
	NATRA_LOG_INFO,
	NATRA_LOG_DEBUG,
	NATRA_LOG_MAX
};

/**
 * @brief Receives one log line, without a newline; valid during the call only.
 *
 * Called in the thread that made the call, and in its network namespace, while that may hold
 * locks. Like natra_cancelled_fn, it must not call a function with its handle.
 */
typedef void (*natra_log_fn)(void *arg, enum natra_log_level level,
			     const char *line);

/**
 * @brief Tells whether a call that waits for a lock should give up.
 *
 * Asked up to 50 times a second, in the thread that made the call.
 */
typedef bool (*natra_cancelled_fn)(void *arg);

/** Options of natra_open. */
struct natra_open_opts {
	size_t sz;
	/** Absolute path of a bpffs mount point, used as it is given; NULL for pid 1's
	 *  "/sys/fs/bpf". bpffs is mounted there if the directory is empty, and stays. */
	const char *bpffs_path;
	natra_log_fn log_fn; /**< NULL: no log */
	void *log_arg;
	/** Keep the programs, which all attachments share, when the last attachment is
	 *  removed: for a caller that will attach again, since loading them takes
	 *  milliseconds. natra_gc removes them. */
	bool keep_programs;
	/** Asked while a call, before it has changed anything, waits for another process
	 *  that works on the same attachment or network namespace. Once it returns true,
	 *  the call fails with -ECANCELED. Later waits of the call, and those of natra_gc,
	 *  do not ask. NULL: see "Threads" in natra.h. */
	natra_cancelled_fn cancelled_fn;
	void *cancelled_arg;
	/** natra_open fails with -ESTALE, and logs what, if natra of another ABI has
	 *  attached something: its limits are not this library's to change or count. */
	bool refuse_other_abi;
	uint8_t reserved[7]; /**< 0; see NATRA_INIT */
};

/** The interface to attach to. The strings are read during the call only. */
struct natra_target {
	size_t sz;
	/** Name of the attachment, 1 to NATRA_ID_MAX bytes; NULL or "":
	 *  "<netns inode>-<ifname>". */
	const char *id;
	/** Interface of the pod, in the network namespace given below; of the host's end
	 *  of a veth, ingress is what the pod sends. An attachment stays with its
	 *  interface: while that exists, the name by which it was attached as `id` means
	 *  it, even if it was renamed and another one has that name now (as in a pod of
	 *  KubeVirt); natra_detach first, to attach to that. */
	const char *ifname;
	/** A path (with a '/') or a name under /run/netns; NULL: the caller's
	 *  network namespace. */
	const char *netns;
	/** A descriptor of the network namespace, instead of `netns`; 0: not given (standard
	 *  input cannot be), and less, as of an open(2) that failed, -EINVAL. The caller still
	 *  owns it. */
	int netns_fd;
	/** Kept with the attachment for natra_foreach_attachment and natra_gc; may be
	 *  NULL: the CNI network, and free text such as "namespace/pod". */
	const char *network;
	const char *label;
};

/**
 * Peers with limits of their own: those whose address is in one of the subnets. A
 * packet whose peer is in no subnet of any class belongs to the class that has its
 * DSCP, if there is one. If it is in none, the limits of the policy hold for it.
 *
 * Each class has its own rates, fair shares, heavy flows and counters. All else of the
 * policy holds for each class as for the rest: burst, threshold, fast pass, delays. Sizes
 * that the policy leaves to the rate follow the rate of the class. Limits of packets and
 * connections hold for all together, and in a group all are one member; what is in a class
 * is exempt from these in a direction without a rate.
 */
struct natra_class {
	size_t sz;
	/** 1 to NATRA_CLASS_NAME_MAX of A-Z, a-z, 0-9, '.', '_' and '-'. */
	const char *name;
	/** 0: this direction is not limited for the class. */
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	/** Bit n: DSCP n, 0 to 63. A DSCP can be in one class only. */
	uint64_t dscps;
	/** CIDR blocks, as in natra_policy. If a peer is in several, the longest
	 *  prefix decides. A block can be in one class only. */
	const char *const *subnets;
	size_t subnets_len;
	uint64_t room[9]; /**< 0; see NATRA_INIT */
};

/**
 * Limits and how they are kept. Zero means "the default" in each field; a rate
 * of 0 means that this direction is not limited.
 */
struct natra_policy {
	size_t sz;
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	/** In bits; a packet, of 64 kB at most, always passes beyond it. 0: what the rate
	 *  carries in 0.5 s; with NATRA_INGRESS_MODE_PACE in pace_limit_ns, if that is
	 *  less. Needs a rate. */
	uint64_t ingress_burst_bits;
	/** The same, of 0.5 s with each ingress mode. */
	uint64_t egress_burst_bits;
	/** A flow whose estimate over the last one or two seconds reaches this
	 *  is heavy; 0: what the rate of its direction carries in 0.1 s. */
	uint64_t heavy_hitter_threshold_bytes;
	/** Longest delay that EDT may give; 0: what 4 MB take at the egress
	 *  rate, from 100 ms to 2 s, and 2 s in a group, which may be slower. At
	 *  most 9 s, so that fq (10 s) never drops first. Beside other members of
	 *  its group a packet that leaves them no room waits for 100 ms at most,
	 *  and longer at low rates, where a few long packets take more. */
	uint64_t horizon_ns;
	/** Longest delay with NATRA_INGRESS_MODE_PACE. EDT gives no longer delay either
	 *  where it puts no backpressure on the sender: to forwarded packets. 0: 50 ms.
	 *  At most 9 s. */
	uint64_t pace_limit_ns;
	/** Share of the rate that small flows may take at once with NATRA_FAST_PASS_STRICT,
	 *  in percent, 1 to 1000; 0: 80. EDT holds what is over it for pace_limit_ns and 100
	 *  ms at most, longer only under 1 Mbit/s. Over 100 it is a ceiling above the rate,
	 *  beside which heavy flows keep a fifth of the rate. */
	uint32_t fast_pass_share_percent;
	enum natra_fast_pass fast_pass;
	/** Packets and new TCP connections in a second, which hold for small flows
	 *  too: what is over them is dropped. A packet that is segmented later
	 *  counts as its segments, and a connection by its SYN, in the direction of
	 *  the SYN; no other protocol has connections here. Those of 0.1 s, and at
	 *  least 5, may pass at once after a pause. 0: no limit. Each needs a rate
	 *  of its direction, or a group, and is at most 10^9. */
	uint64_t ingress_packet_rate_per_sec;
	uint64_t egress_packet_rate_per_sec;
	uint64_t ingress_connection_rate_per_sec;
	uint64_t egress_connection_rate_per_sec;
	/** Name of the group whose rates it shares beside its own, of which it needs
	 *  none; "": in none. See struct natra_group_info. */
	char group[NATRA_GROUP_NAME_MAX + 1];
	/** True: an automatic group, which was made for its members; false: one that
	 *  natra_group_set has made. Each kind has names of its own. */
	bool group_is_automatic;
	/** How much it has of what is left in the group beside other members, up
	 *  to NATRA_WEIGHT_MAX; 0: 1. Needs a group. */
	uint32_t group_weight;
	/** The rate that the group never takes from it, in each direction in which
	 *  the group has a rate; 0: none. It is at most its own rate, and the floors of all
	 *  members together at most the group's rate. Needs a group. */
	uint64_t group_floor_bits_per_sec;
	/** What the automatic group is to be: natra_attach and natra_configure make it,
	 *  or change it for all its members. `group_is_automatic` need not be set, and
	 *  the `name` is not read. NULL: the group has to be there, and stays as it is.
	 *  Read during the call only; NULL in what natra_query reports. */
	const struct natra_group_info *automatic_group;
	/* Those from here on, but for the lists, are fixed at attach, and kept. */
	enum natra_ingress_mode ingress_mode;
	enum natra_attach_mode attach_mode;
	enum natra_edt_pacing edt_pacing;
	enum natra_sli sli;
	/** Peers whose traffic is limited, or whose traffic is not: the address
	 *  of the other end, as CIDR blocks such as "10.0.0.0/8" or
	 *  "2001:db8::/32". Bits behind the prefix are ignored, a block that is
	 *  given twice is one. At most one of the two lists. Packets that cannot be
	 *  parsed are limited. Beside classes the longest prefix of all lists decides,
	 *  which may have NATRA_SUBNETS_MAX entries together, each in one list only;
	 *  peers that are neither shaped nor in a class are exempt.
	 *
	 *  Read during the call only. NULL in what natra_query reports, which has the
	 *  lengths: natra_foreach_subnet has the blocks. natra_attach, natra_preload
	 *  and natra_record_unshaped refuse NULL with a length: the other functions
	 *  accept a policy as natra_query reported it. */
	const char *const *shaped_subnets;
	size_t shaped_subnets_len;
	const char *const *unshaped_subnets;
	size_t unshaped_subnets_len;
	/** Classes of peers, up to NATRA_CLASSES_MAX, all with the same `sz`. Peers in
	 *  a class without rates are exempt. Without rates of the policy itself, only
	 *  what is in a class is limited.
	 *
	 *  Read during the call only. NULL in what natra_query reports, which has
	 *  their number: natra_foreach_class has the classes. NULL with a length is
	 *  treated as for subnets. */
	const struct natra_class *classes;
	size_t classes_len;
	uint64_t room[32]; /**< 0; see NATRA_INIT */
};

/** An annotation of a pod. If `value` is NULL, it is as if it were not there. The struct stays
 *  as it is: what else may be said of one is in natra_annotations, by its name. */
struct natra_annotation {
	const char *name, *value;
};

/** What natra_policy_annotate reads, in the call only. The last of a name counts. */
struct natra_annotations {
	size_t sz;
	const struct natra_annotation *annotations; /**< all that it has */
	size_t annotations_len;
	const char *const
		*allowed; /**< by any name; "natra.io/" may be left out */
	size_t allowed_len;
	bool allow_all;
	bool skip_bad; /**< log a bad value and ignore it, in place of an error */
	uint8_t reserved[6]; /**< 0; see NATRA_INIT */
};

/** The description that natra_query and natra_foreach_attachment give. */
struct natra_info {
	size_t sz;
	char id[NATRA_ID_MAX + 1];
	char ifname[16]; /**< by which it was attached; see natra_target */
	char network[NATRA_NAME_MAX + 1];
	char label[NATRA_NAME_MAX + 1];
	/** Why natra chose this `mode` and `edt_active`, or why the interface is
	 *  `unshaped`. */
	char reason[256];
	struct natra_policy policy; /**< as it was given, zeros kept */
	/** With the defaults filled in, and not for another call, which would refuse some
	 *  of them; the threshold is the smaller of both directions. */
	struct natra_policy effective;
	enum natra_attach_mode mode; /**< as attached; AUTO if `unshaped` */
	bool edt_active;             /**< egress is paced by departure times */
	bool pace_active;            /**< ingress is paced on the host side */
	bool fq_is_ours;      /**< natra added the pod's fq, and removes it */
	bool host_fq_is_ours; /**< the same on the host-side veth */
	bool interface_gone; /**< the interface or its netns does not exist any more */
	bool unshaped; /**< see natra_record_unshaped: no limit holds */
	uint32_t ifindex;
	char host_ifname[16]; /**< "" where the host side is not used */
	uint32_t host_ifindex;
	uint64_t netns_inode;
	uint32_t abi; /**< of the pinned state */
	/** Kernel ids, 0 where there is none. With `host_prog_id`, which judges ingress on
	 *  the host side, `ingress_prog_id` is the backstop in the pod. */
	uint32_t ingress_prog_id;
	uint32_t egress_prog_id;
	uint32_t host_prog_id;
	char pin_path[512]; /**< as pid 1 sees it, if bpffs_path was NULL */
	/** The programs are of this library's build; else natra_upgrade replaces them. */
	bool program_is_current;
	bool other_abi; /**< another ABI's natra attached it: policies have rates only */
	/** Percent of the bytes that the interface carried in the direction without natra's
	 *  program seeing them: another owner's program, a redirect or a socket took them past
	 *  it. 0: less than 5, or too little to say. They are of the last window of 10 s or
	 *  more, or of the present one; natra_foreach_stats tells what natra_check,
	 *  natra_query or natra_foreach_attachment last found. */
	uint32_t ingress_bypassed_percent;
	uint32_t egress_bypassed_percent;
	/** The maps can be kept, unless natra_upgrade finds that more than programs changed. */
	bool upgrade_is_in_place;
	uint8_t reserved[11]; /**< 0 */
};

/** The reason of an event. Each kind but NATRA_EVENT_HEAVY is reported once in about a
 *  second (2^30 ns) for an attachment and direction, while it goes on or happens
 *  again. */
enum natra_event_reason {
	/** A small flow has become heavy. Each flow is reported, up to 16 at once and
	 *  then one per second; `events_suppressed` counts the others. A flow that pauses
	 *  for half a minute is reported again, and a WireGuard tunnel for each of the
	 *  flows inside of it. */
	NATRA_EVENT_HEAVY,
	/** A packet of a heavy flow, or one over the limit of packets or
	 *  connections, was dropped, as `dropped_rate` counts. */
	NATRA_EVENT_DROPPED_RATE,
	/** The same for `dropped_horizon`: it would have waited longer than
	 *  `horizon_ns` or `pace_limit_ns`, or than a group lets it. */
	NATRA_EVENT_DROPPED_HORIZON,
	/** With NATRA_FAST_PASS_STRICT: small flows are over their share, and
	 *  a packet of one has to wait, or was dropped where nothing holds it. */
	NATRA_EVENT_MICE_OVER_SHARE,
	/** With NATRA_FAST_PASS_FREE: small flows exceed the limit together. In a second
	 *  `over_limit_percent` of it passed. Reported once, and again after they did not. */
	NATRA_EVENT_OVER_LIMIT,
	NATRA_EVENT_MAX
};

/** What a program reported of a packet, see natra_event_reason. */
struct natra_event {
	size_t sz;
	/** "" if the attachment does not exist any more, or was replaced since. */
	char id[NATRA_ID_MAX + 1];
	char label[NATRA_NAME_MAX + 1];
	/** NATRA_DIRECTION_NONE if `id` is "". */
	enum natra_direction direction;
	enum natra_event_reason reason;
	/** The event is from the backstop in the pod, see natra_stats. */
	bool backstop;
	uint64_t time_ns; /**< CLOCK_MONOTONIC */
	/** How many events after the last one were overwritten before they were read. */
	uint64_t lost;
	/** The flow of the packet; its `bytes`, `packets` and `idle_ns` are 0. */
	struct natra_flow flow;
	char class_name[NATRA_CLASS_NAME_MAX + 1]; /**< "": none or no id */
	/** With NATRA_EVENT_OVER_LIMIT, which has no flow. */
	uint32_t over_limit_percent;
	char group[NATRA_GROUP_NAME_MAX + 1]; /**< whose limit it is, or "" */
	uint8_t reserved[4];                  /**< 0 */
};

/**
 * A rate that several attachments share. No member exceeds its own limits, and all
 * together do not exceed the group's. Where a member has no rate, the group alone limits
 * it, as soon as that has one, and its small flows have no ceiling and no share. A member
 * that takes less than its floor or its share does not wait for others; what is idle is
 * there for all, in proportion to their weights. Packets that pass as small flows are not
 * charged, except with NATRA_FAST_PASS_STRICT; flows that are large for the group are
 * heavy, whatever the member's own threshold is.
 *
 * A group may be a member of another one, its parent, which has no parent itself.
 */
struct natra_group_info {
	size_t sz;
	/** 1 to NATRA_GROUP_NAME_MAX bytes, without control characters. */
	const char *name;
	/** Bit/s. 0: this direction is not limited, which one of the two has to be. */
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	/** In bits. 0: what the rate carries in 0.5 s. Needs a rate. */
	uint64_t ingress_burst_bits;
	uint64_t egress_burst_bits;
	const char *parent; /**< made by natra_group_set; NULL: none */
	/** These are the group's part in its parent, as in struct natra_policy, and need one. */
	uint64_t floor_bits_per_sec;
	uint32_t weight;
	uint64_t room[8]; /**< 0; what later versions read takes a part of it */
	/* The members from here on are only reported. */
	uint32_t members; /**< attachments; groups do not count */
	bool automatic;   /**< it goes with its last member */
	/** Packets of members that were charged to the group: those of heavy
	 *  flows that were not dropped, and of small ones that are charged. */
	struct natra_count ingress_charged, egress_charged;
	/** By natra_direction: as natra_direction_stats has them of one member, and the bytes
	 *  of small flows that were not charged, which a group hears of once in a second. */
	uint64_t over_limit_time_ns[2], over_limit_percent[2], free_bytes[2];
};

/** One program on a hook that an attachment uses: the attachment's own or a
 *  neighbour of it. */
struct natra_neighbour {
	size_t sz;
	enum natra_direction direction;
	const char *ifname;
	/** "tcx", or "clsact", which may be an `ingress` qdisc. */
	const char *hook;
	bool hook_is_ingress; /**< of the interface, not of the pod */
	uint32_t position;    /**< 0 runs first; tcx runs before clsact */
	uint32_t prog_id;
	const char *prog_name; /**< or its filter's; "": no name */
	uint32_t priority;     /**< clsact only */
	uint32_t handle;       /**< clsact only */
	bool is_ours;          /**< belongs to this attachment */
	/** Another owner's program that runs before this attachment's: packets that it
	 *  accepts or redirects, instead of passing them on, are not limited. */
	bool is_before_ours;
	bool is_on_host; /**< not in the pod, where ifname may be the same */
	uint8_t reserved[5]; /**< 0 */
};

/**
 * @brief The callbacks of walkers: natra_foreach_attachment calls a natra_attachment_fn.
 *
 * `arg` is what the caller gave to the walker; the other arguments are valid
 * during the call only. A result other than 0 ends the walk, which returns it. A callback
 * may call any function but natra_close with the handle that walks. When it ended the walk,
 * natra_error() is that of its last own call with that handle, or "".
 */
typedef int (*natra_attachment_fn)(void *arg, const struct natra_info *info);
typedef int (*natra_neighbour_fn)(void *arg,
				  const struct natra_neighbour *neighbour);
typedef int (*natra_subnet_fn)(void *arg, const char *cidr);
typedef int (*natra_class_fn)(void *arg, const struct natra_class *class_);
typedef int (*natra_class_stats_fn)(void *arg, const struct natra_class *class_,
				    const struct natra_stats *stats);
typedef int (*natra_group_fn)(void *arg, const struct natra_group_info *group);

/**
 * @brief The callback of natra_foreach_stats. `info` is without `interface_gone`,
 *        `program_is_current` and `upgrade_is_in_place`. `stats` is NULL if there are no
 *        counters: the attachment is `unshaped`, or of another ABI, or the counters cannot be
 *        read, as when they are gone from bpffs (natra_check returns -EBADE then).
 */
typedef int (*natra_stats_fn)(void *arg, const struct natra_info *info,
			      const struct natra_stats *stats);

/** The features of this kernel. */
struct natra_features {
	size_t sz;
	char kernel[65];
	/** The kernel has what natra needs, by trying it; else `reason` names what it
	 *  lacks. */
	bool kernel_ok;
	bool bpf;   /**< programs can be loaded by this process */
	bool bpffs; /**< a bpffs is mounted at the handle's path */
	bool tcx;
	bool clsact;
	bool fq;
	enum natra_attach_mode auto_mode; /**< with EDT auto */
	bool auto_edt;
	char reason[256];
	bool coarse_clock; /**< bpf_ktime_get_coarse_ns (Linux 5.11): needed */
	bool atomics;      /**< BPF atomic instructions (5.12): needed */
	bool netns_cookie; /**< SO_NETNS_COOKIE (5.14): needed */
	/** bpf_skb_set_tstamp (5.18): without it departure times are written
	 *  without their type, which no kernel before it has. */
	bool set_tstamp;
	uint32_t abi;        /**< of the state that this library pins */
	uint8_t reserved[8]; /**< 0 */
};

#ifdef __cplusplus
}
#endif

#endif
