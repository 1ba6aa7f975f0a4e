/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of natractl, each of which returns the exit code, and what they
 * share. */
#ifndef NATRACTL_CLI_H
#define NATRACTL_CLI_H

#include <natra/natra.h>

#include "opts.h"

/* The highest pid of Linux. */
#define PID_MAX       4194304
#define PID_NETNS_MAX 32

struct cli {
	struct natra *n;
	struct opts opts;
	char id[NATRA_ID_MAX + 1]; /* see find_argument */
};

int cmd_attach(struct cli *cli);
int cmd_set(struct cli *cli);
int cmd_detach(struct cli *cli);
int cmd_list(struct cli *cli);
int cmd_show(struct cli *cli);
int cmd_stats(struct cli *cli);
int cmd_top(struct cli *cli);
int cmd_events(struct cli *cli);
int cmd_group(struct cli *cli);
int cmd_metrics(struct cli *cli);
int cmd_probe(struct cli *cli);
int cmd_gc(struct cli *cli);
int cmd_check(struct cli *cli);
int cmd_upgrade(struct cli *cli);
int cmd_install(struct cli *cli);
int cmd_uninstall(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_version(struct cli *cli);
int cmd_complete(struct cli *cli);
int cmd_help(struct cli *cli);
int cmd_hook(struct cli *cli);
/* Returns the exit code of `natractl hook`, which ended with `r`: 0, unless the command
 * line says that a failure is to be one of the container. */
int hook_exit(int argc, char **argv, int r);
int cmd_call(struct cli *cli);

/* Writes the path of the network namespace of a process. */
void pid_netns(uint32_t pid, char ret_path[PID_NETNS_MAX]);

bool wants_json(const struct cli *cli);
/* Returns 0, or EXIT_USAGE after printing the error. */
int check_interface(const struct cli *cli);
/* Prints the handle's error, or that of `r` if it has none. Returns
 * EXIT_FAILURE. */
int failure(const struct cli *cli, int r);

/* Reports that the library has refused the value of an option, with `r`. Returns the exit
 * code. */
int refused(const struct cli *cli, int r, const char *name, const char *value);

#endif
