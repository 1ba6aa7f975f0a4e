/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Every map of one direction. All but the last are global data, each of one
 * variable: they take no helper call to reach and no BTF to declare, which would
 * stay in the kernel with every pod. They live as long as their pins or
 * programs.
 */
#ifndef NATRA_MAPS_BPF_H
#define NATRA_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_shared.h"

/* The limits: user space writes, programs read. */
struct natra_config natra_config SEC(".data.config");

/* Programs write, user space sums. Resized to the number of CPUs. */
struct natra_cpu natra_cpus[1] SEC(".bss.cpus");

/* Programs write, user space reads the flows. Resized to the width that was
 * asked for. */
struct natra_memory natra_memory SEC(".bss");

/* Rewritten before loading. */
const volatile struct natra_fixed natra_fixed SEC(".rodata") = {
	.cpus = 1,
	.sketch_mask = NATRA_SKETCH_WIDTH_DEFAULT - 1,
	.has_l2 = 1,
};

/*
 * The subnets, one map for all programs of an attachment, which user space
 * fills before it loads them. libbpf makes or takes a map of this kind only if
 * BTF declares it; so here is a number instead, in a load of 64 bits, which is
 * what the reference to a map is, and user space makes it one.
 */
static __always_inline void *natra_subnets_map(void)
{
	return (void *)NATRA_SUBNETS_MAP;
}

#endif
