/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices when natra's pins go away: bpffs is unmounted, another one is mounted over it,
 * or natra's directory is removed. Links end with their pins, and with them limits. The
 * bpffs is therefore kept open, until all running pods have their limits in the new one:
 * a plain umount(8) is refused meanwhile, and after a lazy one the old limits hold. */
#ifndef NATRA_AGENT_PINWATCH_H
#define NATRA_AGENT_PINWATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "../common/log.h"
#include "loop.h"

struct pinwatch {
	struct log *log;
	const char *bpffs; /* NULL: the library's default */
	/* Is called when pods have to be given their limits again. */
	void (*lost)(void *arg);
	void *arg;
	struct loop *loop;
	struct source mounts, removal;
	dev_t seen;  /* the bpffs that was there at the last mount; 0: none */
	int kept_fd; /* the bpffs that is kept open; -1: none */
	int next_fd; /* the one in which the pods are looked at now */
};

/* The members log, bpffs, lost and arg are set by the caller. A failure to watch is
 * logged. */
void pinwatch_open(struct pinwatch *p, struct loop *loop);
/* Is called before and after the running pods are looked at; `are_limited` says whether
 * each of them has its limits now. */
void pinwatch_begin(struct pinwatch *p);
void pinwatch_end(struct pinwatch *p, bool are_limited);
/* Writes the path of the bpffs that is kept if it is no more the one in which the pods are
 * looked at. Returns whether there is one. */
bool pinwatch_before(const struct pinwatch *p, char *ret_path, size_t size);
void pinwatch_close(struct pinwatch *p);

#endif
