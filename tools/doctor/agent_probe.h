/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks natra-agent whether it is ready. */
#ifndef NATRA_DOCTOR_AGENT_PROBE_H
#define NATRA_DOCTOR_AGENT_PROBE_H

#define AGENT_ADDRESS "127.0.0.1:9810"

#include <stdbool.h>

/* Returns whether a text is an address such as those below. */
bool agent_is_address(const char *text);
/* Reads /readyz from an address such as "127.0.0.1:9810" or "[::1]:9810", and gives
 * up after 2 s, or after 4 s if the answer comes by the byte. The caller frees *ret_body. Returns 0, or -errno; -EINVAL if the text is
 * no address. */
int agent_ask(const char *address, char **ret_body);

#endif
