/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check what becomes of frames that hide from natra, behind more VLAN tags than
 * it reads, which class their peer is in. */
#include "cm.h"

#include "progrun.h"
#include "state/subnets_map.h"

static const char *const nobody[] = {"203.0.113.0/24"};
static struct progrun run;

/* Loads an attachment with a class of peers if `classes`, and with exempt peers if not. */
static void load(enum stub_kind kind, bool classes)
{
	const struct program_options options = {.kind = kind, .has_l2 = true};
	struct natra_class list = {
		.sz = sizeof(list),
		.name = "nobody",
		.ingress_rate_bits_per_sec = 8000000,
		.subnets = nobody,
		.subnets_len = TH_LEN(nobody),
	};
	struct natra_policy policy = NATRA_INIT(policy);
	cleanup_subnets struct subnets subnets = {0};
	struct natra_limits limits = th_limits();

	if (classes) {
		policy.classes = &list;
		policy.classes_len = 1;
	} else {
		policy.unshaped_subnets = nobody;
		policy.unshaped_subnets_len = TH_LEN(nobody);
	}
	limits.rate = policy_rate(8000000, 100000000);
	assert_int_equal(subnets_read(&policy, &subnets), 0);
	th_load_peers(&run, &options, &(struct th_peers){&subnets, false},
		      &limits);
}

static struct th_result send_tagged(int tags)
{
	static const char *const words[] = {
		[2] = "vlan:0 vlan:0", [3] = "vlan:0 vlan:0 vlan:0"};
	const struct packet p = packet_of("eth %s ip4 udp", words[tags]);
	struct th_result result;

	th_look_at_class(&run, 0);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.bytes, p.len);
	return result;
}

/* Hosts take off any number of tags with the id 0, so behind these there may be a peer in a
 * class with less than the rest has. */
TH_TEST(hidden_from_classes_is_dropped)
{
	const struct natra_limits none = {0};

	for (int kind = 0; kind < STUB_KIND_MAX; kind++) {
		load((enum stub_kind)kind, true);
		assert_int_equal(send_tagged(2).counter, NATRA_COUNT_ADMITTED);
		assert_int_equal(send_tagged(3).counter,
				 NATRA_COUNT_DROPPED_RATE);
		assert_int_equal(send_tagged(3).verdict, TC_ACT_SHOT);
		/* Nor is it among the rest if that has no rate. */
		th_set_limits(&run, &none);
		assert_int_equal(send_tagged(3).counter,
				 NATRA_COUNT_DROPPED_RATE);
		th_close(&run);
	}
}

/* It is none of the exempt peers, and the rest is limited. */
TH_TEST(hidden_from_exempt_subnets_is_limited)
{
	for (int kind = 0; kind < STUB_KIND_MAX; kind++) {
		load((enum stub_kind)kind, false);
		assert_int_equal(send_tagged(3).counter, NATRA_COUNT_ADMITTED);
		th_close(&run);
	}
}

TH_BPF_MAIN(NULL, NULL)
