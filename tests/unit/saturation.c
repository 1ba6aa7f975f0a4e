/* SPDX-License-Identifier: BSD-2-Clause */
#include "saturation.h"

#include <string.h>

#include "natra_classify.h"
#include "natra_hash.h"
#include "policy/policy.h"
#include "rng.h"

/* The small flows are a request and its answer, of 1.6 kB and of 8 kB. */
#define MOUSE_PACKETS     5
#define MOUSE_BYTES       320
#define BIG_MOUSE_PACKETS 8
#define BIG_MOUSE_BYTES   1000
#define MICE_PER_SECOND   100

#define PORT_ATTACK 1000U
#define PORT_MICE   100000U

struct sat sat;

static __u8 heavy_cells[NATRA_ROWS * NATRA_HEAVY_WIDTH];
static __u32 sketch_cells[NATRA_ROWS * NATRA_SKETCH_WIDTH];

void sat_begin(uint64_t seed, __u64 rate_bits)
{
	const struct natra_policy policy = {
		.sz = sizeof(policy),
		.ingress_rate_bits_per_sec = rate_bits,
	};

	sat = (struct sat){
		.limits = policy_limits(&policy, LEG_INGRESS, false),
		.rate_bits = rate_bits,
		.now_ns = 1000 * SAT_SECOND,
	};
	for (size_t i = 0; i < NATRA_HASH_KEYS; i++)
		sat.keys[i] = th_rng(&seed);
	memset(heavy_cells, 0, sizeof(heavy_cells));
	memset(sketch_cells, 0, sizeof(sketch_cells));
}

bool sat_packet(__u32 ports, __u32 bytes)
{
	const __u64 hash = natra_hash_v4(sat.keys, 1, 2, ports,
					 natra_hash_kind(4, 17, 0, 0));
	const __u32 units = natra_units(bytes), epoch = natra_epoch(sat.now_ns);
	const __u32 estimate = natra_sketch_add(
		sketch_cells, NATRA_SKETCH_WIDTH - 1, hash, units, epoch);

	return natra_is_heavy(heavy_cells, hash, estimate, units,
			      sat.limits.enter_units, sat.limits.leave_units,
			      epoch);
}

#define FIRST_CAPS 20

static void attack(struct sat_attacker *a)
{
	a->due_bytes += (a->known ? a->caps : FIRST_CAPS) * sat.rate_bits / 8 *
			SAT_STEP_NS / SAT_SECOND;
	while (a->due_bytes > 0) {
		__u32 bytes;

		if (!a->left_bytes) {
			a->known |= a->at + 1 == a->flows;
			a->at = (a->at + 1) % a->flows;
			a->left_bytes = (a->known ? sat.limits.leave_units
						  : sat.limits.enter_units)
					<< NATRA_UNIT_SHIFT;
		}
		bytes = a->left_bytes < SAT_PACKET_BYTES ? a->left_bytes
							 : SAT_PACKET_BYTES;
		(void)sat_packet(PORT_ATTACK + a->at, bytes);
		a->left_bytes -= bytes;
		a->due_bytes -= bytes;
	}
}

static void send_mouse(struct sat_victims *v, int packets, __u32 bytes)
{
	v->number++;
	for (int i = 0; i < packets; i++) {
		v->heavy += sat_packet(PORT_MICE + v->number, bytes);
		v->packets++;
	}
}

void sat_step(struct sat_attacker *a, struct sat_victims *v)
{
	static const __u64 every = SAT_SECOND / SAT_STEP_NS / MICE_PER_SECOND;

	sat.now_ns += SAT_STEP_NS;
	attack(a);
	if (sat.now_ns / SAT_STEP_NS % every)
		return;
	if (v->number % 4 == 3)
		send_mouse(v, BIG_MOUSE_PACKETS, BIG_MOUSE_BYTES);
	else
		send_mouse(v, MOUSE_PACKETS, MOUSE_BYTES);
}

double sat_taken(__u64 rate_bits, __u32 flows, double caps)
{
	struct sat_attacker a = {.flows = flows, .caps = caps};
	struct sat_victims v = {0};

	sat_begin(flows, rate_bits);
	while (!a.known || sat.now_ns % (16 * SAT_WINDOW_NS) >= SAT_STEP_NS)
		sat_step(&a, &v);
	v = (struct sat_victims){.number = v.number};
	for (__u64 end = sat.now_ns + 60 * SAT_SECOND; sat.now_ns < end;)
		sat_step(&a, &v);
	return 100.0 * v.heavy / v.packets;
}
