/* SPDX-License-Identifier: BSD-2-Clause */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/policy/fields.h"
#include "../common/memory.h"
#include "../common/text.h"
#include "../pods/netns.h"
#include "../pods/results.h"
#include "loop.h"
#include "podif.h"
#include "turns.h"

/* Other jobs on limits wait for this one, so what remains is for the next. */
#define DRAIN_MAX_MS 20000

/* The job may take 120 s, and what has begun goes on for TURN_MAX_S. Upgrades have a time of their
 * own behind the looks, of which at most the last pod that takes long to look at uses up a part. */
#define LOOKS_MAX_MS    60000
#define UPGRADES_MAX_MS 30000

/* An interface that leads out of a pod and that no result names. */
struct unnamed {
	uint64_t netns_inode;
	uint32_t ifindex;
};

#define UNNAMED_MAX 4096

struct ids {
	char (*list)[NATRA_ID_MAX + 1];
	size_t len;
	size_t first; /* of a walk over them */
};

/* What the walks over pods find, in memory that their processes share. */
struct found {
	size_t waiting; /* pods whose queues must drain first */
	size_t unnamed_len;
	struct unnamed unnamed[UNNAMED_MAX];
};

struct pods {
	const struct jobs *jobs;
	struct natra *n;
	struct natra *before; /* on the bpffs before; NULL: there is none */
	int root_fd;
	struct wish_source source;
	struct pods_report *report;
	struct found *found;
	struct turns turns;
	uint64_t after;    /* see pods_job_run */
	bool is_behind;    /* the walk has come to what is behind it */
	struct ids old;    /* attachments of another build */
	uint64_t until_ms; /* when queues begin to drain no more; 0: never */
	char why[INTERFACE_WHY_MAX]; /* of the podif that is looked at */
};

static void podif_failed(const struct pods *pods, const struct podif *podif,
			 const char *error)
{
	pods->report->failed++;
	podif_log(podif, NATRA_LOG_WARN, "a running pod stays as it is", error);
}

static void note(struct pods *pods, const struct podif *podif, int r,
		 enum podif_change change)
{
	if (r < 0)
		podif_failed(pods, podif, podif_error(podif, r));
	if (change == PODIF_LIMITED) {
		pods->report->adopted++;
		podif_log(podif, NATRA_LOG_INFO, "limited a running pod", NULL);
	} else if (change == PODIF_LATER) {
		pods->found->waiting++;
	} else if (change == PODIF_REPLACED) {
		pods->report->replaced++;
		podif_log(podif, NATRA_LOG_INFO,
			  "replaced the bandwidth plugin's limits", NULL);
	}
}

/* Lets a wish change nothing but the group: somebody may have changed the pod's other limits
 * since it started. */
static void keep_limits(struct natra_policy *wanted,
			const struct natra_policy *has)
{
	struct natra_policy policy = *has;

	policy_take_group(&policy, wanted);
	policy.shaped_subnets = wanted->shaped_subnets;
	policy.shaped_subnets_len = wanted->shaped_subnets_len;
	policy.unshaped_subnets = wanted->unshaped_subnets;
	policy.unshaped_subnets_len = wanted->unshaped_subnets_len;
	*wanted = policy;
}

/* Lets a pod that is in no group join one that was made after it. */
static int join_group(struct pods *pods, const struct podif *podif,
		      const struct natra_info *info)
{
	struct failure failure = {0};
	enum podif_change change = PODIF_SAME;
	struct wish wish;
	struct natra_policy *wanted = &wish.settings.policy;
	int r = 0;

	/* An attach would undo what an edit has made of its classes. */
	if (info->policy.group[0] || info->policy.classes_len ||
	    !wish_may_join(podif->cached, pods->jobs->conf))
		return 0;
	if (wish_read_start(&wish, podif->cached, podif->source, pods->n,
			    pods->jobs->log, &failure)) {
		podif_failed(pods, podif, failure.msg);
	} else if (wanted->group[0]) {
		keep_limits(wanted, &info->policy);
		/* It may be impossible with what its annotations ask of the group. */
		keep_limits(&wish.settings.plain, &info->policy);
		r = podif_attach(podif, &wish, &change);
		if (wanted->group[0] &&
		    (change == PODIF_LIMITED || change == PODIF_REPLACED))
			podif_log(podif, NATRA_LOG_INFO,
				  "a running pod has joined its group", NULL);
	}
	if (change == PODIF_LATER)
		pods->found->waiting++;
	wish_free(&wish);
	return r;
}

static void look_at(struct pods *pods, const struct podif *podif)
{
	struct natra_info info = NATRA_INIT(info);
	enum podif_change change = PODIF_SAME;
	struct failure failure = {0};
	struct wish wish;
	int r = podif_query(podif, &info);

	/* A pod that has limits keeps them, see join_group. */
	if (r != 0) {
		if (r > 0)
			r = podif_finish(podif, &info.policy, &change);
		if (r == 0 && change != PODIF_LATER)
			r = join_group(pods, podif, &info);
		note(pods, podif, r, change);
		return;
	}
	if (wish_read_start(&wish, podif->cached, podif->source, pods->n,
			    pods->jobs->log, &failure))
		podif_failed(pods, podif, failure.msg);
	else if (policy_has_limits(&wish.settings.policy))
		r = podif_attach(podif, &wish, &change);
	note(pods, podif, r, change);
	wish_free(&wish);
}

static struct podif new_podif(struct pods *pods)
{
	pods->why[0] = '\0';
	return (struct podif){
		.jobs = pods->jobs,
		.source = &pods->source,
		.n = pods->n,
		.root_fd = pods->root_fd,
		.may_drain = clock_ms() < pods->until_ms,
		.why = pods->why,
	};
}

static void say_unreadable(struct pods *pods, const char *path,
			   const struct cached *cached)
{
	struct log_words words = {0};
	char pod[NATRA_NAME_MAX + 1];

	pods->report->unreadable++;
	cached_pod(cached, pod, sizeof(pod));
	log_add(&words, "file", path);
	log_add(&words, "pod", pod);
	log_line(pods->jobs->log, NATRA_LOG_WARN,
		 "a pod's cached result cannot be read: the pod stays as it is",
		 &words);
}

/* Takes away the limits that hold beside the new ones because they are recorded on the
 * bpffs before. That may undo settings of the interface that the new ones need, which
 * attaching them again puts there. */
static void leave_before(const struct pods *pods, const struct podif *podif)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_info info = NATRA_INIT(info);
	int r;

	if (!pods->before || podif_query(podif, &info) <= 0)
		return;
	target.id = podif->id;
	r = natra_detach(pods->before, &target);
	if (r < 0)
		podif_failed(pods, podif, natra_error(pods->before));
	else if (r > 0 && natra_upgrade(pods->n, podif->id) < 0)
		podif_failed(pods, podif, natra_error(pods->n));
}

struct unnamed_of {
	struct pods *pods;
	uint64_t netns_inode;
};

static int note_unnamed(void *arg, const struct pod_link *link, const char *to)
{
	const struct unnamed_of *of = arg;
	struct found *found = of->pods->found;

	(void)to;
	if (found->unnamed_len < UNNAMED_MAX)
		found->unnamed[found->unnamed_len++] =
			(struct unnamed){of->netns_inode, link->ifindex};
	return 0;
}

/* Looks for ways out of the pod that have no limits, once for all its interfaces. */
static void look_for_unnamed(struct pods *pods, const struct podif *podif)
{
	struct natra_info info = NATRA_INIT(info);
	struct unnamed_of of = {.pods = pods};
	cleanup_close int fd = -1;
	int r = 0;

	if (strcmp(podif->cached->ifname, "eth0") != 0 ||
	    podif_query(podif, &info) <= 0)
		return;
	of.netns_inode = info.netns_inode;
	fd = netns_open(pods->root_fd, podif->cached->netns);
	if (fd >= 0 &&
	    interface_check_netns(podif->cached, fd, podif->why) == 0)
		r = interface_foreach_unnamed(pods->root_fd, podif->cached, fd,
					      note_unnamed, &of);
	/* A pod that has too many to look at must not hide one by that. */
	pods->report->unnamed += r == -E2BIG;
}

/* Forgets the interface if this is what limits it, under whatever name and id. */
static int drop_limited(void *arg, const struct natra_info *info)
{
	struct found *found = arg;

	for (size_t i = found->unnamed_len; i-- > 0;) {
		if (found->unnamed[i].netns_inode == info->netns_inode &&
		    found->unnamed[i].ifindex == info->ifindex)
			found->unnamed[i] =
				found->unnamed[--found->unnamed_len];
	}
	return 0;
}

/* All attachments are made by now. If they cannot be read, none is taken for limited. */
static void count_unnamed(struct pods *pods)
{
	if (pods->found->unnamed_len)
		(void)natra_foreach_attachment(pods->n, drop_limited,
					       pods->found);
	pods->report->unnamed += pods->found->unnamed_len;
}

static int look_at_result(void *arg, const char *path, const char *text)
{
	struct pods *pods = arg;
	struct podif podif = new_podif(pods);
	struct cached cached;

	if (!turn_begin(&pods->turns, path))
		return 0;
	switch (cached_read(text, &cached)) {
	case CACHED_INTERFACE:
		if (!podif_fill(&podif, path, &cached))
			break;
		look_at(pods, &podif);
		leave_before(pods, &podif);
		look_for_unnamed(pods, &podif);
		break;
	case CACHED_UNREADABLE:
		say_unreadable(pods, path, &cached);
		break;
	case CACHED_OTHER:
		log_write(pods->jobs->log, NATRA_LOG_DEBUG,
			  "%s: is not a result of libcni's", path);
		break;
	}
	cached_free(&cached);
	turn_end();
	return 0;
}

/* Notes an attachment that another build of natra has made. */
static int note_old(void *arg, const struct natra_info *info)
{
	struct ids *ids = arg;

	if (info->other_abi || info->unshaped || info->interface_gone ||
	    info->program_is_current)
		return 0;
	ids->list = memory_grow(ids->list, (ids->len + 1) * sizeof(*ids->list));
	memcpy(ids->list[ids->len++], info->id, sizeof(info->id));
	return 0;
}

static int upgrade_each(void *arg)
{
	struct pods *pods = arg;

	for (size_t i = 0; i < pods->old.len; i++) {
		struct podif podif = new_podif(pods);
		int r;

		memcpy(podif.id,
		       pods->old.list[(pods->old.first + i) % pods->old.len],
		       sizeof(podif.id));
		if (!turn_begin(&pods->turns, podif.id))
			continue;
		r = natra_upgrade(pods->n, podif.id);
		if (r == 0)
			pods->report->upgraded++;
		else if (!podif_has_ended(&podif, r))
			podif_failed(pods, &podif, natra_error(pods->n));
		turn_end();
	}
	return 0;
}

static int upgrade(struct pods *pods)
{
	int r = natra_foreach_attachment(pods->n, note_old, &pods->old);

	pods->turns.until_ms += UPGRADES_MAX_MS;
	if (r == 0 && pods->old.len) {
		/* Pods that take long at each upgrade are not always first. */
		pods->old.first = (size_t)clock_ms() % pods->old.len;
		r = turns_run(&pods->turns, upgrade_each, pods,
			      &pods->report->failed);
	}
	free(pods->old.list);
	return r;
}

static int look_behind(void *arg, const char *path, const char *text)
{
	struct pods *pods = arg;

	if (pods->is_behind)
		return look_at_result(pods, path, text);
	pods->is_behind = text_hash(path) == pods->after;
	return 0;
}

/* Ends the walk when it has gone around. */
static int look_until(void *arg, const char *path, const char *text)
{
	struct pods *pods = arg;
	int r = look_at_result(pods, path, text);

	return r ? r : text_hash(path) == pods->after;
}

/* Pods that take long at each look would else use up the time of all behind them for ever. */
static int walk_results(void *arg)
{
	struct pods *pods = arg;
	int r = 0;

	pods->is_behind = false;
	if (pods->after)
		r = results_foreach(pods->root_fd, look_behind, pods);
	if (r == 0 || r == -ENOENT)
		r = results_foreach(pods->root_fd, look_until, pods);
	return r < 0 ? r : 0;
}

static int look_at_results(struct pods *pods)
{
	int r;

	pods->found->waiting = pods->found->unnamed_len = 0;
	/* The second look sees again what was seen in the first one. */
	pods->report->unreadable = pods->report->unnamed = 0;
	pods->report->failed = 0;
	r = turns_run(&pods->turns, walk_results, pods, &pods->report->failed);
	pods->report->last = pods->turns.last;
	return r;
}

/* Pods go first whose upstream limits have no queue. The others are at upstream's
 * rate meanwhile; one at a time, because their senders need the machine for it. */
static int adopt(struct pods *pods)
{
	int r = look_at_results(pods);

	/* If the time of the first look is over, so is that of a second one. */
	if (r == 0 && pods->found->waiting && !pods->report->last) {
		pods->until_ms = clock_ms() + DRAIN_MAX_MS;
		r = look_at_results(pods);
	}
	pods->report->later = pods->found->waiting;
	count_unnamed(pods);
	return r;
}

static int look_at_all(struct pods *pods)
{
	int r = 0;

	if (pods->jobs->adopt)
		r = adopt(pods);
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

/* The job's process ends with it, so only what is beside it is closed. */
static int open_shared(struct pods *pods)
{
	void *map = mmap(NULL, sizeof(*pods->found), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	pods->found = map;
	return turns_open(&pods->turns, LOOKS_MAX_MS);
}

void pods_job_run(const struct jobs *jobs, uint64_t after,
		  struct pods_report *report)
{
	struct pods pods = {
		.jobs = jobs,
		.root_fd = open(jobs->root ? jobs->root : "/",
				O_PATH | O_DIRECTORY | O_CLOEXEC),
		.source = {jobs->conf, jobs->namespaces},
		.report = report,
		.after = after,
	};
	struct jobs before = *jobs;

	before.bpffs = jobs->bpffs_before;
	report->r = pods.root_fd < 0 ? -errno : open_shared(&pods);
	if (report->r == 0)
		report->r = jobs_open(jobs, &pods.n);
	if (report->r == 0 && before.bpffs)
		report->r = jobs_open(&before, &pods.before);
	if (report->r < 0)
		(void)snprintf(report->error, sizeof(report->error), "%s",
			       strerror(-report->r));
	else
		report->r = look_at_all(&pods);
	natra_close(pods.before);
	natra_close(pods.n);
	turns_close(&pods.turns);
	if (pods.root_fd >= 0)
		(void)close(pods.root_fd);
}
