/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf(2) for what each attachment makes. libbpf's functions for it first load two
 * programs, in each process anew, to learn what every kernel of natra can (names,
 * no RLIMIT_MEMLOCK): an eighth of the CPU time of an ADD.
 */
#ifndef NATRA_BASE_BPF_CALL_H
#define NATRA_BASE_BPF_CALL_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* An array of one value; the map's descriptor or a negative errno. */
int bpf_call_make_array(const char *name, uint32_t value_size);

/* For tc; the program's descriptor or a negative errno. */
int bpf_call_load_tc(const char *name, const struct bpf_insn *insns,
		     size_t len);

#endif
