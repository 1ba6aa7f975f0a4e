/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether packets pass a leg's programs, by counting: what the pod's interface has carried in
 * the leg's direction, and what the programs have judged. A program in front that ends the
 * hook, a redirect to the other end of a veth and a socket that goes around a hook all show
 * as bytes that were carried and not judged.
 *
 * natra counts bytes on the wire, where each segment has headers, and an interface counts a
 * packet that is segmented later with one header, so the programs' count is the larger one,
 * by up to a twentieth with segments of 1448 bytes, and more with shorter ones, which a sender
 * may choose: so much can be missed unseen. All else
 * that tells the two apart is allowed for: what waits in a qdisc behind the hook when a
 * window begins, and a tag and a checksum for each packet, which drivers count or not.
 */
#ifndef NATRA_STATE_CARRIED_H
#define NATRA_STATE_CARRIED_H

#include <stdint.h>

#include "../../bpf/natra_shared.h"

/* A look at both counters of a leg. */
struct carried_look {
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	/* Of the interface. Read between the next two. */
	uint64_t bytes, packets;
	uint64_t judged_before, judged_after;
	/* Judged, and not carried yet. Read after judged_before. */
	uint64_t waiting_bytes;
};

/* The part of what was carried that was not judged. */
struct carried_share {
	uint64_t bytes, missed_bytes;
};

/* How long a window is at least. */
#define CARRIED_WINDOW_NS 10000000000ULL

/*
 * Compares a look with the one on record, and returns what came out: for the time since, or,
 * if the interface has carried too little since to say anything, what came out before. That is
 * kept. Once a window is long enough the look takes the place of that on record.
 *
 * Several processes may do so at once, and one may be killed: then the window begins again.
 */
struct carried_share carried_compare(struct natra_carried *record,
				     const struct carried_look *look);

/* Returns what came out last. */
struct carried_share carried_last(const struct natra_carried *record);

/* Returns the share in percent, or 0 if it is so small that it means nothing. */
uint32_t carried_percent(const struct carried_share *share);

#endif
