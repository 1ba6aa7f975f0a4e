/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the parser on packets of the builder. */
#ifndef TH_PARSING_H
#define TH_PARSING_H

#include "hostload.h"
#include "natra_parse.h"
#include "packet.h"

struct parsed {
	int kind;
	struct natra_parsed_packet res;
};

/* Parses the first `len` bytes from `from` on. */
static inline struct parsed parse_bytes(const struct packet *p, size_t from,
					size_t len, bool has_l2)
{
	struct th_bytes bytes = {.data = p->data + from, .len = len};
	struct parsed ret = {0};

	ret.kind = natra_parse(&bytes, has_l2, &ret.res);
	return ret;
}

static inline struct parsed parse_packet(const struct packet *p)
{
	return parse_bytes(p, 0, p->len, true);
}

static inline bool same_flow(const struct parsed *a, const struct parsed *b)
{
	return a->kind == b->kind &&
	       memcmp(&a->res.tuple, &b->res.tuple, sizeof(a->res.tuple)) == 0;
}

static inline __u32 ports_of(uint16_t source, uint16_t target)
{
	return natra_be16(source) | (__u32)natra_be16(target) << 16;
}

#endif
