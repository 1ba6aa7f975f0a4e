/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs measure connections, see natra_connects.h. The verifier removes all
 * of it from programs that do not. */
#ifndef NATRA_CONNECTS_BPF_H
#define NATRA_CONNECTS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "natra_connects.h"
#include "natra_durations.h"
#include "natra_maps.bpf.h"
#include "natra_packet.bpf.h"

/* Stands for the departure time of a packet that was dropped. */
#define NEVER (~0ULL)

/* The beginning of a TCP header. */
struct tcp_begin {
	__u32 ports;
	__u32 seq; /* network byte order */
	__u32 ack; /* network byte order */
	__u8 data_offset;
	__u8 flags;
	__u16 window;
};

static __always_inline void note_syn(struct natra_connect_table *table,
				     struct natra_connects *connects,
				     const struct natra_tuple *tuple, __u32 seq)
{
	const __u64 hash = natra_hash_tuple(table->keys, tuple);
	const enum natra_connect_begun begun =
		natra_connect_begin(table, hash, seq, bpf_ktime_get_ns());

	if (begun == NATRA_CONNECT_AGAIN) {
		__sync_fetch_and_add(&connects->repeated, 1);
		return;
	}
	__sync_fetch_and_add(&connects->begun, 1);
	if (begun == NATRA_CONNECT_EVICTS)
		__sync_fetch_and_add(&connects->forgotten, 1);
}

static __always_inline void note_answer(struct natra_connect_table *table,
					struct natra_connects *connects,
					const struct natra_tuple *tuple,
					const struct tcp_begin *tcp,
					__u64 depart_ns)
{
	const __u64 hash = natra_connect_reverse(table->keys, tuple);
	__u64 now_ns = bpf_ktime_get_ns();
	const __u64 begin_ns = natra_connect_end(
		table, hash, __builtin_bswap32(tcp->ack) - 1, now_ns);
	__u32 bucket;

	if (!begin_ns)
		return;
	if (tcp->flags & NATRA_TCP_RST) {
		__sync_fetch_and_add(&connects->refused, 1);
		return;
	}
	if (depart_ns > now_ns)
		now_ns = depart_ns; /* fq holds it until then */
	if (now_ns < begin_ns)
		now_ns = begin_ns;
	bucket = natra_duration_bucket(now_ns - begin_ns);
	/* The verifier wants the comparison, which the compiler would leave
	 * out. */
	asm volatile("" : "+r"(bucket));
	if (bucket >= NATRA_DURATION_BUCKETS)
		return;
	__sync_fetch_and_add(&connects->answers.sum_ns, now_ns - begin_ns);
	__sync_fetch_and_add(&connects->answers.count[bucket], 1);
}

/*
 * Looks at a packet that may begin a connection or answer that. `depart_ns` is 0 if
 * it goes at once, or NEVER. A SYN that natra drops counts, and an answer that it
 * drops does not: a client waits for the next one.
 */
natra_global int connect_global(struct __sk_buff *skb,
				struct natra_connect_table *table,
				struct natra_state *state,
				const struct natra_parsed_packet *parsed,
				__u64 depart_ns)
{
	struct tcp_begin tcp;

	if (!table || !state || !parsed)
		return 0; /* the verifier wants this check */
	if (parsed->tuple.protocol != NATRA_PROTO_TCP ||
	    parsed->tuple.fragment ||
	    bpf_skb_load_bytes(skb, parsed->l4_offset, &tcp, sizeof(tcp)) < 0)
		return 0;
	if ((tcp.flags & NATRA_TCP_SETUP) == NATRA_TCP_SYN)
		note_syn(table, &state->connects, &parsed->tuple,
			 __builtin_bswap32(tcp.seq));
	else if (((tcp.flags & NATRA_TCP_SETUP) ==
			  (NATRA_TCP_SYN | NATRA_TCP_ACK) ||
		  (tcp.flags & NATRA_TCP_SETUP) ==
			  (NATRA_TCP_RST | NATRA_TCP_ACK)) &&
		 depart_ns != NEVER)
		note_answer(table, &state->connects, &parsed->tuple, &tcp,
			    depart_ns);
	return 0;
}

/* Measures connections of the attachment whose stub was called. The frames of nested
 * calls have 512 bytes together, so both lookups have one key. */
static __always_inline void measure_connect(struct __sk_buff *skb,
					    struct natra_state *state,
					    __u64 depart_ns)
{
	struct natra_parsed_packet parsed;
	struct natra_connect_table *table;
	__u32 key = skb->cb[0] & NATRA_CALL_SLOT;
	void *tables;

	if (!may_connect(skb))
		return;
	tables = bpf_map_lookup_elem(&natra_connects, &key);
	if (!tables)
		return; /* the slot is being freed */
	key = 0;
	table = bpf_map_lookup_elem(tables, &key);
	if (!table)
		return; /* the verifier wants this check */
	write_parsed(skb, &parsed);
	if (parse_global(skb, &parsed) == NATRA_PARSED_IP)
		(void)connect_global(skb, table, state, &parsed, depart_ns);
}

#endif
