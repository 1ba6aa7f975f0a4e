/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups are names: the tests check that automatic groups and those that natra_group_set has
 * made are two kinds, and that nobody gets into another group than that of the name. */
#include "one_pod.h"

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "state/record.h"

#define TEAM "team a"

static int count(void *arg, const struct natra_group_info *group)
{
	(void)group;
	++*(int *)arg;
	return 0;
}

static int count_groups(void)
{
	int groups = 0;

	OK(natra_foreach_group(n, count, &groups));
	return groups;
}

struct search {
	const char *name;
	bool automatic;
	struct natra_group_info found; /* sz 0: there is none */
};

static int compare(void *arg, const struct natra_group_info *group)
{
	struct search *search = arg;

	if (strcmp(group->name, search->name) == 0 &&
	    (group->automatic != 0) == search->automatic)
		search->found = *group;
	return 0;
}

static struct natra_group_info look_for(const char *name, bool automatic)
{
	struct search search = {.name = name, .automatic = automatic};

	OK(natra_foreach_group(n, compare, &search));
	return search.found;
}

/* An attachment makes its automatic group, which goes with its last member, and never is
 * one that natra_group_set has made. */
TH_TEST(automatic_groups_come_and_go)
{
	struct natra_group_info limits = group_of("not read", 50);
	struct pod second = pod_make("second");
	struct natra_target target = pod_target(&second, "second");
	struct natra_policy policy = member_of(TEAM), again;

	policy.group_is_automatic = 1;
	assert_int_equal(attach_pod(&policy), -ENOENT);
	says(n, "group", TEAM);
	make_group(TEAM, 100);
	assert_int_equal(attach_pod(&policy), -ENOENT);
	says(n, "automatic", TEAM);
	policy.automatic_group = &limits;
	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(look_for(TEAM, true).members, 1);
	assert_int_equal(look_for(TEAM, true).egress_rate_bits_per_sec,
			 50 * MBIT);
	assert_int_equal(look_for(TEAM, false).members, 0);
	assert_int_equal(look_for(TEAM, false).egress_rate_bits_per_sec,
			 100 * MBIT);
	/* What natra_query reports is the same membership again. */
	again = rig_query(n, ID).policy;
	assert_string_equal(again.group, TEAM);
	assert_int_equal(again.group_is_automatic, 1);
	assert_null(again.automatic_group);
	again.egress_rate_bits_per_sec = 5 * MBIT;
	OK(natra_configure(n, ID, &again));
	OK(natra_check(n, ID, &again));
	again.group_is_automatic = 0;
	GIVES(-EBADE, natra_check(n, ID, &again));
	says(n, "group", "automatic");
	assert_int_equal(look_for(TEAM, true).egress_rate_bits_per_sec,
			 50 * MBIT);
	limits.egress_rate_bits_per_sec = 60 * MBIT;
	OK(natra_attach(n, &target, &policy, NULL));
	assert_int_equal(look_for(TEAM, true).members, 2);
	assert_int_equal(look_for(TEAM, true).egress_rate_bits_per_sec,
			 60 * MBIT);
	GIVES(1, natra_group_remove(n, TEAM));
	assert_int_equal(look_for(TEAM, true).members, 2);
	rig_detach(n, "second");
	pod_remove(&second);
	assert_int_equal(look_for(TEAM, true).members, 1);
	/* It leaves for another group, and for none. */
	enter_group(&policy, "b");
	OK(natra_configure(n, ID, &policy));
	assert_int_equal(look_for(TEAM, true).sz, 0);
	assert_int_equal(look_for("b", true).members, 1);
	policy = policy_of(10, 20);
	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(count_groups(), 0);
	rig_detach(n, ID);
	assert_int_equal(rig_pins(), 0);
}

/* A call that fails leaves neither a group nor other limits of it. */
TH_TEST(refused_members_make_no_group)
{
	struct natra_group_info limits = group_of(NULL, 50);
	struct natra_policy policy = member_of(TEAM);

	policy.automatic_group = &limits;
	policy.group_floor_bits_per_sec = 9 * MBIT;
	limits.egress_rate_bits_per_sec = 8 * MBIT;
	assert_int_equal(attach_pod(&policy), -ERANGE);
	says(n, TEAM, "9000000");
	limits.parent = "nobody";
	assert_int_equal(attach_pod(&policy), -ENOENT);
	says(n, "parent", "nobody");
	limits.parent = NULL;
	policy.group_floor_bits_per_sec = 0;
	policy.attach_mode = NATRA_ATTACH_MODE_TCX_HOSTSIDE;
	policy.edt_pacing = NATRA_EDT_PACING_ON;
	assert_int_equal(attach_pod(&policy), -EOPNOTSUPP);
	assert_int_equal(rig_pins(), 0);
	policy = member_of(TEAM);
	policy.automatic_group = &limits;
	assert_int_equal(attach_pod(&policy), 0);
	limits.egress_rate_bits_per_sec = 5 * MBIT;
	policy.group_floor_bits_per_sec = 6 * MBIT;
	GIVES(-ERANGE, natra_configure(n, ID, &policy));
	assert_int_equal(look_for(TEAM, true).egress_rate_bits_per_sec,
			 8 * MBIT);
	enter_group(&policy, "b");
	GIVES(-ERANGE, natra_configure(n, ID, &policy));
	assert_int_equal(count_groups(), 1);
}

/* Attaches a pod of a namespace with the group of this name, 15 Mbit/s, and returns the group
 * that it is in. */
static struct natra_policy join(struct pod *of, const char *label,
				const char *group)
{
	struct natra_group_info limits = group_of(NULL, 15);
	struct natra_target target = pod_target(of, label);
	struct natra_policy policy = member_of(group);

	target.label = label;
	policy.automatic_group = &limits;
	OK(natra_attach(n, &target, &policy, NULL));
	return rig_query(n, label).policy;
}

/* It has the group's rates where they are lower than its own. */
static void is_alone(struct natra_policy policy)
{
	assert_string_equal(policy.group, "");
	assert_int_equal(policy.ingress_rate_bits_per_sec, 10 * MBIT);
	assert_int_equal(policy.egress_rate_bits_per_sec, 15 * MBIT);
}

#define FEW 16

TH_TEST(a_namespace_makes_few_groups)
{
	struct natra_group_info limits = group_of(NULL, 15);
	struct natra_policy policy = member_of("new");
	struct pod pods[FEW + 1];
	char name[32];

	for (int i = 0; i <= FEW; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		pods[i] = pod_make(name);
		(void)snprintf(name, sizeof(name), "shop/%d", i);
		policy = join(&pods[i], name, name);
		if (i < FEW)
			assert_string_equal(policy.group, name);
		else
			is_alone(policy);
	}
	/* Others make theirs, and it joins one that is there. */
	assert_string_equal(join(&pod, "sho/p", "sho").group, "sho");
	assert_string_equal(join(&pods[FEW], "shop/16", "shop/0").group,
			    "shop/0");
	is_alone(join(&pods[FEW], "shop/16", "shop/16"));
	/* An edit that moves the only member leaves no group behind. */
	policy = member_of("new");
	policy.automatic_group = &limits;
	for (int i = 0; i <= NATRA_GROUPS_MAX; i++) {
		(void)snprintf(policy.group, sizeof(policy.group), "new%d", i);
		OK(natra_configure(n, "shop/1", &policy));
	}
	assert_string_equal(rig_query(n, "shop/1").policy.group, policy.group);
	assert_int_equal(count_groups(), FEW + 1);
	for (int i = 0; i <= FEW; i++) {
		(void)snprintf(name, sizeof(name), "shop/%d", i);
		rig_detach(n, name);
		pod_remove(&pods[i]);
	}
	rig_detach(n, "sho/p");
	assert_int_equal(rig_pins(), 0);
}

static int preload(const struct natra_policy *policy)
{
	const struct natra_target target = pod_target(&pod, ID);
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *keeping = NULL;
	int r;

	opts.bpffs_path = BPFFS;
	opts.keep_programs = true;
	assert_int_equal(natra_open(&keeping, &opts), 0);
	r = natra_preload(keeping, &target, policy, NULL);
	natra_close(keeping);
	return r;
}

/* A process that has found no engine is about to remove the map of groups when this one makes the
 * first engine. It begins before the call, because a lock that it inherits would be its own, too. */
static struct {
	pid_t pid; /* 0 in that process */
	int begin, begun;
	bool is_waiting, is_in_sweep;
} sweeper;

static int sweep_groups(int begin)
{
	const struct natra_group_info group = group_of("swept", 1);
	char byte;

	if (read(begin, &byte, 1) != 1 || natra_group_set(n, &group) < 0)
		return 1;
	sweeper.is_in_sweep = true;
	return natra_group_remove(n, "swept") == 1 ? 0 : 1;
}

static void make_sweeper(void)
{
	int begin[2], begun[2];

	assert_int_equal(pipe(begin), 0);
	assert_int_equal(pipe(begun), 0);
	sweeper.begun = begun[1];
	sweeper.pid = fork();
	assert_true(sweeper.pid >= 0);
	if (sweeper.pid == 0)
		_exit(sweep_groups(begin[0]));
	(void)close(begin[0]);
	(void)close(begun[1]);
	sweeper.begin = begin[1];
	sweeper.begun = begun[0];
	sweeper.is_waiting = true;
}

/* These take the place of libc's functions, also for the library. The sweeper gives this process
 * half a second to open the map that it removes. */
int unlinkat(int fd, const char *name, int flag)
{
	int (*remove)(int, const char *, int);

	*(void **)&remove = dlsym(RTLD_NEXT, __func__);
	if (sweeper.is_in_sweep && strcmp(name, "map") == 0) {
		const struct timespec pause = {.tv_nsec = 500 * 1000 * 1000};

		if (write(sweeper.begun, "", 1) == 1)
			(void)nanosleep(&pause, NULL);
	}
	return remove(fd, name, flag);
}

/* A sanitizer calls it before its own memory is there, and before dlsym works. */
__attribute__((no_sanitize_address)) int mkdir(const char *path, mode_t mode)
{
	char byte;

	if (sweeper.is_waiting && strstr(path, "/engine_")) {
		sweeper.is_waiting = false;
		assert_int_equal(write(sweeper.begin, "", 1), 1);
		assert_int_equal(read(sweeper.begun, &byte, 1), 1);
	}
	return mkdirat(AT_FDCWD, path, mode);
}

TH_TEST(programs_that_are_loaded_have_the_map_that_is_pinned)
{
	const struct natra_policy policy = member_of(TEAM);
	int status;

	make_sweeper();
	OK(preload(&policy));
	assert_false(sweeper.is_waiting);
	(void)close(sweeper.begin);
	(void)close(sweeper.begun);
	assert_int_equal(waitpid(sweeper.pid, &status, 0), sweeper.pid);
	assert_int_equal(status, 0);
	rig_sh("test -e " BPFFS "/natra/abi*/groups/map");
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	assert_int_equal(rig_pins(), 0);
}

/* Whoever has filled the table, a pod gets limits, and an administrator's group a place. */
TH_TEST(a_full_table_stops_no_pod)
{
	struct natra_group_info limits = group_of(NULL, 15);
	struct natra_policy policy = member_of("new");
	unsigned int pins;
	char name[32];

	assert_string_equal(join(&pod, "a/p", "a").group, "a");
	for (int i = 1; i < NATRA_GROUPS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		make_group(name, 1);
	}
	policy.automatic_group = &limits;
	OK(natra_configure(n, "a/p", &policy));
	is_alone(rig_query(n, "a/p").policy);
	make_group("last", 1);
	is_alone(join(&pod, "a/p", "a"));
	/* The programs of members are loaded all the same, and nothing is left but them. */
	rig_detach(n, "a/p");
	pins = rig_pins();
	policy.automatic_group = NULL;
	OK(preload(&policy));
	assert_true(rig_pins() > pins);
	assert_int_equal(count_groups(), NATRA_GROUPS_MAX);
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	assert_int_equal(rig_pins(), pins);
	remove_group("last");
	assert_string_equal(join(&pod, "a/p", "a").group, "a");
	rig_detach(n, "a/p");
	for (int i = 1; i < NATRA_GROUPS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		remove_group(name);
	}
	assert_int_equal(rig_pins(), 0);
}

/* What other tenants' groups have of the parent keeps no pod out of its own. */
TH_TEST(a_floor_without_room_is_left_out)
{
	struct natra_group_info limits = group_of(NULL, 50);
	struct natra_policy policy = member_of("a");

	make_group("node", 70);
	limits.parent = "node";
	limits.floor_bits_per_sec = 40 * MBIT;
	policy.automatic_group = &limits;
	for (const char *name = "ab"; *name; name++) {
		struct natra_target target = pod_target(&pod, ID);

		(void)snprintf(policy.group, sizeof(policy.group), "%c", *name);
		OK(natra_attach(n, &target, &policy, NULL));
		assert_int_equal(
			look_for(policy.group, true).floor_bits_per_sec,
			*name == 'b' ? 0 : 40 * MBIT);
	}
	rig_detach(n, ID);
	remove_group("node");
}

/* In a process of its own, removes the group of the pod's tenant again and again, and makes
 * another tenant's in its place. */
static pid_t swap_groups(void)
{
	const struct natra_group_info own = group_of(TEAM, 100),
				      other = group_of("other", 1);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		(void)natra_group_remove(n, TEAM);
		(void)natra_group_set(n, &other);
		(void)natra_group_remove(n, "other");
		(void)natra_group_set(n, &own);
	}
}

TH_TEST(a_pod_is_never_in_another_group)
{
	struct natra_policy policy = member_of(TEAM);
	const time_t until = time(NULL) + 3;
	int joined = 0, missed = 0, status;
	const pid_t pid = swap_groups();

	while (time(NULL) < until ||
	       ((!joined || !missed) && time(NULL) < until + 20)) {
		int r = attach_pod(&policy);

		assert_true(r == 0 || r == -ENOENT);
		joined += r == 0;
		missed += r != 0;
		if (r < 0)
			continue;
		OK(natra_check(n, ID, NULL));
		assert_int_equal(look_for("other", false).members, 0);
		assert_int_equal(look_for(TEAM, false).members, 1);
		rig_detach(n, ID);
	}
	assert_true(joined && missed);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_group(TEAM);
	remove_group("other");
}

/* This process removes the group when a record is about to be pinned. It begins before the
 * attach, because a lock that it inherits would be its own, too. */
static struct {
	pid_t pid;
	int begin;
	bool is_waiting;
} remover;

static void make_remover(void)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	remover.pid = fork();
	assert_true(remover.pid >= 0);
	if (remover.pid == 0)
		_exit(read(ends[0], &byte, 1) == 1 &&
				      natra_group_remove(n, TEAM) == -EBUSY &&
				      strstr(natra_error(n), "has members")
			      ? 0
			      : 1);
	(void)close(ends[0]);
	remover.begin = ends[1];
	remover.is_waiting = true;
}

/* Gives it half a second, in which it either removes the group or waits for the call that
 * pins the record. */
static void start_remover(void)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	siginfo_t end = {0};

	assert_int_equal(write(remover.begin, "", 1), 1);
	remover.is_waiting = false;
	for (int i = 0; i < 50 && !end.si_pid; i++) {
		(void)nanosleep(&pause, NULL);
		assert_int_equal(waitid(P_PID, (id_t)remover.pid, &end,
					WEXITED | WNOHANG | WNOWAIT),
				 0);
	}
}

/* Takes the place of libbpf's function, also for the library. */
int bpf_obj_pin(int fd, const char *path)
{
	int (*pin)(int, const char *);

	*(void **)&pin = dlsym(RTLD_NEXT, __func__);
	if (remover.is_waiting && strcmp(strrchr(path, '/'), "/meta") == 0)
		start_remover();
	return pin(fd, path);
}

/* From the moment in which its name is found until the record has it, a group cannot go. */
TH_TEST(a_group_stays_until_the_record_names_it)
{
	const struct natra_policy policy = member_of(TEAM);
	int status;

	make_group(TEAM, 100);
	make_remover();
	assert_int_equal(attach_pod(&policy), 0);
	assert_false(remover.is_waiting);
	(void)close(remover.begin);
	assert_int_equal(waitpid(remover.pid, &status, 0), remover.pid);
	assert_int_equal(status, 0);
	assert_int_equal(look_for(TEAM, false).members, 1);
	rig_detach(n, ID);
	remove_group(TEAM);
}

/* A process was killed when it had put a pod's slots into another group, and had not written the
 * record: the place of that group goes to no other one until natra_gc has taken them out. */
TH_TEST(a_group_stays_while_slots_may_name_it)
{
	struct natra_group_info limits = group_of(NULL, 50);
	struct pod second = pod_make("second");
	struct natra_target target = pod_target(&second, "second");
	struct natra_policy policy = member_of(TEAM);
	const struct natra_policy own = policy_of(10, 20);
	struct record record;
	uint32_t number;
	int fd;

	policy.automatic_group = &limits;
	OK(natra_attach(n, &target, &policy, NULL));
	fd = rig_open_pin(n, "second", "meta");
	rig_read(fd, &record);
	number = record.group_number;
	(void)close(fd);
	assert_int_equal(attach_pod(&own), 0);
	fd = rig_open_pin(n, ID, "meta");
	rig_read(fd, &record);
	record.group_next = number;
	rig_write(fd, &record);
	rig_detach(n, "second");
	assert_int_equal(look_for(TEAM, true).members, 1);
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	rig_read(fd, &record);
	assert_int_equal(record.group_next, 0);
	(void)close(fd);
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	assert_int_equal(count_groups(), 0);
	rig_detach(n, ID);
	pod_remove(&second);
}

/* The record that a write to another map is to find named as the next group. */
static struct {
	int record_fd; /* -1: nobody looks */
	uint32_t next;
} watch = {.record_fd = -1};

/* Takes the place of libbpf's function, also for the library. */
int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	int (*update)(int, const void *, const void *, __u64);
	struct record record;

	*(void **)&update = dlsym(RTLD_NEXT, __func__);
	if (watch.record_fd >= 0) {
		rig_read(watch.record_fd, &record);
		watch.next = record.group_next ? record.group_next : watch.next;
	}
	return update(fd, key, value, flags);
}

/* While a pod goes from one group to another its record names both, and none behind it. */
TH_TEST(a_change_of_group_is_announced)
{
	struct natra_policy policy = member_of(TEAM);
	struct record record;

	make_group(TEAM, 100);
	make_group("other", 100);
	assert_int_equal(attach_pod(&policy), 0);
	policy = member_of("other");
	watch.record_fd = rig_open_pin(n, ID, "meta");
	OK(natra_configure(n, ID, &policy));
	rig_read(watch.record_fd, &record);
	(void)close(watch.record_fd);
	watch.record_fd = -1;
	assert_int_equal(watch.next, record.group_number);
	assert_int_equal(record.group_next, 0);
	rig_detach(n, ID);
	remove_group(TEAM);
	remove_group("other");
}

/* The interface of the last member may go, and so may a process that has made a group and
 * no record yet. */
TH_TEST(gc_removes_automatic_groups)
{
	struct natra_group_info limits = group_of(NULL, 50);
	struct pod second = pod_make("second");
	struct natra_target target = pod_target(&second, "second");
	struct natra_policy policy = member_of(TEAM);

	policy.automatic_group = &limits;
	OK(natra_attach(n, &target, &policy, NULL));
	pod_remove(&second);
	assert_int_equal(count_groups(), 1);
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	assert_int_equal(count_groups(), 0);
}

POD_MAIN()
