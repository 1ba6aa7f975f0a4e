/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: all options, and which command accepts which. */
#ifndef NATRACTL_OPTS_H
#define NATRACTL_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../src/policy/fields.h"

enum opt_id {
	OPT_HELP,
	OPT_VERSION,
	OPT_JSON,
	OPT_VERBOSE,
	OPT_BPFFS,
	OPT_NETNS,
	OPT_PID,
	OPT_ID,
	OPT_NETWORK,
	OPT_LABEL,
	/* From OPT_POLICY on there is one for each row of policy_fields, in its
	 * order. */
	OPT_POLICY,
	OPT_SHAPED_SUBNET = OPT_POLICY + POLICY_FIELDS_LEN,
	OPT_UNSHAPED_SUBNET,
	OPT_CLASS,
	OPT_GROUP_LIMITS,
	OPT_PARENT,
	OPT_REPLACE_BANDWIDTH,
	OPT_DIRECTION,
	OPT_FLOWS,
	OPT_WATCH,
	OPT_TEXTFILE,
	OPT_VERDICTS,
	OPT_AGGREGATE,
	OPT_ONCE,
	OPT_WIDE,
	OPT_INTERVAL,
	OPT_FOLLOW,
	OPT_SINCE,
	/* These are options of install and uninstall; doctor takes some of them. */
	OPT_INSTALL_MODE,
	OPT_PLATFORM,
	OPT_NET_DIR,
	OPT_BIN_DIR,
	OPT_PLUGIN,
	OPT_CONF,
	OPT_ROOT,
	OPT_RUNTIME_VERSION,
	OPT_DRY_RUN,
	OPT_FORCE,
	OPT_AGENT,
	OPT_ON_ERROR,
	OPT_NAMESPACES,
	OPT_CHECK,
	OPT_MAX
};

#define OPT_BIT(id) (UINT64_C(1) << (id))
#define OPTS_GLOBAL                                                            \
	(OPT_BIT(OPT_HELP) | OPT_BIT(OPT_JSON) | OPT_BIT(OPT_VERBOSE) |        \
	 OPT_BIT(OPT_BPFFS))

/* The most subnets of a policy, see natra.h. */
#define OPTS_SUBNETS_MAX 1024
#define OPTS_CONF_MAX    64

#define OPTS_ARGS_MAX 1024

/* The arguments and options that a command accepts. */
struct opts_spec {
	const char *name;
	/* Name of the command's argument, NULL if it has none. If "..." follows
	 * the name, up to OPTS_ARGS_MAX arguments may be given. */
	const char *arg;
	bool arg_optional;
	uint64_t options;
	bool only_args; /* words that begin with a dash are arguments, too */
};

/* The arguments and options that were given. All texts are those of argv. */
struct opts {
	const char *value[OPT_MAX]; /* NULL: not given; "" for a flag */
	/* the values of all --shaped-subnet or all --unshaped-subnet */
	const char *subnets[OPTS_SUBNETS_MAX];
	size_t subnets_len;
	/* the values of all --class */
	const char *classes[NATRA_CLASSES_MAX];
	size_t classes_len;
	/* the values of all --conf */
	const char *conf[OPTS_CONF_MAX];
	size_t conf_len;
	const char *arg; /* the first of args; NULL: none */
	const char *args[OPTS_ARGS_MAX];
	size_t args_len;
	unsigned int verbosity;
};

/* All functions that return int return 0, or EXIT_USAGE after printing the
 * error. */

/* Reads options up to the first word that is none. *ret_next is its index. */
int opts_parse_global(struct opts *opts, int argc, char **argv, int *ret_next);
/* Reads the words after the command's name: options and arguments in any order. */
int opts_parse(struct opts *opts, const struct opts_spec *spec, int argc,
	       char **argv);
void opts_help(uint64_t options);
/* Returns the field of the policy that an option sets; NULL if it sets none. */
const struct policy_field *opts_field(enum opt_id id);
const char *opts_name(enum opt_id id);
/* Returns what stands for the option's value in the help; NULL if it has none. */
const char *opts_metavar(enum opt_id id);

/* Finds an option by its name, of `len` bytes. Returns OPT_MAX if there is none. Two
 * commands may have different options of the same name, so one that this command accepts is
 * preferred. */
int opts_find(const struct opts_spec *spec, const char *word, size_t len);

/* Reads a decimal number without a sign, from 1 to `max`. */
int opts_number(const struct opts *opts, enum opt_id id, uint32_t max,
		uint32_t *ret_number);
/* Checks that a value, if it was given, has 1 to `max` bytes. */
int opts_check_text(const char *name, const char *value, uint32_t max);

#endif
