/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints how a table of flows would do in place of the sketch and the cells of heavy flows: one
 * entry for each flow that is worth one, in sets of four, two sets a flow. A flow that has none
 * gets the entry that is worth least, with a chance that falls with what that is worth (randomised
 * admission, as in HeavyKeeper). An entry of 12 bytes has a fingerprint, the count, the windows of
 * the last packet and of the last heavy one, and the clock of the flow's share.
 *
 * A flow without an entry passes as a small one. The tables that keep heavy flows do not give
 * their entries away, and a flow is heavy where all of its eight entries are kept.
 *
 * The output is tests/bench/results/table-simulation.txt; tests/bench/history.md says what follows
 * from it. CPUs do not race here, which is to the table's advantage.
 */
#include <stdio.h>
#include <string.h>

#include "cm.h"
#include "natra_classify.h"
#include "rng.h"
#include "saturation.h"

#define WAYS        4
#define SETS_MAX    512
#define ENTRY_BYTES 12

#define KEPT (~0U) /* more than any flow is worth */

#define RATE_BITS (10 * SAT_MBIT)
#define PORT_FLOW 500000U
#define SETTLED                                                                \
	12 /* seconds until the flows are what they are, and to measure for */

struct entry {
	__u16 tag;
	__u8 window, heavy_window;
	__u32 units;
};

static struct {
	struct entry entries[SETS_MAX * WAYS];
	__u32 sets;
	bool keeps;
	uint64_t seed;
} table;

static __u32 units_of(const struct entry *entry, __u8 epoch)
{
	const __u8 age = epoch - entry->window;

	return age >= NATRA_CELL_COUNT_BITS ? 0 : entry->units >> age;
}

static __u8 heavy_age(const struct entry *entry, __u8 epoch)
{
	return entry->heavy_window ? epoch - entry->heavy_window : 0xff;
}

/* Returns what an entry is worth. One of a flow that is known to be heavy is worth at least
 * `leave`. */
static __u32 worth(const struct entry *entry, __u8 epoch)
{
	const __u32 units = units_of(entry, epoch);

	if (heavy_age(entry, epoch) > NATRA_KNOWN_WINDOWS)
		return units;
	if (table.keeps)
		return KEPT;
	return units > sat.limits.leave_units ? units : sat.limits.leave_units;
}

static void table_begin(void)
{
	memset(table.entries, 0, sizeof(table.entries));
	table.seed = 1;
}

/* Returns the entry of the flow, or the one that is worth least, and what that is worth. */
static struct entry *find(__u64 hash, __u16 tag, __u8 epoch, __u32 *ret_worth)
{
	struct entry *least = NULL;

	for (int i = 0; i < 2 * WAYS; i++) {
		const __u64 set = (i < WAYS ? hash : hash >> 20) % table.sets;
		struct entry *entry = &table.entries[set * WAYS + i % WAYS];
		const __u32 w = worth(entry, epoch);

		if (entry->tag == tag)
			return entry;
		if (!least || w < *ret_worth) {
			*ret_worth = w;
			least = entry;
		}
	}
	return least;
}

static bool table_is_heavy(__u64 hash, __u32 units, __u32 epoch)
{
	const __u32 enter = sat.limits.enter_units;
	const __u32 leave = sat.limits.leave_units;
	const __u16 tag = hash >> 48 | 1;
	__u32 least = 0;
	struct entry *entry = find(hash, tag, epoch, &least);
	__u8 age;

	if (entry->tag != tag) {
		if (least == KEPT)
			return true;
		if (th_rng(&table.seed) % (least + units) >= units)
			return false;
		*entry = (struct entry){.tag = tag};
	}
	age = heavy_age(entry, epoch);
	entry->units = units_of(entry, epoch) + units;
	entry->window = epoch;
	if (entry->units >= enter ||
	    (entry->units >= leave && age <= NATRA_KNOWN_WINDOWS)) {
		entry->heavy_window = epoch ? epoch : 1;
		return true;
	}
	return age <= NATRA_HOLD_WINDOWS &&
	       entry->units - units >= leave >> age;
}

/* Returns how many caps pass as small flows, of `flows` flows that offer `caps` each. */
static double passed(const struct sat_judge *judge, __u32 flows, double caps)
{
	const double step_bytes =
		flows * caps * RATE_BITS / 8 * SAT_STEP_NS / SAT_SECOND;
	__u64 from_ns, until_ns;
	double due = 0, bytes = 0;
	uint64_t seed = 2;

	sat_begin(judge, flows, RATE_BITS);
	from_ns = sat.now_ns + SETTLED * SAT_SECOND;
	until_ns = from_ns + SETTLED * SAT_SECOND;
	while (sat.now_ns < until_ns) {
		sat.now_ns += SAT_STEP_NS;
		due += step_bytes;
		while (due > 0) {
			const __u32 port = PORT_FLOW + th_rng(&seed) % flows;

			if (!sat_packet(port, SAT_PACKET_BYTES) &&
			    sat.now_ns >= from_ns)
				bytes += SAT_PACKET_BYTES;
			due -= SAT_PACKET_BYTES;
		}
	}
	return bytes * 8 / SETTLED / RATE_BITS;
}

static void print_row(const struct sat_judge *judge, unsigned bytes)
{
	static const struct {
		__u32 flows;
		double caps;
	} offers[] = {
		{100, 0.2}, {400, 0.2}, {1000, 0.2}, {4000, 0.2}, {10000, 0.04},
	};

	printf("| %s | %.1f | %.2f | %.2f |", judge->name, bytes / 1024.0,
	       sat_taken(judge, RATE_BITS, 512, 0.8),
	       sat_taken(judge, RATE_BITS, 2048, 3.2));
	for (size_t i = 0; i < TH_LEN(offers); i++)
		printf(" %.1f |",
		       passed(judge, offers[i].flows, offers[i].caps));
	puts("");
}

int main(void)
{
	static const unsigned clocks =
		NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH * sizeof(__u64);
	char name[64];
	const struct sat_judge judge = {name, table_begin, table_is_heavy};

	puts("What a simulation takes for heavy at 10 Mbit/s: build/tests/unit/table_sim.\n"
	     "Each direction takes so many KiB, with the clocks of flows. Percent of the packets of\n"
	     "small flows that are taken for heavy beside an attacker's flows, and how many caps of\n"
	     "datagrams in flows of so many caps each pass as small ones.\n"
	     "\n"
	     "| judge | KiB | taken, 512 x 0.8 | 2048 x 3.2 | passes, 100 x 0.2 | 400 x 0.2 | 1000 x 0.2 | 4000 x 0.2 | 10000 x 0.04 |\n"
	     "|---|---|---|---|---|---|---|---|---|");
	print_row(&sat_sketch,
		  NATRA_ROWS * (NATRA_SKETCH_WIDTH * 4 + NATRA_HEAVY_WIDTH) +
			  clocks);
	for (int keeps = 0; keeps < 2; keeps++) {
		table.keeps = keeps;
		for (table.sets = 64; table.sets <= SETS_MAX; table.sets *= 2) {
			(void)snprintf(name, sizeof(name),
				       "table of %u entries%s",
				       table.sets * WAYS,
				       keeps ? ", keeps heavy flows" : "");
			print_row(&judge, table.sets * WAYS * ENTRY_BYTES);
		}
	}
	return 0;
}
