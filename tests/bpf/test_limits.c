/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check limits that are set at load and limits that change later. */
#include "cm.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progrun.h"
#include "util/cleanup.h"

/* The verifier gives up at a million instructions, and takes about a millisecond for
 * a thousand. Two thirds of them are headers that are read in place, which takes half the
 * time of a packet that a stranger makes as slow as he can. */
#define VERIFIED_MAX 40000

static struct natra_config read_config(struct progrun *run)
{
	struct natra_config config;

	assert_int_equal(bpf_map_lookup_elem(run->slot.config_fd,
					     &run->slot.index, &config),
			 0);
	return config;
}

static enum natra_counter send(struct progrun *run, uint16_t port)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, port, 0, 1514);
	th_send(run, &p, NULL, &r);
	return r.counter;
}

TH_TEST(limits_given_at_load_are_in_force)
{
	struct natra_limits limits = th_limits(), back;
	struct progrun run;
	struct natra_config config;

	limits.max_delay_ns = 12345;
	run = th_load_kind(STUB_RX, &limits);
	config = read_config(&run);
	assert_int_equal(config.active & 1, 0);
	assert_memory_equal(&config.limits[0], &limits, sizeof(limits));
	assert_int_equal(slot_get_limits(run.n, &run.slot, &back), 0);
	assert_memory_equal(&back, &limits, sizeof(limits));
	th_close(&run);
}

TH_TEST(change_goes_to_the_other_limits_and_then_the_index)
{
	struct natra_limits first = th_limits(), next = first, back;
	struct progrun run = th_load_kind(STUB_RX, &first);
	struct natra_config config = read_config(&run);
	const uint64_t first_active = config.active;

	for (unsigned int i = 1; i <= 5; i++) {
		const struct natra_limits before = next;

		next.max_delay_ns = i;
		th_set_limits(&run, &next);
		config = read_config(&run);
		assert_int_equal(config.active, first_active + i);
		assert_memory_equal(&config.limits[i & 1], &next, sizeof(next));
		assert_memory_equal(&config.limits[(i & 1) ^ 1], &before,
				    sizeof(before));
		assert_int_equal(slot_get_limits(run.n, &run.slot, &back), 0);
		assert_memory_equal(&back, &next, sizeof(next));
	}
	th_close(&run);
}

TH_TEST(change_is_in_force_for_the_next_packet)
{
	const struct natra_limits unlimited = {0};
	struct natra_limits limits = th_limits();
	struct progrun run = th_load_kind(STUB_RX, &unlimited);
	struct natra_counters counters;

	assert_int_equal(send(&run, 1), NATRA_COUNT_UNLIMITED);
	th_set_limits(&run, &limits);
	assert_int_equal(send(&run, 1), NATRA_COUNT_ADMITTED);
	limits.pass = NATRA_PASS_FREE;
	th_set_limits(&run, &limits);
	assert_int_equal(send(&run, 1), NATRA_COUNT_MICE);
	th_set_limits(&run, &unlimited);
	assert_int_equal(send(&run, 1), NATRA_COUNT_UNLIMITED);
	/* The counters keep what was counted before. */
	th_counters(&run, &counters);
	assert_int_equal(counters.count[NATRA_COUNT_UNLIMITED].packets, 2);
	assert_int_equal(counters.count[NATRA_COUNT_MICE].packets, 1);
	assert_int_equal(counters.count[NATRA_COUNT_ADMITTED].packets, 1);
	th_close(&run);
}

struct flipper {
	struct progrun *run;
	struct natra_limits limits[2];
	atomic_bool stop;
	unsigned int flips;
	int result;
};

static void *flip(void *arg)
{
	struct flipper *f = arg;
	while (!atomic_load(&f->stop) && f->result == 0) {
		f->flips++;
		f->result = slot_set_limits(f->run->n, &f->run->slot,
					    &f->limits[f->flips & 1]);
	}
	return NULL;
}

/* A mixture of the old and the new limits would charge neither 1500 nor
 * 3000000000 ns. */
TH_TEST(packet_sees_the_old_limits_or_the_new_ones)
{
	struct flipper f = {.limits = {th_limits(), th_limits()}};
	struct progrun run;
	unsigned int seen[2] = {0};
	pthread_t thread;
	uint64_t tat;

	f.limits[0].rate = policy_rate(8000000000, 1);
	f.limits[1].rate = policy_rate(4000, 1);
	f.limits[0].max_delay_ns = f.limits[1].max_delay_ns = INT64_MAX;
	run = th_load_kind(STUB_EDT, &f.limits[0]);
	f.run = &run;
	tat = th_now() + 3600 * TH_SECOND;
	th_set_tat(&run, tat);
	assert_int_equal(pthread_create(&thread, NULL, flip, &f), 0);
	for (int i = 0; i < 5000; i++) {
		uint64_t before = tat, cost;

		assert_int_equal(send(&run, 1), NATRA_COUNT_PACED);
		tat = th_tat(&run);
		cost = tat - before;
		if (cost == 1514)
			seen[0]++;
		else if (cost == 1514ULL * 2000000)
			seen[1]++;
		else
			fail_msg("a packet cost %lu ns", (unsigned long)cost);
	}
	atomic_store(&f.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.result, 0);
	assert_true(f.flips > 100);
	assert_true(seen[0] > 0 && seen[1] > 0);
	th_close(&run);
}

/* At 1 bit/s a packet takes 12000 s. This debt must not matter at 1 Gbit/s. */
TH_TEST(higher_rate_frees_at_once)
{
	static const enum stub_kind kinds[] = {STUB_RX, STUB_EDT};
	struct natra_limits slow = th_limits(), fast = slow;

	slow.rate = policy_rate(1, 1);
	fast.rate = policy_rate(1000000000, 1000000);
	fast.max_delay_ns = 2 * TH_SECOND;
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		struct progrun run = th_load_kind(kinds[i], &slow);
		enum natra_counter refused =
			kinds[i] == STUB_EDT ? NATRA_COUNT_DROPPED_HORIZON
					     : NATRA_COUNT_DROPPED_RATE;

		assert_int_equal(send(&run, 1), NATRA_COUNT_ADMITTED);
		assert_int_equal(send(&run, 1), refused);
		assert_true(th_tat(&run) > th_now() + 11000 * TH_SECOND);
		th_set_limits(&run, &fast);
		/* The packet is not dropped, because it leaves within the
		 * horizon of 2 s. */
		if (kinds[i] == STUB_EDT)
			assert_int_equal(send(&run, 1), NATRA_COUNT_PACED);
		else
			(void)send(&run, 1);
		assert_true(th_tat(&run) <= th_now() + 3 * TH_SECOND);
		/* A debt that was made at the new rate still counts. */
		th_set_tat(&run, th_now() + 60 * TH_SECOND);
		assert_int_equal(send(&run, 1), refused);
		th_close(&run);
	}
}

static uint64_t latest_ns(struct progrun *run)
{
	return th_read_state(run).fair.latest_ns;
}

/* Whoever may change a limit a little would have a packet for each change. */
TH_TEST(no_change_forgives_a_debt)
{
	static const enum stub_kind kinds[] = {STUB_RX, STUB_EDT};

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		struct natra_limits limits = th_limits();
		struct progrun run = th_load_kind(kinds[i], &limits);
		uint64_t tat_ns;

		(void)send(&run, 1);
		th_set_queue(&run, th_now() + 60 * TH_SECOND);
		/* Four times the rate pays four times as fast. */
		limits.rate.mult /= 4;
		th_set_limits(&run, &limits);
		(void)send(&run, 1);
		assert_in_range(th_tat(&run), th_now() + 14 * TH_SECOND,
				th_now() + 20 * TH_SECOND);
		assert_true(latest_ns(&run) <= th_now() + 20 * TH_SECOND);
		/* What was owed at a higher rate than the next one takes the time that it
		 * took then, also when the rate is higher again. */
		limits.rate.mult /= 100;
		th_set_limits(&run, &limits);
		(void)send(&run, 1);
		tat_ns = th_now() + 60 * TH_SECOND;
		th_set_queue(&run, tat_ns);
		for (unsigned int change = 1; change < 10; change++) {
			limits.rate.mult = change % 2
						   ? limits.rate.mult * 100 + 1
						   : limits.rate.mult / 100;
			limits.max_delay_ns = change * TH_SECOND;
			th_set_limits(&run, &limits);
			(void)send(&run, 1);
			assert_in_range(th_tat(&run), tat_ns - TH_SECOND,
					tat_ns + TH_SECOND);
		}
		th_close(&run);
	}
}

static uint32_t verified(struct progrun *run)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	const uint32_t zero = 0;
	uint32_t id;
	int fd;

	assert_int_equal(bpf_map_lookup_elem(run->bank.programs_fd, &zero, &id),
			 0);
	fd = bpf_prog_get_fd_by_id(id);
	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	(void)close(fd);
	return info.verified_insns;
}

static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* One program polices in both directions, and another one holds as well. */
TH_TEST(every_program_is_verified_fast)
{
	static const enum stub_kind kinds[] = {STUB_RX, STUB_EDT};
	const struct natra_limits limits = th_limits();
	int over = 0;

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		double least = 1e9;
		uint32_t insns = 0;

		for (int round = 0; round < 5; round++) {
			double begin = cpu_ms();
			struct progrun run = th_load_kind(kinds[i], &limits);
			double took = cpu_ms() - begin;

			insns = verified(&run);
			least = took < least ? took : least;
			th_close(&run);
		}
		print_message(
			"%s: %u instructions verified, %.1f ms of CPU to load a bank and a stub, the least of 5\n",
			i ? "holds" : "polices", insns, least);
		assert_true(insns > 0);
		over += insns > VERIFIED_MAX;
	}
	assert_int_equal(over, 0);
}

TH_TEST(counters_are_those_of_each_load)
{
	const struct natra_limits unlimited = {0};
	struct progrun a = th_load_kind(STUB_RX, &unlimited);
	struct progrun b = th_load_kind(STUB_TX, &unlimited);
	struct natra_counters counters;

	assert_int_equal(send(&a, 1), NATRA_COUNT_UNLIMITED);
	th_counters(&b, &counters);
	assert_int_equal(counters.count[NATRA_COUNT_UNLIMITED].packets, 0);
	assert_int_not_equal(a.stub.prog_id, b.stub.prog_id);
	th_close(&a);
	th_close(&b);
}

TH_TEST(keys_are_new_at_each_load)
{
	const struct natra_limits limits = th_limits();
	uint32_t tag[2];

	for (int i = 0; i < 2; i++) {
		struct progrun run = th_load_kind(STUB_RX, &limits);
		struct natra_flow_entry flows[NATRA_FLOWS];

		(void)send(&run, 1);
		assert_int_equal(slot_flows(run.n, &run.slot, flows), 0);
		tag[i] = 0;
		for (int j = 0; j < NATRA_FLOWS; j++)
			tag[i] |= flows[j].tag;
		th_close(&run);
	}
	assert_int_not_equal(tag[0], 0);
	assert_int_not_equal(tag[0], tag[1]);
}

TH_BPF_MAIN(NULL, NULL)
