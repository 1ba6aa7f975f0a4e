/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The compiler's features that the pure headers need, for BPF and for the host. */
#ifndef NATRA_COMPILER_H
#define NATRA_COMPILER_H

#include <linux/types.h>
#include <stdbool.h>

#define natra_inline static inline __attribute__((always_inline))

/*
 * Begins a function that is global to the verifier: it checks it once, by itself, and
 * afterwards knows nothing of what it returned or wrote. If the function were static, the
 * verifier would walk the callers once for each way through it.
 */
#define natra_global __attribute__((noinline))

/* Memory that other CPUs write at the same time. */
#define NATRA_READ_ONCE(x)     (*(const volatile __typeof__(x) *)&(x))
#define NATRA_WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

/*
 * Evaluates to x, which the verifier takes for any number: the macro adds
 * `unknown`, of which the verifier knows nothing, and subtracts it again.
 * Without this the verifier would walk all that follows once for each value
 * that x can have.
 */
#define NATRA_FORGET(x, unknown)                                               \
	__extension__({                                                        \
		__u64 unknown_ = (unknown), same_ = unknown_;                  \
		__asm__ volatile("" : "+r"(same_));                            \
		(x) + unknown_ - same_;                                        \
	})

#define natra_likely(x)   __builtin_expect(!!(x), 1)
#define natra_unlikely(x) __builtin_expect(!!(x), 0)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "natra reads headers as amd64 and arm64 do"
#endif
#define natra_be16(x) ((__u16)__builtin_bswap16((__u16)(x)))
#define natra_be32(x) ((__u32)__builtin_bswap32((__u32)(x)))

#endif
