/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Length of a packet on the wire at layer 2: the headers of every GSO segment
 * count, and so does a VLAN tag that the kernel keeps beside the packet.
 */
#ifndef NATRA_WIRELEN_H
#define NATRA_WIRELEN_H

#include "natra_compiler.h"

#define NATRA_VLAN_LEN 4

#define NATRA_SEGS_MAX 65535U /* the most that the kernel counts */

/* The most bytes that a packet is charged for, see natra_cost_ns. No packet has
 * as many: NATRA_SEGS_MAX segments with the longest headers that the parser
 * reads come to a quarter of it. */
#define NATRA_BYTES_MAX ((1U << 31) - 1)

/*
 * len: one header and all payload. header_len: layer 2 to 4, repeated for each
 * segment. segs may be 0 although size is not: a packet that was injected with
 * untrusted GSO data.
 */
natra_inline __u32 natra_gso_len(__u32 len, __u32 segs, __u32 size,
				 __u32 header_len)
{
	if (!size)
		return len;
	if (!segs && len > header_len)
		segs = (len - header_len + size - 1) / size;
	if (segs > NATRA_SEGS_MAX)
		segs = NATRA_SEGS_MAX;
	if (segs > 1)
		len += (segs - 1) * header_len;
	return len;
}

/*
 * Returns the wire length of a packet that is sent, from the kernel's wire_len. The
 * kernel trusts whoever injected the packet about the length of its headers and
 * multiplies that by the number of segments, so wire_len may be any number; the result
 * is at least len.
 */
natra_inline __u32 natra_told_len(__u32 len, __u32 wire_len)
{
	wire_len &= NATRA_BYTES_MAX;
	return wire_len > len ? wire_len : len;
}

/*
 * Does the same for a GSO packet of which the kernel may have left out headers: it counts
 * those in front of layer 4, and behind them only TCP's and those of UDP's segments.
 * header_len: as for natra_gso_len. `first` is what the first one has in addition.
 */
natra_inline __u32 natra_told_gso_len(__u32 len, __u32 segs, __u32 size,
				      __u32 header_len, __u32 first,
				      __u32 wire_len)
{
	wire_len = natra_told_len(len, wire_len);
	if (natra_gso_len(len, segs, size, header_len) <= wire_len)
		return wire_len;
	return natra_gso_len(len + first, segs, size, header_len);
}

#endif
