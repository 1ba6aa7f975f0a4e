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
 * With `l4s` the datagrams have ECT(1), and the window is reduced once in a round trip by half of
 * the part of them that was marked, as DCTCP (RFC 8257) does.
 *
 * usage: quic server PORT
 *        quic client IP PORT SECONDS [l4s]
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
#define ECT_1     1
#define CE        3
#define GAIN      (1.0 / 16) /* of the part that was marked, RFC 8257 */

struct connection {
	int fd;
	long long sent_ns[RING];
	bool waits[RING]; /* for its acknowledgement */
	bool l4s;
	uint64_t next, recover_until, lost_until;
	uint64_t
		round_until; /* when this is acknowledged, a round trip is over */
	double marked, seen,
		alpha; /* in the round trip; and the part over several */
	double window, threshold;
	double srtt_ns;
	long in_flight, acked, lost;
	long long
		last_ns; /* when anything was acknowledged, or the timer ended */
};

struct datagram {
	uint64_t number;
	long long sent_ns; /* by the clock of packets' times of reception */
};

struct answer {
	uint64_t number, marked;
	long long way_ns;
};

static double *took_ms, *way_ms;
static size_t took_len;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long long ns_of(const struct timespec *t)
{
	return t->tv_sec * NS_PER_S + t->tv_nsec;
}

static long long clock_ns(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return ns_of(&t);
}

static long long now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
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

/* Reads the time of reception and whether the datagram was marked. */
static void read_control(struct msghdr *msg, const struct datagram *datagram,
			 struct answer *answer)
{
	struct timespec t;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			answer->marked = (*(const unsigned char *)CMSG_DATA(c) &
					  CE) == CE;
		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&t, CMSG_DATA(c), sizeof(t));
			answer->way_ns = ns_of(&t) - datagram->sent_ns;
		}
	}
}

/* Answers each datagram with its number, whether it was marked, and how long its way was. */
static void serve(const char *port)
{
	struct sockaddr_in here = address("0.0.0.0", port), from;
	const int fd = udp_socket(), one = 1;
	char rest[SIZE - sizeof(struct datagram)];
	char control[CMSG_SPACE(sizeof(int)) +
		     CMSG_SPACE(sizeof(struct timespec))];

	setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)))
		fail("bind");
	for (;;) {
		struct datagram datagram;
		struct answer answer = {0};
		struct iovec parts[] = {{&datagram, sizeof(datagram)},
					{rest, sizeof(rest)}};
		struct msghdr msg = {.msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_iov = parts,
				     .msg_iovlen = 2,
				     .msg_control = control,
				     .msg_controllen = sizeof(control)};

		if (recvmsg(fd, &msg, 0) < (ssize_t)sizeof(datagram))
			continue;
		answer.number = datagram.number;
		read_control(&msg, &datagram, &answer);
		(void)sendto(fd, &answer, sizeof(answer), 0,
			     (struct sockaddr *)&from, sizeof(from));
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

/* Reduces the window by what was marked in a round trip. */
static void count_mark(struct connection *c, const struct answer *answer)
{
	c->seen++;
	c->marked += answer->marked ? 1 : 0;
	if (answer->marked && c->window < c->threshold)
		c->threshold = c->window; /* it ends slow start */
	if (answer->number < c->round_until)
		return;
	c->round_until = c->next;
	c->alpha += GAIN * (c->marked / c->seen - c->alpha);
	if (c->marked > 0)
		c->window *= 1 - c->alpha / 2;
	if (c->window < 2)
		c->window = 2;
	if (c->marked > 0)
		c->threshold = c->window;
	c->marked = c->seen = 0;
}

static void acknowledge(struct connection *c, const struct answer *answer,
			long long now, long long since)
{
	const uint64_t number = answer->number;
	double rtt;

	if (number >= c->next || c->next - number > RING ||
	    !c->waits[number % RING])
		return;
	c->waits[number % RING] = false;
	c->in_flight--;
	c->last_ns = now;
	rtt = (double)(now - c->sent_ns[number % RING]);
	c->srtt_ns = c->srtt_ns > 0 ? c->srtt_ns * .875 + rtt * .125 : rtt;
	if (c->l4s)
		count_mark(c, answer);
	if (number >= c->recover_until)
		c->window += c->window < c->threshold ? 1 : 1 / c->window;
	if (now >= since) {
		c->acked++;
		way_ms[took_len] = (double)answer->way_ns / 1e6;
		took_ms[took_len++] = rtt / 1e6;
	}
	if (number >= REORDERED)
		lose_before(c, number - REORDERED + 1);
}

static void receive(struct connection *c, long long since)
{
	struct answer answer;

	while (recv(c->fd, &answer, sizeof(answer), MSG_DONTWAIT) ==
	       (ssize_t)sizeof(answer))
		acknowledge(c, &answer, now_ns(), since);
}

/* Returns whether the socket is full. */
static bool fill_window(struct connection *c)
{
	struct datagram datagram;
	char data[SIZE] = {0};

	while ((double)c->in_flight < c->window) {
		datagram.number = c->next;
		datagram.sent_ns = clock_ns(CLOCK_REALTIME);
		memcpy(data, &datagram, sizeof(datagram));
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

static void load(const char *ip, const char *port, double seconds, bool l4s)
{
	const int tos = ECT_1;
	static struct connection c;
	struct sockaddr_in to = address(ip, port);
	const long long begin = now_ns(), since = begin + SKIPPED_S * NS_PER_S;
	const long long end = since + (long long)(seconds * NS_PER_S);
	const size_t most = (size_t)(seconds * 1e6);
	long long now = begin;

	c.window = 10;
	c.threshold = 1e9;
	c.last_ns = begin;
	c.l4s = l4s;
	c.alpha = 1;
	c.fd = udp_socket();
	if (l4s)
		setsockopt(c.fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	took_ms = malloc(most * sizeof(*took_ms));
	way_ms = malloc(most * sizeof(*way_ms));
	if (!took_ms || !way_ms ||
	    connect(c.fd, (struct sockaddr *)&to, sizeof(to)))
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
	qsort(way_ms, took_len, sizeof(*way_ms), compare);
	printf("{\"bits_per_sec\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
	       "\"way_p50_ms\": %.3f, \"way_p99_ms\": %.3f, \"lost\": %ld}\n",
	       (double)c.acked * (SIZE + 42) * 8 / seconds,
	       took_ms[took_len / 2], took_ms[took_len * 99 / 100],
	       way_ms[took_len / 2], way_ms[took_len * 99 / 100], c.lost);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "server") == 0)
		serve(argv[2]);
	else if ((argc == 5 || (argc == 6 && strcmp(argv[5], "l4s") == 0)) &&
		 strcmp(argv[1], "client") == 0)
		load(argv[2], argv[3], strtod(argv[4], NULL), argc == 6);
	else
		return 2;
	return 0;
}
