/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * How long it takes until a connection is accepted: from the SYN in one direction to
 * the SYN-ACK in the other one. A slow network or a slow pod is told apart from
 * the limit that way, without a table of all connections.
 *
 * An attachment has a small set-associative table of the SYNs that wait for an
 * answer, which the programs of both directions share. A SYN that comes again keeps
 * the time of the first one, a set that is full forgets its oldest, and what has
 * waited longer than any sender does is as good as empty.
 *
 * Nothing is locked. The SYN of a connection comes before its answer, so only
 * different connections write the same entry at the same time: one of them is
 * forgotten then, and the time of the other one is wrong by the nanoseconds between them.
 */
#ifndef NATRA_CONNECTS_H
#define NATRA_CONNECTS_H

#include "natra_compiler.h"
#include "natra_hash.h"
#include "natra_shared.h"

/* Linux sends eleven SYNs in 67 s and gives up after 131 s; before 6.5 seven in 63 s, and after
 * 127 s. */
#define NATRA_CONNECT_AGE_NS (1ULL << 37)

/* A SYN is one IP packet. */
#define NATRA_CONNECT_DATA_MAX 0xffffU

enum natra_connect_begun {
	NATRA_CONNECT_FIRST,
	NATRA_CONNECT_AGAIN, /* the same SYN was there before */
	NATRA_CONNECT_EVICTS, /* the first one, in the place of one that waited */
};

/* Returns the hash of the tuple as the other end would send it. */
natra_inline __u64 natra_connect_reverse(const __u64 *key,
					 const struct natra_tuple *t)
{
	return natra_hash_v6(
		key, t->daddr, t->saddr, t->ports << 16 | t->ports >> 16,
		natra_hash_kind(t->version, t->protocol, t->fragment, 0));
}

/* The initial sequence number is part of the key, so an answer to an older SYN of the
 * same ports is none. No entry that is in use has key 0. */
natra_inline __u64 natra_connect_key(__u64 hash, __u32 seq)
{
	return (hash | 1ULL << 32) >> 32 << 32 | seq;
}

natra_inline struct natra_connect *
natra_connect_set(struct natra_connect_table *table, __u64 hash)
{
	return &table->entries[(hash % NATRA_CONNECT_SETS) *
			       NATRA_CONNECT_WAYS];
}

natra_inline bool natra_connect_waits(const struct natra_connect *entry,
				      __u64 now_ns)
{
	return entry->key && entry->time_ns + NATRA_CONNECT_AGE_NS > now_ns;
}

/* Notes a SYN with this sequence number. */
natra_inline enum natra_connect_begun
natra_connect_begin(struct natra_connect_table *table, __u64 hash, __u32 seq,
		    __u64 now_ns)
{
	struct natra_connect *set = natra_connect_set(table, hash);
	const __u64 key = natra_connect_key(hash, seq);
	enum natra_connect_begun begun = NATRA_CONNECT_FIRST;
	struct natra_connect *to = set;
	__u64 least_ns = ~0ULL;

#pragma GCC unroll 4
	for (int i = 0; i < NATRA_CONNECT_WAYS; i++) {
		struct natra_connect *entry = &set[i];
		__u64 time_ns = entry->time_ns;

		if (!natra_connect_waits(entry, now_ns))
			time_ns = 0;
		else if (entry->key == key)
			return NATRA_CONNECT_AGAIN;
		/* Whoever uses these ports has given that one up. */
		else if (entry->key >> 32 == key >> 32)
			time_ns = 0;
		if (time_ns < least_ns) {
			least_ns = time_ns;
			to = entry;
		}
	}
	if (least_ns)
		begun = NATRA_CONNECT_EVICTS;
	/* While the time changes, the entry is nobody's. */
	NATRA_WRITE_ONCE(to->key, 0);
	NATRA_WRITE_ONCE(to->time_ns, now_ns);
	NATRA_WRITE_ONCE(to->key, key);
	return begun;
}

/* Returns whether the entry is of the SYN that an answer acknowledges up to `seq`. A SYN
 * of TCP Fast Open (RFC 7413) carries data, which the answer acknowledges as well if
 * the server has taken it. */
natra_inline bool natra_connect_is(__u64 entry_key, __u64 key)
{
	return entry_key && entry_key >> 32 == key >> 32 &&
	       (__u32)key - (__u32)entry_key <= NATRA_CONNECT_DATA_MAX;
}

/* Takes out the SYN that is acknowledged up to this sequence number, itself or its
 * last byte. Returns its time, or 0 if it is not there: of two answers one counts. */
natra_inline __u64 natra_connect_end(struct natra_connect_table *table,
				     __u64 hash, __u32 seq, __u64 now_ns)
{
	struct natra_connect *set = natra_connect_set(table, hash);
	const __u64 wanted = natra_connect_key(hash, seq);

#pragma GCC unroll 4
	for (int i = 0; i < NATRA_CONNECT_WAYS; i++) {
		struct natra_connect *entry = &set[i];
		const __u64 time_ns = NATRA_READ_ONCE(entry->time_ns);
		const __u64 key = NATRA_READ_ONCE(entry->key);

		if (!natra_connect_is(key, wanted))
			continue;
		if (time_ns + NATRA_CONNECT_AGE_NS <= now_ns ||
		    __sync_val_compare_and_swap(&entry->key, key, 0) != key)
			return 0;
		return time_ns;
	}
	return 0;
}

#endif
