/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include "per_packet_maps.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "policy/group_limits.h"
#include "progrun.h"
#include "state/group_map.h"

void fill_subnets(struct subnets *subnets)
{
	static struct natra_subnet list[1000];
	char text[32];

	for (unsigned int i = 0; i < TH_LEN(list); i++) {
		(void)snprintf(text, sizeof(text), "192.%u.%u.0/24", i / 256,
			       i % 256);
		(void)subnet_parse(text, &list[i]);
	}
	subnets->list = list;
	subnets->len = TH_LEN(list);
}

void fill_classes(struct subnets *subnets)
{
	static struct peer_class class = {.name = "class"};

	class.list = subnets->list;
	class.len = subnets->len;
	subnets->list = NULL;
	subnets->len = 0;
	subnets->classes = &class;
	subnets->classes_len = 1;
}

int make_groups(uint32_t levels)
{
	const size_t size = 2 * NATRA_GROUPS * sizeof(struct natra_group);
	struct natra_group_given given = {
		.rate_bits_per_sec = {100000000000, 100000000000},
		.parent = levels > 1 ? 2 : 0,
	};
	struct natra_group *map;
	struct natra *n;
	int fd;

	if (natra_open(&n, NULL) < 0)
		return -ENOMEM;
	fd = groups_make_map(n);
	natra_close(n);
	if (fd < 0)
		return fd;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	map[0].limits[0] = group_limits(&given, NULL, false);
	given.parent = 0;
	map[2].limits[0] = group_limits(&given, NULL, false);
	/* Mice stay mice. */
	map[0].limits[0].enter_units = 0;
	(void)munmap(map, size);
	return fd;
}

void make_crafted(struct packet *p)
{
	static const struct packet_ip plain;

	packet_begin(p);
	packet_ethernet(p);
	for (uint16_t i = 0; i < 2; i++)
		packet_vlan(p, 0x8100, i);
	packet_ipv6(p, &plain);
	for (int i = 0; i < 4; i++)
		packet_extension(p, 60, 8);
	packet_tcp(p, 1000, 80, 20);
	p->data[p->l4 + 13] = 0x02;
	packet_end(p);
}
