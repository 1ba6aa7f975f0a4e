/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that decide which program an engine runs. */
#ifndef NATRA_STATE_PROGRAM_H
#define NATRA_STATE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* The work that a stub asks of its program, which can do all of this. */
enum stub_kind {
	STUB_RX,  /* polices where an interface receives */
	STUB_TX,  /* polices where it sends */
	STUB_EDT, /* paces where it sends */
	STUB_KIND_MAX
};

struct program_options {
	enum stub_kind kind;
	bool has_l2;
	bool holds;       /* a leg of the attachment is of STUB_EDT */
	bool tells_inner; /* flows inside of a tunnel are told apart */
	bool has_classes; /* peers are told apart */
	bool measures_connects;
	bool has_groups;
	int groups_fd; /* of a map that is not pinned; 0: the node's */
};

#endif
