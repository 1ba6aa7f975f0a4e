/* SPDX-License-Identifier: BSD-2-Clause */
/* The ways to name an attachment on the command line, and the short form of its id. */
#ifndef NATRACTL_FIND_H
#define NATRACTL_FIND_H

#include "cli.h"

/* The length of a container's id in tables. */
#define SHORT_ID_LEN 8

/* Says whether a word means this attachment: its id, its label, which is
 * "namespace/pod" of a pod, or the begin of the container's id, from CONTAINER_PREFIX_MIN
 * digits on. */
bool is_named(const char *id, const char *label, const char *word);

/* Writes what stands for an id in a table: the begin of the container's id in one that
 * the CNI plugin made, which is "NETWORK/CONTAINER/IFNAME", else all of it. */
void short_id(const char *id, char ret_text[NATRA_ID_MAX + 1]);

/* Finds the one attachment that a word of the command line means. If there is none,
 * *ret_id is the word, so that the library tells what is wrong with it. Returns 0, or
 * the exit code after printing why the word means none or several. */
int find_id(const struct cli *cli, const char *word,
	    char ret_id[NATRA_ID_MAX + 1]);
/* Does so for the command's argument, which becomes the id. */
int find_argument(struct cli *cli);

#endif
