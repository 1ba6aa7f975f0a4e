/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file base.h
 * @brief What the other headers of libnatra need.
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
 *  struct grows at its end. One that others contain has `room` instead, of which members
 *  of later versions take a part, so that it stays as long as it is, also in a copy. */
#ifdef __cplusplus
template <typename T> struct natra_bare {
	typedef T type;
};
template <typename T> struct natra_bare<T &> {
	typedef T type;
};
template <typename T> static inline typename natra_bare<T>::type natra_initial()
{
	typename natra_bare<T>::type t = typename natra_bare<T>::type();

	t.sz = sizeof(t);
	return t;
}
#define NATRA_INIT(var) natra_initial<decltype(var)>()
#else
#define NATRA_INIT(var)                                                        \
	{                                                                      \
		.sz = sizeof(var)                                              \
	}
#endif

#endif
