/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs arbitrary bytes through everything that the data path does with a
 * packet. The first bytes of the input are what the kernel would provide:
 * device, clock, GSO; the rest is the packet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "hostload.h"
#include "natra_bucket.h"
#include "natra_classify.h"
#include "natra_flows.h"
#include "natra_parse.h"
#include "natra_sketch.h"
#include "natra_tunnel.h"
#include "natra_wirelen.h"

#define WIDTH           NATRA_SKETCH_WIDTH
#define LINK_HEADER_MAX (14 + 4 * 2)
#define HEADER_MAX      (LINK_HEADER_MAX + 40 + 4 * 2048 + 60)
/* This is a Geneve header with all its options, followed by an inner frame. */
#define TUNNEL_MAX      (8 + 63 * 4 + 14 + 4 * 2 + 60 + 60)

struct input {
	uint8_t has_l2;
	uint8_t segs;
	uint16_t size;
	uint32_t now_steps; /* in steps of 2^24 ns */
	uint32_t mult;
	uint32_t limit;
};

static __u32 cells[NATRA_ROWS * WIDTH];
static __u8 heavy[NATRA_ROWS * NATRA_HEAVY_WIDTH];
static struct natra_flow_entry flows[NATRA_FLOWS];
static const __u64 keys[NATRA_HASH_KEYS] = {
	0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
	0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53, 0x2545f4914f6cdd1d,
	0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
	0x8ebc6af09c88c6e3, 0x589965cc75374cc3,
};

static int parse(const struct th_bytes *packet, bool has_l2,
		 struct natra_parsed_packet *res)
{
	struct th_bytes copy = *packet;
	int kind;

	memset(res, 0, sizeof(*res));
	kind = natra_parse(&copy, has_l2, res);
	require(kind == NATRA_PARSED_IP || kind == NATRA_PARSED_OPAQUE ||
		kind == NATRA_PARSED_OTHER || kind == NATRA_PARSED_CONTROL);
	/* Neighbour discovery is IP as well. */
	if (kind != NATRA_PARSED_IP &&
	    !(kind == NATRA_PARSED_CONTROL && res->tuple.version == 6)) {
		struct natra_tuple zero = {0};

		if (kind != NATRA_PARSED_OPAQUE)
			zero.ports = res->tuple.ports;
		require(!zero.ports == (kind == NATRA_PARSED_OPAQUE));
		require(memcmp(&res->tuple, &zero, sizeof(zero)) == 0);
		require(res->header_len <= LINK_HEADER_MAX);
		return kind;
	}
	require(res->tuple.version == 4 || res->tuple.version == 6);
	require(res->tuple.fragment <= 1);
	require(res->header_len >= 20 && res->header_len <= HEADER_MAX);
	if (res->tuple.version == 4) {
		for (int i = 1; i < 4; i++)
			require(!res->tuple.saddr[i] && !res->tuple.daddr[i]);
	}
	return kind;
}

static void shape(const struct natra_parsed_packet *res, __u32 bytes,
		  const struct input *in)
{
	static __u64 tat;
	const struct natra_rate rate = {.mult = in->mult | 1, .shift = 10};
	__u64 hash = natra_hash_tuple(keys, &res->tuple);
	__u64 now = (__u64)in->now_steps << 24;
	__u64 before = tat,
	      cost = natra_cost_ns(&rate, bytes, natra_dither(tat)), depart;
	__u32 epoch = natra_epoch(now), estimate, units = natra_units(bytes);
	struct natra_flow_entry *entry;

	estimate = natra_sketch_add(cells, WIDTH - 1, hash, units, epoch);
	require(estimate >=
		(units < NATRA_CELL_COUNT_MAX ? units : NATRA_CELL_COUNT_MAX));
	require(estimate <= NATRA_CELL_COUNT_MAX);
	if (!natra_is_heavy(heavy, hash, estimate, units, 100, 12, epoch)) {
		require(estimate < 100);
		return;
	}
	entry = natra_flow_find(flows, hash);
	if (!entry) {
		entry = natra_flow_evict(flows, cells, WIDTH - 1, hash,
					 estimate, now);
		if (entry)
			natra_flow_insert(entry, hash, &res->tuple);
	}
	if (entry) {
		require(entry >= flows && entry < flows + NATRA_FLOWS);
		require(entry->tag == natra_flow_tag(hash));
		natra_flow_add(entry, natra_flow_now(now), bytes);
	}

	depart = natra_bucket_take(&tat, now, 1000000, cost, in->limit);
	if (depart == NATRA_BUCKET_REFUSED) {
		require(tat == before && before > now + in->limit);
		return;
	}
	require(depart <= now || depart - now <= in->limit);
	require(tat == depart + cost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct natra_parsed_packet res;
	struct th_bytes packet;
	struct input in;
	uint8_t *copy;
	__u32 bytes, header_len;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, data, sizeof(in));
	packet.len = size - sizeof(in);
	/* The packet is in its own memory, so that ASan sees a read past the
	 * end. */
	copy = malloc(packet.len ? packet.len : 1);
	if (!copy)
		return 0;
	if (packet.len)
		memcpy(copy, data + sizeof(in), packet.len);
	packet.data = copy;
	packet.inner = in.has_l2;
	(void)parse(&packet, in.has_l2 & 1, &res);
	header_len = res.header_len +
		     natra_tunnel_len(&packet, natra_enter(&packet, &res),
				      in.size, &res);
	require(header_len <= HEADER_MAX + TUNNEL_MAX);
	bytes = natra_gso_len((__u32)packet.len, in.segs, in.size, header_len);
	require(bytes >= packet.len && bytes <= NATRA_BYTES_MAX);
	shape(&res, bytes, &in);
	free(copy);
	return 0;
}
