/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Length of a packet on the wire at layer 2: the headers of every GSO segment
 * count, and so does a VLAN tag that the kernel keeps beside the packet.
 */
#ifndef NATRA_WIRELEN_H
#define NATRA_WIRELEN_H

#include "natra_compiler.h"

#define NATRA_VLAN_LEN 4

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
	if (segs > 1)
		len += (segs - 1) * header_len;
	return len;
}

#endif
