/* SPDX-License-Identifier: BSD-2-Clause */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../install/dir.h"
#include "../install/results.h"
#include "wish.h"

struct pods {
	const struct jobs *jobs;
	struct natra *n;
	int root_fd;
	struct pods_report *report;
};

/* One interface, with what a log line about it says. */
struct seat {
	const struct pods *pods;
	const char *file; /* in the cache */
	const struct cached *cached;
	char id[NATRA_ID_MAX + 1];
	char pod[NATRA_NAME_MAX + 1];
};

static void log_seat(const struct seat *seat, enum natra_log_level level,
		     const char *msg, const char *error)
{
	struct log_words words = {0};

	log_add(&words, "id", seat->id);
	if (seat->pod[0])
		log_add(&words, "pod", seat->pod);
	if (error)
		log_add(&words, "error", error);
	log_line(seat->pods->jobs->log, level, msg, &words);
}

static void seat_failed(const struct seat *seat, const char *error)
{
	seat->pods->report->failed++;
	log_seat(seat, NATRA_LOG_WARN, "a running pod stays as it is", error);
}

static bool any(const struct natra_leftovers *left)
{
	return left->tbf || left->ingress_redirect;
}

/* Attaches while upstream's limits still hold, so that the pod has limits at
 * each moment. Where these are in the way, they go first. */
static int replace(const struct seat *seat, const struct natra_target *target,
		   const struct natra_policy *policy)
{
	struct natra *n = seat->pods->n;
	int r = natra_attach(n, target, policy, NULL);
	bool is_attached = r == 0;

	if (r == 0 || r == -EBUSY || r == -EOPNOTSUPP)
		r = natra_remove_leftovers(n, target);
	if (r == 0 && !is_attached)
		r = natra_attach(n, target, policy, NULL);
	if (r == 0) {
		seat->pods->report->replaced++;
		log_seat(seat, NATRA_LOG_INFO,
			 "replaced the bandwidth plugin's limits", NULL);
	}
	return r;
}

static int attach(const struct seat *seat, const struct natra_target *target,
		  const struct natra_policy *policy)
{
	struct natra_leftovers left = NATRA_INIT(left);
	struct natra *n = seat->pods->n;
	int r = natra_find_leftovers(n, target, &left);

	if (r < 0)
		return r;
	if (any(&left) && !seat->pods->jobs->replace) {
		log_seat(seat, NATRA_LOG_DEBUG,
			 "the bandwidth plugin's limits hold", NULL);
		return 0;
	}
	if (any(&left))
		return replace(seat, target, policy);
	r = natra_attach(n, target, policy, NULL);
	if (r == 0) {
		seat->pods->report->adopted++;
		log_seat(seat, NATRA_LOG_INFO, "limited a running pod", NULL);
	}
	return r;
}

/* A pod that ends meanwhile has been detached before it was attached; then there
 * is no result of it any more. */
static void undo_if_gone(const struct seat *seat)
{
	struct natra_target target = NATRA_INIT(target);
	cleanup_dir struct dir results = DIR_INIT;

	if (dir_open(&results, seat->pods->root_fd, RESULTS_DIR) == 0 &&
	    dir_has(&results, seat->file))
		return;
	target.id = seat->id;
	(void)natra_detach(seat->pods->n, &target);
}

static void adopt(const struct seat *seat, const struct natra_policy *policy)
{
	struct natra_target target = NATRA_INIT(target);
	int r, fd = dir_open_path(seat->pods->root_fd, seat->cached->netns,
				  O_RDONLY);

	/* The pod has ended. */
	if (fd == -ENOENT)
		return;
	if (fd < 0) {
		seat_failed(seat, strerror(-fd));
		return;
	}
	target.id = seat->id;
	target.ifname = seat->cached->ifname;
	target.netns_fd = fd;
	target.network = seat->cached->network;
	target.label = seat->pod;
	r = attach(seat, &target, policy);
	if (r < 0 && r != -ENODEV && r != -ENOENT)
		seat_failed(seat, natra_error(seat->pods->n));
	(void)close(fd);
	if (r == 0)
		undo_if_gone(seat);
}

static void look_at(const struct seat *seat)
{
	const struct pods *pods = seat->pods;
	struct natra_info info = NATRA_INIT(info);
	struct failure failure = {0};
	struct wish wish;

	/* What has limits keeps them: somebody may have set others since. */
	if (natra_query(pods->n, seat->id, &info) == 0 && !info.unshaped &&
	    !info.interface_gone)
		return;
	if (wish_read(&wish, seat->cached, pods->jobs->conf, NULL, pods->n,
		      pods->jobs->log, &failure))
		seat_failed(seat, failure.msg);
	else if (wanted_limits(&wish.settings.policy))
		adopt(seat, &wish.settings.policy);
	wish_free(&wish);
}

static int look_at_result(void *arg, const char *file, const char *text)
{
	struct seat seat = {.pods = arg, .file = file};
	struct cached cached;

	if (!text || !cached_read(text, &cached)) {
		log_write(seat.pods->jobs->log, NATRA_LOG_DEBUG,
			  "%s/%s: is not a result of libcni's", RESULTS_DIR,
			  file);
		return 0;
	}
	seat.cached = &cached;
	cached_pod(&cached, seat.pod, sizeof(seat.pod));
	/* An id that does not fit is never attached, by ADD neither. */
	if (cached_id(&cached, seat.id, sizeof(seat.id)) && cached.netns[0])
		look_at(&seat);
	cached_free(&cached);
	return 0;
}

struct ids {
	char (*list)[NATRA_ID_MAX + 1];
	size_t len;
};

/* Notes an attachment that another build of natra has made. */
static int note_old(void *arg, const struct natra_info *info)
{
	struct ids *ids = arg;
	void *list;

	if (!info->id[0] || info->unshaped || info->interface_gone ||
	    info->program_is_current)
		return 0;
	list = realloc(ids->list, (ids->len + 1) * sizeof(*ids->list));
	if (!list)
		return -ENOMEM;
	ids->list = list;
	memcpy(ids->list[ids->len++], info->id, sizeof(info->id));
	return 0;
}

static int upgrade(const struct pods *pods)
{
	struct ids ids = {0};
	int r = natra_foreach_attachment(pods->n, note_old, &ids);

	for (size_t i = 0; r == 0 && i < ids.len; i++) {
		struct seat seat = {.pods = pods};
		int error = natra_upgrade(pods->n, ids.list[i]);

		memcpy(seat.id, ids.list[i], sizeof(seat.id));
		if (error == 0)
			pods->report->upgraded++;
		else if (error != -ENOENT && error != -ENODEV)
			seat_failed(&seat, natra_error(pods->n));
	}
	free(ids.list);
	return r;
}

static int look_at_all(const struct pods *pods)
{
	int r = 0;

	if (pods->jobs->adopt)
		r = results_foreach(pods->root_fd, look_at_result,
				    (void *)(size_t)pods);
	/* A node on which no pod was made yet has no cache. */
	if (r < 0 && r != -ENOENT) {
		(void)snprintf(pods->report->error, sizeof(pods->report->error),
			       "%s: %s", RESULTS_DIR, strerror(-r));
		return r;
	}
	r = upgrade(pods);
	if (r < 0)
		(void)snprintf(pods->report->error, sizeof(pods->report->error),
			       "%s", natra_error(pods->n));
	return r;
}

void pods_job_run(const struct jobs *jobs, struct pods_report *report)
{
	struct pods pods = {
		.jobs = jobs,
		.root_fd = open(jobs->root ? jobs->root : "/",
				O_PATH | O_DIRECTORY | O_CLOEXEC),
		.report = report,
	};

	report->r = pods.root_fd < 0 ? -errno : jobs_open(jobs, &pods.n);
	if (report->r < 0)
		(void)snprintf(report->error, sizeof(report->error), "%s",
			       strerror(-report->r));
	else
		report->r = look_at_all(&pods);
	natra_close(pods.n);
	if (pods.root_fd >= 0)
		(void)close(pods.root_fd);
}
