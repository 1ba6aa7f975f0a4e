/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file stats.h
 * @brief The counters and the flows. types.h includes this.
 */
#ifndef NATRA_STATS_H
#define NATRA_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <natra/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Packets and the bytes that they take on the wire. The struct stays as it is. */
struct natra_count {
	uint64_t packets;
	uint64_t bytes;
};

/** Buckets of a histogram, and the longest duration that bucket `i` counts, in
 *  nanoseconds, from 1024 on; the last bucket counts all that is longer. */
#define NATRA_HISTOGRAM_BUCKETS  31
#define NATRA_HISTOGRAM_UP_TO(i) (UINT64_C(1024) << (i))

/** A histogram of durations. Each duration is counted in one bucket. The struct and its
 *  buckets stay as they are. */
struct natra_histogram {
	uint64_t sum_ns;
	uint64_t count[NATRA_HISTOGRAM_BUCKETS];
};

/** Counters of one direction since it was attached; each packet is in exactly
 *  one of them but over_packets and over_connections. */
struct natra_direction_stats {
	/** Small flows, passed at once. With NATRA_FAST_PASS_STRICT those that
	 *  have to wait count as paced, marked or dropped_horizon instead. */
	struct natra_count mice;
	struct natra_count admitted; /**< heavy, within the rate */
	struct natra_count paced;    /**< given a later departure time */
	/** ECN CE set; where packets are held (ingress with pace, egress with
	 *  EDT) also given a later departure time. */
	struct natra_count marked;
	/** Over the rate, no EDT; over the limit of packets or connections. */
	struct natra_count dropped_rate;
	struct natra_count dropped_horizon; /**< would have waited too long */
	/** Neither this direction nor the group has a rate, or the peer is exempt. */
	struct natra_count unlimited;
	/** Packets that were over the limit of packets, and SYNs over that of
	 *  connections. They are in `dropped_rate` as well. */
	struct natra_count over_packets;
	struct natra_count over_connections;
	/** Packets on which the link itself depends (ARP, IPv6 neighbour
	 *  discovery, IEEE 802.1X, LLDP, LACP, STP) that passed uncharged, up to
	 *  4 kB at once and 4 kB in each second. Into the pod, a sender of more than a
	 *  quarter of that, or of an eighth of it in each second, has none of it.
	 *  Packets beyond that, and all others that are not IP, count like IP, each
	 *  EtherType as one flow. In a direction that has no rate all of them count
	 *  as `unlimited`. */
	struct natra_count other;
	uint64_t delay_sum_ns; /**< asked of all packets paced */
	/** Events that were reported, see natra_events_open, and flows that became
	 *  heavy without a report because 16 others had been reported just before. */
	uint64_t events_reported;
	uint64_t events_suppressed;
	/** CLOCK_MONOTONIC of the last second in which small flows exceeded the limit, with
	 *  NATRA_FAST_PASS_FREE, and what passed then in percent of the limit. 0: none. */
	uint64_t over_limit_time_ns, over_limit_percent;
	uint64_t room[15]; /**< 0; see NATRA_INIT */
};

/**
 * TCP connections that were begun in one direction, with NATRA_SLI_ON: `ingress` are
 * those to the pod, and `egress` those from the pod. They are measured where natra's
 * programs are. For `ingress` that is the time that the pod takes, and for `egress`
 * what the network and the other end take; both include what natra holds or drops of
 * these packets, which by default is nothing.
 */
struct natra_connect_stats {
	uint64_t begun; /**< SYNs, each connection once */
	/** The same SYN again, because it or its answer was lost. */
	uint64_t repeated;
	uint64_t refused; /**< answered by a RST */
	/** SYNs whose answer was not measured: over 256 waited, or 4 in one place. */
	uint64_t forgotten;
	/** Accepted: from the first SYN to the first SYN-ACK that passed. */
	struct natra_histogram accepted;
	uint64_t room[12]; /**< 0; see NATRA_INIT */
};

/** The counters of an attachment. */
struct natra_stats {
	size_t sz;
	struct natra_direction_stats ingress;
	struct natra_direction_stats egress;
	/** The packets that reach the pod, if the host side judges `ingress`. */
	struct natra_direction_stats backstop;
	/** The flows in the table of natra_top whose last packet is at most a minute old.
	 *  Those inside of a WireGuard tunnel, which is one flow there, count by themselves. */
	uint32_t ingress_heavy_flows;
	uint32_t egress_heavy_flows;
	/** The delays asked of packets by their departure times: how long fq is to
	 *  hold each, from the moment at which it was judged. They are those of
	 *  `paced` packets, and of `marked` ones where packets are held; their sum
	 *  is `delay_sum_ns`. */
	struct natra_histogram ingress_delays;
	struct natra_histogram egress_delays;
	struct natra_connect_stats ingress_connects;
	struct natra_connect_stats egress_connects;
};

/** One heavy flow. Addresses in network order, IPv4 in the first 4 bytes. */
struct natra_flow {
	uint8_t saddr[16];
	uint8_t daddr[16];
	/** In host order; 0 where the protocol has no ports. With ip_version 0
	 *  it is the EtherType, and 1 stands for all frames of IEEE 802.3 that
	 *  have a length in its place. */
	uint16_t sport;
	uint16_t dport;
	uint8_t ip_version; /**< 4 or 6; 0: not IP, or unknown */
	uint8_t protocol;   /**< IANA number */
	/** Since the flow has been in the table, wire bytes. */
	uint64_t bytes;
	uint64_t packets;
	uint64_t idle_ns; /**< age of the flow's last packet */
	uint64_t room[8]; /**< 0; see NATRA_INIT */
};

/** Most flows that natra_top has of a direction: each of two programs has a table of 32 for
 *  each class, and one for the rest. */
#define NATRA_FLOWS_MAX 576

#ifdef __cplusplus
}
#endif

#endif
