/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Seeded hash of a flow's identity.
 *
 * The sum of key[i] * word[i] with secret 64-bit keys and 32-bit words is a
 * universal hash: for any two tuples that somebody may choose, the chance that
 * their sums are equal is at most 2^-33 over the keys. The finaliser is a
 * bijection (MurmurHash3's fmix64) that spreads the sum over all bits, so that
 * each 16-bit part can index a row of the sketch.
 */
#ifndef NATRA_HASH_H
#define NATRA_HASH_H

#include "natra_compiler.h"
#include "natra_shared.h"

natra_inline __u64 natra_hash_finish(__u64 h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 33;
	return h;
}

/* Packs the tuple's members other than addresses and ports into one word. */
natra_inline __u32 natra_hash_kind(__u8 version, __u8 protocol, __u8 fragment,
				   __u8 inner)
{
	return (__u32)inner << 24 | (__u32)version << 16 |
	       (__u32)fragment << 8 | protocol;
}

natra_inline __u64 natra_hash_v6(const __u64 *key, const __u32 *saddr,
				 const __u32 *daddr, __u32 ports, __u32 kind)
{
	return natra_hash_finish(key[0] + key[1] * ports + key[2] * kind +
				 key[3] * saddr[0] + key[4] * saddr[1] +
				 key[5] * saddr[2] + key[6] * saddr[3] +
				 key[7] * daddr[0] + key[8] * daddr[1] +
				 key[9] * daddr[2] + key[10] * daddr[3]);
}

/* Does the same for addresses whose last three words are 0. */
natra_inline __u64 natra_hash_v4(const __u64 *key, __u32 saddr, __u32 daddr,
				 __u32 ports, __u32 kind)
{
	return natra_hash_finish(key[0] + key[1] * ports + key[2] * kind +
				 key[3] * saddr + key[7] * daddr);
}

natra_inline __u64 natra_hash_tuple(const __u64 *key,
				    const struct natra_tuple *t)
{
	return natra_hash_v6(key, t->saddr, t->daddr, t->ports,
			     natra_hash_kind(t->version, t->protocol,
					     t->fragment, t->inner));
}

#endif
