/* SPDX-License-Identifier: BSD-2-Clause */
#include "api.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <curl/curl.h>

#include "../common/text.h"

#define TOKEN_MAX       16384
#define CONNECT_MAX_MS  5000L
#define KEEPALIVE_S     15L
#define CONNECTIONS_MAX 2L
/* The answer is read in parts of this size. */
#define BUFFER_SIZE     16384L
/* Asks for events whose objects lack specification and status: there is far less to
 * read and to keep. */
#define ACCEPT                                                                  \
	"Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," \
	"application/json"

/* Ends the requests that curl has finished. */
static void collect(struct api *api)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(api->multi, &left))) {
		struct api_request *request = NULL;
		CURLcode code = message->data.result;
		long status;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
					&request);
		status = api_status(request);
		if (code == CURLE_OK)
			request->error[0] = '\0';
		else if (!request->error[0])
			(void)snprintf(request->error, sizeof(request->error),
				       "%s", curl_easy_strerror(code));
		api_cancel(api, request);
		request->done(request->arg, status, request->error);
	}
}

static void act(struct api *api, int fd, int what)
{
	int running;

	(void)curl_multi_socket_action(api->multi, fd, what, &running);
	collect(api);
}

struct socket_source {
	struct source source;
	struct api *api;
};

static void socket_ready(void *arg, uint32_t events)
{
	const struct socket_source *s = arg;
	int what = 0;

	if (events & (EPOLLIN | EPOLLHUP))
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & EPOLLERR)
		what |= CURL_CSELECT_ERR;
	act(s->api, s->source.fd, what);
}

/* Curl says what it waits for on a socket. */
static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg,
		      void *of_socket)
{
	struct api *api = arg;
	struct socket_source *s = of_socket;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0U);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			loop_remove(api->loop, &s->source);
		free(s);
		(void)curl_multi_assign(api->multi, fd, NULL);
		return 0;
	}
	if (s)
		return loop_change(api->loop, &s->source, events) < 0 ? -1 : 0;
	s = memory_new(sizeof(*s));
	s->api = api;
	s->source = (struct source){fd, socket_ready, s};
	(void)curl_multi_assign(api->multi, fd, s);
	return loop_add(api->loop, &s->source, events) < 0 ? -1 : 0;
}

static int set_timer(CURLM *multi, long delay_ms, void *arg)
{
	struct api *api = arg;

	(void)multi;
	if (delay_ms < 0)
		timer_stop(&api->timer);
	else
		timer_set(&api->timer, (uint64_t)delay_ms);
	return 0;
}

static void time_over(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

int api_open(struct api *api, struct loop *loop,
	     const struct api_options *options)
{
	int r;

	api->loop = loop;
	api->options = options;
	r = timer_open(&api->timer, loop, time_over, api);
	if (r < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	api->multi = curl_multi_init();
	if (!api->multi)
		return -ENOMEM;
	(void)curl_multi_setopt(api->multi, CURLMOPT_SOCKETFUNCTION,
				set_socket);
	(void)curl_multi_setopt(api->multi, CURLMOPT_SOCKETDATA, api);
	(void)curl_multi_setopt(api->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(api->multi, CURLMOPT_TIMERDATA, api);
	(void)curl_multi_setopt(api->multi, CURLMOPT_MAXCONNECTS,
				CONNECTIONS_MAX);
	return 0;
}

void api_close(struct api *api)
{
	if (!api->loop)
		return;
	if (api->multi) {
		(void)curl_multi_cleanup(api->multi);
		curl_global_cleanup();
	}
	timer_close(&api->timer, api->loop);
	api->multi = NULL;
}

static size_t receive(char *bytes, size_t size, size_t count, void *arg)
{
	const struct api_request *request = arg;
	size_t len = size * count;

	/* The body of an error says no more than its status. */
	if (!request->data || api_status(request) != 200)
		return len;
	return request->data(request->arg, bytes, len) == 0 ? len : 0;
}

/* Adds the token of the file, as it is now. */
static int add_token(struct api_request *request, const char *path)
{
	static const char begin[] = "Authorization: Bearer ";
	char line[sizeof(begin) + TOKEN_MAX];
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *token = line + sizeof(begin) - 1;
	ssize_t len;

	if (fd < 0)
		return -errno;
	memcpy(line, begin, sizeof(begin));
	len = read(fd, token, TOKEN_MAX);
	if (len < 0)
		return -errno;
	token[len] = '\0';
	token[strcspn(token, "\r\n")] = '\0';
	if (!token[0])
		return -ENODATA;
	request->headers = curl_slist_append(request->headers, line);
	explicit_bzero(line, sizeof(line));
	return 0;
}

static int set_headers(const struct api *api, struct api_request *request)
{
	const char *token_file = api->options->token_file;

	request->headers = curl_slist_append(NULL, ACCEPT);
	if (request->body)
		request->headers = curl_slist_append(
			request->headers, "Content-Type: application/json");
	return token_file[0] ? add_token(request, token_file) : 0;
}

static void set_options(const struct api *api, struct api_request *request,
			const char *url, long time_max_ms)
{
	CURL *easy = request->easy;

	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
			       CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "natra-agent");
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
	(void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_SIZE);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MAX_MS);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, time_max_ms);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
	if (api->options->ca_file[0])
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO,
				       api->options->ca_file);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* libcurl would keep what it has read of the file for a day. */
	(void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
	if (request->body)
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
}

int api_start(struct api *api, struct api_request *request, const char *path,
	      const char *body, long time_max_ms)
{
	cleanup_text char *url = text_format("%s%s", api->options->url, path);
	int r;

	request->error[0] = '\0';
	request->body = body ? text_copy(body) : NULL;
	request->easy = curl_easy_init();
	r = request->easy ? set_headers(api, request) : -ENOMEM;
	if (r == 0) {
		set_options(api, request, url, time_max_ms);
		if (curl_multi_add_handle(api->multi, request->easy) !=
		    CURLM_OK)
			r = -ENOMEM;
	}
	if (r < 0)
		api_cancel(api, request);
	return r;
}

long api_status(const struct api_request *request)
{
	long status = 0;

	if (request->easy)
		(void)curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE,
					&status);
	return status;
}

void api_cancel(struct api *api, struct api_request *request)
{
	if (request->easy) {
		(void)curl_multi_remove_handle(api->multi, request->easy);
		curl_easy_cleanup(request->easy);
	}
	curl_slist_free_all(request->headers);
	free(request->body);
	request->easy = request->headers = NULL;
	request->body = NULL;
}
