/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "cli.h"
#include "find.h"
#include "json.h"
#include "neighbours.h"
#include "output.h"
#include "probe.h"

/* The library looked, and something of the limit is not there. */
static bool is_answer(int r)
{
	return r == -EBADE || r == -EUCLEAN || r == -ENODEV;
}

int cmd_check(struct cli *cli)
{
	cJSON *json;
	int r;

	r = find_argument(cli);
	if (r)
		return r;
	r = natra_check(cli->n, cli->opts.arg, NULL);
	if (wants_json(cli)) {
		json = cJSON_CreateObject();
		json_add_text(json, "id", cli->opts.arg);
		cJSON_AddBoolToObject(json, "ok", r == 0);
		if (r < 0)
			json_add_text(json, "error", natra_error(cli->n));
		json_print(json);
	}
	if (r < 0) {
		(void)failure(cli, r);
		return is_answer(r) ? EXIT_NO : EXIT_FAILURE;
	}
	if (!wants_json(cli))
		puts("ok");
	hooks_warn(cli, cli->opts.arg);
	return EXIT_SUCCESS;
}

static const char *yes(bool value)
{
	return value ? "yes" : "no";
}

static const char *auto_mode(const struct natra_features *f)
{
	const char *name = natra_attach_mode_name(f->auto_mode);

	return name && f->auto_mode != NATRA_ATTACH_MODE_AUTO ? name : "none";
}

static void print_features(const struct natra_features *f)
{
	printf("kernel      ");
	print_text(stdout, f->kernel, 0);
	printf("%s\n", f->kernel_ok ? "" : " (lacks what natra needs)");
	printf("bpf         %s\n", yes(f->bpf));
	printf("bpffs       %s\n", yes(f->bpffs));
	printf("tcx         %s\n", yes(f->tcx));
	printf("clsact      %s\n", yes(f->clsact));
	printf("fq          %s\n", yes(f->fq));
	printf("clock       %s\n", yes(f->coarse_clock));
	printf("atomics     %s\n", yes(f->atomics));
	printf("cookie      %s\n", yes(f->netns_cookie));
	printf("tstamp      %s\n", yes(f->set_tstamp));
	printf("auto mode   %s, egress pacing %s\n", auto_mode(f),
	       f->auto_edt ? "on" : "off");
	if (f->reason[0]) {
		printf("because     ");
		print_text(stdout, f->reason, 0);
		putchar('\n');
	}
}

cJSON *features_json(const struct natra_features *f)
{
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "kernel", f->kernel);
	cJSON_AddBoolToObject(o, "kernel_ok", f->kernel_ok);
	cJSON_AddBoolToObject(o, "bpf", f->bpf);
	cJSON_AddBoolToObject(o, "bpffs", f->bpffs);
	cJSON_AddBoolToObject(o, "tcx", f->tcx);
	cJSON_AddBoolToObject(o, "clsact", f->clsact);
	cJSON_AddBoolToObject(o, "fq", f->fq);
	cJSON_AddBoolToObject(o, "coarse_clock", f->coarse_clock);
	cJSON_AddBoolToObject(o, "atomics", f->atomics);
	cJSON_AddBoolToObject(o, "netns_cookie", f->netns_cookie);
	cJSON_AddBoolToObject(o, "set_tstamp", f->set_tstamp);
	json_add_text(o, "auto_mode", auto_mode(f));
	cJSON_AddBoolToObject(o, "auto_edt", f->auto_edt);
	json_add_text(o, "reason", f->reason);
	json_add_u64(o, "abi", f->abi);
	return o;
}

int cmd_probe(struct cli *cli)
{
	struct natra_features features = NATRA_INIT(features);
	int r;

	r = natra_probe(cli->n, &features);
	if (r < 0)
		return failure(cli, r);
	if (wants_json(cli))
		json_print(features_json(&features));
	else
		print_features(&features);
	return features.kernel_ok && features.bpf &&
			       (features.tcx || features.clsact)
		       ? EXIT_SUCCESS
		       : EXIT_NO;
}
