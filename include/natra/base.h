/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file base.h
 * @brief What the other headers of libnatra need, and what their words mean.
 *
 * - *mouse*, *mice*: flows that are small, and what they send. A flow that sends
 *   `heavy_hitter_threshold_bytes` becomes *heavy*, until it pauses.
 * - *podside*, *hostside*: natra's programs are at the interface that the caller names, or at
 *   the other end of its veth, in the caller's network namespace.
 * - *TCX*, *clsact*: what of the kernel the programs hang on: TCX from Linux 6.6 on, or else a
 *   qdisc, which anybody can remove who may configure the interface.
 * - *EDT*, earliest departure time: a packet over the rate is given the time from which the
 *   qdisc `fq` sends it. *Horizon*: no packet waits for longer.
 * - *backstop*: where the host side judges `ingress`, a second program at the pod's interface,
 *   which holds what came past the first to the limit.
 * - *ABI*: of what is pinned on bpffs, not of this library: a number that changes when programs
 *   and maps of one build are none for another. natra_attach replaces what is of another ABI.
 */
#ifndef NATRA_BASE_H
#define NATRA_BASE_H

#if defined(NATRA_BUILD)
#define NATRA_API __attribute__((visibility("default")))
#else
#define NATRA_API
#endif

/** Initialiser of every struct that begins with `sz`: all zero but the size. Later, and on the
 *  heap, C needs the type: `*p = (struct natra_info)NATRA_INIT(*p)`. Such a
 *  struct grows at its end, by its `reserved` bytes first. One that others contain has `room`
 *  instead, of which members of later versions take a part, so that it stays as long as it is,
 *  also in a copy. */
#ifdef __cplusplus
extern "C++" {
template <typename T> struct natra_bare {
	typedef T type;
};
template <typename T> struct natra_bare<const T> {
	typedef T type;
};
template <typename T> struct natra_bare<T &> : natra_bare<T> {
};
template <typename T> static inline typename natra_bare<T>::type natra_initial()
{
	typename natra_bare<T>::type t = typename natra_bare<T>::type();

	t.sz = sizeof(t);
	return t;
}
}
#define NATRA_INIT(var) natra_initial<decltype(var)>()
#else
#define NATRA_INIT(var)                                                        \
	{                                                                      \
		.sz = sizeof(var)                                              \
	}
#endif

#endif
