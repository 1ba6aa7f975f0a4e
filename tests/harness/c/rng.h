/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates random numbers that are the same in each run (splitmix64). */
#ifndef TH_RNG_H
#define TH_RNG_H

#include <stdint.h>

static inline uint64_t th_rng(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif
