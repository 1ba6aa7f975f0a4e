/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "output.h"

void pid_netns(uint32_t pid, char ret_path[PID_NETNS_MAX])
{
	(void)snprintf(ret_path, PID_NETNS_MAX, "/proc/%u/ns/net", pid);
}

bool wants_json(const struct cli *cli)
{
	return cli->opts.value[OPT_JSON];
}

int check_interface(const struct cli *cli)
{
	/* The longest name is IFNAMSIZ - 1 bytes. */
	int r = opts_check_text("IFNAME", cli->opts.arg, 15);

	if (r)
		return r;
	if (strpbrk(cli->opts.arg, "/ \t\n\v\f\r"))
		return usage_error("IFNAME", cli->opts.arg,
				   "is not an interface name");
	return opts_check_text(opts_name(OPT_NETNS), cli->opts.value[OPT_NETNS],
			       UINT16_MAX);
}

int failure(const struct cli *cli, int r)
{
	const char *text = natra_error(cli->n);

	fputs("natractl: ", stderr);
	print_text(stderr, text[0] ? text : strerror(-r), 0);
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

int refused(const struct cli *cli, int r, const char *name, const char *value)
{
	/* A lack of memory is no mistake of the caller's. */
	return r == -ENOMEM ? failure(cli, r)
			    : usage_error(name, value, "is refused: %s",
					  natra_error(cli->n));
}

int cmd_version(struct cli *cli)
{
	cJSON *json;

	if (!wants_json(cli)) {
		printf("natractl %s\n", natra_version());
		return EXIT_SUCCESS;
	}
	json = cJSON_CreateObject();
	json_add_text(json, "version", natra_version());
	json_print(json);
	return EXIT_SUCCESS;
}
