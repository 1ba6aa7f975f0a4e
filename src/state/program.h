/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that decide which program an engine runs. */
#ifndef NATRA_STATE_PROGRAM_H
#define NATRA_STATE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* One program does all of this, and the stub tells it what. */
enum program_kind {
	PROGRAM_RX,  /* polices where an interface receives */
	PROGRAM_TX,  /* polices where it sends */
	PROGRAM_EDT, /* paces where it sends */
	PROGRAM_KIND_MAX
};

struct program_options {
	enum program_kind kind;
	bool has_l2;
	bool holds;       /* a leg of the attachment is of PROGRAM_EDT */
	bool has_classes; /* peers are told apart */
	bool measures_connects;
	bool has_groups;
	int groups_fd; /* of a map that is not pinned; 0: the node's */
};

#endif
