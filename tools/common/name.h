/* SPDX-License-Identifier: BSD-2-Clause */
/* Names by the rule of the CNI specification, which networks and containers follow.
 * It also keeps out "..", which matters because a name becomes that of a directory. */
#ifndef NATRA_COMMON_NAME_H
#define NATRA_COMMON_NAME_H

/* So many digits at the begin of a container's id, or more, name it in a command line. */
#define CONTAINER_PREFIX_MIN 6

/* Returns NULL if `name` follows the rule, else what is wrong with it. */
const char *name_wrong(const char *name);

#endif
