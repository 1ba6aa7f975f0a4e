/* SPDX-License-Identifier: BSD-2-Clause */
#include "http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SWEEP_MS  1000
/* What a client may send behind its request. */
#define DRAIN_MAX 65536

static void close_file(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void close_connection(struct http_connection *c)
{
	loop_close_source(c->http->loop, &c->source);
	close_file(&c->file_fd);
	free(c->out);
	c->out = NULL;
	c->waiting = (struct http_request){0};
}

static const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "Internal Server Error";
	}
}

/* Puts the answer in c->out: it has a body of its own if `len` is 0. */
static void compose(struct http_connection *c, int status,
		    const struct http_body *body, const char *text, size_t len)
{
	FILE *out = open_memstream(&c->out, &c->out_len);
	const char *reason = reason_of(status);
	const size_t all = len + (size_t)c->file_size;

	if (!out)
		return;
	fprintf(out, "HTTP/1.1 %d %s\r\n", status, reason);
	if (status == 405)
		fputs("Allow: GET\r\n", out);
	if (body && body->headers)
		fputs(body->headers, out);
	fprintf(out,
		"Content-Type: %s\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n",
		all && body && body->type ? body->type
					  : "text/plain; charset=utf-8",
		all ? all : strlen(reason) + 1);
	if (len)
		(void)fwrite(text, 1, len, out);
	else if (!all)
		fprintf(out, "%s\n", reason);
	(void)fclose(out);
}

/* The kernel sends a file without a copy of it here, however large it is. */
static int take_file(struct http_connection *c, int fd)
{
	struct stat st;

	c->file_fd = fd;
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	c->file_size = st.st_size;
	return 0;
}

/* Leaves c->out empty if the answer is not known yet. */
static void answer(struct http_connection *c,
		   const struct http_request *request)
{
	struct http_body body = {.file_fd = -1};
	char *text = NULL;
	size_t len = 0;
	int status = 500;

	body.out = open_memstream(&text, &len);
	if (body.out) {
		status = c->http->answer(c->http->arg, request, &body);
		(void)fclose(body.out);
	}
	c->waiting = (struct http_request){0};
	if (take_file(c, body.file_fd) < 0)
		status = 500;
	if (status == HTTP_LATER)
		c->waiting = *request;
	else
		compose(c, status, &body, text, len);
	free(text);
}

/* Returns the value of a header, which goes on to the end of the line; NULL if there is
 * none. */
static char *find_header(char *lines, const char *name)
{
	size_t len = strlen(name);

	for (; *lines; lines += strcspn(lines, "\n")) {
		lines += *lines == '\n';
		if (strncasecmp(lines, name, len) == 0 && lines[len] == ':') {
			lines += len + 1;
			return lines + strspn(lines, " \t");
		}
	}
	return NULL;
}

static void end_line(char *value)
{
	if (value)
		value[strcspn(value, "\r\n")] = '\0';
}

/* All values are found before the text is cut at their ends. */
static void answer_headers(struct http_connection *c, const char *path,
			   char *headers)
{
	char *accept = find_header(headers, "Accept");
	char *host = find_header(headers, "Host");

	end_line(accept);
	end_line(host);
	answer(c, &(struct http_request){path, accept, host});
}

/* Reads the request line, which ends where the text ends, and the headers. */
static void understand(struct http_connection *c, char *line, char *headers)
{
	char *path = strchr(line, ' ');
	char *version = path ? strchr(path + 1, ' ') : NULL;

	if (!version || (strcmp(version, " HTTP/1.1") != 0 &&
			 strcmp(version, " HTTP/1.0") != 0)) {
		compose(c, 400, NULL, NULL, 0);
		return;
	}
	*path++ = '\0';
	*version = '\0';
	path[strcspn(path, "?#")] = '\0';
	if (path[0] != '/')
		compose(c, 400, NULL, NULL, 0);
	else if (strcmp(line, "GET") != 0)
		compose(c, 405, NULL, NULL, 0);
	else
		answer_headers(c, path, headers);
}

static void write_out(struct http_connection *c)
{
	while (c->out_done < c->out_len) {
		ssize_t n = send(c->source.fd, c->out + c->out_done,
				 c->out_len - c->out_done, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_connection(c);
			return;
		}
		c->out_done += (size_t)n;
	}
	while (c->file_done < c->file_size) {
		/* It moves file_done on. */
		ssize_t n = sendfile(c->source.fd, c->file_fd, &c->file_done,
				     (size_t)(c->file_size - c->file_done));

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_connection(c);
			return;
		}
	}
	/* The client closes the connection first: closing it while something
	 * that it has sent is unread would take the answer away from it. */
	if (shutdown(c->source.fd, SHUT_WR) < 0 ||
	    loop_change(c->http->loop, &c->source, EPOLLIN) < 0)
		close_connection(c);
}

static void begin_answer(struct http_connection *c)
{
	/* Nothing is read meanwhile; that the client has gone is an event. */
	if (c->waiting.path) {
		if (loop_change(c->http->loop, &c->source, 0) < 0)
			close_connection(c);
		return;
	}
	c->is_answered = true;
	if (!c->out || loop_change(c->http->loop, &c->source, EPOLLOUT) < 0)
		close_connection(c);
	else
		write_out(c);
}

/* Returns the empty line behind the headers; NULL if there is none yet. What comes with it or
 * later does not matter. */
static char *end_of_head(char *text)
{
	char *line = strchr(text, '\n');

	while (line && line[1 + (line[1] == '\r')] != '\n')
		line = strchr(line + 1, '\n');
	return line ? line + 1 : NULL;
}

static void read_in(struct http_connection *c)
{
	size_t room = sizeof(c->in) - 1 - c->in_len;
	ssize_t n = recv(c->source.fd, c->in + c->in_len, room, 0);
	char *end;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close_connection(c);
		return;
	}
	c->in_len += (size_t)n;
	c->in[c->in_len] = '\0';
	end = end_of_head(c->in);
	if (end) {
		char *headers = strchr(c->in, '\n');

		*end = '\0';
		c->in[strcspn(c->in, "\r\n")] = '\0';
		understand(c, c->in, headers + 1);
	} else if (strlen(c->in) != c->in_len) {
		compose(c, 400, NULL, NULL, 0);
	} else if (c->in_len == sizeof(c->in) - 1) {
		compose(c, 431, NULL, NULL, 0);
	} else {
		return;
	}
	begin_answer(c);
}

/* Reads what a client sends behind its request, until it closes. One that sends without end would
 * have all of the processor: it is left to wait for the sweep, since closed at once it would come
 * again at once. */
static void drain(struct http_connection *c)
{
	const bool is_left = c->drained > DRAIN_MAX;
	ssize_t n = recv(c->source.fd, c->in, sizeof(c->in), 0);

	if (n > 0)
		c->drained += (size_t)n;
	if (is_left || n == 0 || (n < 0 && errno != EAGAIN))
		close_connection(c);
	else if (c->drained > DRAIN_MAX &&
		 loop_change(c->http->loop, &c->source, 0) < 0)
		close_connection(c);
}

static void connection_ready(void *arg, uint32_t events)
{
	struct http_connection *c = arg;

	if (c->waiting.path)
		close_connection(c);
	else if (!c->is_answered && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		read_in(c);
	else if (c->out_done < c->out_len || c->file_done < c->file_size)
		write_out(c);
	else
		drain(c);
}

/* Returns how many connections have the address of this one. */
static size_t count_alike(const struct http *http,
			  const struct http_connection *of)
{
	size_t count = 0;

	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		count += memcmp(&http->connections[i].peer, &of->peer,
				sizeof(of->peer)) == 0;
	return count;
}

/* Returns a connection that is free; if there is none, it closes one. */
static struct http_connection *find_free(struct http *http)
{
	struct http_connection *closed = &http->connections[0];
	size_t most = 0;

	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		struct http_connection *c = &http->connections[i];
		const size_t count = count_alike(http, c);

		if (c->source.fd < 0)
			return c;
		if (count > most ||
		    (count == most && c->since_ms < closed->since_ms)) {
			closed = c;
			most = count;
		}
	}
	close_connection(closed);
	return closed;
}

/* Without a free descriptor, the client that waits would be an event for ever. */
static void pause_listener(struct http *http)
{
	(void)loop_change(http->loop, &http->listener, 0);
	timer_set(&http->sweep, SWEEP_MS);
}

static void listener_ready(void *arg, uint32_t events)
{
	struct http *http = arg;
	struct sockaddr_in6 peer = {0};
	socklen_t len = sizeof(peer);
	int fd = accept4(http->listener.fd, (struct sockaddr *)&peer, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct http_connection *c;

	(void)events;
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED)
			pause_listener(http);
		return;
	}
	c = find_free(http);
	c->http = http;
	/* The port of IPv4 has the same place. */
	peer.sin6_port = 0;
	c->peer = peer;
	c->since_ms = clock_ms();
	c->is_answered = false;
	c->waiting = (struct http_request){0};
	c->in_len = c->out_len = c->out_done = c->drained = 0;
	c->file_size = c->file_done = 0;
	c->source = (struct source){fd, connection_ready, c};
	if (loop_add(http->loop, &c->source, EPOLLIN) < 0)
		close_connection(c);
	else if (!http->sweep.is_set)
		timer_set(&http->sweep, SWEEP_MS);
}

/* Closes the connections that have taken too long. */
static void sweep(void *arg)
{
	struct http *http = arg;
	uint64_t now_ms = clock_ms();
	bool is_needed = false;

	(void)loop_change(http->loop, &http->listener, EPOLLIN);
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		struct http_connection *c = &http->connections[i];

		if (c->source.fd < 0)
			continue;
		if (now_ms - c->since_ms >= HTTP_TIME_MAX_MS)
			close_connection(c);
		else
			is_needed = true;
	}
	if (is_needed)
		timer_set(&http->sweep, SWEEP_MS);
}

/* Returns a listening socket, or -errno. */
static int listen_on(const struct addrinfo *found)
{
	const int on = 1;
	int r, fd = socket(found->ai_family,
			   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
	    listen(fd, HTTP_CONNECTIONS_MAX) == 0)
		return fd;
	r = -errno;
	(void)close(fd);
	return r;
}

/* Splits "HOST:PORT" and "[HOST]:PORT" in place. Without brackets, too, a host may have
 * colons: Kubernetes' $(HOST_IP):9811 has none on a node of IPv6. */
static int split(char *text, const char **ret_host, const char **ret_port)
{
	char *colon = strrchr(text, ':');
	size_t len;

	if (!colon || !colon[1])
		return -EINVAL;
	*colon = '\0';
	len = strlen(text);
	if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
		text[len - 1] = '\0';
		text++;
	}
	*ret_host = text[0] ? text : NULL;
	*ret_port = colon + 1;
	return 0;
}

static int open_listener(const char *address)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	const char *host, *port;
	struct addrinfo *found;
	char text[128];
	int r;

	if (strlen(address) >= sizeof(text))
		return -EINVAL;
	memcpy(text, address, strlen(address) + 1);
	r = split(text, &host, &port);
	if (r < 0)
		return r;
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return -EINVAL;
	r = listen_on(found);
	freeaddrinfo(found);
	return r;
}

/* Returns whether this is a socket on which nobody listens any more. A connection to
 * another kind of file is refused just as well. */
static bool is_abandoned(const struct sockaddr_un *address)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool is_refused = fd >= 0 &&
			  connect(fd, (const struct sockaddr *)address,
				  sizeof(*address)) < 0 &&
			  errno == ECONNREFUSED;

	if (fd >= 0)
		(void)close(fd);
	return is_refused && lstat(address->sun_path, &st) == 0 &&
	       S_ISSOCK(st.st_mode);
}

static int bind_socket(int fd, const struct sockaddr_un *address)
{
	const struct sockaddr *any = (const struct sockaddr *)address;

	if (bind(fd, any, sizeof(*address)) == 0)
		return 0;
	/* A process that was killed leaves its socket. */
	if (errno != EADDRINUSE)
		return -errno;
	if (!is_abandoned(address))
		return -EADDRINUSE;
	if (unlink(address->sun_path) < 0 ||
	    bind(fd, any, sizeof(*address)) < 0)
		return -errno;
	return 0;
}

static int open_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r, fd;

	if (path[0] != '/' || strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Before it listens, nobody can connect. */
	r = bind_socket(fd, &address);
	if (r == 0 &&
	    (chmod(path, 0600) < 0 || listen(fd, HTTP_CONNECTIONS_MAX) < 0))
		r = -errno;
	if (r == 0)
		return fd;
	(void)close(fd);
	return r;
}

int http_open(struct http *http, struct loop *loop, const char *address,
	      http_answer_fn answer_fn, void *arg)
{
	const bool is_socket = strncmp(address, "unix:", 5) == 0;
	int r = is_socket ? open_socket(address + 5) : open_listener(address);

	http->socket = is_socket && r >= 0 ? address + 5 : NULL;
	http->loop = loop;
	http->answer = answer_fn;
	http->arg = arg;
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		http->connections[i] = (struct http_connection){
			.source = SOURCE_INIT, .http = http, .file_fd = -1};
	http->sweep.source.fd = -1;
	http->listener = (struct source){r, listener_ready, http};
	if (r < 0)
		return r;
	r = timer_open(&http->sweep, loop, sweep, http);
	return r < 0 ? r : loop_add(loop, &http->listener, EPOLLIN);
}

void http_resume(struct http *http)
{
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		struct http_connection *c = &http->connections[i];
		struct http_request request = c->waiting;

		if (!request.path)
			continue;
		answer(c, &request);
		if (!c->waiting.path)
			begin_answer(c);
	}
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool find_address(const struct http *http, union address *ret)
{
	socklen_t len = sizeof(*ret);

	*ret = (union address){0};
	return !http->socket &&
	       getsockname(http->listener.fd, &ret->any, &len) == 0;
}

bool http_is_local(const struct http *http)
{
	union address address;

	if (!find_address(http, &address))
		return http->socket != NULL;
	if (address.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
	return ntohl(address.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

unsigned int http_port(const struct http *http)
{
	union address address;

	if (!find_address(http, &address))
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port
						       : address.v4.sin_port);
}

void http_close(struct http *http)
{
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		if (http->connections[i].source.fd >= 0)
			close_connection(&http->connections[i]);
	}
	loop_close_source(http->loop, &http->listener);
	if (http->socket)
		(void)unlink(http->socket);
	timer_close(&http->sweep, http->loop);
}
