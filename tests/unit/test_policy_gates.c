/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check the limits that policies give beside those of bytes: the ceiling of
 * mice, packets and connections; and those of a member of a group without a rate. */
#include "cm.h"

#include <errno.h>
#include <string.h>

#include "natra_bucket.h"
#include "policy_of.h"

static void assert_refused(const struct natra_policy *p, const char *field,
			   const char *value)
{
	char error[256] = "";

	assert_int_equal(policy_check(p, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, field));
	assert_non_null(strstr(error, value));
}

static void assert_accepted(const struct natra_policy *p)
{
	char error[256] = "";

	assert_int_equal(policy_check(p, error, sizeof(error)), 0);
}

/* A packet costs what a byte costs of a rate of 8 times as many bits. */
TH_TEST(packets_and_connections_have_limits)
{
	struct natra_policy p = policy_of(10000000, 10000000);
	struct natra_limits in, out;

	p.ingress_packet_rate_per_sec = 10000;
	p.egress_connection_rate_per_sec = 20;
	assert_accepted(&p);
	in = policy_limits(&p, LEG_INGRESS, false);
	out = policy_limits(&p, LEG_EGRESS, true);
	assert_true(in.has_gates);
	assert_true(out.has_gates);
	assert_int_equal(out.packets.mult, 0);
	assert_int_equal(natra_cost_ns(&in.packets, 1, 0), 100000);
	assert_int_equal(in.packets.burst_ns, 100 * MS);
	assert_int_equal(in.connections.mult, 0);
	assert_int_equal(natra_cost_ns(&out.connections, 1, 0), 50 * MS);
	/* At least five at once. */
	assert_int_equal(out.connections.burst_ns, 250 * MS);
	p.ingress_packet_rate_per_sec = 1000000001;
	assert_refused(&p, "ingress_packet_rate_per_sec", "1000000001");
	p.ingress_packet_rate_per_sec = 7;
	p.ingress_rate_bits_per_sec = 0;
	assert_refused(&p, "ingress_packet_rate_per_sec", "7");
}

/* A direction without a rate is the group's alone, unless gates limit it. */
TH_TEST(members_need_no_rate)
{
	struct natra_policy p = policy_of(0, 20000000);
	struct natra_limits l;

	p.group[0] = 'g';
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.member.share, 65536);
	assert_int_equal(l.by_group, 1);
	assert_int_equal(l.enter_units, (1 << 24) - 1);
	assert_int_equal(policy_limits(&p, LEG_EGRESS, true).by_group, 0);
	p.ingress_packet_rate_per_sec = 100;
	assert_accepted(&p);
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.by_group, 0);
	/* The pacer asks the group, and the backstop behind it limits nothing. */
	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	assert_int_not_equal(policy_limits(&p, LEG_HOST, true).rate.mult, 0);
	assert_int_equal(policy_backstop(&p).rate.mult, 0);
	p.group[0] = '\0';
	assert_refused(&p, "ingress_packet_rate_per_sec", "100");
}

TH_MAIN(NULL, NULL)
