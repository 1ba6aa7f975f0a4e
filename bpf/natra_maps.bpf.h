/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The maps of a program, most of which have an entry for each slot. */
#ifndef NATRA_MAPS_BPF_H
#define NATRA_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_shared.h"

/* The limits, which user space writes and programs read. This map is resized to the
 * number of slots before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct natra_config));
} natra_configs SEC(".maps");

/* The states (struct natra_state), which programs write, and user space reads, clears and
 * lets owe what another one owed. This map is resized before loading, too. User space maps it, because the counters
 * are a small part of a value. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct natra_state));
} natra_states SEC(".maps");

/* The ring of events, which all programs of the node write; see natra_events.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct natra_event_ring));
} natra_events SEC(".maps");

struct natra_connect_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct natra_connect_table));
};

/* The tables of SYNs of the slots. It is made for programs that measure connections
 * only, and user space puts a map into it with each attachment. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct natra_connect_map);
} natra_connects SEC(".maps");

/* The groups of the node. Programs with has_groups use the one map that user space
 * pins; others have none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * NATRA_GROUPS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct natra_group));
} natra_groups SEC(".maps");

/* User space rewrites these constants before loading. */
const volatile struct natra_fixed natra_fixed SEC(".rodata") = {
	.has_l2 = 1,
};

#endif
