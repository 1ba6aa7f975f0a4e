/* SPDX-License-Identifier: BSD-2-Clause */
#include "installer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../common/dir.h"
#include "../common/text.h"

/* The shortest and the longest time between two looks. There is a longest one because a
 * mount over a directory, for instance, is no event. */
#define PAUSE_MS     500
#define RECHECK_MS   60000
#define RETRY_MIN_MS 500
#define RETRY_MAX_MS 10000
/* A job may take this long, because the installer waits for locks, programs and
 * half-written lists. */
#define JOB_MAX_MS   60000
/* There are few networks with drop-in directories. */
#define SUBDIRS_MAX  16

static const struct install_report *report_of(const struct installer *in)
{
	return in->work.report;
}

static void run(void *arg)
{
	const struct installer *in = arg;

	install_job_run(in->request, in->may_apply, &in->watch, in->element_fd,
			in->work.report);
}

static void look(void *arg)
{
	struct installer *in = arg;

	in->is_asked = false;
	dirwatch_pause(&in->watch);
	in->may_apply =
		!in->is_complete || !budget_wait_ms(&in->repairs, clock_ms());
	work_start(&in->work);
}

static void changed(void *arg)
{
	struct installer *in = arg;
	uint64_t since_ms = clock_ms() - in->last_end_ms;

	/* Later events do not put off a look that is due. */
	if (in->is_asked || in->is_removed)
		return;
	in->is_asked = true;
	timer_set(&in->next, since_ms < PAUSE_MS ? PAUSE_MS - since_ms
						 : DIRWATCH_QUIET_MS);
}

/* Watches the subdirectories: one with a network's name has its drop-ins. Returns
 * whether one is new. */
static bool arm_subdirs(struct installer *in, const struct dir *net)
{
	DIR *entries = dir_list(net);
	const struct dirent *entry;
	bool is_new = false;
	int count = 0;

	while (entries && count < SUBDIRS_MAX && (entry = readdir(entries))) {
		cleanup_dir struct dir dir = DIR_INIT;

		if (entry->d_name[0] == '.' ||
		    dir_open_below(&dir, net, entry->d_name) < 0)
			continue;
		count++;
		is_new |= dirwatch_add(&in->watch, dir.fd) > 0;
	}
	if (entries)
		(void)closedir(entries);
	return is_new;
}

static bool arm_dir(struct installer *in, int root_fd, const char *path,
		    bool has_subdirs)
{
	cleanup_dir struct dir dir = DIR_INIT;
	bool is_new;
	int r;

	if (!path[0])
		return false;
	r = dir_open(&dir, root_fd, path);
	if (r == 0)
		r = dirwatch_add(&in->watch, dir.fd);
	if (r < 0) {
		log_write(in->log, NATRA_LOG_WARN,
			  "%s: is looked at every %d s only: %s", path,
			  RECHECK_MS / 1000, strerror(-r));
		return false;
	}
	is_new = r > 0;
	return (has_subdirs && arm_subdirs(in, &dir)) || is_new;
}

/* Watches the directories of the report. Returns whether one was not watched
 * before: what has happened there meanwhile is not known then. */
static bool arm(struct installer *in)
{
	const struct install_report *report = report_of(in);
	const char *root = in->request->root ? in->request->root : "/";
	cleanup_close int root_fd =
		open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool net, bin;

	/* The start has logged already that there is no watch. */
	if (root_fd < 0 || !dirwatch_is_open(&in->watch))
		return false;
	net = arm_dir(in, root_fd, report->net_dir, true);
	bin = arm_dir(in, root_fd, report->bin_dir, false);
	return net || bin;
}

static void say_changes(const struct installer *in, const char *what)
{
	const struct install_report *report = report_of(in);
	size_t len = report->changes;

	for (size_t i = 0; i < len && i < INSTALL_NOTES_MAX; i++) {
		struct log_words words = {0};

		log_add(&words, "path", report->paths[i]);
		log_line(in->log, NATRA_LOG_INFO, what, &words);
	}
}

static void say_mode(struct installer *in)
{
	const struct install_report *report = report_of(in);
	struct log_words words = {0};
	bool is_new = strcmp(in->said, report->reason) != 0;

	/* A change may be what a warning is about. */
	if (!is_new && !report->changes)
		return;
	memcpy(in->said, report->reason, sizeof(in->said));
	if (is_new) {
		log_add(&words, "mode", install_mode_name(report->mode));
		log_add(&words, "reason", report->reason);
		log_add(&words, "net_dir", report->net_dir);
		log_add(&words, "bin_dir", report->bin_dir);
		log_line(in->log, NATRA_LOG_INFO, "installed", &words);
	}
	for (size_t i = 0; i < INSTALL_NOTES_MAX && report->warnings[i][0]; i++)
		log_write(in->log, NATRA_LOG_WARN, "%s", report->warnings[i]);
}

/* Reports that the job was not allowed to repair, because there were too many
 * repairs. */
static uint64_t stop_repairs(struct installer *in)
{
	uint64_t wait_ms = budget_wait_ms(&in->repairs, clock_ms());

	health_fail(in->health, PART_INSTALL, NATRA_LOG_ERROR,
		    "somebody undoes what natra installs: %s has been repaired"
		    " %zu times in %" PRIu64
		    " s, and is left as it is for a while",
		    report_of(in)->paths[0], in->repairs.count,
		    in->repairs.period_ms / 1000);
	return wait_ms < RECHECK_MS ? wait_ms + 1 : RECHECK_MS;
}

/* Takes the element over from the job. */
static int note_element(struct installer *in, bool *ret_is_new)
{
	char *text = NULL;
	int r = lseek(in->element_fd, 0, SEEK_SET) < 0
			? -errno
			: dir_read_fd(in->element_fd, &text);

	if (r < 0 || !text) {
		free(text);
		return r;
	}
	*ret_is_new = strcmp(in->element ? in->element : "", text) != 0;
	free(in->element);
	in->element = text;
	return 0;
}

/* Also a process that could not be started, since that may pass at once. */
static uint64_t next_try_ms(struct installer *in)
{
	in->retry_ms = in->retry_ms ? 2 * in->retry_ms : RETRY_MIN_MS;
	if (in->retry_ms > RETRY_MAX_MS)
		in->retry_ms = RETRY_MAX_MS;
	return in->retry_ms;
}

/* Accounts for what the job has changed, whatever it has failed at since: half of a repair
 * counts as one. */
static void take_changes(struct installer *in, const char *what)
{
	if (!report_of(in)->changes)
		return;
	if (in->is_complete)
		budget_take(&in->repairs, clock_ms());
	in->has_changed = true;
	say_changes(in, what);
}

static uint64_t succeeded(struct installer *in)
{
	const struct install_report *report = report_of(in);
	bool is_new = false;
	int r;

	if (report->changes && !in->may_apply) {
		in->retry_ms = 0;
		return stop_repairs(in);
	}
	take_changes(in, in->is_complete ? "repaired" : "written");
	in->written += report->changes > 0;
	in->repaired += report->changes && in->is_complete;
	r = note_element(in, &is_new);
	if (r < 0) {
		health_fail(in->health, PART_INSTALL, NATRA_LOG_ERROR,
			    "natra's element of the list cannot be read: %s",
			    strerror(-r));
		return next_try_ms(in);
	}
	in->retry_ms = 0;
	say_mode(in);
	health_ready(in->health, PART_INSTALL);
	if (in->completed && (in->has_changed || !in->is_complete || is_new))
		in->completed(in->arg);
	in->has_changed = false;
	in->is_complete = true;
	return RECHECK_MS;
}

static uint64_t failed(struct installer *in)
{
	const struct install_report *report = report_of(in);
	/* A node on which the network plugin has not been installed yet is no
	 * failure. */
	enum natra_log_level level = report->r == -ENOENT && !in->is_complete
					     ? NATRA_LOG_INFO
					     : NATRA_LOG_ERROR;

	in->failures++;
	take_changes(in, "written");
	health_fail(in->health, PART_INSTALL, level, "%s", report->error);
	return next_try_ms(in);
}

/* `natractl uninstall` wins: the agent leaves the directories alone from then on. */
static void removed(void *arg)
{
	struct installer *in = arg;

	in->is_removed = true;
	timer_stop(&in->next);
	health_fail(in->health, PART_INSTALL, NATRA_LOG_WARN,
		    "natra was uninstalled from this node; the agent does"
		    " nothing until it is started again");
	in->removed(in->arg);
}

static void done(void *arg, enum work_end end)
{
	struct installer *in = arg;
	uint64_t next_ms;

	in->last_end_ms = clock_ms();
	dirwatch_resume(&in->watch);
	if (report_of(in)->is_removed) {
		removed(in);
		return;
	}
	if (end != WORK_DONE) {
		health_fail(in->health, PART_INSTALL, NATRA_LOG_ERROR,
			    "looking at the directories %s",
			    end == WORK_LATE ? "took too long" : "failed");
		next_ms = next_try_ms(in);
	} else {
		next_ms = report_of(in)->r < 0 ? failed(in) : succeeded(in);
	}
	if (end == WORK_DONE && arm(in))
		in->is_asked = true;
	timer_set(&in->next,
		  in->is_asked && next_ms > PAUSE_MS ? PAUSE_MS : next_ms);
}

int installer_open(struct installer *in, struct workers *workers)
{
	int r;

	in->watch.changed = changed;
	in->watch.removed = removed;
	in->watch.arg = in;
	r = dirwatch_open(&in->watch, workers->loop);
	/* All containers share fs.inotify.max_user_instances. */
	if (r < 0)
		log_write(in->log, NATRA_LOG_WARN,
			  "the directories are looked at every %d s only, and"
			  " an uninstallation is not noticed: no inotify: %s",
			  RECHECK_MS / 1000, strerror(-r));
	in->work = (struct work){
		.name = "the installation",
		.run = run,
		.done = done,
		.arg = in,
		.report_size = sizeof(struct install_report),
		.time_max_ms = JOB_MAX_MS,
	};
	r = work_open(&in->work, workers);
	in->element_fd = memfd_create("natra-element", MFD_CLOEXEC);
	if (r == 0 && in->element_fd < 0)
		r = -errno;
	if (r == 0)
		r = timer_open(&in->next, workers->loop, look, in);
	if (r < 0)
		return r;
	health_expect(in->health, PART_INSTALL);
	timer_set(&in->next, 0);
	return 0;
}

void installer_close(struct installer *in)
{
	if (!in->work.workers)
		return;
	timer_close(&in->next, in->watch.loop);
	work_close(&in->work);
	dirwatch_close(&in->watch);
	if (in->element_fd >= 0)
		(void)close(in->element_fd);
	free(in->element);
}
