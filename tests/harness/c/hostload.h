/* SPDX-License-Identifier: BSD-2-Clause */
/* Defines NATRA_LOAD on the host, where it reads from a bounded buffer. Include
 * this before natra_parse.h. */
#ifndef TH_HOSTLOAD_H
#define TH_HOSTLOAD_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct th_bytes {
	const uint8_t *data;
	size_t len;
	uint8_t inner; /* what tells flows inside of a tunnel apart */
};

/* This behaves like bpf_skb_load_bytes, which clears the target when it
 * fails. */
static inline int th_load_bytes(const struct th_bytes *bytes, uint32_t offset,
				void *to, uint32_t len)
{
	if (offset > bytes->len || len > bytes->len - offset) {
		memset(to, 0, len);
		return -EFAULT;
	}
	memcpy(to, bytes->data + offset, len);
	return 0;
}

#define NATRA_LOAD(ctx, offset, to, len) th_load_bytes(ctx, offset, to, len)
#define NATRA_INNER(ctx, ports)          ((const struct th_bytes *)(ctx))->inner

#endif
