/* SPDX-License-Identifier: BSD-2-Clause */
/* How a heavy flow is shown. */
#ifndef NATRA_COMMON_FLOWS_H
#define NATRA_COMMON_FLOWS_H

#include <cjson/cJSON.h>
#include <natra/natra.h>

/* A text is returned by value so that a call fits into a printf: the array lives
 * until the end of the full expression. */
struct endpoint_text {
	char text[64];
};

/* They return "-" if the flow is not IP. */
struct endpoint_text address_text(const struct natra_flow *flow,
				  const uint8_t *address);
/* Returns the address, with the port if there is one. */
struct endpoint_text endpoint_text(const struct natra_flow *flow,
				   const uint8_t *address, uint16_t port);
/* Returns the name or number of a flow's protocol. For a flow that is not IP,
 * it is the EtherType, which is in the place of the port. */
struct endpoint_text protocol_text(const struct natra_flow *flow);
/* Adds the protocol, the addresses and the ports. A flow that is not IP has no
 * ports. */
void flow_add_json(cJSON *json, const struct natra_flow *flow);
/* Returns an array of flows with their counters. */
cJSON *flows_json(const struct natra_flow *flows, size_t len);

#endif
