/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many flows at the threshold, and who is taken for heavy beside them. The simulation runs the
 * hash of the data path on a clock of its own, and what tells heavy flows from small ones, a
 * sketch and the cells of heavy flows. The flows differ by their ports; who sends them does not
 * know the keys of the hash.
 */
#ifndef SATURATION_H
#define SATURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "natra_sketch.h"

#define SAT_MBIT      1000000ULL
#define SAT_SECOND    1000000000ULL
#define SAT_STEP_NS   10000000ULL
#define SAT_WINDOW_NS (1ULL << NATRA_WINDOW_SHIFT)

#define SAT_PACKET_BYTES 1514

struct sat {
	__u64 keys[NATRA_HASH_KEYS];
	struct natra_limits limits;
	__u64 rate_bits;
	__u64 now_ns;
};

extern struct sat sat;

/*
 * The attacker sends a burst in each of its flows in turn: first `enter` units,
 * at FIRST_CAPS times the rate, and then never more than `leave` units, at
 * `caps` times the rate.
 */
struct sat_attacker {
	__u32 flows;
	double caps;
	double due_bytes;
	__u32 at, left_bytes;
	bool known;
};

struct sat_victims {
	__u32 number;
	__u32 packets, heavy; /* of new flows that stay small */
};

void sat_begin(uint64_t seed, __u64 rate_bits);

/* Sends a packet, and returns whether it is taken for one of a heavy flow. */
bool sat_packet(__u32 ports, __u32 bytes);

/* Sends for SAT_STEP_NS what the attacker sends, and 100 small flows a second. */
void sat_step(struct sat_attacker *a, struct sat_victims *v);

/* Returns how many percent of the packets of small flows are taken for heavy, after two
 * rounds of the attacker's flows. */
double sat_taken(__u64 rate_bits, __u32 flows, double caps);

#endif
