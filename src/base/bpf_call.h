/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of bpf(2) for the objects that each attachment creates. libbpf's functions for
 * the same first load two programs, in each process anew, to learn what every kernel
 * that natra supports can do (names, no RLIMIT_MEMLOCK). That would take an eighth of
 * the CPU time of an ADD.
 */
#ifndef NATRA_BASE_BPF_CALL_H
#define NATRA_BASE_BPF_CALL_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* Creates an array of one value. Returns the map's descriptor or -errno. */
int bpf_call_make_array(const char *name, uint32_t value_size);

/* Loads a program for tc. Returns its descriptor or -errno. */
int bpf_call_load_tc(const char *name, const struct bpf_insn *insns,
		     size_t len);

#endif
