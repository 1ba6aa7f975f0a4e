/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outsider keeps the cells of heavy flows fresh, so that the mice of others
 * are taken for heavy. The test runs the hash, the sketch and the
 * classification of the data path on a clock of its own. The flows under attack
 * and the attacker's differ by their ports; the attacker does not know the keys
 * of the hash.
 *
 * How many mice are taken depends on the rate: the smaller `leave` is, the less a
 * mouse of a given size has to send to look like a heavy flow that was silent for
 * some windows. The unit in which the sketch counts does not matter: with 1 byte
 * in place of 64 the figures for 10 Mbit/s are 10.69 and 38.15 %.
 */
#include "cm.h"

#include <string.h>

#include "natra_classify.h"
#include "natra_hash.h"
#include "natra_sketch.h"
#include "policy/policy.h"
#include "rng.h"

#define MBIT         1000000ULL
#define SECOND       1000000000ULL
#define STEP_NS      10000000ULL
#define WINDOW_NS    (1ULL << NATRA_WINDOW_SHIFT)
#define PACKET_BYTES 1514

/* The mice are a request and its answer, of 1.6 kB and of 8 kB. */
#define MOUSE_PACKETS     5
#define MOUSE_BYTES       320
#define BIG_MOUSE_PACKETS 8
#define BIG_MOUSE_BYTES   1000
#define MICE_PER_SECOND   100

#define PORT_ATTACK 1000U
#define PORT_MICE   100000U
#define PORT_HEAVY  900U

static struct {
	__u8 heavy[NATRA_ROWS * NATRA_HEAVY_WIDTH];
	__u32 cells[NATRA_ROWS * NATRA_SKETCH_WIDTH];
	__u64 keys[NATRA_HASH_KEYS];
	struct natra_limits limits;
	__u64 rate_bits;
	__u64 now_ns;
} sim;

static const __u64 rates[] = {MBIT, 10 * MBIT, 100 * MBIT, 1000 * MBIT};

static void begin(uint64_t seed, __u64 rate_bits)
{
	const struct natra_policy policy = {
		.sz = sizeof(policy),
		.ingress_rate_bits_per_sec = rate_bits,
	};

	memset(&sim, 0, sizeof(sim));
	for (size_t i = 0; i < NATRA_HASH_KEYS; i++)
		sim.keys[i] = th_rng(&seed);
	sim.limits = policy_limits(&policy, LEG_INGRESS, false);
	sim.rate_bits = rate_bits;
	sim.now_ns = 1000 * SECOND;
}

/* Sends a packet, and returns whether it is taken for one of a heavy flow. */
static bool packet(__u32 ports, __u32 bytes)
{
	__u64 hash =
		natra_hash_v4(sim.keys, 1, 2, ports, natra_hash_kind(4, 17, 0));
	__u32 epoch = natra_epoch(sim.now_ns);
	__u32 units = natra_units(bytes);
	__u32 estimate = natra_sketch_add(sim.cells, NATRA_SKETCH_WIDTH - 1,
					  hash, units, epoch);

	return natra_is_heavy(sim.heavy, hash, estimate, units,
			      sim.limits.enter_units, sim.limits.leave_units,
			      epoch);
}

/*
 * The attacker sends a burst in each of its flows in turn: first `enter` units,
 * at FIRST_CAPS times the rate, and then never more than `leave` units, at
 * `caps` times the rate.
 */
struct attacker {
	__u32 flows;
	double caps;
	double due_bytes;
	__u32 at, left_bytes;
	bool known;
};

#define FIRST_CAPS 20

static void attack(struct attacker *a)
{
	a->due_bytes += (a->known ? a->caps : FIRST_CAPS) * sim.rate_bits / 8 *
			STEP_NS / SECOND;
	while (a->due_bytes > 0) {
		__u32 bytes;

		if (!a->left_bytes) {
			a->known |= a->at + 1 == a->flows;
			a->at = (a->at + 1) % a->flows;
			a->left_bytes = (a->known ? sim.limits.leave_units
						  : sim.limits.enter_units)
					<< NATRA_UNIT_SHIFT;
		}
		bytes = a->left_bytes < PACKET_BYTES ? a->left_bytes
						     : PACKET_BYTES;
		(void)packet(PORT_ATTACK + a->at, bytes);
		a->left_bytes -= bytes;
		a->due_bytes -= bytes;
	}
}

struct victims {
	__u32 number;
	__u32 packets, heavy; /* of new flows that stay small */
};

static void send_mouse(struct victims *v, int packets, __u32 bytes)
{
	v->number++;
	for (int i = 0; i < packets; i++) {
		v->heavy += packet(PORT_MICE + v->number, bytes);
		v->packets++;
	}
}

static void step(struct attacker *a, struct victims *v)
{
	static const __u64 every = SECOND / STEP_NS / MICE_PER_SECOND;

	sim.now_ns += STEP_NS;
	attack(a);
	if (sim.now_ns / STEP_NS % every)
		return;
	if (v->number % 4 == 3)
		send_mouse(v, BIG_MOUSE_PACKETS, BIG_MOUSE_BYTES);
	else
		send_mouse(v, MOUSE_PACKETS, MOUSE_BYTES);
}

/* Returns how many percent of the mice's packets are taken for heavy, after two
 * rounds of the attacker's flows. */
static double mice_taken(__u64 rate_bits, __u32 flows, double caps)
{
	struct attacker a = {.flows = flows, .caps = caps};
	struct victims v = {0};

	begin(flows, rate_bits);
	while (!a.known || sim.now_ns % (16 * WINDOW_NS) >= STEP_NS)
		step(&a, &v);
	v = (struct victims){.number = v.number};
	for (__u64 end = sim.now_ns + 60 * SECOND; sim.now_ns < end;)
		step(&a, &v);
	return 100.0 * v.heavy / v.packets;
}

/* Demands that at most the percentage in `most` is taken at each of `rates`. */
static void assert_taken(__u32 flows, double caps, const double *most)
{
	for (size_t r = 0; r < TH_LEN(rates); r++) {
		double percent = mice_taken(rates[r], flows, caps);

		print_message(
			"%llu Mbit/s, %u flows at %.1f caps: %.2f %% of the mice's packets are heavy\n",
			rates[r] / MBIT, flows, caps, percent);
		if (percent > most[r])
			fail_msg("%.2f %% are over %.1f %%", percent, most[r]);
	}
}

static void mice_beside_512_flows_at_most_of_the_rate(void **state)
{
	static const double most[TH_LEN(rates)] = {18, 13, 6, 2.5};

	(void)state;
	assert_taken(512, 0.8, most);
}

static void mice_beside_2048_flows_far_over_the_rate(void **state)
{
	static const double most[TH_LEN(rates)] = {84, 58, 31, 26};

	(void)state;
	assert_taken(2048, 3.2, most);
}

/* Makes the flow heavy, and then sends no more than `leave` units. */
static void become_heavy(__u32 ports)
{
	__u64 quiet_ns = (NATRA_HOLD_WINDOWS + 20) * WINDOW_NS;
	__u32 units = sim.limits.enter_units;

	while (units--)
		(void)packet(ports, 1 << NATRA_UNIT_SHIFT);
	sim.now_ns += quiet_ns;
	units = sim.limits.leave_units;
	while (units--)
		(void)packet(ports, 1 << NATRA_UNIT_SHIFT);
}

/* A TCP flow pauses this long: a policer makes it wait for retransmission
 * timeouts of 1, 3 and 7 s. */
static void least_of_heavy_flows_is_heavy_when_it_returns(void **state)
{
	(void)state;
	for (size_t i = 0; i < TH_LEN(rates); i++) {
		for (__u32 quiet = 0; quiet <= NATRA_HOLD_WINDOWS; quiet++) {
			begin(quiet, rates[i]);
			become_heavy(PORT_HEAVY);
			sim.now_ns += quiet * WINDOW_NS;
			assert_true(packet(PORT_HEAVY, 66));
		}
		sim.now_ns += WINDOW_NS;
		assert_false(packet(PORT_HEAVY, 66));
	}
}

/* Sends an eighth of the rate for two windows, in the crowd, and is then silent.
 * Returns whether the flow is taken for a mouse when it returns. */
static bool is_lost(struct attacker *a, struct victims *v, __u32 ports,
		    __u32 quiet)
{
	const double step_bytes = (double)sim.rate_bits / 64 * STEP_NS / SECOND;
	__u64 stop = sim.now_ns + 2 * WINDOW_NS;
	__u64 end = stop + quiet * WINDOW_NS;
	double due_bytes = 0;

	while (sim.now_ns < end) {
		step(a, v);
		if (sim.now_ns >= stop)
			continue;
		due_bytes += step_bytes;
		while (due_bytes > 0) {
			(void)packet(ports, PACKET_BYTES);
			due_bytes -= PACKET_BYTES;
		}
	}
	return !packet(ports, 66);
}

/* The attacker's flows share the cells of these flows, so their cells look
 * younger than they are. */
static void no_heavy_flow_is_lost_in_the_crowd(void **state)
{
	__u32 lost = 0;

	(void)state;
	for (size_t i = 0; i < TH_LEN(rates); i++) {
		struct attacker a = {.flows = 2048, .caps = 3.2};
		struct victims v = {0};

		begin(3, rates[i]);
		while (!a.known)
			step(&a, &v);
		for (__u32 quiet = 1; quiet <= NATRA_HOLD_WINDOWS; quiet++)
			lost += is_lost(&a, &v, PORT_HEAVY - quiet, quiet);
	}
	assert_int_equal(lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mice_beside_512_flows_at_most_of_the_rate),
		cmocka_unit_test(mice_beside_2048_flows_far_over_the_rate),
		cmocka_unit_test(least_of_heavy_flows_is_heavy_when_it_returns),
		cmocka_unit_test(no_heavy_flow_is_lost_in_the_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
