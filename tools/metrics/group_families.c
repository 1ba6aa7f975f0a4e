/* SPDX-License-Identifier: BSD-2-Clause */
#include "group_families.h"

#include <stddef.h>

#include "counters.h"

static uint64_t group_bytes(const struct group_metrics *group, bool egress)
{
	return egress ? group->info.egress_charged.bytes
		      : group->info.ingress_charged.bytes;
}

static uint64_t group_packets(const struct group_metrics *group, bool egress)
{
	return egress ? group->info.egress_charged.packets
		      : group->info.ingress_charged.packets;
}

static uint64_t group_rate(const struct group_metrics *group, bool egress)
{
	return bytes_of_bits(egress ? group->info.egress_rate_bits_per_sec
				    : group->info.ingress_rate_bits_per_sec);
}

static const char *kind_of(const struct group_metrics *group)
{
	return group->info.automatic ? "automatic" : "administrator";
}

static void write_group(struct exposition *e, const struct group_metrics *group,
			uint64_t (*value)(const struct group_metrics *group,
					  bool egress))
{
	for (int egress = 0; egress < 2; egress++) {
		/* A direction without a rate charges nothing. */
		if (group_rate(group, egress))
			exposition_count(
				e,
				(const struct label[]){
					{"group", group->name},
					{"kind", kind_of(group)},
					{"direction",
					 egress ? "egress" : "ingress"},
					{NULL, NULL}},
				value(group, egress));
	}
}

void groups_write(struct exposition *e, const struct node_metrics *node)
{
	static const struct {
		struct metric metric;
		uint64_t (*value)(const struct group_metrics *group,
				  bool egress);
	} list[] = {
		{{"natra_group_charged_bytes", METRIC_COUNTER, "bytes",
		  "Bytes on the wire that were charged to the group."},
		 group_bytes},
		{{"natra_group_charged_packets", METRIC_COUNTER, NULL,
		  "Packets that were charged to the group."},
		 group_packets},
		{{"natra_group_limit_bytes_per_second", METRIC_GAUGE,
		  "bytes_per_second",
		  "The rate that the members of the group share."},
		 group_rate},
	};
	static const struct metric members = {
		"natra_group_members", METRIC_GAUGE, NULL,
		"Attachments that are members of the group."};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		exposition_begin(e, &list[i].metric);
		for (size_t j = 0; j < node->groups_len; j++)
			write_group(e, &node->groups[j], list[i].value);
	}
	exposition_begin(e, &members);
	for (size_t j = 0; j < node->groups_len; j++)
		exposition_count(e,
				 (const struct label[]){
					 {"group", node->groups[j].name},
					 {"kind", kind_of(&node->groups[j])},
					 {NULL, NULL}},
				 node->groups[j].info.members);
}
