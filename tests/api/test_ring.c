/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of events is shared by all attachments, and nobody is limited by it: what is
 * wrong with it fails no attach and no detach. */
#include "one_pod.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "natra_groups.h"
#include "state/record.h"

#define RING_SIZE ((uint32_t)sizeof(struct natra_event_ring))

static char log_text[512];

static void note_line(void *arg, enum natra_log_level level, const char *line)
{
	(void)arg;
	if (level <= NATRA_LOG_WARN)
		(void)snprintf(log_text, sizeof(log_text), "%s", line);
}

static struct natra *open_with_log(void)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *logged;

	opts.bpffs_path = BPFFS;
	opts.log_fn = note_line;
	assert_int_equal(natra_open(&logged, &opts), 0);
	log_text[0] = '\0';
	return logged;
}

static void attach(struct natra *by, enum natra_sli sli)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);

	policy.sli = sli;
	OK(natra_attach(by, &target, &policy, NULL));
}

/* Writes the path of the ring's directory, or of an entry in it. */
static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), BPFFS "/natra/abi%u/events/%s",
		       NATRA_PIN_ABI, name);
	return path;
}

TH_TEST(ring_that_stays_is_no_error)
{
	struct natra_target target = {.sz = sizeof(target), .id = ID};
	struct natra *logged = open_with_log();
	size_t removed = 1;

	attach(logged, NATRA_SLI_OFF);
	assert_string_equal(log_text, "");
	/* A directory on bpffs cannot be unpinned. */
	rig_sh("mkdir %s", path_of("dir"));
	GIVES(1, natra_detach(logged, &target));
	assert_string_equal(natra_error(logged), "");
	assert_non_null(strstr(log_text, "the ring of events stays: unpin '"));
	log_text[0] = '\0';
	OK(natra_gc(logged, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
	assert_non_null(strstr(log_text, "the ring of events stays: unpin '"));

	log_text[0] = '\0';
	rig_sh("rmdir %s", path_of("dir"));
	OK(natra_detach(logged, &target));
	assert_int_equal(rig_pins(), 0);
	assert_string_equal(log_text, "");
	natra_close(logged);
}

TH_TEST(another_map_in_its_place)
{
	static const struct {
		enum bpf_map_type type;
		uint32_t value_size, entries, flags;
	} maps[] = {
		{BPF_MAP_TYPE_HASH, RING_SIZE, 1, 0},
		{BPF_MAP_TYPE_ARRAY, RING_SIZE, 1, 0},
		{BPF_MAP_TYPE_ARRAY, RING_SIZE, 2, BPF_F_MMAPABLE},
		{BPF_MAP_TYPE_ARRAY, 2 * RING_SIZE, 1, BPF_F_MMAPABLE},
		{BPF_MAP_TYPE_ARRAY, 8, 1, BPF_F_MMAPABLE},
	};
	struct natra *logged = open_with_log();
	struct natra_events *events;

	attach(logged, NATRA_SLI_OFF);
	for (size_t i = 0; i < TH_LEN(maps); i++) {
		rig_replace_pin(path_of("ring"), maps[i].type,
				maps[i].value_size, maps[i].entries,
				maps[i].flags);
		GIVES(-ESTALE, natra_events_open(logged, &events));
		says(logged, path_of("ring"), "not this natra's");
	}
	/* Measured connections need another program. */
	attach(logged, NATRA_SLI_ON);
	assert_non_null(strstr(log_text, "there are no events: "));
	natra_close(logged);
}

/* Returns the result of a process that may not look for the ring: of its first read if it has a
 * reader, or else of opening one. */
static int result_without_permission(bool has_reader)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct natra_event event = NATRA_INIT(event);
		struct natra_events *events = NULL;

		if ((has_reader && natra_events_open(n, &events) < 0) ||
		    !rig_drop_capability(CAP_DAC_OVERRIDE) ||
		    !rig_drop_capability(CAP_DAC_READ_SEARCH))
			_exit(0);
		_exit(-(has_reader ? natra_events_read(events, &event)
				   : natra_events_open(n, &events)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* It is not told that there are no events, which would look as if nothing were attached. */
TH_TEST(permission_is_missing)
{
	attach(n, NATRA_SLI_OFF);
	rig_sh("chmod 700 %s && chown 1 %s", path_of(""), path_of(""));
	assert_int_equal(result_without_permission(false), -EACCES);
	assert_int_equal(result_without_permission(true), -EACCES);
}

/* Returns what the programs of an attachment write into events of its egress. */
static uint64_t owner_of(const char *id)
{
	int fd = rig_open_pin(n, id, "meta");
	struct record record;

	rig_read(fd, &record);
	close(fd);
	return record.slot[LEG_EGRESS].owner;
}

/* Writes an event as a program would; `place` is that of a group whose limit is exceeded, or 0. */
static void tell_of(uint64_t owner, enum natra_report reason, uint32_t place)
{
	static struct natra_event_ring ring;
	struct natra_event_entry *entry;
	struct timespec now;
	int fd = bpf_obj_get(path_of("ring"));

	assert_true(fd >= 0);
	rig_read(fd, &ring);
	clock_gettime(CLOCK_MONOTONIC, &now);
	entry = &ring.entries[ring.head++ % NATRA_EVENTS];
	*entry = (struct natra_event_entry){
		.number = (uint32_t)ring.head,
		.reason = reason,
		.time_ns = (uint64_t)now.tv_sec * 1000000000 +
			   (uint64_t)now.tv_nsec,
		.owner = owner,
		.tuple.saddr = {400, place},
	};
	rig_write(fd, &ring);
	close(fd);
}

static void tell(uint64_t owner)
{
	tell_of(owner, NATRA_REPORT_HEAVY, 0);
}

static void is_next(struct natra_events *events, const char *id)
{
	struct natra_event event = NATRA_INIT(event);

	assert_int_equal(natra_events_read(events, &event), 1);
	assert_string_equal(event.id, id);
	assert_int_equal(event.direction, NATRA_DIRECTION_EGRESS);
}

/* A reader that has named a pod goes on to do so when the pod has gone and others came. */
TH_TEST(pod_that_is_gone_keeps_its_name)
{
	struct pod other = pod_make("other");
	struct natra_target target = {.sz = sizeof(target), .id = ID};
	struct natra_target second = pod_target(&other, "second");
	struct natra_policy policy = policy_of(10, 20);
	struct natra_events *events;
	uint64_t owner;

	assert_int_equal(attach_pod(&policy), 0);
	owner = owner_of(ID);
	assert_int_equal(natra_events_open(n, &events), 0);
	tell(owner);
	is_next(events, ID);
	assert_int_equal(natra_attach(n, &second, &policy, NULL), 0);
	tell(owner_of("second"));
	tell(owner);
	tell(owner);
	assert_int_equal(natra_detach(n, &target), 1);
	/* The list of names is made anew for this one. */
	is_next(events, "second");
	is_next(events, ID);
	assert_int_equal(natra_detach(n, &second), 1);
	is_next(events, ID);
	natra_events_close(events);
	pod_remove(&other);
}

static void attach_as(const struct natra_policy *policy, const char *label)
{
	struct natra_target target = pod_target(&pod, ID);

	target.label = label;
	OK(natra_attach(n, &target, policy, NULL));
}

/* Who edits a pod's annotations hides nothing by that: events of before are the pod's. */
TH_TEST(event_of_before_an_edit_has_the_name)
{
	struct natra_policy policy = policy_of(10, 20);
	struct natra_event event = NATRA_INIT(event);
	struct natra_events *events;
	uint64_t owner;

	attach_as(&policy, "before");
	owner = owner_of(ID);
	assert_int_equal(natra_events_open(n, &events), 0);
	tell(owner);
	is_next(events, ID);
	policy.sli = NATRA_SLI_ON;
	attach_as(&policy, "after");
	assert_int_not_equal(owner, owner_of(ID));
	/* A reader that knows the pod sees what it is now. */
	tell(owner_of(ID));
	assert_int_equal(natra_events_read(events, &event), 1);
	assert_string_equal(event.label, "after");
	natra_events_close(events);

	assert_int_equal(natra_events_open(n, &events), 0);
	for (int i = 0; i < 2; i++)
		is_next(events, ID);
	/* One of another attachment, which nobody knows, is nobody's. */
	tell(owner ^ 1ULL << 40);
	assert_int_equal(natra_events_read(events, &event), 1);
	assert_string_equal(event.id, "");
	natra_events_close(events);
}

/* An attachment that limits one direction has no slot in the other: an event without a slot is
 * not of that. */
TH_TEST(event_of_no_slot_is_of_nobody)
{
	struct natra_policy policy = policy_of(0, 20);
	struct natra_event event = NATRA_INIT(event);
	struct natra_events *events;

	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(natra_events_open(n, &events), 0);
	tell(owner_of(ID));
	is_next(events, ID);
	tell(0);
	assert_int_equal(natra_events_read(events, &event), 1);
	assert_string_equal(event.id, "");
	assert_int_equal(event.direction, NATRA_DIRECTION_NONE);
	natra_events_close(events);
}

/* The name of a group is read without its lock, so somebody who keeps that holds up no reader. */
TH_TEST(group_is_named_while_it_is_locked)
{
	struct natra_target target = {.sz = sizeof(target), .id = ID};
	struct natra_policy policy = policy_of(10, 20);
	struct natra_group_info group = {.sz = sizeof(group), .name = "team"};
	struct natra_event event = NATRA_INIT(event);
	struct natra_events *events;
	struct timespec begin, end;
	int fd;

	group.egress_rate_bits_per_sec = 20000000;
	OK(natra_group_set(n, &group));
	(void)snprintf(policy.group, sizeof(policy.group), "team");
	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(natra_events_open(n, &events), 0);
	tell(owner_of(ID));
	is_next(events, ID);
	tell_of(owner_of(ID), NATRA_REPORT_OVER_LIMIT,
		natra_group_place(1, true));
	fd = open(path_of("../groups"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(natra_events_read(events, &event), 1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_string_equal(event.group, "team");
	assert_int_equal(event.over_limit_percent, 400);
	assert_true(end.tv_sec - begin.tv_sec < 4);
	close(fd);
	natra_events_close(events);
	assert_int_equal(natra_detach(n, &target), 1);
	assert_int_equal(natra_group_remove(n, "team"), 1);
}

POD_MAIN()
