/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads one program and runs packets through it by BPF_PROG_TEST_RUN. */
#ifndef TH_PROGRUN_H
#define TH_PROGRUN_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <stdint.h>

#include "state/bank.h"
#include "packet.h"
#include "policy/policy.h"
#include "policy/subnets.h"
#include "state/slot.h"
#include "state/stub.h"

#define TH_SKIP    77
#define TH_MS      1000000ULL
/* The coarse clock stands still for a tick, and HZ is at least 100. */
#define TH_TICK_NS (10 * TH_MS)
#define TH_SECOND  (1000 * TH_MS)

struct progrun {
	struct natra *n;
	struct bank bank; /* not pinned */
	struct slot slot; /* the descriptors of the bank */
	int ring_fd;      /* of events, not pinned */
	int table_fd;     /* of connections; -1: they are not measured */
	int trie_fd;      /* of classes and subnets; -1: there are none */
	struct stub stub;
	/* The prelude sets what a test run cannot set and then calls the
	 * program: it takes the type of a time stamp from mark, and the VLAN
	 * tag that the kernel keeps outside the packet from cb[0], and the packet's
	 * hash from cb[2]. With cb[1] it removes the VLAN tag that is in the packet. */
	int prelude_fd;
	int array_fd;
	bool through_prelude;
};

/* These values go to BPF_PROG_TEST_RUN; the kernel chooses those that are
 * zero. */
struct th_context {
	uint64_t tstamp;
	uint32_t tstamp_type; /* only through the prelude */
	uint32_t vlan_tci;    /* only through the prelude; 0 for no tag */
	uint32_t hash;        /* only through the prelude */
	/* This works only through the prelude. A test run gives a packet a socket
	 * of its address family, and one that comes with a VLAN tag in it a socket
	 * of none, which stands for no socket. */
	bool pop_vlan;
	uint32_t wire_len;
	uint32_t gso_segs;
	uint32_t gso_size;
	uint32_t priority;
	uint64_t group_mark; /* see take_mark(); only without the prelude */
};

struct th_result {
	int verdict;
	uint64_t tstamp;
	uint32_t priority;
	/* The coarse clock's last tick before the run, at which the program's time may
	 * still stand, and CLOCK_MONOTONIC around the run. */
	uint64_t coarse_ns, before_ns, after_ns;
	/* The counter that grew; the test fails unless exactly one did. */
	enum natra_counter counter;
	uint64_t bytes;
	uint64_t delay_ns;
	uint64_t group_mark;
	uint32_t len;
	uint8_t data[PACKET_MAX];
};

/* Exits with TH_SKIP and the reason if programs cannot be run here. */
void th_require_bpf(void);

/* Defines a main that does this, and calls setup and teardown for each test. */
#define TH_BPF_MAIN(setup, teardown)                                           \
	int main(void)                                                         \
	{                                                                      \
		th_require_bpf();                                              \
		return th_run_each(setup, teardown);                           \
	}

/* Returns whether stamps have a type, by which programs tell departure times from others;
 * before Linux 5.18 they have none. */
bool th_has_stamp_types(void);

/* How a program tells peers apart. */
struct th_peers {
	const struct subnets *subnets;
	bool is_to; /* the other end is the destination */
};

/* Loads a program. `peers` may be NULL: all are alike, and what is paced leaves the pod. Returns the library's error, whose text is then
 * in run->n. */
int th_start(struct progrun *run, const struct program_options *given,
	     const struct th_peers *peers, const struct natra_limits *limits);

/* These fail the running test on any error. */
void th_load(struct progrun *run, const struct program_options *options,
	     const struct natra_limits *limits);
void th_load_peers(struct progrun *run, const struct program_options *options,
		   const struct th_peers *peers,
		   const struct natra_limits *limits);
/* Returns a program of this kind for Ethernet, with the default sketch, for which all
 * peers are alike; th_close() frees it. */
struct progrun th_load_kind(enum stub_kind kind,
			    const struct natra_limits *limits);
void th_close(struct progrun *run);
void th_use_prelude(struct progrun *run);
/* Makes a program measure connections together with another one, which sees the other
 * direction. */
void th_share_table(struct progrun *run, const struct progrun *with);
/* Makes the test look at the slot of a class, or with 0 at that of the rest. */
void th_look_at_class(struct progrun *run, uint32_t number);
void th_send(struct progrun *run, const struct packet *packet,
	     const struct th_context *context, struct th_result *ret);
/* Does what th_send does, but returns the kernel's error instead of failing the test. ret
 * is set only if 0 is returned. */
int th_try_send(struct progrun *run, const struct packet *packet,
		const struct th_context *context, struct th_result *ret);

void th_counters(struct progrun *run, struct natra_counters *ret);
uint64_t th_now(void);
/* Returns the coarse clock, which some programs read. It may stand for longer than a
 * tick where the CPU is emulated. */
uint64_t th_coarse_now(void);

/* Returns a copy of the state map's value. */
struct natra_state th_read_state(struct progrun *run);
void th_write_state(struct progrun *run, const struct natra_state *state);

void th_set_limits(struct progrun *run, const struct natra_limits *limits);

/* Sets what was taken of the limits of packets and connections, by the theoretical arrival times of
 * their buckets. */
void th_set_gates(struct progrun *run, uint64_t packets_tat_ns,
		  uint64_t connections_tat_ns);

/*
 * Tests set the buckets' theoretical arrival times to make delays exact.
 * th_set_tat also sets the clocks of all flows, so that no flow has a part of
 * its share left.
 */
void th_set_tat(struct progrun *run, uint64_t tat_ns);
/* Makes a queue in which packets wait until then, and leaves the clocks of flows
 * as they were. */
void th_set_queue(struct progrun *run, uint64_t tat_ns);
uint64_t th_tat(struct progrun *run);
/* Sets the bucket of mice, and that of tiny ones among them. */
void th_set_mice_tat(struct progrun *run, uint64_t tat_ns);
void th_set_tiny_tat(struct progrun *run, uint64_t tat_ns);
uint64_t th_mice_tat(struct progrun *run);
/* Clears every cell of the sketch, so that all flows are new. */
void th_clear_sketch(struct progrun *run);
/* Clears every clock, as if no flow had ever been heavy. */
void th_clear_clocks(struct progrun *run);
/* Moves the time when flows were last heavy this many windows into the past. */
void th_age_heavy(struct progrun *run, unsigned int windows);

/* Returns limits of 1000 ns a byte with almost no burst. Every flow is
 * heavy. */
struct natra_limits th_limits(void);
#define TH_NS_PER_BYTE 1000ULL

#endif
