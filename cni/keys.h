/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of the network configuration that are no field of the policy, whose keys
 * are in src/policy/fields.h. The plugin reads them and the installer writes them.
 * natra-cni(8) has all of them. */
#ifndef NATRA_CNI_KEYS_H
#define NATRA_CNI_KEYS_H

/* Lists each key with the function of settings.c that reads it. */
#define CONF_KEYS(X)                                                           \
	X(precedence, read_precedence)                                         \
	X(onError, read_on_error)                                              \
	X(replaceBandwidth, read_replace_bandwidth)                            \
	X(allowAnnotations, read_allow_annotations)                            \
	X(logFile, check_log_file)                                             \
	X(logLevel, check_log_level)

/* Lists the keys of subnets, classes and groups, see bandwidth.c, classes.c and
 * groups.c. */
#define LIMIT_KEYS(X)                                                          \
	X(shapedSubnets)                                                       \
	X(unshapedSubnets)                                                     \
	X(classes)                                                             \
	X(group)

#endif
