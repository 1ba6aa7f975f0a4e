/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints how K and the shares of flows move in the simulation of fair_sim.c, at 10
 * Mbit/s with EDT: one stream, to which 15 come after 3 s and leave after 7 s. The
 * output is tests/bench/results/fair-convergence.txt, from which
 * tests/bench/fair_chart.py draws the picture of tests/bench/history.md.
 */
#include <stdio.h>

#include "fair_sim.h"
#include "natra_fair.h"
#include "policy/policy.h"

#define STREAMS   16
#define RATE_BITS 10000000ULL
#define STEP_NS   (200 * SIM_MS)
#define END_NS    (11 * SIM_SECOND)

static struct sim_source sources[STREAMS];
static struct sim sim;

static void print_step(uint64_t ns)
{
	double others = 0;

	for (size_t i = 1; i < STREAMS; i++)
		others += sim_share(&sim, i);
	printf("%4.1f %6.2f %6.3f %6.3f\n", (double)ns / SIM_SECOND,
	       1 + (double)sim.state->fair.k_more / NATRA_FAIR_K_ONE,
	       sim_share(&sim, 0), others / (STREAMS - 1));
}

int main(void)
{
	const struct natra_policy policy = {
		.sz = sizeof(policy),
		.egress_rate_bits_per_sec = RATE_BITS,
	};
	const struct natra_limits limits =
		policy_limits(&policy, LEG_EGRESS, true);

	for (size_t i = 0; i < STREAMS; i++) {
		sources[i] = (struct sim_source){
			.kind = SIM_TCP,
			.cubic = true,
			.local = true,
			.gso_max = policy_gso_segs(&policy, true),
			.rtt_ns = 10 * SIM_MS,
			.start_ns = i ? 3 * SIM_SECOND : 0,
			.stop_ns = i ? 7 * SIM_SECOND : 0,
		};
	}
	sim_begin(&sim, RATE_BITS, &limits, true, 5 * SIM_SECOND, sources,
		  STREAMS);
	printf("# seconds, K, share of the first stream, mean share of the"
	       " others\n");
	for (uint64_t ns = STEP_NS; ns <= END_NS; ns += STEP_NS) {
		sim_run(&sim, ns);
		print_step(ns);
		sim_reset(&sim);
	}
	sim_end(&sim);
	return 0;
}
