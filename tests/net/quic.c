/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends as much as the path carries over one flow of UDP datagrams with a congestion
 * control of its own, as QUIC does, and prints how long they took to be acknowledged as one
 * JSON object. What a datagram takes is what a request of the same connection takes.
 *
 * The congestion control is that of RFC 9002: slow start, a window that is halved at most
 * once in a round trip, and a timer. A datagram is lost if one that was sent three later has
 * been acknowledged. There is no pacing, and what is lost is not sent again.
 *
 * usage: quic server PORT
 *        quic client IP PORT SECONDS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE      1400
#define NS_PER_S  1000000000LL
#define RING      65536 /* more than can be on the way */
#define REORDERED 3
#define SKIPPED_S 1 /* slow start is no steady state */

struct connection {
	int fd;
	long long sent_ns[RING];
	bool waits[RING]; /* for its acknowledgement */
	uint64_t next, recover_until, lost_until;
	double window, threshold;
	double srtt_ns;
	long in_flight, acked, lost;
	long long
		last_ns; /* when anything was acknowledged, or the timer ended */
};

static double *took_ms;
static size_t took_len;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int udp_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		fail("socket");
	return fd;
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET};

	to.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	if (inet_pton(AF_INET, ip, &to.sin_addr) != 1)
		fail(ip);
	return to;
}

/* Answers each datagram with its number. */
static void serve(const char *port)
{
	struct sockaddr_in here = address("0.0.0.0", port), from;
	const int fd = udp_socket();

	if (bind(fd, (struct sockaddr *)&here, sizeof(here)))
		fail("bind");
	for (;;) {
		char data[SIZE];
		socklen_t len = sizeof(from);

		if (recvfrom(fd, data, sizeof(data), 0,
			     (struct sockaddr *)&from,
			     &len) < (ssize_t)sizeof(uint64_t))
			continue;
		(void)sendto(fd, data, sizeof(uint64_t), 0,
			     (struct sockaddr *)&from, len);
	}
}

static void reduce(struct connection *c)
{
	c->threshold = c->window / 2 > 2 ? c->window / 2 : 2;
	c->window = c->threshold;
	c->recover_until = c->next;
}

/* Takes all for lost that was sent before this number and waits. */
static void lose_before(struct connection *c, uint64_t number)
{
	bool any = false;

	for (; c->lost_until < number; c->lost_until++) {
		bool *waits = &c->waits[c->lost_until % RING];

		if (!*waits)
			continue;
		*waits = false;
		c->in_flight--;
		c->lost++;
		any |= c->lost_until >= c->recover_until;
	}
	if (any)
		reduce(c);
}

static void acknowledge(struct connection *c, uint64_t number, long long now,
			long long since)
{
	double rtt;

	if (number >= c->next || c->next - number > RING ||
	    !c->waits[number % RING])
		return;
	c->waits[number % RING] = false;
	c->in_flight--;
	c->last_ns = now;
	rtt = (double)(now - c->sent_ns[number % RING]);
	c->srtt_ns = c->srtt_ns > 0 ? c->srtt_ns * .875 + rtt * .125 : rtt;
	if (number >= c->recover_until)
		c->window += c->window < c->threshold ? 1 : 1 / c->window;
	if (now >= since) {
		c->acked++;
		took_ms[took_len++] = rtt / 1e6;
	}
	if (number >= REORDERED)
		lose_before(c, number - REORDERED + 1);
}

static void receive(struct connection *c, long long since)
{
	uint64_t number;

	while (recv(c->fd, &number, sizeof(number), MSG_DONTWAIT) ==
	       (ssize_t)sizeof(number))
		acknowledge(c, number, now_ns(), since);
}

/* Returns whether the socket is full. */
static bool fill_window(struct connection *c)
{
	char data[SIZE] = {0};

	while ((double)c->in_flight < c->window) {
		memcpy(data, &c->next, sizeof(c->next));
		if (send(c->fd, data, sizeof(data), MSG_DONTWAIT) < 0 &&
		    (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
		/* Another error is a loss that the stack tells of. */
		c->sent_ns[c->next % RING] = now_ns();
		c->waits[c->next % RING] = true;
		c->in_flight++;
		c->next++;
	}
	return false;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void load(const char *ip, const char *port, double seconds)
{
	static struct connection c;
	struct sockaddr_in to = address(ip, port);
	const long long begin = now_ns(), since = begin + SKIPPED_S * NS_PER_S;
	const long long end = since + (long long)(seconds * NS_PER_S);
	const size_t most = (size_t)(seconds * 1e6);
	long long now = begin;

	c.window = 10;
	c.threshold = 1e9;
	c.last_ns = begin;
	c.fd = udp_socket();
	took_ms = malloc(most * sizeof(*took_ms));
	if (!took_ms || connect(c.fd, (struct sockaddr *)&to, sizeof(to)))
		fail("connect");
	while (now < end && took_len < most) {
		bool full = fill_window(&c);
		struct pollfd p = {
			.fd = c.fd,
			.events = (short)(POLLIN | (full ? POLLOUT : 0))};

		poll(&p, 1, 50);
		receive(&c, since);
		now = now_ns();
		if ((double)(now - c.last_ns) > 2 * c.srtt_ns + 2e8) {
			lose_before(&c, c.next);
			c.window = 2;
			c.last_ns = now;
		}
	}
	if (!took_len)
		fail("no answer");
	qsort(took_ms, took_len, sizeof(*took_ms), compare);
	printf("{\"bits_per_sec\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
	       "\"lost\": %ld}\n",
	       (double)c.acked * (SIZE + 42) * 8 / seconds,
	       took_ms[took_len / 2], took_ms[took_len * 99 / 100], c.lost);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "server") == 0)
		serve(argv[2]);
	else if (argc == 5 && strcmp(argv[1], "client") == 0)
		load(argv[2], argv[3], strtod(argv[4], NULL));
	else
		return 2;
	return 0;
}
