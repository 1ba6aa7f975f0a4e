/* SPDX-License-Identifier: BSD-2-Clause */
#include "fair_sim.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "natra_bucket.h"
#include "natra_classify.h"
#include "natra_fair.h"
#include "natra_hash.h"
#include "natra_sketch.h"
#include "rng.h"

#define RING          16384
#define GSO_SEGS      44
/* The size of a socket's buffer, and what the kernel adds to each packet in it. */
#define SOCKET_BYTES  212992
#define SKB_BYTES     790
#define RTO_NS        (200 * SIM_MS)
/* bpf_ktime_get_coarse_ns() on a kernel of 250 Hz. */
#define CLOCK_TICK_NS (4 * SIM_MS)

enum event_kind {
	EVENT_SEND,
	EVENT_ACK,    /* of the skb `seq` */
	EVENT_DEPART, /* fq has sent `segs` */
	EVENT_TIMER,
};

struct sim_event {
	uint64_t at_ns, order;
	uint64_t seq;
	uint32_t segs;
	uint16_t source;
	uint8_t kind;
};

struct sim_skb {
	uint64_t sent_ns;
	uint32_t segs;
	bool passed, marked;
};

struct verdict {
	bool passed, marked;
	uint64_t depart_ns;
};

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns < b->at_ns ||
	       (a->at_ns == b->at_ns && a->order < b->order);
}

static void push(struct sim *sim, struct sim_event e)
{
	size_t i = sim->events_len++;

	if (i == sim->events_max) {
		sim->events_max = sim->events_max ? 2 * sim->events_max : 1024;
		sim->events = realloc(sim->events,
				      sim->events_max * sizeof(*sim->events));
		assert(sim->events);
	}
	e.order = sim->event_seq++;
	while (i && earlier(&e, &sim->events[(i - 1) / 2])) {
		sim->events[i] = sim->events[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sim->events[i] = e;
}

static struct sim_event pop(struct sim *sim)
{
	struct sim_event *h = sim->events, first = h[0];
	struct sim_event last = h[--sim->events_len];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < sim->events_len) {
		if (child + 1 < sim->events_len &&
		    earlier(&h[child + 1], &h[child]))
			child++;
		if (!earlier(&h[child], &last))
			break;
		h[i] = h[child];
		i = child;
	}
	h[i] = last;
	return first;
}

/* This function and fair() do what charge_heavy() of natra.bpf.c did before fair shares,
 * and does since. */
static enum natra_counter one_bucket(struct sim *sim, uint64_t cost_ns,
				     bool ect, uint64_t *ret_turn)
{
	const struct natra_limits *l = &sim->limits;
	__u64 *tat = &sim->state->fair.tat_ns;
	uint64_t limit = sim->edt ? l->max_delay_ns : 100 * SIM_MS;
	uint64_t turn = natra_bucket_take(tat, sim->now_ns, l->rate.burst_ns,
					  cost_ns, limit);

	*ret_turn = turn;
	if (turn == NATRA_BUCKET_REFUSED)
		return NATRA_COUNT_DROPPED_RATE;
	if (turn <= sim->now_ns)
		return NATRA_COUNT_ADMITTED;
	if (sim->edt)
		return NATRA_COUNT_PACED;
	if (ect)
		return NATRA_COUNT_MARKED;
	*tat -= cost_ns;
	return NATRA_COUNT_DROPPED_RATE;
}

/* Its senders are of this machine: TCP, which is signalled by drops as by marks. */
static enum natra_counter hold(struct sim *sim, uint64_t now_ns,
			       uint64_t turn_ns, uint32_t k_more,
			       uint64_t cost_ns)
{
	const struct natra_limits *l = &sim->limits;
	enum natra_counter outcome = natra_fair_hold(l, now_ns, turn_ns, true);
	uint64_t target_ns = natra_fair_target(l, k_more, cost_ns, true);

	if (outcome != NATRA_COUNT_PACED || turn_ns - now_ns <= target_ns ||
	    !natra_fair_signals(turn_ns - now_ns - target_ns, true,
				NATRA_FAIR_WHOLE, NATRA_FAIR_LONG_BYTES,
				(uint32_t)th_rng(&sim->seed)))
		return outcome;
	return NATRA_COUNT_MARKED;
}

static enum natra_counter fair(struct sim *sim, uint64_t hash, uint64_t cost_ns,
			       bool ect, uint64_t *ret_turn)
{
	const struct natra_limits *l = &sim->limits;
	struct natra_fair *f = &sim->state->fair;
	uint64_t now = sim->now_ns - sim->now_ns % CLOCK_TICK_NS;
	enum natra_counter outcome;
	struct natra_span span;
	struct natra_turn turn;
	bool forgiven;

	natra_fair_span(f, l, now, cost_ns, sim->edt, &span);
	if (now >> NATRA_FAIR_TICK_SHIFT > f->tick)
		natra_fair_adapt(f, sim->now_ns,
				 natra_fair_latest(f, l, sim->now_ns, sim->edt),
				 l->fair_shift, 1);
	natra_fair_turn(f, sim->state->clocks, hash, &span, l->fair_shift,
			&turn);
	*ret_turn = turn.turn_ns;
	if (natra_fair_is_near(l, now, turn.turn_ns, sim->edt))
		now = sim->now_ns;
	if (sim->edt)
		outcome = hold(sim, now, turn.turn_ns, f->k_more, cost_ns);
	else
		outcome = natra_fair_police(
			l, now, turn.turn_ns,
			natra_fair_chance(l, now, turn.turn_ns),
			(uint32_t)th_rng(&sim->seed));
	if (outcome == NATRA_COUNT_MARKED && !ect)
		outcome = NATRA_COUNT_DROPPED_RATE;
	if (outcome == NATRA_COUNT_DROPPED_RATE && !sim->edt)
		natra_fair_relieve(sim->state->clocks, hash, l, f->k_more, now,
				   turn.turn_ns, &sim->state->forgiven_tat_ns);
	if (outcome == NATRA_COUNT_DROPPED_RATE ||
	    outcome == NATRA_COUNT_DROPPED_HORIZON)
		return outcome;
	forgiven =
		!sim->edt && outcome == NATRA_COUNT_MARKED &&
		natra_fair_forgive(&sim->state->forgiven_tat_ns, now, cost_ns);
	natra_fair_charge(f, &span, &turn, cost_ns, forgiven);
	return outcome;
}

static void count(struct sim *sim, struct sim_source *s, uint32_t bytes,
		  const struct verdict *v, bool heavy)
{
	uint64_t bin = (v->depart_ns - sim->since_ns) / SIM_BIN_NS;
	uint64_t delay = v->depart_ns - sim->now_ns;

	s->offered++;
	s->dropped += !v->passed;
	s->marked += v->marked;
	if (!v->passed)
		return;
	s->reordered += heavy && v->depart_ns < s->last_depart_ns;
	s->last_depart_ns = v->depart_ns;
	if (s->kind != SIM_RR) {
		s->delay_sum_ns += delay;
		s->delays++;
		if (delay > s->delay_max_ns)
			s->delay_max_ns = delay;
	}
	s->passed_bytes += bytes;
	if (bin < SIM_BINS)
		sim->bins[bin] += bytes;
}

static struct verdict judge(struct sim *sim, struct sim_source *s,
			    uint32_t bytes)
{
	const struct natra_limits *l = &sim->limits;
	uint32_t port = (uint32_t)(s - sim->sources) + 1;
	uint64_t hash = natra_hash_v4(sim->keys, 1, 2, port * 7919,
				      natra_hash_kind(4, 6, 0, 0));
	uint32_t epoch = natra_epoch(sim->now_ns), units = natra_units(bytes);
	struct verdict v = {.passed = true, .depart_ns = sim->now_ns};
	enum natra_counter outcome = NATRA_COUNT_MICE;
	uint64_t turn = 0, cost;
	uint32_t estimate = natra_sketch_add(
		sim->state->sketch, NATRA_SKETCH_WIDTH - 1, hash, units, epoch);
	bool heavy = natra_is_heavy(sim->state->heavy, hash, estimate, units,
				    l->enter_units, l->leave_units, epoch);

	if (heavy || l->pass == NATRA_PASS_OFF) {
		cost = natra_cost_ns(&l->rate, bytes, th_rng(&sim->seed));
		outcome = sim->one_bucket
				  ? one_bucket(sim, cost, s->ect, &turn)
				  : fair(sim, hash, cost, s->ect, &turn);
	}
	v.passed = outcome != NATRA_COUNT_DROPPED_RATE &&
		   outcome != NATRA_COUNT_DROPPED_HORIZON;
	v.marked = outcome == NATRA_COUNT_MARKED && s->ect;
	if (sim->edt && v.passed && turn > sim->now_ns)
		v.depart_ns = turn;
	count(sim, s, bytes, &v, heavy);
	return v;
}

static void at(struct sim *sim, struct sim_source *s, uint64_t at_ns,
	       enum event_kind kind, uint64_t seq, uint32_t segs)
{
	push(sim, (struct sim_event){
			  .at_ns = at_ns,
			  .seq = seq,
			  .segs = segs,
			  .source = (uint16_t)(s - sim->sources),
			  .kind = (uint8_t)kind,
		  });
}

static void leave_fq(struct sim *sim, struct sim_source *s,
		     const struct verdict *v, uint32_t segs)
{
	if (!s->local || v->depart_ns <= sim->now_ns)
		return;
	s->waiting += segs;
	at(sim, s, v->depart_ns, EVENT_DEPART, 0, segs);
}

static bool stopped(const struct sim *sim, const struct sim_source *s)
{
	return s->stop_ns && sim->now_ns - sim->begin_ns >= s->stop_ns;
}

static uint32_t in_buffer(const struct sim_source *s)
{
	return s->waiting * (s->bytes + SKB_BYTES);
}

/* The kernel wakes a sender of datagrams when half of its socket's buffer is free. */
static bool wakes(const struct sim_source *s)
{
	return !s->next_ns && in_buffer(s) < SOCKET_BYTES / 2;
}

static void send_udp(struct sim *sim, struct sim_source *s)
{
	uint64_t period =
		(uint64_t)(s->bytes * 8e9 / (s->caps * (double)sim->rate_bits));
	struct verdict v;

	if (stopped(sim, s))
		return;
	if (s->local && in_buffer(s) >= SOCKET_BYTES) {
		s->next_ns = 0; /* blocked */
		return;
	}
	v = judge(sim, s, s->bytes);
	if (v.passed)
		leave_fq(sim, s, &v, 1);
	s->next_ns = sim->now_ns + period * 9 / 10 +
		     th_rng(&sim->seed) % (period / 5 + 1);
	at(sim, s, s->next_ns, EVENT_SEND, 0, 0);
}

static void send_rr(struct sim *sim, struct sim_source *s)
{
	uint64_t period =
		(uint64_t)(s->bytes * 8e9 / (s->caps * (double)sim->rate_bits));
	uint64_t answer, delay;
	struct verdict v;

	if (stopped(sim, s))
		return;
	if (!s->tries)
		s->asked_ns = sim->now_ns;
	v = judge(sim, s, s->bytes);
	if (!v.passed) {
		at(sim, s,
		   sim->now_ns + (RTO_NS << (s->tries < 5 ? s->tries : 5)),
		   EVENT_SEND, 0, 0);
		s->tries++;
		return;
	}
	s->tries = 0;
	delay = v.depart_ns - s->asked_ns;
	s->delay_sum_ns += delay;
	s->delays++;
	if (delay > s->delay_max_ns)
		s->delay_max_ns = delay;
	answer = v.depart_ns + s->rtt_ns;
	s->next_ns += period * 9 / 10 + th_rng(&sim->seed) % (period / 5 + 1);
	if (s->next_ns < answer)
		s->next_ns = answer;
	at(sim, s, s->next_ns, EVENT_SEND, 0, 0);
}

/* Returns what tcp_tso_autosize() would: the bytes that the pacing rate sends in 1 ms,
 * and more if the round trip is short. */
static uint32_t gso_goal(const struct sim_source *s)
{
	double pace = s->cwnd * SIM_SEGMENT / s->srtt_ns * 1e9 *
		      (s->cwnd < s->ssthresh / 2 ? 2 : 1.2);
	uint64_t r = s->rtt_ns / 1000 >> 9;
	double bytes = pace / 1024 + (r < 32 ? 65536 >> r : 0);
	double segs = bytes / 1448;

	if (segs > s->gso_max)
		return s->gso_max;
	return segs < 2 ? 2 : (uint32_t)segs;
}

static void arm(struct sim *sim, struct sim_source *s)
{
	uint64_t rto = RTO_NS + (uint64_t)s->srtt_ns;

	if (s->first_seq == s->next_seq)
		return;
	if (s->tries)
		rto <<= s->tries < 6 ? s->tries : 6;
	else if (!s->probed && s->inflight > 1)
		rto = (uint64_t)(2 * s->srtt_ns) + 2 * SIM_MS;
	/* The kernel's timers are late by up to 8 ms at this distance. */
	s->timer_ns = sim->now_ns + rto + th_rng(&sim->seed) % (8 * SIM_MS);
	at(sim, s, s->timer_ns, EVENT_TIMER, 0, 0);
}

static void send_skb(struct sim *sim, struct sim_source *s, uint32_t segs)
{
	struct sim_skb *skb = &s->skbs[s->next_seq % RING];
	struct verdict v = judge(sim, s, segs * SIM_SEGMENT);

	assert(s->next_seq - s->first_seq < RING);
	*skb = (struct sim_skb){
		.sent_ns = sim->now_ns,
		.segs = segs,
		.passed = v.passed,
		.marked = v.marked,
	};
	s->inflight += segs;
	if (v.passed) {
		uint64_t ack = v.depart_ns + s->rtt_ns +
			       th_rng(&sim->seed) % (s->rtt_ns / 20 + 1);

		if (ack <= s->last_ack_ns)
			ack = s->last_ack_ns + 1;
		s->last_ack_ns = ack;
		at(sim, s, ack, EVENT_ACK, s->next_seq, 0);
		leave_fq(sim, s, &v, segs);
	}
	s->next_seq++;
}

static void send_tcp(struct sim *sim, struct sim_source *s)
{
	bool sent = false;

	if (stopped(sim, s))
		return;
	while (s->inflight + 1 <= s->cwnd) {
		uint32_t goal = gso_goal(s);
		uint32_t room = (uint32_t)s->cwnd - s->inflight;
		uint32_t segs = room < goal ? room : goal;

		if (segs < goal && s->inflight && segs < s->cwnd / 3)
			break; /* wait for more, as tcp_tso_should_defer */
		if (s->local && s->waiting >= 2 * goal)
			break;
		send_skb(sim, s, segs);
		sent = true;
	}
	if (sent)
		arm(sim, s);
}

static void reduce(struct sim *sim, struct sim_source *s)
{
	double beta = s->cubic ? 0.7 : 0.5;

	s->w_max = s->cwnd;
	s->ssthresh = s->cwnd * beta > 2 ? s->cwnd * beta : 2;
	s->cwnd = s->ssthresh;
	s->epoch_ns = sim->now_ns;
	s->w_est = s->cwnd;
	s->recovery_seq = s->next_seq;
}

static void grow(struct sim *sim, struct sim_source *s, uint32_t segs)
{
	double t, k, target;

	if (s->cwnd > 2.0 * (s->inflight + segs) + 2)
		return; /* not limited by it */
	if (s->cwnd < s->ssthresh) {
		s->cwnd += segs;
		return;
	}
	if (!s->cubic) {
		s->cwnd += segs / s->cwnd;
		return;
	}
	t = (double)(sim->now_ns - s->epoch_ns) / 1e9 + s->srtt_ns / 1e9;
	k = cbrt(s->w_max * 0.3 / 0.4);
	target = 0.4 * (t - k) * (t - k) * (t - k) + s->w_max;
	s->w_est += 3 * 0.3 / 1.7 * segs / s->cwnd;
	if (target < s->w_est)
		target = s->w_est;
	if (target > 1.5 * s->cwnd)
		target = 1.5 * s->cwnd;
	if (target > s->cwnd)
		s->cwnd += (target - s->cwnd) / s->cwnd * segs;
}

static void acked(struct sim *sim, struct sim_source *s, uint64_t seq)
{
	struct sim_skb *skb;
	bool lost = false;

	if (seq < s->first_seq)
		return; /* it was given up before */
	while (s->first_seq < seq) {
		lost |= s->first_seq >= s->recovery_seq;
		s->inflight -= s->skbs[s->first_seq++ % RING].segs;
	}
	skb = &s->skbs[s->first_seq++ % RING];
	s->inflight -= skb->segs;
	s->srtt_ns += ((double)(sim->now_ns - skb->sent_ns) - s->srtt_ns) / 8;
	s->tries = 0;
	s->probed = false;
	if (lost || (skb->marked && seq >= s->recovery_seq))
		reduce(sim, s);
	else if (seq >= s->recovery_seq)
		grow(sim, s, skb->segs);
	send_tcp(sim, s);
	arm(sim, s);
}

static void timer(struct sim *sim, struct sim_source *s)
{
	if (s->timer_ns != sim->now_ns || s->first_seq == s->next_seq)
		return;
	for (uint64_t i = s->first_seq; i < s->next_seq; i++) {
		if (s->skbs[i % RING].passed)
			return; /* its acknowledgement is on the way */
	}
	if (!s->probed && !s->tries && s->inflight > 1) {
		s->probed = true;
		send_skb(sim, s, 1);
		arm(sim, s);
		return;
	}
	s->tries++;
	s->w_max = s->cwnd;
	s->ssthresh = s->cwnd * 0.7 > 2 ? s->cwnd * 0.7 : 2;
	s->cwnd = 1;
	s->inflight = 0;
	s->first_seq = s->recovery_seq = s->next_seq;
	s->epoch_ns = sim->now_ns;
	s->w_est = 1;
	if (stopped(sim, s))
		return;
	send_skb(sim, s, 1);
	arm(sim, s);
}

static void handle(struct sim *sim, const struct sim_event *e)
{
	struct sim_source *s = &sim->sources[e->source];

	switch ((enum event_kind)e->kind) {
	case EVENT_SEND:
		if (s->kind == SIM_UDP)
			send_udp(sim, s);
		else if (s->kind == SIM_RR)
			send_rr(sim, s);
		else
			send_tcp(sim, s);
		break;
	case EVENT_ACK:
		acked(sim, s, e->seq);
		break;
	case EVENT_TIMER:
		timer(sim, s);
		break;
	case EVENT_DEPART:
		s->waiting -= e->segs;
		if (s->kind == SIM_TCP)
			send_tcp(sim, s);
		else if (wakes(s))
			send_udp(sim, s);
		break;
	}
}

void sim_begin(struct sim *sim, uint64_t rate_bits,
	       const struct natra_limits *l, bool edt, uint64_t begin_ns,
	       struct sim_source *sources, size_t len)
{
	*sim = (struct sim){
		.limits = *l,
		.rate_bits = rate_bits,
		.now_ns = begin_ns,
		.begin_ns = begin_ns,
		.since_ns = begin_ns,
		.seed = 1,
		.edt = edt,
		.sources = sources,
		.sources_len = len,
	};
	sim->state = calloc(1, sizeof(*sim->state));
	assert(sim->state);
	for (size_t i = 0; i < NATRA_HASH_KEYS; i++)
		sim->keys[i] = th_rng(&sim->seed);
	for (size_t i = 0; i < len; i++) {
		struct sim_source *s = &sources[i];

		if (!s->gso_max)
			s->gso_max = GSO_SEGS;
		s->cwnd = 10;
		s->ssthresh = 1e9;
		s->srtt_ns = (double)s->rtt_ns;
		s->next_ns = begin_ns + s->start_ns;
		if (s->kind == SIM_TCP) {
			s->skbs = calloc(RING, sizeof(*s->skbs));
			assert(s->skbs);
		}
		at(sim, s, s->next_ns, EVENT_SEND, 0, 0);
	}
}

void sim_run(struct sim *sim, uint64_t until_ns)
{
	while (sim->events_len &&
	       sim->events[0].at_ns <= sim->begin_ns + until_ns) {
		struct sim_event e = pop(sim);

		sim->now_ns = e.at_ns;
		handle(sim, &e);
	}
	sim->now_ns = sim->begin_ns + until_ns;
}

void sim_reset(struct sim *sim)
{
	uint64_t bin = (sim->now_ns - sim->since_ns) / SIM_BIN_NS;

	/* A packet that has a later departure time counts at that time. */
	for (size_t i = 0; i < SIM_BINS; i++)
		sim->bins[i] = i + bin < SIM_BINS ? sim->bins[i + bin] : 0;
	sim->since_ns = sim->now_ns;
	for (size_t i = 0; i < sim->sources_len; i++) {
		struct sim_source *s = &sim->sources[i];

		s->passed_bytes = s->offered = s->dropped = s->marked = 0;
		s->delay_sum_ns = s->delay_max_ns = s->delays = 0;
	}
}

void sim_end(struct sim *sim)
{
	for (size_t i = 0; i < sim->sources_len; i++)
		free(sim->sources[i].skbs);
	free(sim->state);
	free(sim->events);
}
