/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outsider keeps the cells of heavy flows fresh, so that the small flows of others
 * are taken for heavy.
 *
 * How many are taken depends on the rate: the smaller `leave` is, the less a
 * flow of a given size has to send to look like a heavy one that was silent for
 * some windows. The unit in which the sketch counts does not matter: with 1 byte
 * in place of 64 the figures for 10 Mbit/s are 10.69 and 38.15 %.
 */
#include "cm.h"

#include "natra_classify.h"
#include "saturation.h"

#define PORT_HEAVY 900U

static const __u64 rates[] = {SAT_MBIT, 10 * SAT_MBIT, 100 * SAT_MBIT,
			      1000 * SAT_MBIT};

/* Demands that at most the percentage in `most` is taken at each of `rates`. */
static void assert_taken(__u32 flows, double caps, const double *most)
{
	for (size_t r = 0; r < TH_LEN(rates); r++) {
		double percent = sat_taken(rates[r], flows, caps);

		if (percent > most[r])
			fail_msg("%llu Mbit/s: %.2f %% are over %.1f %%",
				 rates[r] / SAT_MBIT, percent, most[r]);
	}
}

TH_TEST(mice_beside_512_flows_at_most_of_the_rate)
{
	static const double most[TH_LEN(rates)] = {18, 13, 6, 2.5};

	assert_taken(512, 0.8, most);
}

TH_TEST(mice_beside_2048_flows_far_over_the_rate)
{
	static const double most[TH_LEN(rates)] = {84, 58, 31, 26};

	assert_taken(2048, 3.2, most);
}

/* Makes the flow heavy, and then sends no more than `leave` units. */
static void become_heavy(__u32 ports)
{
	__u64 quiet_ns = (NATRA_HOLD_WINDOWS + 20) * SAT_WINDOW_NS;
	__u32 units = sat.limits.enter_units;

	while (units--)
		(void)sat_packet(ports, 1 << NATRA_UNIT_SHIFT);
	sat.now_ns += quiet_ns;
	units = sat.limits.leave_units;
	while (units--)
		(void)sat_packet(ports, 1 << NATRA_UNIT_SHIFT);
}

/* A TCP flow pauses this long: a policer makes it wait for retransmission
 * timeouts of 1, 3 and 7 s. */
TH_TEST(least_of_heavy_flows_is_heavy_when_it_returns)
{
	for (size_t i = 0; i < TH_LEN(rates); i++) {
		for (__u32 quiet = 0; quiet <= NATRA_HOLD_WINDOWS; quiet++) {
			sat_begin(quiet, rates[i]);
			become_heavy(PORT_HEAVY);
			sat.now_ns += quiet * SAT_WINDOW_NS;
			assert_true(sat_packet(PORT_HEAVY, 66));
		}
		sat.now_ns += SAT_WINDOW_NS;
		assert_false(sat_packet(PORT_HEAVY, 66));
	}
}

/* Sends an eighth of the rate for two windows, in the crowd, and is then silent.
 * Returns whether the flow is taken for a mouse when it returns. */
static bool is_lost(struct sat_attacker *a, struct sat_victims *v, __u32 ports,
		    __u32 quiet)
{
	const double step_bytes =
		(double)sat.rate_bits / 64 * SAT_STEP_NS / SAT_SECOND;
	__u64 stop = sat.now_ns + 2 * SAT_WINDOW_NS;
	__u64 end = stop + quiet * SAT_WINDOW_NS;
	double due_bytes = 0;

	while (sat.now_ns < end) {
		sat_step(a, v);
		if (sat.now_ns >= stop)
			continue;
		due_bytes += step_bytes;
		while (due_bytes > 0) {
			(void)sat_packet(ports, SAT_PACKET_BYTES);
			due_bytes -= SAT_PACKET_BYTES;
		}
	}
	return !sat_packet(ports, 66);
}

/* The attacker's flows share the cells of these flows, so their cells look
 * younger than they are. */
TH_TEST(no_heavy_flow_is_lost_in_the_crowd)
{
	__u32 lost = 0;

	for (size_t i = 0; i < TH_LEN(rates); i++) {
		struct sat_attacker a = {.flows = 2048, .caps = 3.2};
		struct sat_victims v = {0};

		sat_begin(3, rates[i]);
		while (!a.known)
			sat_step(&a, &v);
		for (__u32 quiet = 1; quiet <= NATRA_HOLD_WINDOWS; quiet++)
			lost += is_lost(&a, &v, PORT_HEAVY - quiet, quiet);
	}
	assert_int_equal(lost, 0);
}

TH_MAIN(NULL, NULL)
