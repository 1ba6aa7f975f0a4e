/* SPDX-License-Identifier: BSD-2-Clause */
#include "scrape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../metrics/kept.h"
#include "jobs.h"

/* This is less than HTTP_TIME_MAX_MS, so that the client gets an answer that says
 * so. */
#define COLLECTION_MAX_MS 4000
/* A client that asks again within this time, also on another port, gets the same text:
 * the port may be open to everybody, and a collection is a process that reads all
 * attachments. */
#define TEXT_AGE_MS       1000
/* So long after somebody has asked for a format each collection writes that one, too. */
#define FORMAT_AGE_MS     60000
#define INSPECTION_MAX_MS 60000
/* An inspection takes about a millisecond for each attachment. What it finds is told by the next
 * answer, which is to be within a minute. */
#define INSPECTION_AGE_MS 30000

struct scrape_report {
	int r;
	bool is_cut
		[SCRAPE_FORMATS]; /* a part of the text could not be written */
	char error[256];
};

static void note_error(struct scrape_report *report, int r, const char *text)
{
	report->r = r;
	(void)snprintf(report->error, sizeof(report->error), "%.*s",
		       (int)sizeof(report->error) - 1,
		       text[0] ? text : strerror(-r));
}

/* Maps a file that another job has written. If it is empty, or there is none, *ret_all
 * is NULL and *ret_size 0. */
static int map_file(int fd, const char **ret_all, size_t *ret_size)
{
	struct stat st = {0};
	void *all;

	*ret_all = NULL;
	*ret_size = 0;
	if (fd >= 0 && fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return 0;
	all = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (all == MAP_FAILED)
		return -errno;
	*ret_all = all;
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* Reads what the last inspection has written: the features, then the findings. */
static void apply_findings(const struct scrape *scrape,
			   struct node_metrics *node)
{
	size_t size;
	const char *all;

	/* The findings are left out if they cannot be read. */
	if (map_file(scrape->findings_fd, &all, &size) < 0 || !all)
		return;
	if (size >= sizeof(node->features)) {
		memcpy(&node->features, all, sizeof(node->features));
		node->has_features = true;
		node_metrics_apply(node,
				   (const void *)(all + sizeof(node->features)),
				   (size - sizeof(node->features)) /
					   sizeof(struct finding));
	}
	(void)munmap((void *)all, size);
}

/* The data that a collection of sums leaves for the next one: when it read the
 * attachments, and then the list of kept.h. */
struct left {
	uint64_t began_ns;
	struct kept list[];
};

static struct kept *update_kept(struct node_metrics *node,
				const struct left *left, size_t size,
				size_t *ret_len)
{
	if (size < sizeof(*left))
		return kept_begin(node, ret_len);
	node->last_began_ns = left->began_ns;
	return kept_update(node, left->list,
			   (size - sizeof(*left)) / sizeof(*left->list),
			   ret_len);
}

/* The texts that a collection writes. `out` is NULL in one that it does not. */
struct texts {
	struct exposition of[SCRAPE_FORMATS];
};

static void write_families(struct texts *texts, const struct scrape *scrape,
			   const struct node_metrics *node)
{
	for (size_t i = 0; i < SCRAPE_FORMATS; i++) {
		if (texts->of[i].out)
			families_write(&texts->of[i], node, &scrape->options);
	}
}

static int write_sums(struct texts *texts, const struct scrape *scrape,
		      struct node_metrics *node)
{
	struct kept *list = NULL;
	FILE *out = fdopen(scrape->left_fd, "w");
	size_t size = 0, len = 0;
	const char *all = NULL;
	int r;

	if (!out)
		return -errno;
	r = map_file(scrape->kept_fd, &all, &size);
	if (r == 0)
		list = update_kept(node, (const void *)all, size, &len);
	if (r == 0 &&
	    (fwrite(&node->began_ns, sizeof(node->began_ns), 1, out) < 1 ||
	     fwrite(list, sizeof(*list), len, out) < len))
		r = -EIO;
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		write_families(texts, scrape, node);
	node->gone = NULL;
	node->gone_len = 0;
	free(list);
	if (all)
		(void)munmap((void *)all, size);
	return r;
}

static int open_library(const struct scrape *scrape, struct natra **ret_n,
			struct scrape_report *report)
{
	const struct jobs jobs = {.bpffs = scrape->bpffs, .log = scrape->log};
	int r = jobs_open(&jobs, ret_n);

	if (r < 0)
		note_error(report, r, "");
	return r;
}

/* The agent's own metrics are written even if the attachments cannot be read. */
static void write_pods(struct texts *texts, const struct scrape *scrape,
		       struct scrape_report *report)
{
	struct node_metrics node = {0};
	struct natra *n = NULL;
	int r;

	if (open_library(scrape, &n, report) < 0)
		return;
	r = node_metrics_read(n, &node);
	if (r < 0) {
		note_error(report, r, natra_error(n));
	} else {
		apply_findings(scrape, &node);
		if (scrape->options.by_namespace)
			r = write_sums(texts, scrape, &node);
		else
			write_families(texts, scrape, &node);
		if (r < 0)
			note_error(report, r, "");
	}
	node_metrics_free(&node);
	natra_close(n);
}

/* There may be megabytes of text. Returns NULL if the file cannot be written. */
static FILE *begin_text(const struct scrape_text *text,
			struct scrape_report *report)
{
	FILE *out = fdopen(text->fd, "w");

	if (!out)
		note_error(report, -errno, "");
	else
		(void)setvbuf(out, NULL, _IOFBF, 65536);
	return out;
}

static void end_text(struct exposition *e, const struct scrape *scrape,
		     bool *ret_is_cut)
{
	own_families_write(e, scrape);
	exposition_end(e);
	*ret_is_cut = ferror(e->out);
	if (fclose(e->out) != 0)
		*ret_is_cut = true;
}

static void collect(void *arg)
{
	const struct scrape *scrape = arg;
	struct scrape_report *report = scrape->collection.report;
	struct texts texts = {0};

	for (size_t i = 0; i < SCRAPE_FORMATS; i++) {
		texts.of[i].is_openmetrics = i == SCRAPE_OPENMETRICS;
		if (scrape->texts[i].is_written)
			texts.of[i].out = begin_text(&scrape->texts[i], report);
	}
	if (scrape->reads_pods)
		write_pods(&texts, scrape, report);
	for (size_t i = 0; i < SCRAPE_FORMATS; i++) {
		if (texts.of[i].out)
			end_text(&texts.of[i], scrape, &report->is_cut[i]);
		if (report->is_cut[i])
			note_error(report, -EIO, "write the metrics");
	}
}

static void say_failure(struct scrape *scrape, const char *what,
			const struct work *work, enum work_end end)
{
	const struct scrape_report *report = work->report;

	if (end == WORK_DONE && report->r == 0)
		return;
	scrape->errors++;
	log_write(scrape->log, NATRA_LOG_WARN, "%s: %s", what,
		  end == WORK_LATE     ? "took too long"
		  : end == WORK_FAILED ? "failed"
				       : report->error);
}

/* The next job reads what this one has written if that is whole. */
static void keep(int *kept_fd, int *written_fd, bool is_whole)
{
	int old_fd = is_whole ? *kept_fd : *written_fd;

	if (*written_fd < 0)
		return;
	if (old_fd >= 0)
		(void)close(old_fd);
	if (is_whole)
		*kept_fd = *written_fd;
	*written_fd = -1;
}

static void write_findings(FILE *out, const struct node_metrics *node)
{
	(void)fwrite(&node->features, sizeof(node->features), 1, out);
	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];
		struct finding finding = {
			.check_failed = pod->check_failed,
			.program_before = pod->program_before,
		};

		memcpy(finding.id, pod->info.id, sizeof(finding.id));
		if (pod->is_inspected)
			(void)fwrite(&finding, sizeof(finding), 1, out);
	}
}

static void inspect(void *arg)
{
	const struct scrape *scrape = arg;
	struct scrape_report *report = scrape->inspection.report;
	struct node_metrics node = {0};
	struct natra *n = NULL;
	FILE *out;
	int r;

	if (open_library(scrape, &n, report) < 0)
		return;
	r = node_metrics_read(n, &node);
	if (r == 0)
		r = node_metrics_inspect(n, &node);
	if (r < 0)
		note_error(report, r, natra_error(n));
	out = r < 0 ? NULL : fdopen(scrape->inspected_fd, "w");
	if (out) {
		write_findings(out, &node);
		if (fclose(out) != 0)
			note_error(report, -EIO, "write the findings");
	}
	node_metrics_free(&node);
	natra_close(n);
}

static void inspected(void *arg, enum work_end end)
{
	struct scrape *scrape = arg;
	const struct scrape_report *report = scrape->inspection.report;

	say_failure(scrape, "inspecting the attachments", &scrape->inspection,
		    end);
	scrape->inspected_ms = clock_ms();
	keep(&scrape->findings_fd, &scrape->inspected_fd,
	     end == WORK_DONE && report->r == 0);
}

/* Inspections run only when somebody asks for metrics: without a Prometheus there are
 * none. */
static void start_inspection(struct scrape *scrape)
{
	if (!scrape->reads_pods || scrape->inspected_fd >= 0 ||
	    (scrape->inspected_ms &&
	     clock_ms() - scrape->inspected_ms < INSPECTION_AGE_MS))
		return;
	scrape->inspected_fd = memfd_create("natra-findings", MFD_CLOEXEC);
	if (scrape->inspected_fd >= 0)
		work_start(&scrape->inspection);
}

/* The text gets a new file, because the old one may not be sent to everybody yet. */
static int renew_text(struct scrape_text *text)
{
	int fd = memfd_create("natra-metrics", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (text->fd >= 0)
		(void)close(text->fd);
	text->fd = fd;
	text->whole_ms = 0;
	return 0;
}

static int renew_texts(struct scrape *scrape)
{
	const uint64_t now_ms = clock_ms();
	int r = 0;

	for (size_t i = 0; i < SCRAPE_FORMATS && r == 0; i++) {
		struct scrape_text *text = &scrape->texts[i];

		text->is_written = text->asked_ms &&
				   now_ms - text->asked_ms < FORMAT_AGE_MS;
		if (text->is_written)
			r = renew_text(text);
	}
	return r;
}

static int start_collection(struct scrape *scrape)
{
	if (!scrape->collection.pid) {
		if (renew_texts(scrape) < 0)
			return 500;
		if (scrape->options.by_namespace)
			scrape->left_fd =
				memfd_create("natra-kept", MFD_CLOEXEC);
		work_start(&scrape->collection);
		/* It may have failed at once, which was said. */
		if (!scrape->collection.pid)
			return 500;
	}
	start_inspection(scrape);
	return HTTP_LATER;
}

/* A part of a text would look like one in which pods are gone, so nothing is left of it. */
static void take_texts(struct scrape *scrape, enum work_end end, bool is_whole)
{
	const struct scrape_report *report = scrape->collection.report;

	for (size_t i = 0; i < SCRAPE_FORMATS; i++) {
		struct scrape_text *text = &scrape->texts[i];

		if (!text->is_written)
			continue;
		if ((end != WORK_DONE || report->is_cut[i]) &&
		    ftruncate(text->fd, 0) < 0)
			text->is_written = false;
		text->whole_ms = is_whole ? clock_ms() : 0;
	}
}

static void collected(void *arg, enum work_end end)
{
	struct scrape *scrape = arg;
	const struct scrape_report *report = scrape->collection.report;
	const bool is_whole = end == WORK_DONE && report->r == 0;

	say_failure(scrape, "collecting the metrics", &scrape->collection, end);
	keep(&scrape->kept_fd, &scrape->left_fd, is_whole);
	take_texts(scrape, end, is_whole);
	scrape->has_text = true;
	scrape->is_asked_for_other = false;
	scrape->collected(scrape->arg);
	scrape->has_text = false;
	/* If this fails, the clients that wait get no answer and soon run into their
	 * time limit. */
	if (scrape->is_asked_for_other)
		(void)start_collection(scrape);
}

static int answer_text(const struct scrape_text *text, bool is_openmetrics,
		       struct http_body *body)
{
	struct stat st;

	if (fstat(text->fd, &st) < 0 || st.st_size == 0)
		return 500;
	body->file_fd = fcntl(text->fd, F_DUPFD_CLOEXEC, 0);
	if (body->file_fd < 0)
		return 500;
	body->type = exposition_content_type(is_openmetrics);
	return 200;
}

static bool has_recent_text(const struct scrape *scrape,
			    const struct scrape_text *text)
{
	if (scrape->has_text)
		return text->is_written;
	return text->whole_ms && clock_ms() - text->whole_ms < TEXT_AGE_MS;
}

int scrape_answer(struct scrape *scrape, const struct http_request *request,
		  struct http_body *body)
{
	bool is_openmetrics = exposition_accepts_openmetrics(request->accept);
	struct scrape_text *text =
		&scrape->texts[is_openmetrics ? SCRAPE_OPENMETRICS
					      : SCRAPE_PROMETHEUS];

	text->asked_ms = clock_ms();
	if (has_recent_text(scrape, text))
		return answer_text(text, is_openmetrics, body);
	/* The next collection begins when this one's text is answered with. */
	if (scrape->has_text) {
		scrape->is_asked_for_other = true;
		return HTTP_LATER;
	}
	return start_collection(scrape);
}

int scrape_open(struct scrape *scrape, struct workers *workers)
{
	struct work work = {
		.name = "the metrics",
		.is_view = true,
		.run = collect,
		.done = collected,
		.arg = scrape,
		.report_size = sizeof(struct scrape_report),
		.time_max_ms = COLLECTION_MAX_MS,
	};
	int r;

	scrape->findings_fd = scrape->inspected_fd = -1;
	scrape->kept_fd = scrape->left_fd = -1;
	for (size_t i = 0; i < SCRAPE_FORMATS; i++)
		scrape->texts[i].fd = -1;
	scrape->collection = work;
	r = work_open(&scrape->collection, workers);
	work.name = "the inspection";
	work.run = inspect;
	work.done = inspected;
	work.time_max_ms = INSPECTION_MAX_MS;
	scrape->inspection = work;
	return r < 0 ? r : work_open(&scrape->inspection, workers);
}

void scrape_close(struct scrape *scrape)
{
	if (!scrape->collection.workers)
		return;
	work_close(&scrape->collection);
	work_close(&scrape->inspection);
	for (size_t i = 0; i < SCRAPE_FORMATS; i++) {
		if (scrape->texts[i].fd >= 0)
			(void)close(scrape->texts[i].fd);
	}
	keep(&scrape->findings_fd, &scrape->inspected_fd, false);
	keep(&scrape->kept_fd, &scrape->left_fd, false);
	if (scrape->findings_fd >= 0)
		(void)close(scrape->findings_fd);
	if (scrape->kept_fd >= 0)
		(void)close(scrape->kept_fd);
}
