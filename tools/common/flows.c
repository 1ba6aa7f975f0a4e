/* SPDX-License-Identifier: BSD-2-Clause */
#include "flows.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "json_write.h"

struct endpoint_text address_text(const struct natra_flow *flow,
				  const uint8_t *address)
{
	struct endpoint_text out = {"-"};

	if (flow->ip_version)
		inet_ntop(flow->ip_version == 4 ? AF_INET : AF_INET6, address,
			  out.text, sizeof(out.text));
	return out;
}

struct endpoint_text endpoint_text(const struct natra_flow *flow,
				   const uint8_t *address, uint16_t port)
{
	const struct endpoint_text plain = address_text(flow, address);
	struct endpoint_text out;

	if (!port || !flow->ip_version)
		return plain;
	snprintf(out.text, sizeof(out.text),
		 flow->ip_version == 4 ? "%.46s:%u" : "[%.46s]:%u", plain.text,
		 port);
	return out;
}

struct endpoint_text protocol_text(const struct natra_flow *flow)
{
	const uint8_t protocol = flow->protocol;
	static const char *const names[UINT8_MAX + 1] = {
		[1] = "icmp",    [6] = "tcp",    [17] = "udp",
		[58] = "icmpv6", [132] = "sctp", [136] = "udplite",
	};
	struct endpoint_text out;

	if (!flow->ip_version)
		snprintf(out.text, sizeof(out.text), "0x%04x", flow->sport);
	else if (names[protocol])
		snprintf(out.text, sizeof(out.text), "%s", names[protocol]);
	else
		snprintf(out.text, sizeof(out.text), "%u", protocol);
	return out;
}

void flow_add_json(cJSON *json, const struct natra_flow *flow)
{
	json_add_text(json, "protocol", protocol_text(flow).text);
	json_add_u64(json, "ip_version", flow->ip_version);
	json_add_u64(json, "ip_protocol", flow->protocol);
	json_add_u64(json, "ethertype", flow->ip_version ? 0 : flow->sport);
	json_add_text(json, "saddr", address_text(flow, flow->saddr).text);
	json_add_u64(json, "sport", flow->ip_version ? flow->sport : 0);
	json_add_text(json, "daddr", address_text(flow, flow->daddr).text);
	json_add_u64(json, "dport", flow->dport);
}

cJSON *flows_json(const struct natra_flow *flows, size_t len)
{
	cJSON *array = cJSON_CreateArray();

	for (size_t i = 0; i < len; i++) {
		const struct natra_flow *flow = &flows[i];
		cJSON *o = cJSON_CreateObject();

		flow_add_json(o, flow);
		json_add_u64(o, "bytes", flow->bytes);
		json_add_u64(o, "packets", flow->packets);
		json_add_u64(o, "idle_ns", flow->idle_ns);
		cJSON_AddItemToArray(array, o);
	}
	return array;
}
