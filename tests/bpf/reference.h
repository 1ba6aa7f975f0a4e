/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that reference.bpf.c and per_packet.c share. */
#ifndef TH_REFERENCE_H
#define TH_REFERENCE_H

#include <linux/types.h>

struct reference_key {
	__u32 pod;
	__u32 egress;
};

struct reference_limit {
	__u64 bytes_per_second; /* not 0 */
	__u64 last_ns;          /* departure of the last packet */
	__u64 horizon_ns;       /* a packet that would leave later is dropped */
};

#endif
