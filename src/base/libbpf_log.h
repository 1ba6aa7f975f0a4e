/* SPDX-License-Identifier: BSD-2-Clause */
/* libbpf's messages, which go to the handle's log instead of stderr. */
#ifndef NATRA_BASE_LIBBPF_LOG_H
#define NATRA_BASE_LIBBPF_LOG_H

#include "base/handle.h"

/*
 * From here to libbpf_log_leave, messages of libbpf on this thread go to n's
 * log. libbpf has one print function for the whole process, so messages that
 * other threads cause are handed on to the function that was set before. Calls
 * nest.
 */
struct natra *libbpf_log_enter(struct natra *n);
void libbpf_log_leave(struct natra **before);

#define LIBBPF_LOG_SCOPE(n)                                                    \
	__attribute__((cleanup(libbpf_log_leave),                              \
		       unused)) struct natra *libbpf_log_scope_ =              \
		libbpf_log_enter(n)

#endif
