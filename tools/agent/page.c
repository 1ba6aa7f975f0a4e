/* SPDX-License-Identifier: BSD-2-Clause */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "page_html.h"
#include "page_request.h"

#define JOB_MAX_MS  3500
/* Who asks again within this time gets the same text, or waits if it has not the flows that
 * are asked for or there is none: each text is a process, and any website can make a browser
 * on this machine ask. */
#define TEXT_AGE_MS 1000
/* So long after a pod's flows were asked for they are in each text. */
#define KEY_AGE_MS  10000

_Static_assert(TEXT_AGE_MS + JOB_MAX_MS < HTTP_TIME_MAX_MS,
	       "the browser gets an answer");

struct page_report {
	int r;
	char error[256];
};

/* The page may load nothing and be in no other page; nobody keeps it. */
static const char headers[] =
	"Content-Security-Policy: default-src 'none'; connect-src 'self'; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " PAGE_HTML_POLICY
	"\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
	"Cross-Origin-Resource-Policy: same-origin\r\n"
	"Referrer-Policy: no-referrer\r\n";

static void run(void *arg)
{
	struct page *page = arg;
	struct page_report *report = page->work.report;

	report->r = page_job_write(page, report->error, sizeof(report->error));
}

bool page_has_key(const struct page_key *keys, uint64_t key)
{
	for (size_t i = 0; i < PAGE_KEYS_MAX; i++) {
		if (keys[i].asked_ms && keys[i].key == key)
			return true;
	}
	return false;
}

/* Remembers that the flows of a pod are asked for, in place of those that were asked for
 * least recently. */
static void remember(struct page *page, uint64_t key)
{
	struct page_key *found = &page->keys[0];

	for (size_t i = 0; i < PAGE_KEYS_MAX; i++) {
		struct page_key *k = &page->keys[i];

		if (k->asked_ms && k->key == key) {
			found = k;
			break;
		}
		if (k->asked_ms < found->asked_ms)
			found = k;
	}
	*found = (struct page_key){key, clock_ms()};
}

static void drop_text(struct page *page)
{
	if (page->fd >= 0)
		(void)close(page->fd);
	page->fd = -1;
	page->whole_ms = 0;
}

static int start(struct page *page)
{
	const uint64_t now_ms = clock_ms();
	const uint64_t since_ms = now_ms - page->started_ms;

	if (page->work.pid || page->is_wanted)
		return HTTP_LATER;
	if (since_ms < TEXT_AGE_MS) {
		page->is_wanted = true;
		timer_set(&page->turn, TEXT_AGE_MS - since_ms);
		return HTTP_LATER;
	}
	page->started_ms = now_ms;
	for (size_t i = 0; i < PAGE_KEYS_MAX; i++) {
		if (now_ms - page->keys[i].asked_ms >= KEY_AGE_MS)
			page->keys[i].asked_ms = 0;
	}
	memcpy(page->read, page->keys, sizeof(page->read));
	/* The old text may not be sent to everybody yet, so this is another file. */
	drop_text(page);
	page->fd = memfd_create("natra-pods", MFD_CLOEXEC);
	/* Others may wait for this job. */
	if (page->fd < 0)
		page->work.done(page, WORK_FAILED);
	else
		work_start(&page->work);
	return page->work.pid ? HTTP_LATER : 500;
}

static void start_wanted(struct page *page)
{
	page->is_wanted = false;
	(void)start(page);
}

/* A failure is said once until a job succeeds. */
static void note_failure(struct page *page, enum work_end end)
{
	const struct page_report *report = page->work.report;

	if (!page->is_failing)
		log_write(page->log, NATRA_LOG_WARN,
			  "reading the pods for the page: %s",
			  end == WORK_LATE     ? "took too long"
			  : end == WORK_FAILED ? "failed"
					       : report->error);
	page->is_failing = true;
}

static void done(void *arg, enum work_end end)
{
	struct page *page = arg;
	const struct page_report *report = page->work.report;

	if (end == WORK_DONE && report->r == 0) {
		page->whole_ms = clock_ms();
		page->is_failing = false;
	} else {
		note_failure(page, end);
		drop_text(page);
	}
	page->has_text = true;
	page->collected(page->arg);
	page->has_text = false;
	/* Nothing is kept for longer than somebody may ask for it again. */
	if (page->is_wanted)
		start_wanted(page);
	else
		timer_set(&page->turn, TEXT_AGE_MS);
}

static void take_turn(void *arg)
{
	struct page *page = arg;

	if (page->is_wanted)
		start_wanted(page);
	else if (!page->work.pid)
		drop_text(page);
}

static int answer_text(struct page *page, struct http_body *body)
{
	if (page->fd < 0)
		return 500;
	body->file_fd = fcntl(page->fd, F_DUPFD_CLOEXEC, 0);
	body->type = "application/json";
	return body->file_fd < 0 ? 500 : 200;
}

static int answer_pods(struct page *page, const uint64_t *key,
		       struct http_body *body)
{
	const bool is_known = !key || page_has_key(page->read, *key);

	if (key)
		remember(page, *key);
	/* After a failure all who wait learn of it. */
	if (page->has_text && page->fd >= 0 && !is_known) {
		page->is_wanted = true;
		return HTTP_LATER;
	}
	if (page->has_text || (is_known && page->whole_ms &&
			       clock_ms() - page->whole_ms < TEXT_AGE_MS))
		return answer_text(page, body);
	return start(page);
}

int page_answer(struct page *page, const struct http_request *request,
		struct http_body *body)
{
	uint64_t key;
	const enum page_path path = page_path_of(request->path, &key);

	if (!page->is_on || path == PAGE_NONE)
		return 404;
	body->headers = headers;
	if (!page_is_local(request->host))
		return 403;
	if (path != PAGE_HTML)
		return answer_pods(page, path == PAGE_POD ? &key : NULL, body);
	body->type = "text/html; charset=utf-8";
	(void)fwrite(page_html, 1, page_html_len, body->out);
	return 200;
}

int page_open(struct page *page, struct workers *workers)
{
	int r;

	page->fd = -1;
	page->work = (struct work){
		.name = "the page",
		.is_view = true,
		.run = run,
		.done = done,
		.arg = page,
		.report_size = sizeof(struct page_report),
		.time_max_ms = JOB_MAX_MS,
	};
	r = timer_open(&page->turn, workers->loop, take_turn, page);
	return r < 0 ? r : work_open(&page->work, workers);
}

void page_close(struct page *page)
{
	if (!page->work.workers)
		return;
	timer_close(&page->turn, page->work.workers->loop);
	work_close(&page->work);
	drop_text(page);
}
