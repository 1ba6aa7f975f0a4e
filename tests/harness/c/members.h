/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a program that judges a member of a group, which has a map of groups of its own. */
#ifndef TH_MEMBERS_H
#define TH_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "progrun.h"

/* The numbers of the member's group, and of one that may be its parent. */
#define TH_GROUP  7
#define TH_PARENT 9

/* Returns a group of that map, in the direction out of pods. */
struct natra_group *th_group_at(uint32_t number);

/* Gives it limits; `parent` 0 stands for none. */
void th_write_group(uint32_t number, uint64_t rate, uint32_t parent);

/* Loads the program, with limits of a member that joins TH_GROUP; `peers` may be NULL. A test that
 * loads one ends it with th_close_member(). */
void th_load_member(struct progrun *run, enum stub_kind kind,
		    const struct th_peers *peers, struct natra_limits *limits);
void th_close_member(struct progrun *run);

/* Sends a packet of TCP. */
struct th_result th_send_tcp(struct progrun *run, size_t len);

#endif
