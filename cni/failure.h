/* SPDX-License-Identifier: BSD-2-Clause */
/* The error object of the CNI specification. A function that takes a struct
 * failure returns 0, or a code, with the text in it. */
#ifndef NATRA_CNI_FAILURE_H
#define NATRA_CNI_FAILURE_H

#include <natra/natra.h>

enum cni_code {
	CNI_INCOMPATIBLE_VERSION = 1,
	CNI_BAD_ENVIRONMENT = 4,
	CNI_IO = 5,
	CNI_DECODE = 6,
	CNI_BAD_CONFIG = 7,
	CNI_BAD_NETNS = 8,
	CNI_TRY_AGAIN = 11,
	CNI_NOT_AVAILABLE = 50,
	/* These are natra's own; natra-cni(8) explains them. */
	CNI_NOT_SHAPED = 100,
	CNI_NOT_SUPPORTED = 101,
	CNI_BUSY = 102,
	CNI_NO_PERMISSION = 103,
	CNI_UNKNOWN_STATE = 104,
	CNI_NO_INTERFACE = 105,
	CNI_DIFFERS = 110,
	CNI_NOT_REMOVED = 111,
};

struct failure {
	enum cni_code code;
	char msg[1024];
	char details[256]; /* "": none */
	/* The annotation that the text is about; "": none. */
	char annotation[128];
};

__attribute__((format(printf, 3, 4))) int failure_set(struct failure *failure,
						      enum cni_code code,
						      const char *format, ...);

/* Adds details to the failure, after failure_set(). */
__attribute__((format(printf, 2, 3))) void
failure_add_details(struct failure *failure, const char *format, ...);

/* Fails with the handle's error `r`. An errno that has no code of its own
 * becomes `otherwise`. */
int failure_of_natra(struct failure *failure, const struct natra *n, int r,
		     enum cni_code otherwise);

#endif
