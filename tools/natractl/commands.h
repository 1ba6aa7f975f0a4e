/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of natractl: which there are, what each takes, and their help. */
#ifndef NATRACTL_COMMANDS_H
#define NATRACTL_COMMANDS_H

#include <stdio.h>

#include "cli.h"

struct command {
	struct opts_spec spec;
	const char *summary;
	int (*run)(struct cli *cli);
	bool is_rare; /* the one screen without arguments leaves it out */
};

extern const struct command commands[];
extern const size_t commands_len;

/* Returns NULL if there is no command of this name. */
const struct command *find_command(const char *name);
/* Returns all options of a command. */
uint64_t command_options(const struct command *command);

/* Prints all commands, or those that are not rare, in 24 lines. */
void help_print(FILE *file, bool all);
void help_print_command(const struct command *command);

/* Returns the command that a mistyped word was probably meant to be, or NULL. */
const char *likely_command(const char *word);

#endif
