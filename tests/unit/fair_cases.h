/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests that use fair_sim.h share these: the limits that a policy gives, sources, and
 * one simulation with up to FLOWS sources at a time.
 */
#ifndef TEST_FAIR_CASES_H
#define TEST_FAIR_CASES_H

#include "fair_sim.h"

#define MBIT  1000000ULL
#define FLOWS 64

enum mode { POLICE, EDT, PACE, MODES };

extern const uint64_t round_trips_ms[3];
extern struct sim_source sources[FLOWS + 1];
extern struct sim sim;

struct natra_limits limits_of(uint64_t rate_bits, enum mode mode);
struct sim_source tcp(uint64_t round_trip_ms, bool ect);
struct sim_source udp(double caps);

/* Begins with the first n of the sources, at begin_ns of the clock. */
void begin(enum mode mode, uint64_t rate_bits, size_t n, uint64_t begin_ns);
void end(void);

/* Runs the first n of the sources and resets the results after warm_s. */
void run(enum mode mode, uint64_t rate_bits, size_t n, uint64_t warm_s,
	 uint64_t seconds);
void assert_between(double value, double low, double high, const char *what);

#endif
