/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Every map of one direction. They live as long as their pins or programs. */
#ifndef NATRA_MAPS_BPF_H
#define NATRA_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_shared.h"

/* Programs write, user space sums over the CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct natra_counters);
} natra_counters SEC(".maps");

/* The limits, a map of their own: user space writes, programs read. */
struct natra_config natra_config SEC(".data.config");

/*
 * Global data, so that reaching it takes no helper call. The sketch must stay
 * last: user space resizes the map to the width that was asked for.
 */
struct natra_state natra_state SEC(".bss");
__u32 natra_sketch[NATRA_ROWS * NATRA_SKETCH_WIDTH_DEFAULT] SEC(".bss");

/* Fixed at load. */
const volatile __u64 natra_keys[NATRA_HASH_KEYS]; /* random */
const volatile __u32 natra_sketch_mask = NATRA_SKETCH_WIDTH_DEFAULT - 1;
const volatile bool natra_has_l2 = true; /* Ethernet, not bare IP */

#endif
