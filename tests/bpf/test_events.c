/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check which packets make the programs report an event, how often, and that
 * a reader gets each one, or learns how many it missed. */
#include "cm.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "natra_classify.h"
#include "natra_events.h"
#include "progrun.h"
#include "state/ring.h"
#include "util/cleanup.h"

#define ECT0  2
#define LEN   1000
#define UNITS 40 /* a flow is heavy with its third packet */
#define FAR   (3600 * TH_SECOND)

static struct progrun run;
static struct ring_view view;
static uint64_t lost, begin_ns;

static void load(enum stub_kind kind, enum natra_pass pass)
{
	struct natra_limits limits = th_limits();
	void *map;

	limits.pass = pass;
	limits.enter_units = UNITS;
	limits.leave_units = UNITS / 8;
	limits.reserve_ns = 0;
	run = th_load_kind(kind, &limits);
	map = mmap(NULL, sizeof(*view.map), PROT_READ, MAP_SHARED, run.ring_fd,
		   0);
	assert_true(map != MAP_FAILED);
	view = (struct ring_view){.map = map};
	lost = 0;
	begin_ns = th_now();
}

TH_STEP(load_police, load(STUB_RX, NATRA_PASS_FREE))
TH_STEP(load_edt, load(STUB_EDT, NATRA_PASS_FREE))
TH_STEP(load_strict, load(STUB_EDT, NATRA_PASS_STRICT))
TH_STEP(load_strict_police, load(STUB_TX, NATRA_PASS_STRICT))
static int unload(void **state)
{
	ring_close(&view);
	th_close(&run);
	return 0;
}

static struct th_result send_with_tos(uint16_t port, uint8_t tos)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, port, tos, LEN);
	th_send(&run, &p, NULL, &r);
	return r;
}

static struct th_result send_tcp(uint16_t port)
{
	return send_with_tos(port, 0);
}

/* Waits until a window has just begun, so that what follows is all in one. */
static void await_window(void)
{
	const uint64_t left = (1ULL << NATRA_WINDOW_SHIFT) -
			      th_now() % (1ULL << NATRA_WINDOW_SHIFT);
	const struct timespec pause = {.tv_sec = (time_t)(left / TH_SECOND),
				       .tv_nsec = (long)(left % TH_SECOND)};

	(void)nanosleep(&pause, NULL);
	/* Programs see the clock of the last tick. */
	(void)nanosleep(&(struct timespec){.tv_nsec = TH_TICK_NS}, NULL);
}

/* The next event is this one, of the flow with this port, and of this test. */
static void is_told(uint32_t reason, uint16_t port)
{
	struct natra_event_entry event;
	uint16_t ports[2];

	assert_int_equal(ring_read(&view, &event, &lost), 1);
	assert_int_equal(lost, 0);
	assert_int_equal(event.reason, reason);
	assert_int_equal(event.owner, 1);
	assert_int_equal(event.class_number, 0);
	assert_in_range(event.time_ns, begin_ns, th_now());
	memcpy(ports, &event.tuple.ports, sizeof(ports));
	assert_int_equal(ntohs(ports[0]), port);
	assert_int_equal(event.tuple.version, 4);
	assert_int_equal(event.tuple.protocol, 6);
}

static void no_more_is_told(void)
{
	struct natra_event_entry event;

	assert_int_equal(ring_read(&view, &event, &lost), 0);
	assert_int_equal(lost, 0);
}

static void counts(uint64_t told, uint64_t untold)
{
	struct natra_state state = th_read_state(&run);

	assert_int_equal(state.events_reported, told);
	assert_int_equal(state.events_suppressed, untold);
}

/* What was sent since then is reported as one event of this flow, or, on a busy
 * machine, as one for each window that has begun meanwhile. */
static void is_told_once(uint32_t reason, uint16_t port, uint64_t since_ns)
{
	const uint64_t windows =
		natra_event_window(th_now()) - natra_event_window(since_ns);
	struct natra_event_entry event;
	uint64_t more = 0;

	is_told(reason, port);
	while (ring_read(&view, &event, &lost) == 1) {
		assert_int_equal(event.reason, reason);
		more++;
	}
	assert_in_range(more, 0, windows);
}

/* No flow is known any more. With `limiter`, the limiter begins as that of a new
 * attachment. */
static void forget(bool limiter)
{
	struct natra_state state = th_read_state(&run);

	memset(state.heavy, 0, sizeof(state.heavy));
	memset(state.sketch, 0, sizeof(state.sketch));
	if (limiter)
		memset(state.event_tat, 0, sizeof(state.event_tat));
	th_write_state(&run, &state);
}

/* Sends until the flow is heavy. */
static void make_heavy(uint16_t port)
{
	while (send_tcp(port).counter == NATRA_COUNT_MICE)
		;
}

TH_TEST_AFTER(a_flow_becomes_heavy_once, load_police, load_edt)
{
	await_window();
	th_set_tat(&run, 0);
	(void)send_tcp(100);
	(void)send_tcp(100);
	no_more_is_told();
	make_heavy(100);
	is_told(NATRA_REPORT_HEAVY, 100);
	for (int i = 0; i < 20; i++) {
		th_set_tat(&run, 0);
		(void)send_tcp(100);
	}
	no_more_is_told();
	counts(1, 0);
}

/* A flow that paused is known, until it has paused for long. */
TH_TEST(a_pause_makes_it_new)
{
	th_set_tat(&run, 0);
	make_heavy(100);
	is_told(NATRA_REPORT_HEAVY, 100);
	th_age_heavy(&run, NATRA_KNOWN_WINDOWS - 1);
	th_set_tat(&run, 0);
	(void)send_tcp(100);
	no_more_is_told();
	th_age_heavy(&run, NATRA_KNOWN_WINDOWS + 2);
	th_set_tat(&run, 0);
	(void)send_tcp(100);
	is_told(NATRA_REPORT_HEAVY, 100);
}

/* All of a burst of drops is one event, and those of the next window another. */
static void drops_are_told_once_in_a_window(enum natra_report reason,
					    enum natra_counter counter)
{
	th_set_tat(&run, 0);
	make_heavy(100);
	is_told(NATRA_REPORT_HEAVY, 100);
	for (int window = 0; window < 2; window++) {
		uint64_t since_ns;

		await_window();
		since_ns = th_now();
		th_set_tat(&run, since_ns + FAR);
		for (int i = 0; i < 30; i++)
			assert_int_equal(send_tcp(100).counter, counter);
		is_told_once(reason, 100, since_ns);
	}
}

TH_TEST(policed_drops)
{
	drops_are_told_once_in_a_window(NATRA_REPORT_DROPPED_RATE,
					NATRA_COUNT_DROPPED_RATE);
}

TH_TEST_AFTER(drops_beyond_the_horizon, load_edt)
{
	drops_are_told_once_in_a_window(NATRA_REPORT_DROPPED_HORIZON,
					NATRA_COUNT_DROPPED_HORIZON);
}

/* What is held to the rate is the limit at work, and no event. */
TH_TEST_AFTER(paced_packets_are_not_told, load_edt)
{
	th_set_tat(&run, 0);
	make_heavy(100);
	is_told(NATRA_REPORT_HEAVY, 100);
	for (int i = 0; i < 10; i++) {
		th_set_tat(&run, th_now() + TH_SECOND);
		assert_int_equal(send_tcp(100).counter, NATRA_COUNT_PACED);
	}
	no_more_is_told();
}

TH_TEST(marked_packets_are_not_told)
{
	int marked = 0;

	th_set_tat(&run, 0);
	make_heavy(100);
	is_told(NATRA_REPORT_HEAVY, 100);
	for (int i = 0; i < 10; i++) {
		th_set_tat(&run, th_now() + TH_TICK_NS);
		marked +=
			send_with_tos(100, ECT0).counter == NATRA_COUNT_MARKED;
	}
	assert_in_range(marked, 1, 10);
	no_more_is_told();
}

TH_TEST_AFTER(mice_that_wait, load_strict)
{
	uint64_t since_ns;

	await_window();
	since_ns = th_now();
	th_set_tat(&run, since_ns + FAR);
	for (uint16_t port = 200; port < 230; port++) {
		th_set_mice_tat(&run, th_now() + TH_SECOND);
		assert_int_equal(send_tcp(port).counter, NATRA_COUNT_PACED);
	}
	is_told_once(NATRA_REPORT_MICE_OVER_SHARE, 200, since_ns);
}

TH_TEST_AFTER(mice_that_are_dropped, load_strict_police)
{
	uint64_t since_ns;

	await_window();
	since_ns = th_now();
	th_set_tat(&run, since_ns + FAR);
	th_set_mice_tat(&run, th_now() + FAR);
	for (uint16_t port = 200; port < 230; port++)
		assert_int_equal(send_tcp(port).counter,
				 NATRA_COUNT_DROPPED_RATE);
	is_told_once(NATRA_REPORT_MICE_OVER_SHARE, 200, since_ns);
}

TH_TEST_AFTER(mice_within_their_share, load_strict)
{
	for (uint16_t port = 200; port < 230; port++) {
		th_set_mice_tat(&run, 0);
		th_set_tat(&run, 0);
		assert_int_equal(send_tcp(port).counter, NATRA_COUNT_MICE);
	}
	no_more_is_told();
}

/* If a pod makes flow after flow heavy, only a few of them are reported, and another
 * pod's event is still there afterwards. */
TH_TEST_AFTER(many_flows_do_not_hide_others, load_edt)
{
	const uint16_t flows = 3 * NATRA_EVENTS;
	const uint64_t begin = th_now();
	struct natra_event_entry event;
	uint64_t told = 0, windows;

	th_set_tat(&run, 0);
	make_heavy(60000);
	is_told(NATRA_REPORT_HEAVY, 60000);
	forget(true);
	for (uint16_t i = 0; i < flows; i++) {
		forget(false);
		make_heavy((uint16_t)(1000 + i));
	}
	windows = ((th_now() - begin) >> NATRA_WINDOW_SHIFT) + 1;
	while (ring_read(&view, &event, &lost) == 1)
		told += event.reason == NATRA_REPORT_HEAVY;
	assert_int_equal(lost, 0);
	assert_in_range(told, NATRA_EVENT_FLOWS, NATRA_EVENT_FLOWS + windows);
	/* The one from before is the oldest in the ring. */
	view.place = 0;
	is_told(NATRA_REPORT_HEAVY, 60000);
}

/* The ring keeps the newest events, and a reader that was away for too long learns
 * how many it missed. */
TH_TEST_AFTER(nobody_reads, load_edt)
{
	struct natra_event_entry event;
	uint64_t read = 0;

	th_set_tat(&run, 0);
	for (int i = 0; i < NATRA_EVENTS + 10; i++) {
		forget(true);
		make_heavy((uint16_t)(1000 + i));
	}
	counts(NATRA_EVENTS + 10, 0);
	while (ring_read(&view, &event, &lost) == 1) {
		assert_int_equal(ntohs((uint16_t)event.tuple.ports),
				 1010 + read);
		read++;
	}
	assert_int_equal(read, NATRA_EVENTS);
	assert_int_equal(lost, 10);
}

/* Sends so many small flows in each of six windows, and returns how many events of the limit
 * are told, the last one's percent in *ret_percent. */
static unsigned int flood(unsigned int flows, uint32_t *ret_percent)
{
	struct natra_event_entry event;
	unsigned int told = 0;

	for (unsigned int w = 0; w < 6; w++) {
		await_window();
		for (unsigned int i = 0; i < flows; i++)
			(void)send_tcp((uint16_t)(1000 + w * flows + i));
	}
	while (ring_read(&view, &event, &lost) == 1) {
		if (event.reason != NATRA_REPORT_OVER_LIMIT)
			continue;
		told++;
		*ret_percent = event.tuple.saddr[0];
		event.tuple.saddr[0] = 0;
		assert_memory_equal(&event.tuple, &(struct natra_tuple){0},
				    sizeof(event.tuple));
	}
	return told;
}

/* The limit has room for 40 of 64 packets in a window. */
static void watch_the_limit(enum natra_pass pass)
{
	struct natra_limits limits = th_limits();

	limits.pass = pass;
	limits.enter_units = UNITS;
	limits.leave_units = UNITS / 8;
	limits.over.rate = 40 * LEN;
	limits.over.debt = 20 * LEN;
	th_set_limits(&run, &limits);
}

TH_TEST_AFTER(small_flows_over_the_limit, load_police, load_edt)
{
	uint32_t percent = 0;

	watch_the_limit(NATRA_PASS_FREE);
	assert_int_equal(flood(64, &percent), 1);
	/* It is 160, but every 16th packet of a CPU looks, and the test may go on on another one. */
	assert_in_range(percent, 120, 200);
}

TH_TEST(small_flows_within_it)
{
	uint32_t percent;

	watch_the_limit(NATRA_PASS_FREE);
	assert_int_equal(flood(36, &percent), 0);
}

TH_TEST_AFTER(strict_flows_are_within_it, load_strict)
{
	uint32_t percent;

	watch_the_limit(NATRA_PASS_STRICT);
	assert_int_equal(flood(64, &percent), 0);
}

TH_BPF_MAIN(load_police, unload)
