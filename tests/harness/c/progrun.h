/* SPDX-License-Identifier: BSD-2-Clause */
/* One loaded program and packets through it, by BPF_PROG_TEST_RUN. */
#ifndef TH_PROGRUN_H
#define TH_PROGRUN_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <stdint.h>

#include "state/bank.h"
#include "packet.h"
#include "policy/policy.h"
#include "state/slot.h"
#include "state/stub.h"

#define TH_SKIP    77
#define TH_MS      1000000ULL
/* The longest that the clock of the last tick may be behind: HZ is 100 or more. */
#define TH_TICK_NS (10 * TH_MS)
#define TH_SECOND  (1000 * TH_MS)

struct progrun {
	struct natra *n;
	struct bank bank; /* not pinned */
	struct slot slot; /* the descriptors of the bank */
	struct stub stub;
	/*
	 * Sets what a test run cannot set and calls the program: the type of a
	 * stamp from mark, a VLAN tag beside the packet from cb[0].
	 */
	int prelude_fd;
	int array_fd;
	bool through_prelude;
};

/* What BPF_PROG_TEST_RUN takes; zero is left to the kernel. */
struct th_context {
	uint64_t tstamp;
	uint32_t tstamp_type; /* only through the prelude */
	uint32_t vlan_tci;    /* the same; 0: no tag */
	uint32_t wire_len;
	uint32_t gso_segs;
	uint32_t gso_size;
	uint32_t priority;
};

struct th_result {
	int verdict;
	uint64_t tstamp;
	uint32_t priority;
	uint64_t before_ns, after_ns; /* CLOCK_MONOTONIC around the run */
	/* The counter that grew; a run fails unless it is exactly one. */
	enum natra_counter counter;
	uint64_t bytes;
	uint64_t delay_ns;
	uint32_t len;
	uint8_t data[PACKET_MAX];
};

/* Exits with TH_SKIP and the reason if programs cannot be run here. */
void th_require_bpf(void);

/* The library's error, and its text in run->n. */
int th_start(struct progrun *run, const struct program_options *options,
	     const struct natra_limits *limits);

/* These fail the running test on any error. */
void th_load(struct progrun *run, const struct program_options *options,
	     const struct natra_limits *limits);
/* Returns a program of this kind for Ethernet, with the default sketch and no
 * subnets; th_close() frees it. */
struct progrun th_load_kind(enum program_kind kind,
			    const struct natra_limits *limits);
void th_close(struct progrun *run);
void th_use_prelude(struct progrun *run);
void th_send(struct progrun *run, const struct packet *packet,
	     const struct th_context *context, struct th_result *ret);
/* The kernel's error instead of a failure; ret is set for 0 only. */
int th_try_send(struct progrun *run, const struct packet *packet,
		const struct th_context *context, struct th_result *ret);

void th_counters(struct progrun *run, struct natra_counters *ret);
uint64_t th_now(void);

/* The whole value of the state map, of *ret_len bytes, to be freed. */
struct natra_state *th_read_state(struct progrun *run, size_t *ret_len);
void th_write_state(struct progrun *run, const struct natra_state *state);

/* The buckets, which tests set to make delays exact. th_set_tat sets the clocks of
 * all flows, too: none has a part of its share left. */
void th_set_tat(struct progrun *run, uint64_t tat_ns);
/* The same, of a queue in which packets wait until then; the clocks of flows are
 * as they were. */
void th_set_queue(struct progrun *run, uint64_t tat_ns);
uint64_t th_tat(struct progrun *run);
void th_set_mice_tat(struct progrun *run, uint64_t tat_ns);
uint64_t th_mice_tat(struct progrun *run);
/* Every cell of the sketch becomes zero: all flows are new. */
void th_clear_sketch(struct progrun *run);
/* As if no flow had ever been heavy. */
void th_clear_clocks(struct progrun *run);
/* As if it was that long ago that flows were heavy. */
void th_age_heavy(struct progrun *run, unsigned int windows);

/* 1000 ns a byte, no burst to speak of, every flow heavy. */
struct natra_limits th_limits(void);
#define TH_NS_PER_BYTE 1000ULL

#endif
