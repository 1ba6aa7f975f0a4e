/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the BPF programs and the library agree on: map values, sizes, names.
 * Native byte order unless a field says otherwise.
 */
#ifndef NATRA_SHARED_H
#define NATRA_SHARED_H

#include <linux/types.h>

/*
 * Number of the pinned layout. Raise it, from the first release on, when a struct of
 * this file, struct record behind its prefix, the set of pins or the way in which a
 * stub calls an engine changes (unless the engine's id changes with that, see
 * engine_id()). Natra of another number lists, detaches and replaces what this one has
 * attached, by the prefix of its records. Two builds of the same number run each other's
 * programs on each other's maps.
 *
 * What is called reserved here is 0. A field may take the place of some of it without a
 * new number if 0 in it means what builds without the field do. A map of a bank or a node
 * that builds without it do not open needs no new number either.
 */
#ifdef NATRA_NEXT_ABI
/* A build for tests, in which what is pinned is another from its first byte on: structs
 * begin with `moved`. */
#define NATRA_PIN_ABI 2
#define NATRA_MOVED   64
#else
#define NATRA_PIN_ABI 1
#define NATRA_MOVED   0
#endif
#define NATRA_PIN_MAGIC 0x6e617472 /* "natr" */

#define NATRA_ROWS         4
#define NATRA_SKETCH_WIDTH 1024

#define NATRA_HEAVY_WIDTH 512
#define NATRA_LINK_WIDTH  16
#define NATRA_FAIR_ROWS   2
#define NATRA_FAIR_WIDTH  512
#define NATRA_FLOW_SETS   8
#define NATRA_FLOW_WAYS   4
#define NATRA_FLOWS       (NATRA_FLOW_SETS * NATRA_FLOW_WAYS)

/* One for the sum and one for each word of the longest tuple. */
#define NATRA_HASH_KEYS 11

/* Unit of struct natra_flow_entry.last: 2^20 ns, about a millisecond. */
#define NATRA_FLOW_TICK_SHIFT 20

enum natra_counter {
	NATRA_COUNT_MICE,
	NATRA_COUNT_ADMITTED,
	NATRA_COUNT_PACED,
	NATRA_COUNT_MARKED,
	NATRA_COUNT_DROPPED_RATE,
	NATRA_COUNT_DROPPED_HORIZON,
	NATRA_COUNT_UNLIMITED,
	NATRA_COUNT_OTHER,
	NATRA_COUNT_MAX
};

struct natra_tally {
	__u64 packets;
	__u64 bytes;
};

/* A histogram of durations, see natra_durations.h. */
#define NATRA_DURATION_BUCKETS 31

struct natra_durations {
	__u64 sum_ns;
	__u64 count[NATRA_DURATION_BUCKETS];
};

/* The sum of all that a state counts, which user space computes. */
struct natra_counters {
	struct natra_tally count[NATRA_COUNT_MAX];
	struct natra_tally over_packets;
	struct natra_tally over_connections;
	struct natra_durations delays; /* of packets that are held */
};

/*
 * Each state has this many stripes of counters, and a CPU adds to the one whose
 * number is its id modulo this. The memory of a pod does not depend on the
 * CPUs of the machine that way. Up to this many CPU ids each has a stripe that no
 * other CPU writes; where there are more, CPUs share stripes and must add
 * atomically, see natra_fixed.stripes_shared.
 */
#define NATRA_STRIPES 4

struct natra_stripe {
	struct natra_tally count[NATRA_COUNT_MAX];
	struct natra_tally reserved[6];
	/* Packets that a gate dropped, which count as NATRA_COUNT_DROPPED_RATE. */
	struct natra_tally over_packets;
	struct natra_tally over_connections;
	struct natra_durations delays;
};

/* Identity of a flow. IPv4 addresses are in the first word, the rest is 0. It is
 * aligned so that programs copy and clear it by 8 bytes at a time. */
struct natra_tuple {
	__u32 saddr[4]; /* network byte order */
	__u32 daddr[4];
	__u32 ports; /* as in the packet; 0 of a fragment but the first */
	__u8 version;
	__u8 protocol;
	__u8 fragment;
	__u8 inner; /* of a tunnel's flows, see natra_parse_inner */
} __attribute__((aligned(8)));

/* What the parser finds, and its buffer. */
struct natra_parsed_packet {
	struct natra_tuple tuple;
	/* The headers of layers 2 to 4, as far as they are known. */
	__u16 header_len;
	__u16 l4_offset; /* where layer 4 begins; for NATRA_PARSED_IP only */
	__u16 jumbo_len; /* of BIG TCP's header, if it has one; see natra_jumbo_len */
	__u8 hop_limit;    /* of IPv6 */
	__u8 later_piece;  /* a fragment that is not the first */
	__u32 fragment_id; /* of the datagram, if it is a fragment */
	__u32 raw[5];
};

enum natra_pass {
	NATRA_PASS_FREE,
	NATRA_PASS_STRICT,
	NATRA_PASS_OFF,
};

/* A rate as ns per byte: cost_ns = bytes * mult >> shift; mult 0: no limit. */
struct natra_rate {
	__u64 mult;
	__u64 shift;
	__u64 burst_ns;
};

/* The gate that a packet does not pass, see natra_gates.bpf.h. */
enum natra_gate { NATRA_GATE_NONE, NATRA_GATE_PACKETS, NATRA_GATE_CONNECTIONS };

/* This says which part an attachment has in its group, or a group in its parent; see
 * natra_groups.h. */
struct natra_membership {
	__u32 group; /* its place in the map natra_groups, + 1; 0: in none */
	__u32 share; /* 2^16 / weight */
	struct natra_rate floor; /* without a burst */
};

/* From when on small flows exceed a limit together, see natra_over.h: how many bytes the rate is
 * in a window, 0 if nobody looks, and how many over it are no debt yet. */
struct natra_over_limits {
	__u64 rate;
	__u64 debt;
};

/* The limits of one direction. */
struct natra_limits {
#ifdef NATRA_NEXT_ABI
	__u8 moved[NATRA_MOVED];
#endif
	struct natra_rate rate;
	/* For NATRA_PASS_STRICT: the share of mice, and how much of the burst
	 * they leave to elephants once they are over it. */
	struct natra_rate mice;
	__u64 reserve_ns;
	union {
		/* Read by programs that pace: the longest delay of a packet. */
		__u64 max_delay_ns;
		/* Read by programs that police: how far a flow of packets that
		 * are marked CE may overdraw its share. */
		__u64 max_overdraft_ns;
	};
	/* Pacing only: with a longer delay packets are marked CE or dropped by chance,
	 * see natra_fair_target. */
	__u64 target_ns;
	/* Pacing only: the longest delay of a packet whose sender does not feel it. */
	__u64 unfelt_delay_ns;
	__u64 ramp_mult; /* policing only: 2^64 / burst_ns, see natra_fair.h */
	__u32 enter_units; /* a flow is heavy from here on, 64-byte units */
	__u32 leave_units; /* and a mouse below this */
	__u32 pass;        /* enum natra_pass */
	__u32 fair_shift;  /* unit of time of natra_fair.h: 2^fair_shift ns */
	__u64 has_gates;   /* one of these two has a rate */
	/* These are like rates of bytes: a packet or a connection counts as a byte does. */
	struct natra_rate packets;
	struct natra_rate connections;
	struct natra_membership member;
	/* It has no rate of its own, for which the highest stands, nor gates: it is
	 * unlimited while its group is. */
	__u64 by_group;
	/* For NATRA_PASS_STRICT: rate.mult for mice, which is less if their share is more than
	 * the rate. */
	__u64 mice_mult;
	struct natra_over_limits over; /* for NATRA_PASS_FREE */
	__u64 reserved[2];
};

/*
 * An entry of the map natra_configs. User space writes the limits that are not
 * active, then the index: a packet sees the old limits or the new ones.
 */
struct natra_config {
#ifdef NATRA_NEXT_ABI
	__u8 moved[NATRA_MOVED];
#endif
	__u64 active; /* counts changes; bit 0 is the index of the active ones */
	struct natra_limits limits[2];
	__u64 keys[NATRA_HASH_KEYS]; /* random, for this attachment */
	__u64 owner;                 /* see owner.h; 0: the entry is free */
	/* The number of the slot's class, from 1 on; 0: it has none. */
	__u64 class_number;
	/* The owner of the slot whose place this one takes in the same group, see take_mark();
	 * 0: there was none. */
	__u64 replaces;
	__u64 reserved[7];
};

/* A heavy flow for natractl top; written without locks, see natra_flows.h. */
struct natra_flow_entry {
	__u32 tag;  /* high half of the flow's hash */
	__u32 last; /* CLOCK_MONOTONIC >> NATRA_FLOW_TICK_SHIFT */
	struct natra_tuple tuple;
	__u64 bytes;
	__u64 packets;
};

/*
 * The key of the trie of classes. The version is the first part of each prefix, so that
 * ::/0 is not 0.0.0.0/0 as well. What is behind the prefix is 0. The value is a byte: the
 * number of the class, 0 for none, or NATRA_CLASS_EXEMPT.
 */
struct natra_subnet {
	__u32 prefix_bits; /* NATRA_SUBNET_VERSION_BITS and what the block has */
	__u32 version;     /* 4 or 6, or NATRA_SUBNET_DSCP */
	/* An address in network byte order, IPv4 in the first word; or the number of a
	 * DSCP, in the first word. */
	__u32 addr[4];
};

/* Stands for the version in the key of a DSCP, which has 32 bits behind it. */
#define NATRA_SUBNET_DSCP 0x64736370

/* Stands for the number of the class whose peers are exempt from all limits. */
#define NATRA_CLASS_EXEMPT 255

#define NATRA_SUBNET_VERSION_BITS 32
#define NATRA_SUBNET_BITS_MAX     (NATRA_SUBNET_VERSION_BITS + 128)

/* What a program tells in the ring of events: the moment in which something began,
 * or began again after a window without it. */
enum natra_report {
	NATRA_REPORT_HEAVY,           /* a flow is heavy that was a mouse */
	NATRA_REPORT_DROPPED_RATE,    /* the first such drop in a window */
	NATRA_REPORT_DROPPED_HORIZON, /* the same for the longest delay */
	/* The first mouse in a window that waits or is dropped because mice are
	 * over their share (NATRA_PASS_STRICT). */
	NATRA_REPORT_MICE_OVER_SHARE,
	/* Small flows exceed the limit together (NATRA_PASS_FREE), see natra_over.h. It is of no
	 * flow: the tuple has the percent of the limit that passed in the first word of
	 * the source, and in the second one the place of the group whose limit it is, as
	 * natra_membership.group has it, or 0. All else in it is 0. */
	NATRA_REPORT_OVER_LIMIT,
	NATRA_REPORT_MAX
};

/* Those before this one are reported once in a window, flows that become heavy up to
 * NATRA_EVENT_FLOWS at once. */
#define NATRA_REPORT_WINDOWS NATRA_REPORT_OVER_LIMIT

/* An event in the ring, written without locks, see natra_events.h. */
struct natra_event_entry {
	__u32 number; /* low half of its place in the order of all events, + 1 */
	__u16 reason;       /* enum natra_report */
	__u16 class_number; /* as in natra_config; programs of older builds have 0 */
	__u64 time_ns;      /* CLOCK_MONOTONIC */
	__u64 owner;        /* natra_config.owner of the slot */
	struct natra_tuple tuple;
};

#define NATRA_EVENTS 1024

/* The ring of events, which all programs of a node write, and which user space
 * maps. The newest events overwrite the oldest. */
struct natra_event_ring {
	__u64 head; /* how many events were ever told */
	__u64 pad[7];
	struct natra_event_entry entries[NATRA_EVENTS];
};

#define NATRA_CONNECT_SETS 64
#define NATRA_CONNECT_WAYS 4

/* A SYN that waits for its answer, see natra_connects.h. */
struct natra_connect {
	__u64 key;     /* 0: it is empty */
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

/*
 * The SYNs of both directions of an attachment that measures connections. It is the
 * only entry of a map of its own, which the map natra_connects has at the number of
 * the slot, in the banks of both directions.
 */
struct natra_connect_table {
	__u64 keys[NATRA_HASH_KEYS]; /* random, for this attachment */
	__u64 pad;
	struct natra_connect entries[NATRA_CONNECT_SETS * NATRA_CONNECT_WAYS];
};

/* What a direction's program has counted of connections. It sees the SYNs of its own
 * direction, and the answers to those of the other one. */
struct natra_connects {
	__u64 begun;     /* SYNs */
	__u64 repeated;  /* the same SYN again */
	__u64 forgotten; /* SYNs that waited when their entry was taken */
	__u64 refused;   /* answers: RST */
	struct natra_durations answers; /* SYN-ACK, by the time since the SYN */
};

/* The longest delay that a packet may have, by a setting or by a stamp that its socket asked for.
 * It is under the horizon of natra's fq, beyond which that drops: fq's clock may be ahead. */
#define NATRA_DELAY_MAX_NS 9000000000ULL

/* How a stub calls an engine: cb[0] has the number of the slot, whether the interface
 * sends the packet, whether fq below can hold it, whether the other end is its destination,
 * and whether flows inside of tunnels are told apart. natra_classes adds to it that the other end is exempt, or hidden from the
 * classes that there are. */
#define NATRA_CALL_SLOT    0xffffU
#define NATRA_CALL_SENT    0x10000U
#define NATRA_CALL_HELD    0x20000U
#define NATRA_CALL_PEER_TO 0x40000U
#define NATRA_CALL_EXEMPT  0x80000U
#define NATRA_CALL_HIDDEN  0x100000U
#define NATRA_CALL_INNER   0x200000U

/* Fixed at load, so that the verifier knows the numbers. */
struct natra_fixed {
	__u16 stripes_shared; /* there are more CPU ids than NATRA_STRIPES */
	__u8 measures_connects;
	__u8 has_groups; /* slots may be members of groups */
	__u16 has_l2; /* packets begin with an Ethernet header, not with IP */
	__u8 holds;   /* packets may be held */
	__u8 sets_tstamp;  /* Linux has bpf_skb_set_tstamp (5.18) */
	__u32 has_classes; /* natra_classes runs first */
};

/* The bucket of a direction, and what its heavy flows share beside it, see
 * natra_fair.h. */
struct natra_fair {
	__u64 tat_ns;
	__u64 latest_ns; /* the latest turn that was given */
	__u64 tick;      /* in which K was last adapted */
	__u32 k_more;    /* K - 1, with 12 bits of fraction */
	__s32 over;      /* the overdraft in that tick, 16 bits of fraction */
};

/* How far all packets together are over the limit of a slot or of a group, see natra_over.h. */
struct natra_over {
	__u64 time_ns; /* when it was looked at last */
	__u64 passed;  /* all bytes until then */
	__u64 debt;    /* in bytes */
	/* The bytes that passed uncharged: in a slot as many as its groups know of, and in a
	 * group those of all members. */
	__u64 uncharged;
	__u64 over_ns; /* when a window was found to be over the limit last, */
	__u32 percent; /* and how much of the limit it was */
	__u16 active; /* low bits of `active` of the slot or group, by which it was judged */
	__u16 phase; /* enum natra_over_phase */
};

#define NATRA_FRAGMENTED 8

/* A datagram whose first fragment has passed, see datagram_global(). */
struct natra_fragmented {
	__u64 key;  /* the hash of what all of its fragments have */
	__u64 hash; /* of its flow */
};

/* The clocks of a member, see natra_groups.h. */
struct natra_member {
	__u64 clock_ns; /* runs by the member's weight */
	__u64 floor_ns; /* runs by its floor */
};

/* The limits of one direction of a group. */
struct natra_group_limits {
	struct natra_rate rate;
	__u64 ramp_mult;     /* 2^64 / burst_ns, see natra_fair.h */
	__u32 fair_shift[2]; /* as in natra_limits: policed, and held */
	/* No member's flow is a mouse from here on; 0: the member decides. */
	__u32 enter_units;
	__u32 leave_units; /* as in natra_limits */
	struct natra_membership parent;
	struct natra_over_limits over;
};

/* A group as it was asked for, which only user space reads. It is in the entry for
 * ingress. */
struct natra_group_given {
	char name[128];             /* "": the entry is free */
	__u64 rate_bits_per_sec[2]; /* ingress, egress */
	__u64 burst_bits[2];
	__u64 floor_bits_per_sec;
	__u32 weight;
	__u32 parent;    /* number; 0: none */
	__u64 automatic; /* see struct natra_group_info */
};

#define NATRA_GROUPS 256

/*
 * A direction of a group: an entry of the map natra_groups, which all programs with
 * has_groups share. Group number N, from 1 on, has entry 2 * (N - 1) for ingress and
 * the next one for egress. User space maps it, and writes the limits that are not
 * active, then the index.
 */
struct natra_group {
#ifdef NATRA_NEXT_ABI
	__u8 moved[NATRA_MOVED];
#endif
	struct natra_fair fair;
	struct natra_member member; /* of the parent */
	struct natra_tally charged;
	__u64 active; /* counts changes; bit 0 is the index of the active limits */
	struct natra_group_limits limits[2];
	struct natra_group_given given;
	struct natra_over over;
	/* When another member was charged than the one before, see natra_group_meet(), and the
	 * tick since which that has gone on. */
	__u64 met_ns;
	__u32 last_member;
	__u32 met_since;
};

/* The limits under which gates are charged, by natra_debt_unit() of each. */
struct natra_gates {
	__u64 reserved;
	__u64 packets_ns;
	__u64 connections_ns;
};

/*
 * What the interface had carried, and the programs had judged, when the two were last
 * compared, and what came out for the time before: see carried.h. The slot of a leg has
 * it, and programs leave it alone.
 */
struct natra_carried {
	__u64 time_ns; /* CLOCK_BOOTTIME; 0: they were never compared */
	__u64 bytes;   /* of the interface, in the leg's direction */
	__u64 packets;
	__u64 judged_bytes; /* of all classes, less what waited to be carried */
	__u64 window_bytes; /* carried in the window that was last looked at */
	__u64 window_missed_bytes; /* of these, what no program has seen */
};

/*
 * The part of an attachment's data that changes with every packet: an entry of
 * the map natra_states.
 *
 * User space maps natra_states, so its values begin with a page. Each is a multiple of
 * a cache line long, and so are the parts that different CPUs write.
 */
struct natra_state {
#ifdef NATRA_NEXT_ABI
	__u8 moved[NATRA_MOVED];
#endif
	struct natra_fair fair;
	/* The value of natra_config.active under which the buckets were charged last, see
	 * settle() in natra.bpf.c. */
	__u64 settled;
	/* The windows up to which each kind of event is told, see natra_events.h.
	 * Behind them the second bucket is in a cache line of its own. */
	__u32 event_tat[NATRA_REPORT_WINDOWS];
	__u64 forgiven_tat_ns; /* of marks and drops, see natra_fair.h */
	__u64 mice_tat_ns;
	__u64 events_reported;
	__u64 events_suppressed; /* more flows became heavy than are told */
	__u64 tiny_tat_ns; /* of mice that are tiny, see natra_mice.bpf.h */
	__u64 link_tat_ns; /* of packets that the link depends on */
	struct natra_gates gates;
	struct natra_connects connects;
	__u64 packets_tat_ns;
	__u64 connections_tat_ns;
	struct natra_member member;
	struct natra_fragmented fragmented[NATRA_FRAGMENTED];
	struct natra_carried carried;
	__u64 settled_ns; /* natra_debt_unit() of the rate under which it is charged */
	struct natra_over over;
	/* The times up to which debts stay as they are, see natra_debt_kept(). */
	__u64 kept_ns;
	__u64 packets_kept_ns;
	__u64 connections_kept_ns;
	/* A sketch of who sends what the link depends on, see link_global(). */
	__u32 link_senders[NATRA_ROWS * NATRA_LINK_WIDTH];
	__u8 heavy[NATRA_ROWS * NATRA_HEAVY_WIDTH]; /* see natra_classify.h */
	struct natra_flow_entry flows[NATRA_FLOWS];
	__u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH]; /* natra_fair.h */
	struct natra_stripe stripes[NATRA_STRIPES];
	__u32 sketch[NATRA_ROWS * NATRA_SKETCH_WIDTH];
};

_Static_assert(sizeof(struct natra_flow_entry) == 64,
	       "as long as a cache line");
_Static_assert(sizeof(struct natra_event_entry) == 64,
	       "as long as a cache line");
_Static_assert(sizeof(struct natra_limits) == NATRA_MOVED + 240,
	       "no hidden padding");
_Static_assert(sizeof(struct natra_config) == 3 * NATRA_MOVED + 656,
	       "no hidden padding");
_Static_assert(sizeof(struct natra_stripe) == 512,
	       "as long as eight cache lines");
_Static_assert(sizeof(struct natra_fair) == 32, "no hidden padding");
_Static_assert(sizeof(struct natra_parsed_packet) == 72, "no hidden padding");
_Static_assert(sizeof(struct natra_connects) == 288, "no hidden padding");
_Static_assert(sizeof(struct natra_fixed) == 12, "no hidden padding");
_Static_assert(sizeof(struct natra_subnet) == 24, "no hidden padding");
_Static_assert(sizeof(struct natra_group) == NATRA_MOVED + 512,
	       "as long as eight cache lines");
_Static_assert(sizeof(struct natra_state) ==
		       NATRA_MOVED + 128 + 832 + 2048 + 2048 + 8192 +
			       NATRA_STRIPES * 512 +
			       4 * NATRA_ROWS * NATRA_SKETCH_WIDTH,
	       "layout; a multiple of a cache line");

#endif
