/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "cli.h"
#include "find.h"
#include "json.h"
#include "output.h"

int cmd_detach(struct cli *cli)
{
	struct natra_target target = NATRA_INIT(target);
	char id[NATRA_ID_MAX + 1];
	int r;

	if (!cli->opts.value[OPT_NETNS]) {
		r = find_argument(cli);
		if (r)
			return r;
		target.id = cli->opts.arg;
	} else {
		r = check_interface(cli);
		if (r)
			return r;
		target.ifname = cli->opts.arg;
		target.netns = cli->opts.value[OPT_NETNS];
		/* The interface may have been attached under any id. If it is
		 * not found, state may still be left under its default id. */
		r = natra_find(cli->n, &target, id, sizeof(id));
		if (r == 0)
			target.id = id;
		else if (r != -ENOENT && r != -ENODEV)
			return failure(cli, r);
	}
	r = natra_detach(cli->n, &target);
	if (r < 0)
		return failure(cli, r);
	if (r > 0)
		return EXIT_SUCCESS;
	(void)usage_error(target.ifname ? "IFNAME" : "ID|POD", cli->opts.arg,
			  "is not attached");
	return EXIT_FAILURE;
}

int cmd_gc(struct cli *cli)
{
	size_t removed = 0;
	cJSON *json;
	int r;

	r = natra_gc(cli->n, NULL, NULL, 0, &removed);
	if (r < 0)
		return failure(cli, r);
	if (!wants_json(cli)) {
		printf("removed %zu\n", removed);
		return EXIT_SUCCESS;
	}
	json = cJSON_CreateObject();
	json_add_u64(json, "removed", removed);
	json_print(json);
	return EXIT_SUCCESS;
}
