/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check groups, and their members, in the life of an attachment. */
#include "one_pod.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../bpf/natra_shared.h"
#include "state/record.h"

#define TEAM         "team a"
#define PACKET_BYTES 43 /* of device_send, on the wire */

/* Makes a group, and returns the policy of a member. */
static struct natra_policy make_member_of(const char *name, uint64_t mbit)
{
	make_group(name, mbit);
	return member_of(name);
}

struct walk {
	int calls, result;
	struct natra_group_info last;
	char name[NATRA_GROUP_NAME_MAX + 1], parent[NATRA_GROUP_NAME_MAX + 1];
};

static int note(void *arg, const struct natra_group_info *group)
{
	struct walk *walk = arg;

	walk->calls++;
	walk->last = *group;
	(void)snprintf(walk->name, sizeof(walk->name), "%s", group->name);
	(void)snprintf(walk->parent, sizeof(walk->parent), "%s",
		       group->parent ? group->parent : "");
	return walk->result;
}

static struct walk walk(void)
{
	struct walk w = {.calls = 0};

	OK(natra_foreach_group(n, note, &w));
	return w;
}

/* Without a member nothing stays of a group that is removed. */
TH_TEST(what_was_given_is_told)
{
	struct natra_group_info group = group_of(TEAM, 100);
	struct walk w;

	assert_int_equal(walk().calls, 0);
	make_group("node", 1000);
	group.parent = "node";
	group.weight = 3;
	group.floor_bits_per_sec = 5 * MBIT;
	group.egress_burst_bits = 70000;
	group.automatic = 1; /* is only reported */
	OK(natra_group_set(n, &group));
	w = walk();
	assert_int_equal(w.last.automatic, 0);
	assert_int_equal(w.calls, 2);
	assert_string_equal(w.name, TEAM);
	assert_string_equal(w.parent, "node");
	assert_int_equal(w.last.egress_rate_bits_per_sec, 100 * MBIT);
	assert_int_equal(w.last.egress_burst_bits, 70000);
	assert_int_equal(w.last.ingress_burst_bits, 0);
	assert_int_equal(w.last.weight, 3);
	assert_int_equal(w.last.floor_bits_per_sec, 5 * MBIT);
	assert_int_equal(w.last.members, 0);
	w.result = 7;
	GIVES(7, natra_foreach_group(n, note, &w));

	GIVES(-EBUSY, natra_group_remove(n, "node"));
	says(n, "node", "parent");
	remove_group(TEAM);
	remove_group(TEAM);
	remove_group("node");
	assert_int_equal(walk().calls, 0);
	assert_int_equal(rig_pins(), 0);
}

TH_TEST(bad_input_is_refused)
{
	struct natra_group_info group = group_of("", 100);

	assert_int_equal(natra_group_set(NULL, &group), -EINVAL);
	assert_int_equal(natra_group_set(n, NULL), -EINVAL);
	assert_int_equal(natra_group_set(n, &group), -EINVAL);
	says(n, "name", NULL);
	assert_int_equal(natra_group_remove(n, NULL), -EINVAL);
	assert_int_equal(natra_foreach_group(n, NULL, NULL), -EINVAL);
	group = group_of(TEAM, 100);
	group.parent = "nobody";
	GIVES(-ENOENT, natra_group_set(n, &group));
	says(n, "parent", "nobody");
	group.parent = TEAM;
	assert_int_equal(natra_group_set(n, &group), -ELOOP);
	/* A group that was refused leaves no map. */
	assert_int_equal(rig_pins(), 0);
}

TH_TEST(groups_have_two_levels)
{
	struct natra_group_info group = group_of(TEAM, 100);

	make_group("node", 1000);
	make_group("other", 1000);
	group.parent = "node";
	assert_int_equal(natra_group_set(n, &group), 0);
	group = group_of("other", 100);
	group.parent = TEAM;
	GIVES(-ELOOP, natra_group_set(n, &group));
	says(n, TEAM, "parent");
	group = group_of("node", 100);
	group.parent = "other";
	GIVES(-ELOOP, natra_group_set(n, &group));
	says(n, "node", NULL);
	remove_group(TEAM);
	remove_group("other");
	remove_group("node");
}

TH_TEST(there_is_room_for_so_many)
{
	struct natra_group_info group = group_of("one more", 1);
	char name[16];

	for (int i = 0; i < NATRA_GROUPS_MAX; i++) {
		struct natra_group_info next = group_of(name, 1);

		(void)snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(natra_group_set(n, &next), 0);
	}
	assert_int_equal(natra_group_set(n, &group), -ENOSPC);
	group = group_of("17", 2);
	assert_int_equal(natra_group_set(n, &group), 0);
	for (int i = 0; i < NATRA_GROUPS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		remove_group(name);
	}
}

TH_TEST(members_are_counted_and_charged)
{
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_policy policy;
	struct walk w;

	policy = make_member_of(TEAM, 100);
	policy.fast_pass = NATRA_FAST_PASS_OFF;
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	assert_int_equal(attach_pod(&policy), 0);
	pod_send(&pod, 7);
	w = walk();
	assert_int_equal(w.last.members, 1);
	assert_int_equal(natra_stats(n, ID, &stats), 0);
	/* The kernel sends packets of its own now and then. */
	assert_in_range(w.last.ingress_charged.packets, 7,
			stats.ingress.admitted.packets);
	assert_string_equal(rig_query(n, ID).policy.group, TEAM);
	GIVES(-EBUSY, natra_group_remove(n, TEAM));
	says(n, TEAM, ID);
	OK(natra_check(n, ID, &policy));
	rig_detach(n, ID);
	assert_int_equal(walk().last.members, 0);
	remove_group(TEAM);
}

/* The group hears of what has passed when the next window is looked at. */
static uint64_t heard_of(void)
{
	const struct timespec window = {.tv_sec = 1, .tv_nsec = 80000000};

	(void)nanosleep(&window, NULL);
	pod_send(&pod, 40);
	return walk().last.free_bytes[NATRA_DIRECTION_INGRESS];
}

/* Bytes that passed in no group, or were charged to it as they passed, do not come to it later.
 * Free ones that passed in it do, also if the attachment was replaced. */
TH_TEST(a_group_hears_of_what_is_its_own)
{
	struct natra_policy policy = policy_of(10, 20);
	uint64_t heard, passed;

	assert_int_equal(attach_pod(&policy), 0);
	pod_send(&pod, 500);
	policy = make_member_of(TEAM, 100);
	assert_int_equal(attach_pod(&policy), 0);
	pod_send(&pod, 40);
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	assert_int_equal(attach_pod(&policy), 0);
	heard = heard_of();
	assert_in_range(heard, 40 * PACKET_BYTES, 100 * PACKET_BYTES);

	policy.fast_pass = NATRA_FAST_PASS_STRICT;
	OK(natra_configure(n, ID, &policy));
	pod_send(&pod, 500);
	passed = walk().last.ingress_charged.packets;
	assert_in_range(passed, 300, 550);
	policy.fast_pass = NATRA_FAST_PASS_FREE;
	OK(natra_configure(n, ID, &policy));
	pod_send(&pod, 40);
	assert_in_range(heard_of(), heard + PACKET_BYTES,
			heard + 180 * PACKET_BYTES);
	rig_detach(n, ID);
	remove_group(TEAM);
}

/* An attachment that is being built is a member before it is complete. */
TH_TEST(a_member_to_come_keeps_its_group)
{
	struct natra_policy policy = make_member_of(TEAM, 100);
	struct record record;
	int fd;

	assert_int_equal(attach_pod(&policy), 0);
	fd = rig_open_pin(n, ID, "meta");
	rig_read(fd, &record);
	record.complete = 0;
	rig_write(fd, &record);
	(void)close(fd);
	GIVES(-EBUSY, natra_group_remove(n, TEAM));
	says(n, TEAM, ID);
	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(walk().last.members, 1);
	rig_detach(n, ID);
	remove_group(TEAM);
}

TH_TEST(unknown_group_is_refused)
{
	struct natra_policy policy = member_of("nobody"),
			    plain = policy_of(10, 20);

	assert_int_equal(attach_pod(&policy), -ENOENT);
	says(n, "group", "nobody");
	assert_int_equal(rig_pins(), 0);
	make_group(TEAM, 100);
	assert_int_equal(attach_pod(&policy), -ENOENT);
	assert_int_equal(attach_pod(&plain), 0);
	GIVES(-ENOENT, natra_configure(n, ID, &policy));
	says(n, "group", "nobody");
	OK(natra_check(n, ID, &plain));
	remove_group(TEAM);
}

/* A member changes its group with its programs in place. */
TH_TEST(groups_change_live)
{
	struct natra_policy policy;
	uint32_t prog;

	make_group(TEAM, 100);
	make_group("b", 100);
	policy = policy_of(10, 20);
	assert_int_equal(attach_pod(&policy), 0);
	enter_group(&policy, TEAM);
	policy.group_weight = 5;
	OK(natra_configure(n, ID, &policy));
	prog = rig_query(n, ID).ingress_prog_id;
	pod_send(&pod, 3);
	enter_group(&policy, "b");
	policy.group_floor_bits_per_sec = 10 * MBIT;
	OK(natra_configure(n, ID, &policy));
	assert_int_equal(rig_query(n, ID).ingress_prog_id, prog);
	assert_int_equal(walk().last.members, 1);
	OK(natra_check(n, ID, &policy));
	OK(natra_upgrade(n, ID));
	assert_int_equal(rig_query(n, ID).ingress_prog_id, prog);
	remove_group(TEAM);
	policy = policy_of(10, 20);
	OK(natra_configure(n, ID, &policy));
	assert_int_equal(walk().last.members, 0);
	OK(natra_check(n, ID, &policy));
	remove_group("b");
}

static struct natra_direction_stats ingress_stats(void)
{
	struct natra_stats stats = NATRA_INIT(stats);

	OK(natra_stats(n, ID, &stats));
	return stats.ingress;
}

/* Sends packets, and returns by how many more were not limited, of 5. */
static uint64_t send_unlimited(void)
{
	const uint64_t before = ingress_stats().unlimited.packets;

	pod_send(&pod, 5);
	return ingress_stats().unlimited.packets - before;
}

/* A member without rates is limited as the group is, at each moment. */
TH_TEST(members_need_no_rates)
{
	struct natra_group_info group = group_of(TEAM, 100);
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_info info;
	uint64_t charged;

	make_group(TEAM, 100);
	enter_group(&policy, TEAM);
	policy.fast_pass = NATRA_FAST_PASS_OFF;
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	policy.group_floor_bits_per_sec = 40 * MBIT;
	assert_int_equal(attach_pod(&policy), 0);
	info = rig_query(n, ID);
	assert_int_equal(info.policy.ingress_rate_bits_per_sec, 0);
	assert_int_equal(info.effective.egress_rate_bits_per_sec, 0);
	assert_int_not_equal(info.ingress_prog_id, 0);
	assert_int_not_equal(info.egress_prog_id, 0);
	assert_int_equal(send_unlimited(), 0);
	charged = walk().last.ingress_charged.packets;
	assert_true(charged >= 5);
	group.ingress_rate_bits_per_sec = 0;
	OK(natra_group_set(n, &group));
	assert_true(send_unlimited() >= 5);
	assert_true(ingress_stats().admitted.packets >= 5);
	assert_int_equal(walk().last.ingress_charged.packets, charged);
	group.ingress_rate_bits_per_sec = 50 * MBIT;
	OK(natra_group_set(n, &group));
	assert_int_equal(send_unlimited(), 0);
	assert_true(walk().last.ingress_charged.packets >= charged + 5);
	/* Its floor holds there, too. */
	group.ingress_rate_bits_per_sec = 30 * MBIT;
	assert_int_equal(natra_group_set(n, &group), -ERANGE);
	says(n, TEAM, "40000000");
	OK(natra_check(n, ID, &policy));
	OK(natra_upgrade(n, ID));
	rig_detach(n, ID);
	remove_group(TEAM);
}

TH_TEST(floors_over_the_rate_are_refused)
{
	struct natra_group_info group = group_of(TEAM, 15);
	struct pod second = pod_make("second");
	struct natra_target target = pod_target(&second, "second");
	struct natra_policy policy;

	policy = make_member_of(TEAM, 15);
	policy.group_floor_bits_per_sec = 10 * MBIT;
	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(attach_pod(&policy), 0);
	policy.group_floor_bits_per_sec = 6 * MBIT;
	GIVES(-ERANGE, natra_attach(n, &target, &policy, NULL));
	says(n, TEAM, "16000000");
	policy.group_floor_bits_per_sec = 5 * MBIT;
	OK(natra_attach(n, &target, &policy, NULL));
	policy.group_floor_bits_per_sec = 6 * MBIT;
	GIVES(-ERANGE, natra_configure(n, "second", &policy));
	group.egress_rate_bits_per_sec = 14 * MBIT;
	GIVES(-ERANGE, natra_group_set(n, &group));
	says(n, TEAM, "15000000");
	assert_int_equal(walk().last.egress_rate_bits_per_sec, 15 * MBIT);
	rig_detach(n, "second");
	pod_remove(&second);
	OK(natra_group_set(n, &group));
	rig_detach(n, ID);
	remove_group(TEAM);
}

/* Sets a group in a process that is killed when it looks for the group's members. */
static void set_and_be_killed(const struct natra_group_info *group)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getdents64, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {4, filter};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
			(void)natra_group_set(n, group);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

TH_TEST(a_killed_change_leaves_no_floors)
{
	struct natra_group_info group = group_of(TEAM, 15);
	struct natra_policy policy;

	policy = make_member_of(TEAM, 15);
	policy.group_floor_bits_per_sec = 10 * MBIT;
	assert_int_equal(attach_pod(&policy), 0);
	group.egress_rate_bits_per_sec = 9 * MBIT;
	set_and_be_killed(&group);
	assert_int_equal(walk().last.egress_rate_bits_per_sec, 15 * MBIT);
	rig_detach(n, ID);
	remove_group(TEAM);
}

TH_TEST(floors_of_groups_are_checked)
{
	struct natra_group_info group = group_of(TEAM, 100);
	struct natra_policy policy;

	make_group("node", 100);
	group.parent = "node";
	group.floor_bits_per_sec = 60 * MBIT;
	assert_int_equal(natra_group_set(n, &group), 0);
	group.name = "b";
	assert_int_equal(natra_group_set(n, &group), -ERANGE);
	says(n, "node", "120000000");
	/* An attachment may be in it beside groups. */
	policy = member_of("node");
	policy.egress_rate_bits_per_sec = 50 * MBIT;
	policy.ingress_rate_bits_per_sec = 50 * MBIT;
	policy.group_floor_bits_per_sec = 41 * MBIT;
	assert_int_equal(attach_pod(&policy), -ERANGE);
	says(n, "node", "101000000");
	policy.group_floor_bits_per_sec = 40 * MBIT;
	assert_int_equal(attach_pod(&policy), 0);
	group = group_of("node", 99);
	assert_int_equal(natra_group_set(n, &group), -ERANGE);
	says(n, "node", "100000000");
	rig_detach(n, ID);
	group = group_of("node", 50);
	assert_int_equal(natra_group_set(n, &group), -ERANGE);
	remove_group(TEAM);
	remove_group("b");
	remove_group("node");
}

TH_TEST(gc_keeps_groups)
{
	size_t removed = 9;

	make_group(TEAM, 100);
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
	assert_int_equal(walk().calls, 1);
	remove_group(TEAM);
}

/* Returns the map of groups. */
static struct natra_group *open_map(void)
{
	char path[128];
	void *map;
	int fd;

	(void)snprintf(path, sizeof(path), BPFFS "/natra/abi%d/groups/map",
		       NATRA_PIN_ABI);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	map = mmap(NULL, 2 * NATRA_GROUPS * sizeof(struct natra_group),
		   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

TH_TEST(check_compares_the_group)
{
	struct natra_policy policy;
	struct natra_group *map;

	policy = make_member_of(TEAM, 100);
	assert_int_equal(attach_pod(&policy), 0);
	map = open_map();
	map[1].limits[0].rate.mult++;
	map[1].limits[1].rate.mult++;
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, TEAM, "egress");
	/* A process that was killed has not written them, and whoever meets them does. */
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	OK(natra_check(n, ID, NULL));
	map[1].limits[map[1].active & 1].rate.mult++;
	make_group(TEAM, 100);
	OK(natra_check(n, ID, NULL));
	map[1].limits[map[1].active & 1].rate.mult++;
	OK(natra_upgrade(n, ID));
	OK(natra_check(n, ID, NULL));
	map[0].given.name[0] = '\0';
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, "gone", NULL);
	munmap(map, 2 * NATRA_GROUPS * sizeof(struct natra_group));
}

/* Sends into the pod and returns how many of the packets were charged to the group. Others
 * than these may come, such as those by which IPv6 finds neighbours. */
static uint64_t charged_of(int packets)
{
	const uint64_t before = walk().last.ingress_charged.packets;

	pod_send(&pod, packets);
	return walk().last.ingress_charged.packets - before;
}

/* What is in a class with a rate is charged to the group as well, and what is in one
 * without a rate, or exempt, is not. */
TH_TEST(classes_are_of_the_group)
{
	static const char *const peer[] = {"10.78.0.0/16"};
	static const char *const nobody[] = {"192.0.2.0/24"};
	struct natra_class class = {
		.sz = sizeof(class),
		.name = "near",
		.ingress_rate_bits_per_sec = MBIT,
		.subnets = peer,
		.subnets_len = 1,
	};
	struct natra_policy policy = make_member_of(TEAM, 100);
	struct natra_stats stats = NATRA_INIT(stats);

	policy.fast_pass = NATRA_FAST_PASS_OFF;
	policy.classes = &class;
	policy.classes_len = 1;
	assert_int_equal(attach_pod(&policy), 0);
	assert_in_range(charged_of(50), 50, 60);
	assert_int_equal(natra_class_stats(n, ID, "near", &stats), 0);
	assert_int_equal(stats.ingress.admitted.packets, 50);
	class.ingress_rate_bits_per_sec = 0;
	OK(natra_configure(n, ID, &policy));
	assert_in_range(charged_of(50), 0, 10);
	assert_int_equal(natra_class_stats(n, ID, "near", &stats), 0);
	assert_int_equal(stats.ingress.unlimited.packets, 50);
	class.subnets = nobody;
	policy.unshaped_subnets = peer;
	policy.unshaped_subnets_len = 1;
	OK(natra_configure(n, ID, &policy));
	assert_in_range(charged_of(50), 0, 10);
	policy.unshaped_subnets = nobody;
	class.subnets = peer;
	class.subnets_len = 0;
	OK(natra_configure(n, ID, &policy));
	assert_in_range(charged_of(50), 50, 60);
	OK(natra_check(n, ID, &policy));
	rig_detach(n, ID);
	remove_group(TEAM);
}

POD_MAIN()
