/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/class_check.h"
#include "policy/fields.h"
#include "policy/group_check.h"
#include "policy/subnets.h"
#include "util/clock.h"
#include "util/str.h"
#include "../../bpf/natra_fair.h"
#include "../../bpf/natra_groups.h"
#include "../../bpf/natra_sketch.h"

__extension__ typedef unsigned __int128 u128;

/* The longest that a GSO packet may take to send where egress is paced. A packet
 * that has its turn waits for one that has just begun, and each moves the
 * overdraft by which shares are found. */
#define GSO_NS         (NS_PER_S / 200)
/* The same where egress is policed in the pod. TCP takes a drop there for a lack of
 * local memory: it tries again twice a second, and if the process has closed the
 * connection, gives it up after eight tries. A pod with 8 kbit/s that could send 7 kB
 * at once lost the end of its answers. */
#define GSO_POLICED_NS NS_PER_S
/* How long packets and connections may come at once after a pause, and how many. */
#define GATE_BURST_NS  (NS_PER_S / 10)
#define GATE_LEAST     5
#define GSO_LEAST_SEGS 2 /* as TCP's own least */

/* How far a flow of marked packets may overdraw its share where nothing can be
 * delayed: by a GSO packet, between these bounds. With less, marks alone do not
 * hold a flow at 10 Mbit/s and a round trip of 20 ms, and packets are dropped.
 * With 100 ms at 100 Mbit/s (and a round trip of 50 ms), a sender that leaves slow
 * start by marks alone gets a quarter less than the rate for a minute. */
#define ECN_LIMIT_MIN_NS (10 * NS_PER_MS)
#define ECN_LIMIT_MAX_NS (100 * NS_PER_MS)

/*
 * The unit of time of natra_fair.h: what packets take that are long for senders
 * who share a rate, and no less than its loop runs on. Where nothing is held it
 * is longer: senders find their rates by losses, which takes them longer.
 */
#define FAIR_SHIFT_MAX     32
#define FAIR_BYTES_PACED   32768
#define FAIR_BYTES_POLICED 16384

#define LEAVE_DIVISOR 8

/* With NATRA_FAST_PASS_STRICT, mice have the burst divided by the first number, and
 * leave the burst divided by the second one to elephants. */
#define MICE_BURST_DIVISOR 4
#define RESERVE_DIVISOR    8
#define MAX_RESERVE_NS     NS_PER_S
/* With a share over the rate, so many percent of it are charged for all of the share. */
#define CEILING_CHARGED    80
/* The delay that one flow may make for itself, as CoDel and PIE have it (RFC 8289). */
#define TARGET_NS          5000000

/* The multiplier of 1 bit/s, in ns for a byte; see natra_cost_ns. */
#define MAX_MULT  (BITS_PER_BYTE * NS_PER_S)
#define MAX_SHIFT 58

_Static_assert(POLICY_FAIR_SHIFT_POLICED >=
		       NATRA_FAIR_TICK_SHIFT + NATRA_FAIR_LONG_UNIT_SHIFT,
	       "the unit of policed packets is a long one");
_Static_assert(POLICY_FAIR_SHIFT_HELD >= NATRA_FAIR_TICK_SHIFT,
	       "no unit is shorter than a tick");

uint64_t policy_burst_bytes(uint64_t bits)
{
	return bits / BITS_PER_BYTE + (bits % BITS_PER_BYTE != 0);
}

static int check_direction(const char *name, uint64_t rate, uint64_t burst,
			   char *ret_error, size_t size)
{
	if (rate > NATRA_RATE_MAX_BITS_PER_SEC) {
		(void)snprintf(ret_error, size,
			       "%s_rate_bits_per_sec: %" PRIu64 " is over 1P",
			       name, rate);
		return -EINVAL;
	}
	if (burst && !rate) {
		(void)snprintf(ret_error, size,
			       "%s_burst_bits: %" PRIu64
			       " without a rate for %s",
			       name, burst, name);
		return -EINVAL;
	}
	return 0;
}

static int check_range(const char *name, uint64_t value, uint64_t max,
		       char *ret_error, size_t size)
{
	if (value <= max)
		return 0;
	(void)snprintf(ret_error, size, "%s: %" PRIu64 " is over %" PRIu64,
		       name, value, max);
	return -EINVAL;
}

/* Checks that the direction of a limit of packets or connections has a rate, or that a
 * group limits it. */
static int check_count(const struct policy_field *field,
		       const struct natra_policy *p, char *ret_error,
		       size_t size)
{
	if (!policy_field_is_count(field) || !policy_field_get(field, p) ||
	    policy_field_counts(field, p))
		return 0;
	(void)snprintf(ret_error, size,
		       "%s: %" PRIu64 " without a rate of its direction",
		       field->name, policy_field_get(field, p));
	return -EINVAL;
}

/* Checks what an attachment is to be in its group. */
static int check_member(const struct natra_policy *p, char *ret_error,
			size_t size)
{
	int r = group_check_member(p, ret_error, size);

	if (r < 0)
		return r;
	for (size_t i = 0; !p->group[0] && i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const uint64_t value = policy_field_get(field, p);

		if (!policy_field_is_of_group(field) || !value)
			continue;
		(void)snprintf(ret_error, size,
			       "%s: %" PRIu64 " without a group", field->name,
			       value);
		return -EINVAL;
	}
	return group_check_floor("group_floor_bits_per_sec",
				 p->group_floor_bits_per_sec,
				 p->ingress_rate_bits_per_sec,
				 p->egress_rate_bits_per_sec, ret_error, size);
}

static int check_blocks(const char *name, const char *const *blocks, size_t len,
			char *ret_error, size_t size)
{
	struct natra_subnet subnet;

	if (len > NATRA_SUBNETS_MAX) {
		(void)snprintf(ret_error, size, "%s: %zu are more than %d",
			       name, len, NATRA_SUBNETS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; blocks && i < len; i++) {
		if (blocks[i] && subnet_parse(blocks[i], &subnet) == 0)
			continue;
		(void)snprintf(ret_error, size, "%s: '%s' is not a CIDR block",
			       name, blocks[i] ? blocks[i] : "");
		str_one_line(ret_error);
		return -EINVAL;
	}
	return 0;
}

int policy_check_subnets(const struct natra_policy *p, char *ret_error,
			 size_t size)
{
	int r;

	if (p->shaped_subnets_len && p->unshaped_subnets_len) {
		(void)snprintf(
			ret_error, size,
			"shaped_subnets: %zu beside %zu unshaped_subnets",
			p->shaped_subnets_len, p->unshaped_subnets_len);
		return -EINVAL;
	}
	r = check_blocks("shaped_subnets", p->shaped_subnets,
			 p->shaped_subnets_len, ret_error, size);
	if (r == 0)
		r = check_blocks("unshaped_subnets", p->unshaped_subnets,
				 p->unshaped_subnets_len, ret_error, size);
	return r;
}

int policy_check_ranges(const struct natra_policy *p, char *ret_error,
			size_t size)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < POLICY_FIELDS_LEN; i++)
		r = check_range(policy_fields[i].name,
				policy_field_get(&policy_fields[i], p),
				policy_fields[i].max, ret_error, size);
	return r;
}

int policy_check(const struct natra_policy *p, char *ret_error, size_t size)
{
	int r;

	r = check_direction("ingress", p->ingress_rate_bits_per_sec,
			    p->ingress_burst_bits, ret_error, size);
	if (r < 0)
		return r;
	r = check_direction("egress", p->egress_rate_bits_per_sec,
			    p->egress_burst_bits, ret_error, size);
	if (r < 0)
		return r;
	r = policy_check_ranges(p, ret_error, size);
	for (size_t i = 0; r == 0 && i < POLICY_FIELDS_LEN; i++)
		r = check_count(&policy_fields[i], p, ret_error, size);
	if (r == 0)
		r = check_member(p, ret_error, size);
	if (r == 0)
		r = policy_check_subnets(p, ret_error, size);
	return r < 0 ? r : classes_check(p, ret_error, size);
}

uint32_t policy_gso_segs(const struct natra_policy *policy, bool paced)
{
	uint64_t bytes = policy_bytes_in(policy->egress_rate_bits_per_sec,
					 paced ? GSO_NS : GSO_POLICED_NS);

	if (!bytes || bytes >= POLICY_GSO_MAX_BYTES)
		return 0;
	return bytes < (uint64_t)GSO_LEAST_SEGS * NATRA_FAIR_PACKET_BYTES
		       ? GSO_LEAST_SEGS
		       : (uint32_t)(bytes / NATRA_FAIR_PACKET_BYTES);
}

const struct policy_field *policy_difference(const struct natra_policy *a,
					     const struct natra_policy *b,
					     bool only_fixed)
{
	struct natra_policy now_a = policy_effective(a);
	struct natra_policy now_b = policy_effective(b);

	/* By default each direction has a threshold of its own. */
	now_a.heavy_hitter_threshold_bytes = a->heavy_hitter_threshold_bytes;
	now_b.heavy_hitter_threshold_bytes = b->heavy_hitter_threshold_bytes;
	return policy_fields_difference(&now_a, &now_b, only_fixed);
}

bool policy_same_shape(const struct natra_policy *a,
		       const struct natra_policy *b)
{
	return !policy_difference(a, b, true);
}

struct natra_rate policy_rate(uint64_t rate_bits_per_sec, uint64_t burst_bytes)
{
	const u128 ns_bits = (u128)BITS_PER_BYTE * NS_PER_S;
	struct natra_rate rate = {0};
	u128 burst_ns;

	if (!rate_bits_per_sec)
		return rate;
	for (rate.shift = MAX_SHIFT; rate.shift > 0; rate.shift--) {
		if ((ns_bits << rate.shift) / rate_bits_per_sec <= MAX_MULT)
			break;
	}
	rate.mult = (uint64_t)((ns_bits << rate.shift) / rate_bits_per_sec);
	burst_ns = ns_bits * burst_bytes / rate_bits_per_sec;
	rate.burst_ns = burst_ns > INT64_MAX ? INT64_MAX : (uint64_t)burst_ns;
	return rate;
}

struct natra_membership policy_part(uint32_t weight,
				    uint64_t floor_bits_per_sec)
{
	return (struct natra_membership){
		.share =
			(1U << NATRA_GROUP_SHARE_SHIFT) / (weight ? weight : 1),
		.floor = policy_rate(floor_bits_per_sec, 0),
	};
}

void policy_join(struct natra_membership *member, uint32_t number, bool egress)
{
	if (member->share)
		member->group = natra_group_place(number, egress);
}

/* Sets the share of mice together. Its burst is short: while it lasts, mice over their
 * share starve the elephants. */
static void set_mice(struct natra_limits *l, const struct natra_policy *p,
		     uint64_t rate, uint64_t burst)
{
	const uint64_t percent = p->fast_pass_share_percent;
	const uint64_t share = (uint64_t)((u128)rate * percent / 100);

	l->mice = policy_rate(share ? share : 1, burst / MICE_BURST_DIVISOR);
	l->mice_mult = percent > 100 ? l->rate.mult * CEILING_CHARGED / percent
				     : l->rate.mult;
}

uint32_t policy_units(uint64_t bytes)
{
	const uint64_t units = bytes >> NATRA_UNIT_SHIFT;

	if (units > NATRA_CELL_COUNT_MAX)
		return NATRA_CELL_COUNT_MAX;
	return units ? (uint32_t)units : 1;
}

uint32_t policy_leave_units(uint32_t enter_units)
{
	const uint32_t units = enter_units / LEAVE_DIVISOR;

	return units ? units : 1;
}

struct natra_over_limits policy_over(uint64_t rate, uint64_t burst,
				     uint64_t delay_ns)
{
	const uint64_t ns = NS_PER_S + delay_ns;
	const uint64_t most = UINT64_MAX / 4;

	return (struct natra_over_limits){
		.rate = policy_bytes_in(rate, 1ULL << NATRA_WINDOW_SHIFT),
		.debt = (burst > most ? most : burst) +
			policy_bytes_in(rate, ns),
	};
}

static uint32_t threshold_units(const struct natra_policy *p, uint64_t rate)
{
	uint64_t bytes = p->heavy_hitter_threshold_bytes;

	if (!bytes)
		bytes = policy_bytes_in(rate, POLICY_THRESHOLD_NS);
	return policy_units(bytes);
}

uint32_t policy_fair_shift(const struct natra_rate *rate, uint64_t bytes,
			   uint32_t least)
{
	const u128 ns = ((u128)bytes * rate->mult) >> rate->shift;
	uint32_t shift = least;

	while (shift < FAIR_SHIFT_MAX && ((u128)1 << shift) < ns)
		shift++;
	return shift;
}

static uint64_t ecn_limit_ns(const struct natra_rate *rate)
{
	const u128 ns =
		((u128)POLICY_GSO_MAX_BYTES * rate->mult) >> rate->shift;

	if (ns < ECN_LIMIT_MIN_NS)
		return ECN_LIMIT_MIN_NS;
	return ns > ECN_LIMIT_MAX_NS ? ECN_LIMIT_MAX_NS : (uint64_t)ns;
}

/* Sets what heavy flows share by, see natra_fair.h. */
static void set_fair(struct natra_limits *l, enum leg leg, bool paced,
		     uint32_t segs)
{
	if (!paced) {
		l->max_overdraft_ns = ecn_limit_ns(&l->rate);
		l->ramp_mult =
			UINT64_MAX / (l->rate.burst_ns ? l->rate.burst_ns : 1);
		l->fair_shift = policy_fair_shift(&l->rate, FAIR_BYTES_POLICED,
						  POLICY_FAIR_SHIFT_POLICED);
	} else if (leg == LEG_HOST) {
		l->fair_shift = policy_fair_shift(&l->rate, FAIR_BYTES_PACED,
						  POLICY_FAIR_SHIFT_HELD);
	} else {
		l->fair_shift = policy_fair_shift(
			&l->rate,
			segs ? (uint64_t)segs * NATRA_FAIR_PACKET_BYTES
			     : POLICY_GSO_MAX_BYTES,
			POLICY_FAIR_SHIFT_HELD);
	}
}

/* Returns a limit of packets or connections: a rate of bytes, of which each packet is
 * one. */
static struct natra_rate gate(uint64_t per_sec)
{
	const uint64_t burst = per_sec * GATE_BURST_NS / NS_PER_S;

	return policy_rate(per_sec * BITS_PER_BYTE,
			   burst < GATE_LEAST ? GATE_LEAST : burst);
}

static void set_gates(struct natra_limits *l, const struct natra_policy *p,
		      bool out)
{
	const uint64_t packets = out ? p->egress_packet_rate_per_sec
				     : p->ingress_packet_rate_per_sec;
	const uint64_t connections = out ? p->egress_connection_rate_per_sec
					 : p->ingress_connection_rate_per_sec;

	l->packets = gate(packets);
	l->connections = gate(connections);
	l->has_gates = packets || connections;
}

struct natra_limits policy_limits_of(const struct natra_policy *policy,
				     enum leg leg, bool paced, uint32_t segs)
{
	struct natra_policy p = policy_effective(policy);
	bool out = leg == LEG_EGRESS;
	uint64_t rate =
		out ? p.egress_rate_bits_per_sec : p.ingress_rate_bits_per_sec;
	uint64_t burst = policy_burst_bytes(out ? p.egress_burst_bits
						: p.ingress_burst_bits);
	const bool is_member = p.group[0] != '\0';
	struct natra_limits l = {0};

	if (!rate && !is_member)
		return l;
	set_gates(&l, &p, out);
	if (!rate) {
		/* Nothing reaches this rate, but the data path runs on one. */
		rate = NATRA_RATE_MAX_BITS_PER_SEC;
		burst = policy_bytes_in(rate, POLICY_BURST_NS);
		l.by_group = !l.has_gates;
	}
	l.rate = policy_rate(rate, burst);
	set_mice(&l, &p, rate, burst);
	l.reserve_ns = l.rate.burst_ns / RESERVE_DIVISOR;
	if (l.reserve_ns > MAX_RESERVE_NS)
		l.reserve_ns = MAX_RESERVE_NS;
	l.pass = (uint32_t)p.fast_pass;
	l.enter_units = threshold_units(policy, rate);
	if (paced) {
		l.max_delay_ns =
			leg == LEG_HOST ? p.pace_limit_ns : p.horizon_ns;
		l.unfelt_delay_ns = p.pace_limit_ns < l.max_delay_ns
					    ? p.pace_limit_ns
					    : l.max_delay_ns;
		l.target_ns = l.unfelt_delay_ns / 2 < TARGET_NS
				      ? l.unfelt_delay_ns / 2
				      : TARGET_NS;
	}
	l.over = policy_over(rate, burst, l.max_delay_ns);
	set_fair(&l, leg, paced, segs);
	l.leave_units = policy_leave_units(l.enter_units);
	if (is_member)
		l.member =
			policy_part(p.group_weight, p.group_floor_bits_per_sec);
	return l;
}

struct natra_limits policy_limits(const struct natra_policy *policy,
				  enum leg leg, bool paced)
{
	return policy_limits_of(policy, leg, paced,
				policy_gso_segs(policy, true));
}
