/* SPDX-License-Identifier: BSD-2-Clause */
/* GC removes this network's attachments that are not in the list of valid ones. */
#include <stdlib.h>

#include "../tools/common/text.h"
#include "command.h"

#define VALID_KEY "cni.dev/valid-attachments"

struct ids {
	char **list;
	size_t len;
};

static void ids_free(struct ids *ids)
{
	for (size_t i = 0; i < ids->len; i++)
		free(ids->list[i]);
	free(ids->list);
}

/* Adds one entry. An entry that cannot be read may stand for an attachment in
 * use, so that nothing is removed then. */
static int read_entry(const struct call *call, const cJSON *item, size_t at,
		      struct ids *ids, struct failure *failure)
{
	const char *container_id = json_text(json_get(item, "containerID"));
	const char *ifname = json_text(json_get(item, "ifname"));
	char id[NATRA_ID_MAX + 1];

	if (!container_id || !ifname)
		return failure_set(
			failure, CNI_BAD_CONFIG,
			VALID_KEY "[%zu]: lacks containerID or ifname", at);
	/* An id that is too long was never attached. */
	if (!call_format_id(call, container_id, ifname, id, sizeof(id)))
		return 0;
	ids->list[ids->len++] = text_copy(id);
	return 0;
}

static int read_ids(const struct call *call, const cJSON *valid,
		    struct ids *ids, struct failure *failure)
{
	size_t len = (size_t)cJSON_GetArraySize(valid), at = 0;
	const cJSON *item;
	int r = 0;

	ids->list = memory_new(len * sizeof(*ids->list));
	cJSON_ArrayForEach(item, valid)
	{
		r = read_entry(call, item, at++, ids, failure);
		if (r)
			break;
	}
	return r;
}

int cmd_gc(struct call *call)
{
	const cJSON *valid = json_member(call->conf.json, VALID_KEY);
	struct ids ids = {0};
	size_t removed = 0;
	int r;

	call->outcome = "the runtime does not say what is valid";
	if (!valid)
		return 0;
	/* null is Go's nil slice: it is known that nothing is valid. */
	if (!cJSON_IsArray(valid) && !cJSON_IsNull(valid))
		return failure_set(&call->failure, CNI_BAD_CONFIG,
				   "%s: %s is not a list", VALID_KEY,
				   json_show(valid).text);
	r = read_ids(call, valid, &ids, &call->failure);
	if (r == 0) {
		int error = natra_gc(call->n, call->conf.name,
				     (const char *const *)ids.list, ids.len,
				     &removed);

		if (error < 0)
			r = failure_of_natra(&call->failure, call->n, error,
					     CNI_NOT_REMOVED);
	}
	ids_free(&ids);
	call->outcome = "swept";
	call->level = removed ? NATRA_LOG_INFO : NATRA_LOG_DEBUG;
	log_add_u64(&call->facts, "removed", removed);
	return r;
}
