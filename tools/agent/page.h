/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page for a person: "/" and what it reads, "/pods". A job in a child process reads the
 * pods when somebody asks, so nothing is kept and nothing runs while nobody looks; the last
 * minutes are the browser's.
 */
#ifndef NATRA_AGENT_PAGE_H
#define NATRA_AGENT_PAGE_H

#include "health.h"
#include "http.h"
#include "work.h"

/* The flows of so many pods are read at once, those that were asked for last. */
#define PAGE_KEYS_MAX 4

struct page_key {
	uint64_t key;
	uint64_t asked_ms; /* 0: none */
};

/* Returns whether the key is one of PAGE_KEYS_MAX. */
bool page_has_key(const struct page_key *keys, uint64_t key);

struct page {
	struct log *log;
	const struct health *health;
	const char *bpffs;
	const char *node; /* its name; "": not known */
	bool is_on;
	/* Called when the answers are known: http_resume. */
	void (*collected)(void *arg);
	void *arg;
	struct work work;
	/* The text goes when it is old, or the next job begins. */
	struct timer turn;
	struct page_key keys[PAGE_KEYS_MAX];
	struct page_key read[PAGE_KEYS_MAX]; /* those of the text */
	int fd; /* of the text, a file in memory; -1: there is none */
	uint64_t whole_ms;   /* since when it is whole; 0: it is not */
	uint64_t started_ms; /* when the last job began */
	bool has_text; /* the job has ended, and its text is for those who wait */
	bool is_wanted;  /* somebody waits for the text of the next job */
	bool is_failing; /* the last job has failed, which the log says */
};

/* The members log to arg are set by the caller. Returns 0 or -errno. */
int page_open(struct page *page, struct workers *workers);
/* Returns 404 if the path is none of the page's. */
int page_answer(struct page *page, const struct http_request *request,
		struct http_body *body);
void page_close(struct page *page);

/* In the child: writes the text to page->fd. Returns 0 or -errno, with a text. */
int page_job_write(const struct page *page, char *error, size_t size);

#endif
