/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a request says that it is for the page, and who may ask. */
#ifndef NATRA_AGENT_PAGE_REQUEST_H
#define NATRA_AGENT_PAGE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

enum page_path {
	PAGE_NONE,
	PAGE_HTML, /* "/" */
	PAGE_PODS, /* "/pods" */
	PAGE_POD,  /* "/pods/KEY": the same, with the flows of the pod */
};

/* Of what the path asks; *ret_key is set for PAGE_POD only: the text_hash() of the id of an
 * attachment, since ids have slashes. */
enum page_path page_path_of(const char *path, uint64_t *ret_key);

/*
 * Returns whether the header Host names this machine's loopback, with or without a port. A
 * page of the web whose own name resolves to 127.0.0.1 (DNS rebinding) could otherwise read
 * what the browser of an administrator who has forwarded the port may read. Its name is in
 * the header. NULL, no such header, is no browser's, and refused as well.
 */
bool page_is_local(const char *host);

#endif
