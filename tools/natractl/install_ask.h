/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads from the command line what the installer is asked for. */
#ifndef NATRACTL_INSTALL_ASK_H
#define NATRACTL_INSTALL_ASK_H

#include <install.h>

#include "cli.h"

/* Checks all options that install and uninstall share. *ret_request points into
 * the options and to *ret_conf, which the caller frees. Returns 0, or
 * EXIT_USAGE after printing the error. */
int install_ask(const struct cli *cli, struct install_request *ret_request,
		cJSON **ret_conf);

#endif
