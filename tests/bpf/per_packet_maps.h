/* SPDX-License-Identifier: BSD-2-Clause */
/* The subnets, classes, groups and crafted packet that per_packet measures with. */
#ifndef PER_PACKET_MAPS_H
#define PER_PACKET_MAPS_H

#include <stdint.h>

#include "packet.h"
#include "policy/subnets.h"

/* Fills the list with a thousand blocks, close to NATRA_SUBNETS_MAX. */
void fill_subnets(struct subnets *subnets);
/* Makes a class of the list. */
void fill_classes(struct subnets *subnets);
/* Makes group 1, and group 2 as its parent if there are two levels, at 100 Gbit/s.
 * Returns the map's descriptor, or -errno. */
int make_groups(uint32_t levels);

/* Makes a SYN over IPv6 behind VLAN tags and extension headers, as many as the parser
 * reads. */
void make_crafted(struct packet *p);

#endif
