/* SPDX-License-Identifier: BSD-2-Clause */
#include "jobs.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "../../cni/wanted.h"
#include "../install/element.h"

/* The rates do not matter to a program. */
#define RATE_BITS_PER_SEC 1000000000
#define ID                "natra-agent-preload"

/* Logs a line of the library. Its information is a detail here. */
static void log_library(void *arg, enum natra_log_level level, const char *line)
{
	if (level == NATRA_LOG_INFO)
		level = NATRA_LOG_DEBUG;
	log_write(arg, level, "%s", line);
}

int jobs_open(const struct jobs *jobs, struct natra **ret_n)
{
	struct natra_open_opts opts = NATRA_INIT(opts);

	opts.bpffs_path = jobs->bpffs;
	opts.log_fn = log_library;
	opts.log_arg = jobs->log;
	opts.keep_programs = true;
	return natra_open(ret_n, &opts);
}

static int failed(struct programs_report *report, int r, const char *text)
{
	(void)snprintf(report->error, sizeof(report->error), "%.*s",
		       (int)sizeof(report->error) - 1,
		       text[0] ? text : strerror(-r));
	return r;
}

/* Reads the configuration that pods will be attached with, but for their
 * annotations. The policy points into *ret and *conf. */
static int read_settings(const struct jobs *jobs, struct natra *n,
			 struct settings *ret, struct conf *conf, char **text,
			 struct programs_report *report)
{
	cleanup_json cJSON *element = element_json(jobs->conf, NULL);
	struct failure failure = {0};
	int r;

	cJSON_AddStringToObject(element, "cniVersion", "1.0.0");
	cJSON_AddStringToObject(element, "name", ID);
	*text = json_dump(element);
	r = conf_parse(conf, *text, strlen(*text), &failure);
	if (r == 0)
		r = wanted_read(ret, conf, n, jobs->log, &failure);
	return r ? failed(report, -EINVAL, failure.msg) : 0;
}

/* Attaches to the loopback interface of an empty network namespace and detaches
 * again: what stays are the loaded programs, which the next pods share. */
static int attach_once(struct natra *n, const struct natra_policy *wanted,
		       struct programs_report *report)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = *wanted;
	int r;

	target.id = ID;
	target.ifname = "lo";
	policy.ingress_rate_bits_per_sec = RATE_BITS_PER_SEC;
	policy.egress_rate_bits_per_sec = RATE_BITS_PER_SEC;
	/* The loopback interface has no host side, on which ingress is paced
	 * and where some modes are. */
	policy.ingress_mode = NATRA_INGRESS_MODE_POLICE;
	policy.mode = NATRA_MODE_AUTO;
	policy.edt = NATRA_EDT_AUTO;
	r = natra_attach(n, &target, &policy, NULL);
	if (r < 0)
		return failed(report, r, natra_error(n));
	r = natra_detach(n, &target);
	return r < 0 ? failed(report, r, natra_error(n)) : 0;
}

static int preload(const struct jobs *jobs, struct natra *n,
		   struct programs_report *report)
{
	struct settings settings;
	struct conf conf = {0};
	char *text = NULL;
	int r = read_settings(jobs, n, &settings, &conf, &text, report);

	if (r == 0 && unshare(CLONE_NEWNET) < 0)
		r = failed(report, -errno, "no network namespace can be made");
	if (r == 0)
		r = attach_once(n, &settings.policy, report);
	conf_free(&conf);
	cJSON_free(text);
	return r;
}

void programs_job_run(const struct jobs *jobs, struct programs_report *report)
{
	struct natra *n = NULL;
	int r = jobs_open(jobs, &n);

	if (r < 0) {
		report->r = failed(report, r, "");
		return;
	}
	/* It removes idle programs, too, so it comes first. */
	if (natra_gc(n, NULL, NULL, 0, &report->removed) < 0)
		log_write(jobs->log, NATRA_LOG_WARN, "gc: %s", natra_error(n));
	report->r = preload(jobs, n, report);
	natra_close(n);
}
