/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how many bytes of headers a tunnel adds to each segment of a
 * GSO packet. */
#include "cm.h"
#include "parsing.h"

#include "natra_tunnel.h"

#define GSO_SIZE 500
#define OUTER    (14 + 20 + 8)
/* The inner TCP header has timestamps. */
#define INNER    "tcp:32 pay:1500"
#define VXLAN    "eth ip4 udp:%u hex:0800000000002a00 "
#define PPPOE    "eth type:0x8864 hex:110000070000"

static __u32 tunnel_len(const struct packet *p)
{
	struct th_bytes bytes = {.data = p->data, .len = p->len};
	struct parsed r = parse_packet(p);

	return natra_tunnel_len(&bytes, natra_enter(&bytes, &r.res), GSO_SIZE,
				&r.res);
}

/* Fails unless a tunnel of these words, see packet_of, adds so much. */
#define ADDS(want, ...)                                                        \
	do {                                                                   \
		const struct packet tunnel = packet_of(__VA_ARGS__);           \
                                                                               \
		assert_int_equal(tunnel_len(&tunnel), want);                   \
	} while (0)

TH_TEST(vxlan_adds_two_headers_and_a_frames)
{
	static const unsigned int ports[] = {4789, 8472};

	for (size_t i = 0; i < TH_LEN(ports); i++) {
		ADDS(8 + 14 + 20 + 32, VXLAN "eth ip4 " INNER, ports[i]);
		ADDS(8 + 14 + 40 + 32, VXLAN "eth ip6 " INNER, ports[i]);
		ADDS(8 + 14 + 8 + 40 + 32, VXLAN "eth vlan vlan ip6 " INNER,
		     ports[i]);
	}
}

TH_TEST(geneve_has_options_and_a_frame_or_a_packet)
{
	ADDS(16 + 14 + 20 + 32,
	     "eth ip4 udp:6081 hex:0200655800002a00 pay:8 eth ip4 " INNER);
	ADDS(8 + 40 + 32, "eth ip4 udp:6081 hex:000086dd00002a00 ip6 " INNER);
}

TH_TEST(ip_in_ip_of_either_version)
{
	for (int outside = 4; outside <= 6; outside += 2) {
		ADDS(20 + 32, "eth ip%d next:4 ip4 " INNER, outside);
		ADDS(40 + 32, "eth ip%d next:41 ip6 " INNER, outside);
	}
}

TH_TEST(each_flag_of_gre_adds_a_word)
{
	static const uint8_t flags[] = {0x80, 0x20, 0x10};

	for (unsigned int mask = 0; mask < 8; mask++) {
		uint32_t len = 4;
		uint8_t byte = 0;

		for (size_t i = 0; i < TH_LEN(flags); i++) {
			if (!(mask & 1U << i))
				continue;
			byte |= flags[i];
			len += 4;
		}
		ADDS(len + 14 + 20 + 32,
		     "eth ip4 ports:47:%u:0x6558:%u eth ip4 " INNER, len,
		     byte << 8);
	}
}

/* Returns the length of all headers of each segment. */
static __u32 headers_len(struct packet p)
{
	return parse_packet(&p).res.header_len + tunnel_len(&p);
}

static struct packet mpls(unsigned int type, size_t labels, int version)
{
	static const char zeros[] = "000010ff000010ff000010ff000010ff";

	return packet_of("eth type:%u hex:%.*s000011ff ip%d " INNER, type,
			 (int)(8 * (labels - 1)), zeros, version);
}

TH_TEST(each_label_of_mpls_adds_a_word)
{
	for (unsigned int type = 0x8847; type <= 0x8848; type++) {
		for (size_t labels = 1; labels <= 4; labels++) {
			assert_int_equal(headers_len(mpls(type, labels, 4)),
					 14 + 4 * labels + 20 + 32);
			assert_int_equal(headers_len(mpls(type, labels, 6)),
					 14 + 4 * labels + 40 + 32);
		}
		assert_int_equal(headers_len(mpls(type, 5, 4)), 14);
	}
}

TH_TEST(pppoe_adds_eight_bytes)
{
	assert_int_equal(headers_len(packet_of(PPPOE "0021 ip4 " INNER)),
			 14 + 8 + 20 + 32);
	assert_int_equal(headers_len(packet_of(PPPOE "0057 ip6 " INNER)),
			 14 + 8 + 40 + 32);
	/* The link control protocol is no IP. */
	assert_int_equal(headers_len(packet_of(PPPOE "c021 ip4 " INNER)), 14);
}

/* When a program makes the tunnel, each segment of its socket's GSO packet is
 * already a whole packet of the tunnel. */
TH_TEST(tunnel_that_a_program_makes_has_its_headers_in_the_payload)
{
	ADDS(0, VXLAN "eth ip4 tcp:32 pay:%d", 4789,
	     GSO_SIZE - 8 - 14 - 20 - 32);
	ADDS(0, VXLAN "eth ip6 tcp:32 pay:%d", 4789,
	     GSO_SIZE - 8 - 14 - 40 - 32);
}

TH_TEST(what_is_no_tunnel_adds_nothing)
{
	struct packet cut[] = {packet_of(VXLAN "eth ip4 " INNER, 4789),
			       packet_of(PPPOE "0021 ip4 " INNER),
			       mpls(0x8847, 2, 4)};

	ADDS(0, "eth ip4 tcp pad:1514");
	ADDS(0, "eth ip4 udp:443 pay:1500");
	/* The port is a tunnel's, but the payload is no packet. */
	ADDS(0, "eth ip4 udp:4789 pay:1500");
	for (size_t i = 0; i < TH_LEN(cut); i++) {
		const size_t begin = i ? 14 : OUTER;

		for (size_t len = 0; len < 8 + (i ? 0 : 14) + 20; len++) {
			cut[i].len = begin + len;
			assert_int_equal(tunnel_len(&cut[i]), 0);
		}
	}
}

TH_TEST(flow_stays_that_of_the_outer_packet)
{
	const struct packet p = packet_of(VXLAN "eth ip6 " INNER, 4789);
	struct th_bytes bytes = {.data = p.data, .len = p.len};
	struct parsed before = parse_packet(&p), after = before;

	assert_int_not_equal(natra_tunnel_len(&bytes,
					      natra_enter(&bytes, &after.res),
					      GSO_SIZE, &after.res),
			     0);
	assert_true(same_flow(&before, &after));
	assert_int_equal(after.res.header_len, OUTER);
}

TH_MAIN(NULL, NULL)
