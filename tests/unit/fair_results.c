/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of fair_sim.c, in parts of the cap. */
#include <math.h>

#include "fair_sim.h"

static double part(const struct sim *sim, uint64_t bytes, uint64_t ns)
{
	return (double)bytes * 8e9 / (double)ns / (double)sim->rate_bits;
}

double sim_rate(const struct sim *sim)
{
	uint64_t n = (sim->now_ns - sim->since_ns) / SIM_BIN_NS, bytes = 0;

	for (uint64_t i = 0; i < n; i++)
		bytes += sim->bins[i];
	return part(sim, bytes, n * SIM_BIN_NS);
}

double sim_share(const struct sim *sim, size_t i)
{
	return part(sim, sim->sources[i].passed_bytes,
		    sim->now_ns - sim->since_ns);
}

double sim_jain(const struct sim *sim, size_t first, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = first; i < first + n; i++) {
		sum += sim_share(sim, i);
		squares += sim_share(sim, i) * sim_share(sim, i);
	}
	return sum * sum / ((double)n * squares);
}

double sim_deviation(const struct sim *sim)
{
	uint64_t n = (sim->now_ns - sim->since_ns) / SIM_SECOND;
	double sum = 0, squares = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t bytes = 0;

		for (int j = 0; j < 10; j++)
			bytes += sim->bins[10 * i + j];
		sum += part(sim, bytes, SIM_SECOND);
		squares += part(sim, bytes, SIM_SECOND) *
			   part(sim, bytes, SIM_SECOND);
	}
	sum /= (double)n;
	return sqrt(fabs(squares / (double)n - sum * sum));
}

double sim_losses(const struct sim *sim)
{
	uint64_t dropped = 0, offered = 0;

	for (size_t i = 0; i < sim->sources_len; i++) {
		dropped += sim->sources[i].dropped;
		offered += sim->sources[i].offered;
	}
	return offered ? (double)dropped / (double)offered : 0;
}
