/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "fair_cases.h"
#include "policy/policy.h"

const uint64_t round_trips_ms[3] = {1, 10, 50};

struct sim_source sources[FLOWS + 1];
struct sim sim;

struct natra_limits limits_of(uint64_t rate_bits, enum mode mode)
{
	const struct natra_policy policy = {
		.sz = sizeof(policy),
		.ingress_rate_bits_per_sec = rate_bits,
		.egress_rate_bits_per_sec = rate_bits,
		.ingress_mode = mode == PACE ? NATRA_INGRESS_MODE_PACE
					     : NATRA_INGRESS_MODE_POLICE,
	};

	return policy_limits(&policy,
			     mode == EDT    ? LEG_EGRESS
			     : mode == PACE ? LEG_HOST
					    : LEG_INGRESS,
			     mode != POLICE);
}

struct sim_source tcp(uint64_t round_trip_ms, bool ect)
{
	return (struct sim_source){
		.kind = SIM_TCP,
		.cubic = true,
		.ect = ect,
		.rtt_ns = round_trip_ms * SIM_MS,
	};
}

struct sim_source udp(double caps)
{
	return (struct sim_source){
		.kind = SIM_UDP,
		.caps = caps,
		.bytes = SIM_SEGMENT,
	};
}

void begin(enum mode mode, uint64_t rate_bits, size_t n, uint64_t begin_ns)
{
	const struct natra_limits l = limits_of(rate_bits, mode);
	const struct natra_policy policy = {
		.sz = sizeof(policy),
		.egress_rate_bits_per_sec = rate_bits,
	};
	const uint32_t segs = mode == EDT ? policy_gso_segs(&policy, true) : 0;

	for (size_t i = 0; i < n; i++) {
		sources[i].gso_max = segs;
		sources[i].local = mode == EDT && sources[i].kind != SIM_RR;
	}
	sim_begin(&sim, rate_bits, &l, mode != POLICE, begin_ns, sources, n);
}

void end(void)
{
	for (size_t i = 0; i < sim.sources_len; i++) {
		if (sim.edt)
			assert_int_equal(sources[i].reordered, 0);
	}
	sim_end(&sim);
	memset(sources, 0, sizeof(sources));
}

void run(enum mode mode, uint64_t rate_bits, size_t n, uint64_t warm_s,
	 uint64_t seconds)
{
	begin(mode, rate_bits, n, 5 * SIM_SECOND);
	sim_run(&sim, warm_s * SIM_SECOND);
	sim_reset(&sim);
	sim_run(&sim, (warm_s + seconds) * SIM_SECOND);
}

void assert_between(double value, double low, double high, const char *what)
{
	if (value < low || value > high)
		fail_msg("%s, %s at %llu Mbit/s, %zu sources: %.3f is not"
			 " within %.3f and %.3f",
			 what, sim.edt ? "held" : "policed",
			 (unsigned long long)(sim.rate_bits / MBIT),
			 sim.sources_len, value, low, high);
}
