/* SPDX-License-Identifier: BSD-2-Clause */
/* The program that an attachment has on a hook: it calls the program of an
 * engine with the number of the attachment's slot. */
#ifndef NATRA_STATE_STUB_H
#define NATRA_STATE_STUB_H

#include <stdint.h>

#include "base/handle.h"
#include "state/program.h"

/* An owned descriptor, -1 if nothing is loaded. */
struct stub {
	int prog_fd;
	uint32_t prog_id;
};

#define STUB_INIT                                                              \
	{                                                                      \
		.prog_fd = -1                                                  \
	}

void stub_close(struct stub *stub);

/* Loads a stub that calls the first program of `programs_fd` with a slot. `peer_is_to`
 * says that the other end is the destination of its packets. */
int stub_load(struct natra *n, const struct program_options *options,
	      bool peer_is_to, int programs_fd, uint32_t slot,
	      struct stub *ret_stub);

#endif
