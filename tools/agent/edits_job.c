/* SPDX-License-Identifier: BSD-2-Clause */
#include "edits_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/policy/fields.h"
#include "../install/results.h"
#include "seat.h"

struct edits {
	const struct jobs *jobs;
	const struct edit *first;
	struct natra *n;
	int root_fd;
	struct edits_report *report;
};

enum difference { SAME, DIFFERS, DIFFERS_IN_FIXED };

/* Compares the limits that a pod has with those that it should have. Subnets are the
 * configuration's and do not change while a pod runs. */
static enum difference compare(const struct natra_policy *has,
			       const struct natra_policy *wanted)
{
	enum difference found = SAME;

	/* Members of groups have programs of their own. */
	if (!has->group != !wanted->group)
		return DIFFERS_IN_FIXED;
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (policy_field_get(field, has) ==
		    policy_field_get(field, wanted))
			continue;
		if (field->is_fixed)
			return DIFFERS_IN_FIXED;
		found = DIFFERS;
	}
	return found;
}

static void note(struct edit_result *result, const char *text)
{
	(void)snprintf(result->message, sizeof(result->message), "%.*s",
		       (int)sizeof(result->message) - 1, text);
}

static void log_change(const struct seat *seat,
		       const struct natra_policy *policy)
{
	struct log_words words = {0};

	log_add(&words, "id", seat->id);
	log_add(&words, "pod", seat->pod);
	log_add_u64(&words, "ingress_bits_per_sec",
		    policy->ingress_rate_bits_per_sec);
	log_add_u64(&words, "egress_bits_per_sec",
		    policy->egress_rate_bits_per_sec);
	log_line(seat->jobs->log, NATRA_LOG_INFO,
		 "limits follow the pod's annotations", &words);
}

/* Makes an attachment, or changes it. If all limits go it stays, without limits:
 * the runtime still asks CHECK for it. */
static int change(const struct seat *seat, const struct natra_policy *policy,
		  const struct natra_info *info, bool is_attached,
		  enum seat_change *ret_change)
{
	*ret_change = SEAT_LIMITED;
	if (is_attached && (compare(&info->policy, policy) == DIFFERS ||
			    !wanted_limits(policy)))
		return natra_configure(seat->n, seat->id, policy);
	return seat_attach(seat, policy, ret_change);
}

static void seat_failed(const struct seat *seat, int r,
			struct edit_result *result)
{
	result->is_failed = true;
	note(result, seat_error(seat, r));
}

/* A configuration without groups leaves an attachment in the one that it was put in by
 * hand. */
static void keep_group(struct natra_policy *policy,
		       const struct natra_policy *have)
{
	policy->group = have->group;
	policy->group_weight = have->group_weight;
	policy->group_floor_bits_per_sec = have->group_floor_bits_per_sec;
}

static void follow(const struct seat *seat, struct wish *wish,
		   struct edit_result *result)
{
	struct natra_policy *policy = &wish->settings.policy;
	struct natra_info info = NATRA_INIT(info);
	enum seat_change made;
	int r, is_attached = seat_query(seat, &info);

	if (is_attached < 0) {
		seat_failed(seat, is_attached, result);
		return;
	}
	if (is_attached && wanted_limits(policy) && !wish->settings.group.name)
		keep_group(policy, &info.policy);
	if (is_attached ? compare(&info.policy, policy) == SAME
			: !seat->jobs->adopt || !wanted_limits(policy))
		return;
	r = change(seat, policy, &info, is_attached, &made);
	/* The pod has ended meanwhile. */
	if (r == -ENOENT || r == -ENODEV)
		return;
	if (r < 0) {
		seat_failed(seat, r, result);
		return;
	}
	result->is_later |= made == SEAT_LATER;
	if (made == SEAT_LIMITED || made == SEAT_REPLACED)
		log_change(seat, policy);
}

/* Interfaces that a runtime has made for the pod get its annotations; those that
 * Multus adds have limits of their own. */
static bool is_of_runtime(const struct cached *cached)
{
	/* The value is null if the pod had no annotations. */
	return cJSON_GetObjectItemCaseSensitive(
		json_get_exact(cached->json, "capabilityArgs"),
		"io.kubernetes.cri.pod-annotations");
}

static bool is_of(const struct cached *cached, const struct edit *edit)
{
	if (cached->pod_uid[0])
		return strcmp(cached->pod_uid, edit->uid) == 0;
	return strcmp(cached->pod_name, edit->name) == 0 &&
	       strcmp(cached->pod_namespace, edit->namespace) == 0;
}

static void apply(const struct seat *seat, const struct edit *edit,
		  struct edit_result *result)
{
	cleanup_json cJSON *annotations = cJSON_Parse(edit->annotations);
	struct failure failure = {0};
	struct wish wish;

	if (wish_read(&wish, seat->cached, seat->jobs->conf, annotations,
		      seat->n, seat->jobs->log, &failure)) {
		result->is_bad = true;
		note(result, failure.msg);
	} else {
		follow(seat, &wish, result);
	}
	wish_free(&wish);
}

/* Finds the pods of one file in libcni's cache. */
static int look_at_result(void *arg, const char *file, const char *text)
{
	const struct edits *edits = arg;
	struct seat seat = {
		.jobs = edits->jobs,
		.n = edits->n,
		.root_fd = edits->root_fd,
		/* Pods are taken over one by one by pods_job_run, if at all. */
		.may_drain = !edits->jobs->adopt,
	};
	const struct edit *edit = edits->first;
	struct cached cached;

	if (!text || !cached_read(text, &cached))
		return 0;
	for (size_t i = 0; i < EDITS_MAX && edit; i++, edit = edit->next) {
		struct edit_result *result = &edits->report->results[i];

		if (!is_of(&cached, edit))
			continue;
		result->is_found = true;
		if (is_of_runtime(&cached) && seat_fill(&seat, file, &cached))
			apply(&seat, edit, result);
	}
	cached_free(&cached);
	return 0;
}

void edits_job_run(const struct jobs *jobs, const struct edit *first,
		   struct edits_report *report)
{
	struct edits edits = {
		.jobs = jobs,
		.first = first,
		.root_fd = open(jobs->root ? jobs->root : "/",
				O_PATH | O_DIRECTORY | O_CLOEXEC),
		.report = report,
	};
	int r = edits.root_fd < 0 ? -errno : jobs_open(jobs, &edits.n);

	for (; report->count < EDITS_MAX && first; first = first->next)
		report->count++;
	if (r == 0)
		r = results_foreach(edits.root_fd, look_at_result, &edits);
	/* A node on which no pod was made yet has no cache. */
	report->r = r == -ENOENT ? 0 : r;
	natra_close(edits.n);
	if (edits.root_fd >= 0)
		(void)close(edits.root_fd);
}
