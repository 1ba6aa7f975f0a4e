/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends requests on a clock over one TCP connection, and prints how long their
 * answers took as one JSON object.
 *
 * The time of each counts from its tick, so a path that stalls cannot hide behind a
 * client that waits. A request without an answer at the end counts with the time until
 * then. In Python this would take half of an emulated CPU, and sockperf takes a whole
 * one.
 *
 * `busy` keeps a connection full instead, with pieces of 1 kB, and takes the time of each from
 * the moment at which the socket takes it to that of its acknowledgement. The socket takes no
 * more than 16 kB ahead (TCP_NOTSENT_LOWAT, as servers of HTTP/2 have it), so that time is the
 * queue, and not the socket's buffer; `sink` bounds it by its window.
 *
 * usage: rr server PORT
 *        rr client IP PORT BYTES PER_SECOND SECONDS
 *        rr sink PORT WINDOW
 *        rr busy IP PORT SETTLE SECONDS
 */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_S   10
#define CHUNK_BYTES 65536
#define NS_PER_S    1000000000LL
#define PIECE_BYTES 1024
#define PIECES_MAX  1000000
#define AHEAD_BYTES 16384
#define LOOK_NS     300000

struct load {
	int fd;
	size_t bytes; /* of a request, and of its answer */
	long count;
	double per_second;
	long long start;
	long due;              /* requests that are due by now */
	size_t sent, received; /* bytes */
	double *took_ms;
	long answered;
};

static char chunk[CHUNK_BYTES];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double number(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || !(n > 0)) {
		fprintf(stderr, "rr: '%s' is no number over 0\n", text);
		exit(2);
	}
	return n;
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int tcp_socket(void)
{
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		fail("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return fd;
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET};

	to.sin_port = htons((unsigned short)number(port));
	if (inet_pton(AF_INET, ip, &to.sin_addr) != 1)
		fail(ip);
	return to;
}

static void echo(int fd)
{
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t done = 0, m; done < n; done += m)
			if ((m = write(fd, chunk + done, (size_t)(n - done))) <=
			    0)
				return;
}

static void take(int fd)
{
	while (read(fd, chunk, sizeof(chunk)) > 0)
		;
}

/* Serves one connection after the other. A window of 0 is the kernel's. */
static void serve(const char *port, int window, void (*answer)(int fd))
{
	struct sockaddr_in here = address("0.0.0.0", port);
	int listener = tcp_socket();

	if (window)
		setsockopt(listener, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window,
			   sizeof(window));
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) ||
	    listen(listener, 8))
		fail("listen");
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			fail("accept");
		answer(fd);
		close(fd);
	}
}

static long long due_ns(const struct load *l, long request)
{
	return l->start +
	       (long long)((double)request * NS_PER_S / l->per_second);
}

/* Sends what is due by now, as far as the socket takes it. */
static void send_due(struct load *l, long long now)
{
	while (l->due < l->count && due_ns(l, l->due) <= now)
		l->due++;
	while (l->sent < (size_t)l->due * l->bytes) {
		size_t left = (size_t)l->due * l->bytes - l->sent;
		ssize_t n = send(l->fd, chunk,
				 left < CHUNK_BYTES ? left : CHUNK_BYTES,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n <= 0)
			return;
		l->sent += (size_t)n;
	}
}

static void receive(struct load *l, long long now)
{
	ssize_t n;

	while ((n = recv(l->fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
		l->received += (size_t)n;
	while ((size_t)(l->answered + 1) * l->bytes <= l->received) {
		l->took_ms[l->answered] =
			(double)(now - due_ns(l, l->answered)) / 1e6;
		l->answered++;
	}
}

/* Returns when an answer arrives or a request is due, or when the time is over. */
static void wait_for(const struct load *l, long long now, long long until)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	long long due = l->due < l->count ? due_ns(l, l->due) : until;
	long long left = (due < until ? due : until) - now;
	struct timespec t;

	left = left > 0 ? left : 0;
	t.tv_sec = left / NS_PER_S;
	t.tv_nsec = left % NS_PER_S;
	ppoll(&p, 1, &t, NULL);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(struct load *l, long long end)
{
	double sum = 0;

	for (long i = l->answered; i < l->count; i++)
		l->took_ms[i] = (double)(end - due_ns(l, i)) / 1e6;
	for (long i = 0; i < l->count; i++)
		sum += l->took_ms[i];
	qsort(l->took_ms, (size_t)l->count, sizeof(*l->took_ms), compare);
	printf("{\"count\": %ld, \"answered\": %ld, \"mean_ms\": %.3f, "
	       "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"most_ms\": %.3f}\n",
	       l->count, l->answered, sum / (double)l->count,
	       l->took_ms[l->count / 2], l->took_ms[l->count * 99 / 100],
	       l->took_ms[l->count - 1]);
}

static void ask(char **argv)
{
	struct sockaddr_in to = address(argv[0], argv[1]);
	struct load l = {.bytes = (size_t)number(argv[2]),
			 .per_second = number(argv[3])};
	const struct timeval patience = {.tv_sec = CONNECT_S};
	long long until, now;
	bool connected;

	l.count = (long)(l.per_second * number(argv[4]));
	l.fd = tcp_socket();
	l.took_ms = calloc((size_t)l.count, sizeof(*l.took_ms));
	if (l.count < 1 || !l.bytes || !l.took_ms) {
		fprintf(stderr, "rr: nothing to send\n");
		exit(2);
	}
	/* This one is for connect(): the others do not wait. */
	setsockopt(l.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	connected = connect(l.fd, (struct sockaddr *)&to, sizeof(to)) == 0;
	l.start = now = now_ns();
	/* A second for the last answers. */
	until = due_ns(&l, l.count) + NS_PER_S;
	/* A limiter that drops what a connection needs, such as ARP, answers nothing. */
	if (!connected)
		now = until;
	while (l.answered < l.count && now < until) {
		send_due(&l, now);
		wait_for(&l, now, until);
		now = now_ns();
		receive(&l, now);
	}
	print(&l, now);
	free(l.took_ms);
	close(l.fd);
}

/* Writes as much as the socket takes, and notes when it has taken each piece. */
static long long fill(int fd, long long sent, long long *written_ns)
{
	ssize_t n;

	while (sent / PIECE_BYTES < PIECES_MAX - CHUNK_BYTES / PIECE_BYTES &&
	       (n = send(fd, chunk, PIECE_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL)) >
		       0) {
		const long long now = now_ns();

		for (long long i = sent / PIECE_BYTES;
		     i < (sent + n) / PIECE_BYTES; i++)
			written_ns[i] = now;
		sent += n;
	}
	return sent;
}

static void keep_busy(char **argv)
{
	struct sockaddr_in to = address(argv[0], argv[1]);
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	const int ahead = AHEAD_BYTES, fd = tcp_socket();
	long long *written_ns = calloc(PIECES_MAX, sizeof(*written_ns));
	struct load l = {.took_ms = calloc(PIECES_MAX, sizeof(*l.took_ms))};
	long long begin, end, now, sent = 0, acked = 0;

	if (!written_ns || !l.took_ms)
		fail("memory");
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &ahead, sizeof(ahead));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		fail("connect");
	begin = now_ns() + (long long)(number(argv[2]) * NS_PER_S);
	end = begin + (long long)(number(argv[3]) * NS_PER_S);
	while (now_ns() < end) {
		int queued;

		sent = fill(fd, sent, written_ns);
		if (ioctl(fd, SIOCOUTQ, &queued))
			fail("SIOCOUTQ");
		now = now_ns();
		for (; (acked + 1) * PIECE_BYTES <= sent - queued; acked++) {
			if (now >= begin)
				l.took_ms[l.answered++] =
					(double)(now - written_ns[acked]) / 1e6;
		}
		nanosleep(&pause, NULL);
	}
	l.count = l.answered;
	if (!l.count)
		fail("no acknowledgement");
	print(&l, end);
	free(l.took_ms);
	free(written_ns);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "server")) {
		serve(argv[2], 0, echo);
	} else if (argc == 4 && !strcmp(argv[1], "sink")) {
		serve(argv[2], (int)number(argv[3]), take);
	} else if (argc == 6 && !strcmp(argv[1], "busy")) {
		keep_busy(argv + 2);
	} else if (argc == 7 && !strcmp(argv[1], "client")) {
		ask(argv + 2);
	} else {
		fprintf(stderr, "usage: rr server PORT\n"
				"       rr client IP PORT BYTES PER_SECOND "
				"SECONDS\n"
				"       rr sink PORT WINDOW\n"
				"       rr busy IP PORT SETTLE SECONDS\n");
		return 2;
	}
	return 0;
}
