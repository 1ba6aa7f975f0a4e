/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Length of a packet on the wire at layer 2: the headers of every GSO segment
 * count, and so does a VLAN tag that the kernel keeps beside the packet.
 */
#ifndef NATRA_WIRELEN_H
#define NATRA_WIRELEN_H

#include <stdbool.h>

#include "natra_compiler.h"

#define NATRA_VLAN_LEN 4

/* The kernel counts segments in so many bits, and leaves out what is beyond them. */
#define NATRA_SEGS_MAX 65535U

/* The most bytes that a packet is charged for, see natra_cost_ns. */
#define NATRA_BYTES_MAX ((1U << 31) - 1)

natra_inline __u32 natra_bytes(__u64 bytes)
{
	return bytes < NATRA_BYTES_MAX ? bytes : NATRA_BYTES_MAX;
}

/* Returns how many segments `payload` bytes make. */
natra_inline __u32 natra_pieces(__u32 payload, __u32 size)
{
	return (payload + size - 1) / size;
}

/*
 * Returns the number of segments. If the kernel has not counted them, as of a packet that was
 * injected with untrusted GSO data, or has left out some (what is missing is then longer than
 * any headers), they are counted as if the headers were payload.
 */
natra_inline __u32 natra_segs(__u32 len, __u32 segs, __u32 size)
{
	if (natra_unlikely(size &&
			   (!segs || segs * size + NATRA_SEGS_MAX < len)))
		segs = natra_pieces(len, size);
	return segs > 1 ? segs : 1;
}

/*
 * Returns the length of all segments of a packet that is longer than the segments that the
 * kernel has counted and the headers that natra has found. Either the number is wrong, or
 * there are more headers: whichever makes more is charged.
 */
natra_inline __u32 natra_doubtful_len(__u32 len, __u32 segs, __u32 size,
				      __u32 header_len)
{
	__u64 counted = 0, found = natra_pieces(len - header_len, size) - 1;

	found *= header_len;
	if (segs > 1)
		counted = (segs - 1) * (__u64)(len - segs * size);
	return natra_bytes(len + (found > counted ? found : counted));
}

/*
 * len: one header and all payload. header_len: layer 2 to 4, repeated for each
 * segment, as far as it is known.
 */
natra_inline __u32 natra_gso_len(__u32 len, __u32 segs, __u32 size,
				 __u32 header_len)
{
	if (!size)
		return len;
	if (natra_unlikely(segs * size + header_len < len))
		return natra_doubtful_len(len, segs, size, header_len);
	if (segs > 1)
		len += (segs - 1) * header_len;
	return len;
}

/*
 * Does the same for a packet of which only the first headers are known, and takes the longest
 * that it can have. If the kernel has counted the segments, all but the last one are full and
 * that has a byte. If it has not, most is on the wire if half of the packet is headers.
 */
natra_inline __u32 natra_hidden_len(__u32 len, __u32 segs, __u32 size,
				    __u32 header_len)
{
	if (!size || len <= header_len)
		return len;
	if (segs && (segs - 1) * size < len &&
	    natra_pieces(len - header_len, size) <= NATRA_SEGS_MAX)
		return natra_bytes(
			len +
			(segs - 1) * (__u64)(len - 1 - (segs - 1) * size));
	return natra_bytes(len + (__u64)len * len / (4 * size));
}

/*
 * Returns the wire length of a packet that is sent, from the kernel's wire_len and from what
 * it has at least. The kernel trusts whoever injected the packet about the length of its
 * headers and multiplies that by the number of segments, so wire_len may be any number.
 */
natra_inline __u32 natra_told_len(__u32 least, __u32 wire_len)
{
	wire_len &= NATRA_BYTES_MAX;
	return wire_len > least ? wire_len : least;
}

/* The most times its own length that a packet is believed to have on the wire. With the least
 * MSS of Linux (48) and timestamps that is 2.8 times, and 3.4 over IPv6. */
#define NATRA_WIRE_TIMES 4

/* A packet of so many bytes on the wire is believed anyway, unless it is TCP: a socket of UDP cuts
 * what it sends into up to 128 datagrams, which may have a byte each, and in a tunnel 190 bytes of
 * headers. */
#define NATRA_WIRE_BELIEVED 24576U

/* Returns for how many bytes a packet counts where nobody pays for what somebody else has told of
 * it: in the sketch, and if it is not limited. */
natra_inline __u32 natra_believed(__u32 bytes, __u32 len)
{
	const __u32 most = NATRA_WIRE_TIMES * len;

	return bytes > most ? most : bytes;
}

/*
 * Returns whether a packet with so many bytes on the wire was crafted, by a packet socket with a
 * false GSO size or header length. If it were charged, one such packet would stop its pod, its
 * group or the pod that it is for until up to 2 GB are paid, and thousands of short ones would
 * take what small flows have.
 */
natra_inline bool natra_is_crafted(__u32 bytes, __u32 len, bool is_tcp)
{
	return bytes > natra_believed(bytes, len) &&
	       (is_tcp || bytes > NATRA_WIRE_BELIEVED);
}

#endif
