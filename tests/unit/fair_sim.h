/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated link with a cap, on a clock of its own: sources of several kinds
 * send through the decisions of the data path (its own headers), and what passes
 * is counted. It answers in milliseconds what real packets answer in minutes,
 * but only as far as the sources are like real ones: they are the simplest
 * forms of TCP, of a flood and of requests.
 */
#ifndef TEST_FAIR_SIM_H
#define TEST_FAIR_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "natra_shared.h"

#define SIM_MS      1000000ULL
#define SIM_SECOND  (1000 * SIM_MS)
#define SIM_SEGMENT 1514 /* bytes of a full TCP segment on the wire */

enum sim_kind {
	SIM_UDP, /* sends at a constant rate, even if packets are dropped */
	SIM_TCP, /* sends as much as it may */
	SIM_RR, /* sends a small message in a period, if the last was answered */
};

struct sim_source {
	/* Set by the caller. */
	enum sim_kind kind;
	uint64_t start_ns, stop_ns; /* 0: does not stop */
	double caps; /* of SIM_UDP and SIM_RR: the rate, in parts of the cap */
	uint32_t bytes;  /* of a packet of SIM_UDP and SIM_RR */
	uint64_t rtt_ns; /* without the time in the queue */
	bool ect, cubic;
	/* TCP and UDP on this host: sends no more while it has enough in fq. */
	bool local;

	/* Results since sim_reset(). */
	uint64_t passed_bytes, offered, dropped, marked, reordered;
	uint64_t delay_sum_ns, delay_max_ns, delays; /* in the queue, or SIM_RR:
						      * until it has passed */

	/* The simulation keeps its own state in the rest. */
	uint64_t last_depart_ns, next_ns, asked_ns;
	uint32_t waiting; /* segments or packets in fq */
	uint32_t tries;
	uint32_t inflight, gso_max;
	uint64_t next_seq, first_seq, recovery_seq;
	uint64_t last_ack_ns, timer_ns, epoch_ns;
	double cwnd, ssthresh, w_max, w_est, srtt_ns;
	bool probed;
	struct sim_skb *skbs; /* a ring: from first_seq to next_seq */
};

#define SIM_BIN_NS (100 * SIM_MS)
#define SIM_BINS   1200

struct sim {
	struct natra_limits limits;
	struct natra_state *state;
	__u64 keys[NATRA_HASH_KEYS];
	uint64_t rate_bits, now_ns, begin_ns, since_ns, seed;
	bool edt;
	bool one_bucket; /* judge as before fair shares: by the bucket alone */
	uint64_t max_passed_ahead_ns;
	struct sim_source *sources;
	size_t sources_len;
	struct sim_event *events; /* a heap */
	size_t events_len, events_max;
	uint64_t event_seq;
	uint64_t bins[SIM_BINS]; /* bytes that passed, since since_ns */
};

/* Begins at begin_ns of the clock. */
void sim_begin(struct sim *sim, uint64_t rate_bits,
	       const struct natra_limits *l, bool edt, uint64_t begin_ns,
	       struct sim_source *sources, size_t len);
void sim_run(struct sim *sim, uint64_t until_ns); /* since begin_ns */
void sim_reset(struct sim *sim);                  /* the results */
void sim_end(struct sim *sim);

/* Results: what passed, in parts of the cap; the same of one source; Jain's
 * index over the first n sources; the deviation between seconds. */
double sim_rate(const struct sim *sim);
double sim_share(const struct sim *sim, size_t i);
double sim_jain(const struct sim *sim, size_t first, size_t n);
double sim_deviation(const struct sim *sim);
double sim_losses(const struct sim *sim);

#endif
