/* SPDX-License-Identifier: BSD-2-Clause */
/* From the command line to what the installer is asked for. */
#pragma once

#include <install.h>

#include "cli.h"

/* Checks all options that install and uninstall share. The request points into
 * the options, and to *ret_conf, which the caller frees. 0, or EXIT_USAGE with
 * the error printed. */
int install_ask(const struct cli *cli, struct install_request *ret_request,
		cJSON **ret_conf);
