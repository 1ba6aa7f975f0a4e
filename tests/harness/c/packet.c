/* SPDX-License-Identifier: BSD-2-Clause */
#include "packet.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IPV4_MIN_LEN 20
#define IPV6_LEN     40

static void put16(uint8_t *to, size_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static uint8_t *append(struct packet *p, size_t len)
{
	uint8_t *at = p->data + p->len;

	assert(len <= sizeof(p->data) - p->len);
	memset(at, 0, len);
	p->len += len;
	return at;
}

static void set_next(struct packet *p, uint8_t protocol)
{
	if (p->next_at != PACKET_NO_LAYER)
		p->data[p->next_at] = protocol;
}

void packet_begin(struct packet *p)
{
	*p = (struct packet){
		.type_at = PACKET_NO_LAYER,
		.next_at = PACKET_NO_LAYER,
		.l3 = PACKET_NO_LAYER,
		.l4 = PACKET_NO_LAYER,
	};
}

void packet_type(struct packet *p, uint16_t ethertype)
{
	if (p->type_at != PACKET_NO_LAYER)
		put16(p->data + p->type_at, ethertype);
}

void packet_ethernet(struct packet *p)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	memcpy(append(p, sizeof(macs)), macs, sizeof(macs));
	p->type_at = p->len;
	append(p, 2);
}

void packet_vlan(struct packet *p, uint16_t tpid, uint16_t tci)
{
	packet_type(p, tpid);
	put16(append(p, 2), tci);
	p->type_at = p->len;
	append(p, 2);
}

void packet_ipv4(struct packet *p, const struct packet_ip *ip)
{
	size_t len = IPV4_MIN_LEN + ip->options * 4U;
	uint8_t *h;

	packet_type(p, 0x0800);
	p->l3 = p->len;
	h = append(p, len);
	h[0] = (uint8_t)(0x40 | (len / 4));
	h[1] = ip->tos;
	put16(h + 4, ip->id);
	put16(h + 6, ip->fragment);
	h[8] = 64;
	memcpy(h + 12, (const uint8_t[]){192, 0, 2, 1}, 4);
	memcpy(h + 16, (const uint8_t[]){198, 51, 100, 1}, 4);
	h[15] = (uint8_t)(h[15] + ip->source);
	h[19] = (uint8_t)(h[19] + ip->target);
	memset(h + IPV4_MIN_LEN, 1, ip->options * 4U); /* NOP options */
	p->next_at = p->l3 + 9;
	p->l4 = p->len;
}

void packet_ipv6(struct packet *p, const struct packet_ip *ip)
{
	static const uint8_t prefix[4] = {0x20, 0x01, 0x0d, 0xb8};
	uint8_t *h;

	packet_type(p, 0x86dd);
	p->l3 = p->len;
	h = append(p, IPV6_LEN);
	h[0] = (uint8_t)(0x60 | (ip->tos >> 4));
	h[1] = (uint8_t)(ip->tos << 4);
	h[6] = 59; /* no next header */
	h[7] = 64;
	memcpy(h + 8, prefix, sizeof(prefix));
	memcpy(h + 24, prefix, sizeof(prefix));
	h[23] = (uint8_t)(1 + ip->source);
	h[39] = (uint8_t)(0x81 + ip->target);
	p->next_at = p->l3 + 6;
	p->l4 = p->len;
}

void packet_extension(struct packet *p, uint8_t number, size_t len)
{
	uint8_t *h;

	set_next(p, number);
	p->next_at = p->len;
	h = append(p, len);
	h[0] = 59;
	/* AH counts its length in words less two, the other headers in units of
	 * eight bytes less one. */
	h[1] = (uint8_t)(number == 51 ? len / 4 - 2 : len / 8 - 1);
	p->l4 = p->len;
}

void packet_ipv6_fragment(struct packet *p, uint16_t fragment, uint32_t id)
{
	uint8_t *h;

	set_next(p, 44);
	p->next_at = p->len;
	h = append(p, 8);
	h[0] = 59;
	put16(h + 2, fragment);
	put16(h + 4, id >> 16);
	put16(h + 6, id);
	p->l4 = p->len;
}

void packet_ports(struct packet *p, uint8_t protocol, uint16_t source,
		  uint16_t target, size_t header_len)
{
	uint8_t *h;

	set_next(p, protocol);
	p->l4 = p->len;
	h = append(p, header_len);
	put16(h, source);
	put16(h + 2, target);
}

void packet_tcp(struct packet *p, uint16_t source, uint16_t target,
		size_t header_len)
{
	packet_ports(p, 6, source, target, header_len);
	p->data[p->l4 + 12] = (uint8_t)(header_len / 4 << 4);
	p->data[p->l4 + 13] = 0x10; /* ACK */
}

void packet_udp(struct packet *p, uint16_t source, uint16_t target)
{
	packet_ports(p, 17, source, target, 8);
}

void packet_echo(struct packet *p, uint8_t protocol, uint8_t type, uint16_t id)
{
	uint8_t *h;

	set_next(p, protocol);
	p->l4 = p->len;
	h = append(p, 8);
	h[0] = type;
	put16(h + 4, id);
}

void packet_payload(struct packet *p, size_t len)
{
	memset(append(p, len), 0xa5, len);
}

void packet_pad(struct packet *p, size_t len)
{
	if (len > p->len)
		packet_payload(p, len - p->len);
}

static uint32_t sum16(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)data[i] << 8 | data[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

int packet_checksum_good(const uint8_t *ipv4)
{
	return sum16(ipv4, (ipv4[0] & 0xf) * 4U) == 0xffff;
}

void packet_end(struct packet *p)
{
	uint8_t *h;

	if (p->l3 == PACKET_NO_LAYER)
		return;
	h = p->data + p->l3;
	if (h[0] >> 4 == 6) {
		put16(h + 4, p->len - p->l3 - IPV6_LEN);
		return;
	}
	put16(h + 2, p->len - p->l3);
	put16(h + 10, 0);
	put16(h + 10, ~sum16(h, (h[0] & 0xf) * 4U) & 0xffff);
}

void packet_begin_ipv4(struct packet *p, const struct packet_ip *ip)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_ipv4(p, ip);
}

void packet_begin_ipv6(struct packet *p, const struct packet_ip *ip)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_ipv6(p, ip);
}

void packet_make_tcp4(struct packet *p, uint16_t source, uint8_t tos,
		      size_t len)
{
	*p = packet_of("eth ip4:t%u tcp:20:%u pad:%zu", tos, source, len);
}

void packet_make_tcp6(struct packet *p, uint16_t source, uint8_t tos,
		      size_t len)
{
	*p = packet_of("eth ip6:t%u tcp:20:%u pad:%zu", tos, source, len);
}

/* Returns the number behind the nth colon of a word. */
static size_t number(const char *word, int nth, size_t otherwise)
{
	while (word && nth--)
		word = strchr(word + 1, ':');
	return word ? strtoul(word + 1, NULL, 0) : otherwise;
}

static void add_ip(struct packet *p, const char *word)
{
	const bool v4 = word[2] == '4';
	struct packet_ip ip = {0};
	uint8_t hop_limit = 64;

	for (const char *at = strchr(word, ':'); at; at = strchr(at + 1, ':')) {
		const unsigned long n = strtoul(at + 2, NULL, 0);

		switch (at[1]) {
		case 'o':
			ip.options = (uint8_t)n;
			break;
		case 't':
			ip.tos = (uint8_t)n;
			break;
		case 'f':
			ip.fragment = (uint16_t)n;
			break;
		case 'i':
			ip.id = (uint16_t)n;
			break;
		case 's':
			ip.source = (uint8_t)n;
			break;
		case 'd':
			ip.target = (uint8_t)n;
			break;
		default:
			assert(at[1] == 'h');
			hop_limit = (uint8_t)n;
		}
	}
	if (v4)
		packet_ipv4(p, &ip);
	else
		packet_ipv6(p, &ip);
	p->data[p->l3 + (v4 ? 8 : 7)] = hop_limit;
}

static void add_hex(struct packet *p, const char *digits)
{
	char byte[3] = "";

	for (; digits[0] && digits[1]; digits += 2) {
		memcpy(byte, digits, 2);
		*append(p, 1) = (uint8_t)strtoul(byte, NULL, 16);
	}
}

/* Returns whether the word, without what is behind its first colon, is this one. */
static bool is(const char *word, const char *name)
{
	const size_t len = strcspn(word, ":");

	return len == strlen(name) && memcmp(word, name, len) == 0;
}

static void add_transport(struct packet *p, const char *word)
{
	const bool tcp = is(word, "tcp"), udp = is(word, "udp");
	const uint16_t source =
		(uint16_t)number(word, tcp || udp ? 2 : 4, 1000);

	assert(tcp || udp || is(word, "ports"));
	if (tcp)
		packet_tcp(p, source, 80, number(word, 1, 20));
	else if (udp)
		packet_udp(p, source, (uint16_t)number(word, 1, 53));
	else
		packet_ports(p, (uint8_t)number(word, 1, 0), source,
			     (uint16_t)number(word, 3, 53), number(word, 2, 0));
}

/* Adds what is not in front of IP. */
static void add_inner(struct packet *p, const char *word)
{
	if (is(word, "ip4") || is(word, "ip6"))
		add_ip(p, word);
	else if (is(word, "ext"))
		packet_extension(p, (uint8_t)number(word, 1, 0),
				 number(word, 2, 0));
	else if (is(word, "frag"))
		packet_ipv6_fragment(p, (uint16_t)number(word, 1, 0),
				     (uint32_t)number(word, 2, 0));
	else if (is(word, "next"))
		set_next(p, (uint8_t)number(word, 1, 0));
	else if (is(word, "echo"))
		packet_echo(p, (uint8_t)number(word, 1, 0),
			    (uint8_t)number(word, 2, 0), 5);
	else if (is(word, "hex"))
		add_hex(p, word + 4);
	else if (is(word, "pay"))
		packet_payload(p, number(word, 1, 0));
	else if (is(word, "pad"))
		packet_pad(p, number(word, 1, 0));
	else
		add_transport(p, word);
	/* What follows in a tunnel has a type of its own. */
	p->type_at = PACKET_NO_LAYER;
}

struct packet packet_of(const char *format, ...)
{
	char text[200], *rest = NULL;
	struct packet p;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	assert(len >= 0 && (size_t)len < sizeof(text));
	packet_begin(&p);
	for (char *word = strtok_r(text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest)) {
		if (is(word, "eth")) {
			packet_ethernet(&p);
		} else if (is(word, "vlan")) {
			packet_vlan(&p, 0x8100, (uint16_t)number(word, 1, 10));
		} else if (is(word, "svlan")) {
			packet_vlan(&p, 0x88a8, (uint16_t)number(word, 1, 10));
		} else if (is(word, "type")) {
			packet_type(&p, (uint16_t)number(word, 1, 0));
			p.type_at = PACKET_NO_LAYER;
		} else {
			add_inner(&p, word);
		}
	}
	packet_end(&p);
	return p;
}
