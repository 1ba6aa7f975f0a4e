/* SPDX-License-Identifier: BSD-2-Clause */
/* The configurations of the CNI plugin that the tests begin with. */
#ifndef TEST_CNI_INPUT_H
#define TEST_CNI_INPUT_H

#include "cm.h"

#include <stdio.h>
#include <string.h>

#include "conf.h"

static struct natra *n; /* of each case */

static inline int setup(void **state)
{
	return natra_open(&n, NULL);
}

static inline int teardown(void **state)
{
	natra_close(n);
	return 0;
}

/* Makes a configuration from members, if the other members do not matter. */
#define CONF(members)                                                          \
	"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"natra\""        \
	"," members "}"

/* Parses a configuration that must be valid; call conf_free() on it. */
static inline struct conf conf_of(const char *text)
{
	struct failure failure = {0};
	struct conf conf;

	if (conf_parse(&conf, text, strlen(text), &failure))
		fail_msg("%s: %s", text, failure.msg);
	return conf;
}

/* Does the same for CONF(members). */
static inline struct conf conf_with(const char *members)
{
	char text[1024];
	struct conf conf;

	(void)snprintf(text, sizeof(text), CONF("%s"), members);
	conf = conf_of(text);
	conf.text = NULL; /* which belongs to the caller */
	return conf;
}

/* Checks that the message has each of these words. */
static inline void says(const struct failure *failure, const char *input,
			const char *a, const char *b)
{
	if (!strstr(failure->msg, a) || !strstr(failure->msg, b))
		fail_msg("%s: '%s' has not '%s' and '%s'", input, failure->msg,
			 a, b);
}

#endif
