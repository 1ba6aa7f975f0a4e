/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs all checks, each with what it needs. */
#include <stdio.h>
#include <stdlib.h>

#include "../common/text.h"
#include "agent_probe.h"
#include "check.h"

bool doctor_is_address(const char *text)
{
	return agent_is_address(text);
}

static void run(const struct check *table, struct finder f)
{
	for (const struct check *check = table; check->name; check++) {
		f.check = check;
		check->look(&f);
	}
}

/* Returns whether the runtime's lists matter: not for a pod that was attached
 * without them. */
static bool needs_chain(const struct node *node, const struct pods *pods)
{
	if (!node->has_chain)
		return false;
	if (!node->request->pod)
		return true;
	for (size_t n = 0; n < pods->len; n++) {
		if (pods->items[n]->has_result ||
		    pods->items[n]->info.network[0])
			return true;
	}
	return node->lacks != 0;
}

static void run_all(const struct node *node, const struct pods *pods,
		    struct doctor_report *report)
{
	struct finder f = {.node = node, .pods = pods, .report = report};

	run(checks_of_node, f);
	if (needs_chain(node, pods)) {
		run(checks_of_list, f);
		run(checks_of_plugin, f);
	}
	for (size_t n = 0; n < pods->len; n++) {
		f.pod = pods->items[n];
		run(checks_of_order, f);
		run(checks_of_limits, f);
		run(checks_of_link, f);
	}
}

static char *sound_line(const struct node *node, const struct pods *pods)
{
	const char *mode = natra_attach_mode_name(node->features.auto_mode);
	size_t limited = 0;

	for (size_t n = 0; n < pods->len; n++)
		limited += pod_is_limited(pods->items[n]);
	return text_format(
		"sound: natra %s on Linux %s, %s, egress is %s; %s%s; %zu limited",
		natra_version(), node->features.kernel, mode ? mode : "?",
		node->features.auto_edt ? "paced" : "policed",
		node->element ? "called by " : "no runtime",
		node->element ? node->element_path : "", limited);
}

int doctor_run(struct natra *n, const struct doctor_request *request,
	       struct doctor_report *ret)
{
	struct node node;
	struct pods pods = {0};
	int r;

	*ret = (struct doctor_report){0};
	r = node_look(&node, n, request, &ret->error);
	if (r == 0)
		r = pods_look(&pods, &node, &ret->error);
	if (r == 0) {
		run_all(&node, &pods, ret);
		ret->sound = sound_line(&node, &pods);
	}
	pods_free(&pods);
	node_free(&node);
	return r;
}

void doctor_free(struct doctor_report *report)
{
	for (size_t n = 0; n < report->len; n++) {
		free(report->findings[n].subject);
		free(report->findings[n].text);
		free(report->findings[n].mend);
	}
	free(report->findings);
	free(report->sound);
	free(report->error);
	*report = (struct doctor_report){0};
}
