/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the plugin, and what they share. */
#ifndef NATRA_CNI_COMMAND_H
#define NATRA_CNI_COMMAND_H

#include "env.h"
#include "settings.h"
#include "../tools/common/log.h"

/* One call of the plugin. */
struct call {
	struct env env;
	struct conf conf;
	struct natra *n;
	struct log log;
	char id[NATRA_ID_MAX + 1];
	char pod[NATRA_NAME_MAX + 1]; /* "<namespace>/<pod>", or "" */
	struct asker asker;           /* see call_read_asker */
	cJSON *namespaces;            /* the file, which the asker points to */
	struct namespaces_error namespaces_error;
	struct failure failure;
	/* how a success is logged */
	enum natra_log_level level;
	const char *outcome;
	struct log_words facts;
};

/* Each returns 0, or a code, with the text in call->failure. */
int cmd_add(struct call *call);
int cmd_del(struct call *call);
int cmd_check(struct call *call);
int cmd_gc(struct call *call);
int cmd_status(struct call *call);

/* Fills in `asker` from the configuration. Returns 0 or a code, as the commands do; then it has
 * what could be read. */
int call_read_asker(struct call *call);
/* Fills in `id`. Returns false if it is longer than the library takes, so that
 * nothing can be attached under it. */
bool call_make_id(struct call *call);
/* Writes "<network>/<container id>/<interface>". Returns false if it does not
 * fit. */
bool call_format_id(const struct call *call, const char *container_id,
		    const char *ifname, char *ret_id, size_t size);
struct natra_target call_target(const struct call *call);

#endif
