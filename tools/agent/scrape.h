/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers requests for /metrics. A job in a child process collects the metrics, and all
 * clients that ask meanwhile get its result. */
#ifndef NATRA_AGENT_SCRAPE_H
#define NATRA_AGENT_SCRAPE_H

#include "../metrics/families.h"
#include "http.h"
#include "installer.h"
#include "work.h"

enum scrape_format {
	SCRAPE_PROMETHEUS,
	SCRAPE_OPENMETRICS,
	SCRAPE_FORMATS,
};

struct scrape_text {
	int fd; /* of a file in memory, which the job writes; -1: there is none */
	/* The job that runs, or has just ended, writes it. */
	bool is_written;
	uint64_t whole_ms; /* since when it is whole; 0: it is not */
	uint64_t asked_ms; /* when it was last asked for; 0: never */
};

struct scrape {
	struct log *log;
	const struct health *health;
	const struct installer *installer; /* NULL: it does not run */
	const char *bpffs;
	bool reads_pods;
	struct families_options options;
	/* Called when the answers are known: http_resume for each server. */
	void (*collected)(void *arg);
	void *arg;
	struct work collection, inspection;
	struct scrape_text texts[SCRAPE_FORMATS];
	/* What a collection of sums leaves for the next one; kept_fd is -1 if
	 * there is nothing, and left_fd is of the collection that runs. */
	int kept_fd, left_fd;
	int findings_fd;  /* of the last inspection; -1: there was none */
	int inspected_fd; /* of the inspection that runs */
	uint64_t inspected_ms;
	bool has_text; /* the job has ended, and its text is for those who wait */
	/* A client that waits wants a format that the job has not written. */
	bool is_asked_for_other;
	uint64_t errors;
};

/* The members log to arg are set by the caller. Returns 0 or -errno. */
int scrape_open(struct scrape *scrape, struct workers *workers);
int scrape_answer(struct scrape *scrape, const struct http_request *request,
		  struct http_body *body);
void scrape_close(struct scrape *scrape);

/* Writes the metrics of the agent itself. */
void own_families_write(struct exposition *e, const struct scrape *scrape);

#endif
