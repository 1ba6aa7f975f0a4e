/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "policy/subnets.h"

/* Returns the canonical text of a block, or "" if it is none. */
static const char *canonical(const char *cidr)
{
	static char text[SUBNET_TEXT_MAX];
	struct natra_subnet subnet;

	if (subnet_parse(cidr, &subnet) < 0)
		return "";
	assert_true(subnet_valid(&subnet));
	subnet_format(&subnet, text);
	return text;
}

TH_TEST(blocks_are_read_and_told)
{
	static const char *const same[] = {
		"10.0.0.0/8", "0.0.0.0/0",     "192.0.2.1/32",    "128.0.0.0/1",
		"::/0",       "2001:db8::/32", "2001:db8::1/128", "fe80::/10",
		"8000::/1",   "::/96",
	};

	for (size_t i = 0; i < TH_LEN(same); i++)
		assert_string_equal(canonical(same[i]), same[i]);
}

/* The rules are those of Go's net.ParseCIDR, with which upstream's plugin reads
 * blocks. */
TH_TEST(bits_behind_the_prefix_are_cleared)
{
	assert_string_equal(canonical("10.1.2.3/8"), "10.0.0.0/8");
	assert_string_equal(canonical("192.0.2.255/25"), "192.0.2.128/25");
	assert_string_equal(canonical("255.255.255.255/0"), "0.0.0.0/0");
	assert_string_equal(canonical("255.255.255.255/31"),
			    "255.255.255.254/31");
	assert_string_equal(canonical("2001:db8:1:2::3/33"), "2001:db8::/33");
	assert_string_equal(canonical("2001:db8:ffff::/33"),
			    "2001:db8:8000::/33");
	assert_string_equal(canonical("ffff::ffff/127"), "ffff::fffe/127");
	assert_string_equal(canonical("2001:DB8::/32"), "2001:db8::/32");
	assert_string_equal(canonical("2001:db8:0:0::/032"), "2001:db8::/32");
}

TH_TEST(mapped_ipv4_is_ipv4)
{
	struct natra_subnet subnet;

	assert_string_equal(canonical("::ffff:10.0.0.0/104"), "10.0.0.0/8");
	assert_string_equal(canonical("::ffff:a01:203/128"), "10.1.2.3/32");
	assert_string_equal(canonical("::ffff:0:0/96"), "0.0.0.0/0");
	assert_int_equal(subnet_parse("::ffff:10.1.2.3/104", &subnet), 0);
	assert_int_equal(subnet.version, 4);
	assert_int_equal(subnet.prefix_bits, NATRA_SUBNET_VERSION_BITS + 8);
	assert_memory_equal(subnet.addr, "\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
			    16);
	/* A shorter prefix contains more than the IPv4 addresses. */
	assert_string_equal(canonical("::ffff:10.0.0.0/95"), "::fffe:0:0/95");
	assert_int_equal(subnet_parse("::ffff:10.0.0.0/95", &subnet), 0);
	assert_int_equal(subnet.version, 6);
}

TH_TEST(what_is_no_block_is_refused)
{
	static const char *const bad[] = {
		"",
		"/",
		"/8",
		"10.0.0.0",
		"10.0.0.0/",
		"10.0.0.0/33",
		"10.0.0.0/-1",
		"10.0.0.0/+8",
		"10.0.0.0/8 ",
		" 10.0.0.0/8",
		"10.0.0.0/8/8",
		"10.0.0.0/0x8",
		"10.0.0.0/:",
		"10.0.0.0/1/",
		"10.0.0.0/4294967304",
		"10.0.0.0/18446744073709551624",
		"10.0.0/8",
		"10.0.0.0.0/8",
		"010.0.0.0/8",
		"256.0.0.0/8",
		"pod/8",
		"2001:db8::",
		"2001:db8::/129",
		"2001:db8::1::/64",
		"fe80::1%eth0/64",
		"[2001:db8::]/32",
		"::ffff:10.0.0.0/129",
		"11112222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb/8",
	};
	struct natra_subnet subnet, before;

	memset(&subnet, 0x5a, sizeof(subnet));
	before = subnet;
	for (size_t i = 0; i < TH_LEN(bad); i++) {
		if (subnet_parse(bad[i], &subnet) != -EINVAL)
			fail_msg("'%s' was read", bad[i]);
	}
	assert_memory_equal(&subnet, &before, sizeof(subnet));
}

static struct subnets read_all(const char *const *texts, size_t len,
			       bool shaped)
{
	struct natra_policy p = NATRA_INIT(p);
	struct subnets subnets;

	if (shaped) {
		p.shaped_subnets = texts;
		p.shaped_subnets_len = len;
	} else {
		p.unshaped_subnets = texts;
		p.unshaped_subnets_len = len;
	}
	assert_int_equal(subnets_read(&p, &subnets), 0);
	return subnets;
}

TH_TEST(list_is_in_order_and_has_each_once)
{
	static const char *const given[] = {
		"2001:db8::/32", "10.2.0.0/16", "10.1.2.3/8",
		"::/0",          "10.0.0.0/8",  "::ffff:10.0.0.0/104",
		"10.0.0.0/16",   "9.0.0.0/8",
	};
	static const char *const wanted[] = {
		"9.0.0.0/8",   "10.0.0.0/8", "10.0.0.0/16",
		"10.2.0.0/16", "::/0",       "2001:db8::/32",
	};
	struct subnets subnets = read_all(given, TH_LEN(given), false);
	char text[SUBNET_TEXT_MAX];

	assert_int_equal(subnets.kind, SUBNETS_UNSHAPED);
	assert_int_equal(subnets.len, TH_LEN(wanted));
	for (size_t i = 0; i < TH_LEN(wanted); i++) {
		subnet_format(&subnets.list[i], text);
		assert_string_equal(text, wanted[i]);
	}
	subnets_free(&subnets);
	assert_null(subnets.list);
}

TH_TEST(lists_compare_by_what_they_mean)
{
	static const char *const one[] = {"10.0.0.0/8", "2001:db8::/32"};
	static const char *const same[] = {"2001:db8:1::/32", "10.1.0.0/8",
					   "10.0.0.0/8"};
	static const char *const other[] = {"10.0.0.0/8", "2001:db8::/33"};
	struct subnets a = read_all(one, 2, true);
	struct subnets b = read_all(same, 3, true);
	struct subnets c = read_all(other, 2, true);
	struct subnets d = read_all(one, 2, false);
	struct subnets none = read_all(NULL, 0, true);

	assert_true(subnets_equal(&a, &b));
	assert_false(subnets_equal(&a, &c));
	assert_false(subnets_equal(&a, &d));
	assert_false(subnets_equal(&a, &none));
	assert_true(subnets_equal(&none, &none));
	subnets_free(&a);
	subnets_free(&b);
	subnets_free(&c);
	subnets_free(&d);
}

/* A length without a list means no subnets, and so does a list without a
 * length. */
TH_TEST(no_list_is_none)
{
	static const char *const one[] = {"10.0.0.0/8"};
	struct natra_policy p = NATRA_INIT(p);
	struct subnets subnets;

	p.unshaped_subnets_len = 3;
	assert_int_equal(subnets_read(&p, &subnets), 0);
	assert_int_equal(subnets.kind, SUBNETS_NONE);
	p.unshaped_subnets_len = 1;
	p.unshaped_subnets = one;
	p.shaped_subnets = one;
	assert_int_equal(subnets_read(&p, &subnets), 0);
	assert_int_equal(subnets.kind, SUBNETS_UNSHAPED);
	subnets_free(&subnets);
}

TH_TEST(pinned_garbage_is_found)
{
	struct natra_subnet good, bad;

	assert_int_equal(subnet_parse("10.0.0.0/8", &good), 0);
	for (size_t i = 0; i < sizeof(bad); i++) {
		bad = good;
		((unsigned char *)&bad)[i] ^= 0x80;
		/* Only a change of the address's first byte makes another valid
		 * block. */
		if (i != offsetof(struct natra_subnet, addr))
			assert_false(subnet_valid(&bad));
	}
	bad = good;
	bad.prefix_bits = NATRA_SUBNET_VERSION_BITS + 33;
	assert_false(subnet_valid(&bad));
	bad.prefix_bits = NATRA_SUBNET_VERSION_BITS - 1;
	assert_false(subnet_valid(&bad));
}

TH_MAIN(NULL, NULL)
