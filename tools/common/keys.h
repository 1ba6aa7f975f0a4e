/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of the network configuration that are no field of the policy, whose keys
 * are in src/policy/fields.h. The plugin reads them and the installer writes them.
 * natra-cni(8) has all of them. */
#ifndef NATRA_COMMON_KEYS_H
#define NATRA_COMMON_KEYS_H

/* Lists each key, and its name in C. */
#define CONF_KEYS(X)                                                           \
	X(precedence, precedence)                                              \
	X(onError, on_error)                                                   \
	X(replaceBandwidth, replace_bandwidth)                                 \
	X(allowAnnotations, allow_annotations)                                 \
	X(logFile, log_file)                                                   \
	X(logLevel, log_level)                                                 \
	X(requireNamespaces, require_namespaces)

/* The agent sets this one by itself. */
#define REQUIRE_NAMESPACES "requireNamespaces"

/* Lists the keys of subnets, classes and groups. */
#define LIMIT_KEYS(X)                                                          \
	X(shapedSubnets)                                                       \
	X(unshapedSubnets)                                                     \
	X(classes)                                                             \
	X(group)

#endif
