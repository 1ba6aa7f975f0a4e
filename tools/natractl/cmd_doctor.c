/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "../doctor/doctor.h"
#include "cli.h"
#include "install_ask.h"
#include "json.h"
#include "output.h"

static void show(const struct doctor_report *report)
{
	if (!report->faults) {
		(void)print_text(stdout, report->sound, 0);
		putchar('\n');
	}
	for (size_t n = 0; n < report->len; n++) {
		const struct finding *found = &report->findings[n];

		(void)print_text(stdout, found->subject, 0);
		fputs(found->is_note ? ": note: " : ": ", stdout);
		(void)print_text(stdout, found->text, 0);
		fputs("\n    ", stdout);
		(void)print_text(stdout, found->mend, 0);
		putchar('\n');
	}
}

static void show_json(const struct doctor_report *report)
{
	cJSON *json = cJSON_CreateObject(), *findings;

	cJSON_AddBoolToObject(json, "sound", report->faults == 0);
	findings = cJSON_AddArrayToObject(json, "findings");
	for (size_t n = 0; n < report->len; n++) {
		const struct finding *found = &report->findings[n];
		cJSON *o = cJSON_CreateObject();

		json_add_text(o, "check", found->check);
		cJSON_AddBoolToObject(o, "note", found->is_note);
		json_add_text(o, "subject", found->subject);
		json_add_text(o, "text", found->text);
		json_add_text(o, "mend", found->mend);
		cJSON_AddItemToArray(findings, o);
	}
	json_print(json);
}

static int run(const struct cli *cli, const struct doctor_request *request)
{
	struct doctor_report report;
	int code;

	if (doctor_run(cli->n, request, &report) < 0) {
		fputs("natractl: ", stderr);
		(void)print_text(stderr, report.error, 0);
		fputc('\n', stderr);
		doctor_free(&report);
		return EXIT_FAILURE;
	}
	if (wants_json(cli))
		show_json(&report);
	else
		show(&report);
	code = report.faults ? EXIT_NO : EXIT_SUCCESS;
	doctor_free(&report);
	return code;
}

int cmd_doctor(struct cli *cli)
{
	struct doctor_request request = {
		.bpffs = cli->opts.value[OPT_BPFFS],
		.agent = cli->opts.value[OPT_AGENT],
		.pod = cli->opts.arg,
	};
	cJSON *conf = NULL;
	int r = opts_check_text("POD", request.pod, UINT16_MAX);

	if (r == 0 && request.agent && !doctor_is_address(request.agent))
		r = usage_error(opts_name(OPT_AGENT), request.agent,
				"is not ADDRESS:PORT, such as 127.0.0.1:9810");
	if (r == 0)
		r = install_ask(cli, &request.install, &conf);
	if (r)
		return r;
	cJSON_Delete(conf);
	request.install.conf = NULL;
	return run(cli, &request);
}
