/* SPDX-License-Identifier: BSD-2-Clause */
#include "edits_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/policy/fields.h"
#include "../pods/results.h"
#include "held.h"
#include "podif.h"
#include "turns.h"

struct edits {
	const struct jobs *jobs;
	const struct edit *first;
	struct natra *n;
	int root_fd;
	struct wish_source source;
	struct edits_report *report;
	bool is_torn; /* a result does not say which pod it is of */
};

enum difference { SAME, DIFFERS, DIFFERS_IN_FIXED };

/* Compares the limits that a pod has with those that it should have, but for classes.
 * Subnets are the configuration's and do not change while a pod runs. */
static enum difference compare(const struct natra_policy *has,
			       const struct natra_policy *wanted)
{
	enum difference found = policy_same_group(has, wanted) ? SAME : DIFFERS;

	/* Members of groups have programs of their own. */
	if (!has->group[0] != !wanted->group[0])
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

/* Compares the classes of a pod, of which there may be others of the same number. Returns
 * an enum difference, or -errno. */
static int compare_classes(const struct podif *podif,
			   const struct natra_policy *has,
			   const struct natra_policy *wanted)
{
	enum natra_code code;
	int r;

	if (wanted->classes_len != has->classes_len)
		return DIFFERS;
	if (!wanted->classes_len)
		return SAME;
	r = natra_check(podif->n, podif->id, wanted);
	code = natra_error_code(podif->n);
	/* Subnets are limits of the policy, which are looked at before its classes. */
	if (r == -EUCLEAN ||
	    (r == -EBADE && (code == NATRA_CODE_CLASSES_DIFFER ||
			     code == NATRA_CODE_LIMITS_DIFFER)))
		return DIFFERS;
	/* Writing the limits again mends no other difference in the kernel, and one that
	 * another process makes to drain a queue must stay. */
	return r == -EBADE ? SAME : r;
}

/* The classes that somebody has given the attachment by hand, for a wish without any. */
struct kept {
	struct settings *settings;
	struct natra_class *owned[NATRA_CLASSES_MAX];
};

static void note(struct edit_result *result, const char *text)
{
	(void)snprintf(result->message, sizeof(result->message), "%.*s",
		       (int)sizeof(result->message) - 1, text);
}

static void log_change(const struct podif *podif,
		       const struct natra_policy *policy)
{
	struct log_words words = {0};

	log_add(&words, "id", podif->id);
	log_add(&words, "pod", podif->pod);
	log_add_u64(&words, "ingress_bits_per_sec",
		    policy->ingress_rate_bits_per_sec);
	log_add_u64(&words, "egress_bits_per_sec",
		    policy->egress_rate_bits_per_sec);
	log_line(podif->jobs->log, NATRA_LOG_INFO,
		 "limits follow the pod's annotations", &words);
}

/* Makes an attachment, or changes it. If all limits go it stays, without limits:
 * the runtime still asks CHECK for it. */
static int change(const struct podif *podif, struct wish *wish,
		  enum difference found, enum podif_change *ret_change)
{
	*ret_change = PODIF_LIMITED;
	if (found == DIFFERS || !policy_has_limits(&wish->settings.policy))
		return podif_configure(podif, wish);
	return podif_attach(podif, wish, ret_change);
}

static void podif_failed(const struct podif *podif, int r,
			 struct edit_result *result)
{
	result->is_failed = true;
	/* The maximum does not hold as long as it could not be written. */
	result->is_over = false;
	note(result, podif_error(podif, r));
}

/* Adds a class of the attachment to the wish. */
static int keep_class(void *arg, const struct natra_class *class)
{
	struct kept *kept = arg;
	struct settings *s = kept->settings;
	const size_t i = s->policy.classes_len;
	int r = natra_parse_class(class->name, class, &kept->owned[i], NULL);

	if (r < 0)
		return r;
	s->classes[i] = *kept->owned[i];
	s->policy.classes = s->classes;
	s->policy.classes_len++;
	return s->policy.classes_len == NATRA_CLASSES_MAX;
}

/* natra_configure keeps classes that the policy does not name, but an attachment that is
 * made anew has only those of its policy. */
static int keep_classes(const struct podif *podif, struct kept *kept)
{
	int r = 0;

	if (policy_has_limits(&kept->settings->policy))
		r = natra_foreach_class(podif->n, podif->id, keep_class, kept);
	return r < 0 ? r : DIFFERS_IN_FIXED;
}

/* Keeps classes that the configuration does not allow, or does no more, within the maximum of the
 * namespace. */
static int lower_classes(const struct podif *podif, struct wish *wish,
			 const struct natra_policy *has, struct kept *kept)
{
	struct settings *s = &wish->settings;
	int r;

	if (!s->has_limits || !has->classes_len || wish_has_classes(wish))
		return 0;
	r = keep_classes(podif, kept);
	if (r < 0)
		return r;
	namespace_lower(&s->limits, true, &s->policy, &s->lowered);
	/* With no list the library would keep those that there are. */
	if (!s->policy.classes_len)
		s->policy.classes = s->classes;
	return 0;
}

/* Finds out what differs between an attachment and the wish, which may keep what was given
 * by hand. Returns an enum difference, or -errno. */
static int look_for_difference(const struct podif *podif, struct wish *wish,
			       const struct natra_policy *has,
			       struct kept *kept)
{
	struct natra_policy *policy = &wish->settings.policy;
	int found, of_classes;

	/* A configuration without groups leaves an attachment in the one that it was put
	 * in by hand. */
	if (!wish->settings.group.name)
		policy_take_group(policy, has);
	found = compare(has, policy);
	/* Classes without rates limit nothing either. */
	if (!policy_has_limits(policy))
		policy->classes_len = 0;
	if (!wish_has_classes(wish) && !policy->classes)
		return found == DIFFERS_IN_FIXED ? keep_classes(podif, kept)
						 : found;
	/* With no list the library would keep those that there are. */
	if (!policy->classes_len)
		policy->classes = wish->settings.classes;
	of_classes = compare_classes(podif, has, policy);
	return of_classes < 0 || of_classes > found ? of_classes : found;
}

/* Afterwards the wish may point into *held and *kept. */
static void follow(const struct podif *podif, struct wish *wish,
		   struct held *held, struct kept *kept,
		   struct edit_result *result)
{
	struct natra_policy *policy = &wish->settings.policy;
	struct natra_info info = NATRA_INIT(info);
	enum podif_change made = PODIF_SAME;
	char text[sizeof(result->message)] = "";
	int found, r, is_attached = podif_query(podif, &info);

	r = is_attached < 0 ? is_attached
			    : held_hold(held, podif, is_attached ? &info : NULL,
					wish, text, sizeof(text));
	if (podif_has_ended(podif, r))
		return;
	if (r < 0) {
		podif_failed(podif, r, result);
		return;
	}
	/* What an edit may not raise or lift may be over the maximum by now. */
	wish_lower(wish);
	r = is_attached ? lower_classes(podif, wish, &info.policy, kept) : 0;
	if (r < 0) {
		podif_failed(podif, r, result);
		return;
	}
	if (text[0]) {
		result->is_held = true;
		note(result, text);
	} else if (wish->settings.lowered.text[0]) {
		result->is_over = true;
		note(result, wish->settings.lowered.text);
	}
	if (is_attached)
		found = look_for_difference(podif, wish, &info.policy, kept);
	else
		found = podif->jobs->adopt && policy_has_limits(policy)
				? DIFFERS_IN_FIXED
				: SAME;
	if (found == SAME)
		return;
	r = found < 0 ? found
		      : change(podif, wish, (enum difference)found, &made);
	if (podif_has_ended(podif, r))
		return;
	if (r < 0) {
		podif_failed(podif, r, result);
		return;
	}
	result->is_later |= made == PODIF_LATER;
	if (made != PODIF_LIMITED && made != PODIF_REPLACED)
		return;
	result->is_changed = true;
	log_change(podif, policy);
}

/* The interfaces that a runtime asked for get the pod's annotations, which Multus does
 * not pass on to the network that it makes for the runtime's eth0. Those that Multus adds
 * have limits of their own. */
static bool is_of_runtime(const struct cached *cached)
{
	/* The value is null if the pod had no annotations. */
	return strcmp(cached->ifname, "eth0") == 0 ||
	       cJSON_GetObjectItemCaseSensitive(
		       json_get_exact(cached->json, "capabilityArgs"),
		       "io.kubernetes.cri.pod-annotations");
}

/* The annotation by which a pod says that it mirrors a static one counts only under that one's name: a
 * mirror has it, and anybody who may make pods in a namespace may write the annotation. */
static bool is_of(const struct cached *cached, const struct edit *edit)
{
	const char *uid = cached->pod_uid;

	if (uid[0] && strcmp(uid, edit->uid) == 0)
		return true;
	return (!uid[0] || strcmp(uid, edit->mirrored) == 0) &&
	       strcmp(cached->pod_name, edit->name) == 0 &&
	       strcmp(cached->pod_namespace, edit->namespace) == 0;
}

/* Returns 1 if a pod has other classes than its configuration, 0 if not, or -errno. */
static int has_own_classes(const struct podif *podif,
			   const struct natra_policy *conf,
			   const struct natra_policy *has)
{
	struct natra_policy policy = *has;
	int r;

	if (!has->classes_len)
		return 0;
	policy.classes = conf->classes;
	policy.classes_len = conf->classes_len;
	r = compare_classes(podif, has, &policy);
	return r < 0 ? r : r == DIFFERS;
}

/* Annotations that are wrong leave a pod the limits that it has, but not more than the maximum of its
 * namespace, which may be lower since. The wish takes what the pod has, and *kept its classes. */
static int keep_maximum(const struct podif *podif, struct wish *wish,
			struct kept *kept)
{
	struct natra_policy *policy = &wish->settings.policy;
	cleanup_settings struct settings conf = {0};
	struct natra_info info = NATRA_INIT(info);
	struct failure failure = {0};
	struct namespaces_error error;
	struct namespace_note none = {""};
	struct namespace_rule rule;
	struct natra_policy limits;
	int r, own_classes;

	if (!podif->source->namespaces ||
	    namespaces_find(podif->source->namespaces, podif->pod, &rule,
			    &error) < 0)
		return 0;
	/* Keys that are wrong say nothing, as if there were none. */
	if (wish_read_keys(&conf, wish->keys, podif->n, &failure))
		conf.policy = (struct natra_policy)NATRA_INIT(conf.policy);
	r = podif_query(podif, &info);
	if (r <= 0 || !namespace_limits(&rule, &conf.policy, &limits))
		return r < 0 ? r : 0;
	own_classes = has_own_classes(podif, &conf.policy, &info.policy);
	if (own_classes < 0)
		return own_classes;
	*policy = info.policy;
	policy->classes_len = 0;
	if (info.policy.classes_len)
		r = natra_foreach_class(podif->n, podif->id, keep_class, kept);
	if (r < 0)
		return r;
	namespace_lower(&limits, own_classes, policy, &none);
	if (policy->classes_len == info.policy.classes_len &&
	    compare(&info.policy, policy) == SAME)
		return 0;
	/* With no list the library would keep those that do not fit any more. */
	if (!policy->classes_len)
		policy->classes = wish->settings.classes;
	return natra_configure(podif->n, podif->id, policy);
}

static void apply(const struct podif *podif, const struct edit *edit,
		  struct edit_result *result)
{
	cleanup_json cJSON *annotations = cJSON_Parse(edit->annotations);
	struct failure failure = {0};
	struct held held = {.has_start = false};
	struct wish wish;
	struct kept kept = {.settings = &wish.settings};

	/* What a pod has done to its interface may not hold up other pods. */
	(void)alarm(edit->is_slow ? TURN_MAX_S : TURN_SHARED_MAX_S);
	if (wish_read(&wish, podif->cached, podif->source, annotations,
		      podif->n, podif->jobs->log, &failure)) {
		int r = keep_maximum(podif, &wish, &kept);

		result->is_bad = true;
		note(result, failure.msg);
		if (r < 0 && !podif_has_ended(podif, r))
			podif_failed(podif, r, result);
	} else {
		follow(podif, &wish, &held, &kept, result);
	}
	wish_free(&wish);
	held_free(&held);
	for (size_t i = 0; i < NATRA_CLASSES_MAX; i++)
		free(kept.owned[i]);
	(void)alarm(0);
}

static void note_unreadable(const char *path, struct edit_result *result)
{
	result->is_failed = true;
	(void)snprintf(result->message, sizeof(result->message),
		       "%s: cannot be read", path);
}

/* Returns whether a file in libcni's cache may be of a pod whose annotations have changed. The
 * others, each of which a tenant may fill with 1.5 MB of annotations, are not read further. */
static bool is_wanted(const void *arg, const char *text)
{
	const struct edits *edits = arg;
	const struct edit *edit = edits->first;
	bool is_wanted = false;
	struct cached head;

	cached_read_head(text, &head);
	/* The loopback interface has no limits. */
	if (strcmp(head.ifname, "lo") != 0) {
		is_wanted = !head.pod_uid[0] && !head.pod_name[0];
		for (size_t i = 0; i < edits->report->count; i++) {
			is_wanted |= is_of(&head, edit);
			edit = edit->next;
		}
	}
	cached_free(&head);
	return is_wanted;
}

/* Finds the pods of one file in libcni's cache. */
static int look_at_result(void *arg, const char *path, const char *text)
{
	struct edits *edits = arg;
	char why[INTERFACE_WHY_MAX] = "";
	struct log quiet = *edits->jobs->log;
	struct jobs quiet_jobs = *edits->jobs;
	struct podif podif = {
		.source = &edits->source,
		.n = edits->n,
		.root_fd = edits->root_fd,
		/* Pods are taken over one by one by pods_job_run, if at all. */
		.may_drain = !edits->jobs->adopt,
		.why = why,
	};
	const struct edit *edit = edits->first;
	struct cached cached;
	enum cached_kind kind = cached_read(text, &cached);

	quiet.level = NATRA_LOG_ERROR;
	quiet_jobs.log = &quiet;
	edits->is_torn |= kind == CACHED_UNREADABLE && !cached.pod_uid[0] &&
			  !cached.pod_name[0];
	for (size_t i = 0; i < edits->report->count; i++, edit = edit->next) {
		struct edit_result *result = &edits->report->results[i];

		if (kind == CACHED_OTHER || !is_of(&cached, edit))
			continue;
		result->is_found = true;
		if (kind == CACHED_UNREADABLE) {
			note_unreadable(path, result);
			continue;
		}
		if (!edit->annotations)
			continue;
		edits->report->now = i + 1;
		podif.jobs = edit->is_quiet ? &quiet_jobs : edits->jobs;
		if (is_of_runtime(&cached) && podif_fill(&podif, path, &cached))
			apply(&podif, edit, result);
		edits->report->now = 0;
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
		.source = {jobs->conf, jobs->namespaces},
		.report = report,
	};
	int r = edits.root_fd < 0 ? -errno : 0;
	const struct edit *tried = first;

	if (r == 0)
		r = jobs_open(jobs, &edits.n);
	for (; report->count < EDITS_MAX && first; first = first->next) {
		if (first->is_slow && report->count)
			break;
		report->count++;
		if (first->is_slow)
			break;
	}
	if (r == 0)
		r = results_foreach_wanted(edits.root_fd, is_wanted,
					   look_at_result, &edits);
	/* A node on which no pod was made yet has no cache, nor one on which its file
	 * system is not there for a while: then no pod is reported again. Nor is one whose
	 * result is torn, since the runtime is just writing it. */
	for (size_t i = 0; i < report->count; i++, tried = tried->next) {
		struct edit_result *result = &report->results[i];

		result->is_later |= r == -ENOENT ||
				    (edits.is_torn && !result->is_found &&
				     tried->backoff.bound_ms < BACKOFF_MAX_MS);
	}
	report->r = r == -ENOENT ? 0 : r;
	natra_close(edits.n);
	if (edits.root_fd >= 0)
		(void)close(edits.root_fd);
}
