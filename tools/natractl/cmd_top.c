/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "output.h"

/* More than the library keeps of one direction. */
#define FLOWS_MAX 256

static const char *const direction_names[NATRA_DIRECTION_MAX] = {
	[NATRA_DIRECTION_INGRESS] = "ingress",
	[NATRA_DIRECTION_EGRESS] = "egress",
};

struct address {
	char text[INET6_ADDRSTRLEN];
};

static struct address address_text(const struct natra_flow *flow,
				   const uint8_t *bytes)
{
	struct address out = {"-"};

	if (!flow->ip_version)
		return out;
	inet_ntop(flow->ip_version == 4 ? AF_INET : AF_INET6, bytes, out.text,
		  sizeof(out.text));
	return out;
}

/* Returns the name or number of a flow's protocol. For a flow that is not IP,
 * it is the EtherType, which is in the place of the port. */
static struct unit_text protocol_text(const struct natra_flow *flow)
{
	const uint8_t protocol = flow->protocol;
	static const char *const names[UINT8_MAX + 1] = {
		[1] = "icmp",    [6] = "tcp",    [17] = "udp",
		[58] = "icmpv6", [132] = "sctp", [136] = "udplite",
	};
	struct unit_text out;

	if (!flow->ip_version)
		snprintf(out.text, sizeof(out.text), "0x%04x", flow->sport);
	else if (names[protocol])
		snprintf(out.text, sizeof(out.text), "%s", names[protocol]);
	else
		snprintf(out.text, sizeof(out.text), "%u", protocol);
	return out;
}

static void print_endpoint(const struct natra_flow *flow, const uint8_t *bytes,
			   uint16_t port)
{
	char text[INET6_ADDRSTRLEN + 16];
	struct address address = address_text(flow, bytes);

	if (!port || !flow->ip_version)
		snprintf(text, sizeof(text), "%s", address.text);
	else
		snprintf(text, sizeof(text),
			 flow->ip_version == 4 ? "%s:%u" : "[%s]:%u",
			 address.text, port);
	printf("  %-24s", text);
}

static void print_flows(const char *direction, const struct natra_flow *flows,
			size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const struct natra_flow *flow = &flows[i];

		printf("%-9s  %-7s", direction, protocol_text(flow).text);
		print_endpoint(flow, flow->saddr, flow->sport);
		print_endpoint(flow, flow->daddr, flow->dport);
		printf("  %10s  %10" PRIu64 "  %s\n",
		       unit_size(flow->bytes).text, flow->packets,
		       unit_time(flow->idle_ns).text);
	}
}

static void add_flows(cJSON *parent, const char *direction,
		      const struct natra_flow *flows, size_t len)
{
	cJSON *array = cJSON_AddArrayToObject(parent, direction);

	for (size_t i = 0; i < len; i++) {
		const struct natra_flow *flow = &flows[i];
		cJSON *o = cJSON_CreateObject();

		json_add_text(o, "protocol", protocol_text(flow).text);
		json_add_text(o, "saddr", address_text(flow, flow->saddr).text);
		json_add_u64(o, "sport", flow->ip_version ? flow->sport : 0);
		json_add_text(o, "daddr", address_text(flow, flow->daddr).text);
		json_add_u64(o, "dport", flow->dport);
		json_add_u64(o, "bytes", flow->bytes);
		json_add_u64(o, "packets", flow->packets);
		json_add_u64(o, "idle_ns", flow->idle_ns);
		cJSON_AddItemToArray(array, o);
	}
}

/* NATRA_DIRECTION_MAX: both. */
static int parse_direction(const struct opts *opts, int *ret_direction)
{
	const char *text = opts->value[OPT_DIRECTION];

	if (!text) {
		*ret_direction = NATRA_DIRECTION_MAX;
		return 0;
	}
	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		if (strcmp(text, direction_names[d]) == 0) {
			*ret_direction = d;
			return 0;
		}
	}
	return usage_error(opts_name(OPT_DIRECTION), text, "is not one of %s",
			   opts_metavar(OPT_DIRECTION));
}

static int show_flows(const struct cli *cli, int direction, uint32_t max)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "id", cli->opts.arg);
	if (!wants_json(cli))
		printf("%-9s  %-7s  %-24s  %-22s  %10s  %10s  %s\n",
		       "DIRECTION", "PROTO", "SOURCE", "DESTINATION", "BYTES",
		       "PACKETS", "IDLE");
	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		struct natra_flow flows[FLOWS_MAX];
		size_t len = max;
		int r;

		if (direction != NATRA_DIRECTION_MAX && direction != d)
			continue;
		r = natra_top(cli->n, cli->opts.arg, (enum natra_direction)d,
			      flows, &len);
		if (r < 0) {
			cJSON_Delete(json);
			return failure(cli, r);
		}
		if (wants_json(cli))
			add_flows(json, direction_names[d], flows, len);
		else
			print_flows(direction_names[d], flows, len);
	}
	if (wants_json(cli))
		json_print(json);
	else
		cJSON_Delete(json);
	return EXIT_SUCCESS;
}

int cmd_top(struct cli *cli)
{
	uint32_t max = 10;
	int r, direction = NATRA_DIRECTION_MAX;

	r = check_id(cli);
	if (!r)
		r = parse_direction(&cli->opts, &direction);
	if (!r && cli->opts.value[OPT_FLOWS])
		r = opts_number(&cli->opts, OPT_FLOWS, FLOWS_MAX, &max);
	return r ? r : show_flows(cli, direction, max);
}
