/* SPDX-License-Identifier: BSD-2-Clause */
/* natra meets programs of another build and pins of another layout. The cases
 * pretend that a program came from another BPF object by writing to its bank,
 * which records the object. */
#include "rig.h"

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state/record.h"

/* The first bank has 6 slots, which the first two pods share. The last pod's slots are in
 * the second bank. */
#define PODS 3

static struct natra *n;
static struct pod pods[PODS];
static const char *const ids[PODS] = {"up-0", "up-1", "up-2"};

static unsigned int loads;

/* The library's calls of bpf(2) come here, and go on to the C library. The parameter of unistd.h's
 * own declaration has a name that is reserved. */
long count_syscall(long number, ...) __asm__("syscall");

long count_syscall(long number, ...)
{
	long (*next)(long, ...) = NULL;
	void *found = dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	memcpy(&next, &found, sizeof(next));
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	loads += number == SYS_bpf && a[0] == BPF_PROG_LOAD;
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int attach(int i)
{
	struct natra_target target = pod_target(&pods[i], ids[i]);
	struct natra_policy policy = policy_of(10, 20);

	return natra_attach(n, &target, &policy, NULL);
}

static int begin(void **state)
{
	(void)state;
	rig_reset();
	n = rig_open();
	for (int i = 0; i < PODS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "up-%d", i);
		pods[i] = pod_make(name);
		assert_int_equal(attach(i), 0);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	rig_end(n, pods, ids, PODS);
	return 0;
}

static int open_record(int i)
{
	return rig_open_pin(n, ids[i], "meta");
}

static struct record read_record(int fd)
{
	struct record record;

	rig_read(fd, &record);
	return record;
}

/* Returns the path of a pin in the bank that serves an attachment's ingress. */
static void bank_pin(int i, const char *name, char *ret_path, size_t size)
{
	int fd = open_record(i);
	struct record record = read_record(fd);
	const struct record_slot *slot = &record.slot[LEG_INGRESS];

	(void)close(fd);
	(void)snprintf(ret_path, size,
		       BPFFS "/natra/abi%u/engine_%016llx/%u/%s", record.abi,
		       (unsigned long long)slot->engine, slot->bank, name);
}

/* Returns the id of the program that judges the packets into a pod. */
static uint32_t engine_program(int i)
{
	uint32_t id = 0;
	char path[600];
	int fd;

	bank_pin(i, "programs", path, sizeof(path));
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	rig_read(fd, &id);
	(void)close(fd);
	return id;
}

/* Makes all programs look as if they came from another BPF object. */
static void pretend_another_build(void)
{
	const uint64_t object = 1;
	glob_t found;

	assert_int_equal(
		glob(BPFFS "/natra/abi*/engine_*/*/object", 0, NULL, &found),
		0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = bpf_obj_get(found.gl_pathv[i]);

		assert_true(fd >= 0);
		rig_write(fd, &object);
		(void)close(fd);
	}
	globfree(&found);
}

static uint64_t seen(int i)
{
	struct natra_stats stats = NATRA_INIT(stats);

	OK(natra_stats(n, ids[i], &stats));
	return stats.ingress.mice.packets + stats.ingress.admitted.packets +
	       stats.ingress.other.packets;
}

/* Waits until so many packets were judged: a busy CPU takes them some time after they
 * were sent. */
static void wait_for_packets(int i, uint64_t packets)
{
	for (int tries = 0; tries < 200 && seen(i) < packets; tries++)
		(void)usleep(10000);
	assert_true(seen(i) >= packets);
}

/* Checks that the stub stays on the hook and the counters keep their values. */
static void changed_in_place(int i, const struct natra_info *before,
			     uint64_t packets)
{
	struct natra_info info = rig_query(n, ids[i]);

	assert_true(info.program_is_current);
	assert_int_equal(info.ingress_prog_id, before->ingress_prog_id);
	assert_int_equal(info.egress_prog_id, before->egress_prog_id);
	assert_string_equal(info.pin_path, before->pin_path);
	assert_true(seen(i) >= packets);
	packets = seen(i);
	pod_send(&pods[i], 10);
	wait_for_packets(i, packets + 10);
	OK(natra_check(n, ids[i], NULL));
}

TH_TEST(program_is_changed_in_place)
{
	struct natra_info before[PODS];
	uint64_t packets[PODS];
	uint32_t programs[PODS];

	pretend_another_build();
	for (int i = 0; i < PODS; i++) {
		before[i] = rig_query(n, ids[i]);
		assert_false(before[i].program_is_current);
		assert_true(before[i].upgrade_is_in_place);
		pod_send(&pods[i], 20);
		wait_for_packets(i, 20);
		packets[i] = seen(i);
		programs[i] = engine_program(i);
	}
	assert_int_equal(programs[1], programs[0]);

	OK(natra_upgrade(n, ids[1]));
	/* The attachment in the same bank follows, the one in the other bank
	 * does not. */
	assert_int_not_equal(engine_program(1), programs[1]);
	changed_in_place(1, &before[1], packets[1]);
	changed_in_place(0, &before[0], packets[0]);
	assert_int_equal(engine_program(2), programs[2]);
	assert_false(rig_query(n, ids[2]).program_is_current);

	/* A second attach changes the program as natra_upgrade does. */
	OK(attach(2));
	assert_int_not_equal(engine_program(2), programs[2]);
	changed_in_place(2, &before[2], packets[2]);

	/* If all programs are current, natra_upgrade changes nothing. */
	programs[2] = engine_program(2);
	OK(natra_upgrade(n, ids[2]));
	OK(natra_upgrade(n, ids[1]));
	assert_int_equal(engine_program(2), programs[2]);
	changed_in_place(2, &before[2], packets[2]);
}

/* An attachment that takes a slot in a bank first changes the bank's
 * program. */
TH_TEST(newcomer_changes_it)
{
	rig_detach(n, ids[0]);
	pretend_another_build();
	assert_false(rig_query(n, ids[1]).program_is_current);
	OK(attach(0));
	/* The last bank is the first one to be tried. */
	assert_int_equal(engine_program(2), engine_program(0));
	assert_true(rig_query(n, ids[2]).program_is_current);
	assert_true(rig_query(n, ids[0]).program_is_current);
	assert_false(rig_query(n, ids[1]).program_is_current);
}

/* A setting that is fixed when the program is loaded differs, so natra attaches
 * again, with the policy of the record. */
TH_TEST(other_layout_is_replaced)
{
	struct natra_info before = rig_query(n, ids[0]), after;
	struct natra_policy policy = policy_of(10, 20);
	int fd = open_record(0);
	struct record record = read_record(fd);

	/* The record now looks as if another build had used a slot of another
	 * engine for this leg. */
	record.l2_legs = 0;
	rig_write(fd, &record);
	(void)close(fd);
	assert_false(rig_query(n, ids[0]).upgrade_is_in_place);
	OK(natra_upgrade(n, ids[0]));
	after = rig_query(n, ids[0]);
	assert_true(after.program_is_current && after.upgrade_is_in_place);
	assert_int_not_equal(after.ingress_prog_id, before.ingress_prog_id);
	assert_memory_equal(&after.policy, &before.policy,
			    sizeof(after.policy));
	OK(natra_check(n, ids[0], &policy));
}

/* Another build may compute other limits from the same policy. */
TH_TEST(limits_of_another_formula)
{
	struct natra_policy policy = policy_of(10, 20);
	struct natra_config config;
	int fd = open_record(0), configs;
	struct record record = read_record(fd);
	uint32_t index = record.slot[LEG_INGRESS].index;
	uint64_t burst_ns = record.limits[LEG_INGRESS].rate.burst_ns;
	char path[600];

	bank_pin(0, "configs", path, sizeof(path));
	configs = bpf_obj_get(path);
	assert_true(configs >= 0);
	assert_int_equal(bpf_map_lookup_elem(configs, &index, &config), 0);
	config.limits[config.active & 1].rate.burst_ns /= 2;
	assert_int_equal(
		bpf_map_update_elem(configs, &index, &config, BPF_EXIST), 0);
	/* The map differs from what was last set, so somebody else wrote to
	 * it. */
	GIVES(-EBADE, natra_check(n, ids[0], &policy));
	says(n, "ingress", NULL);
	record.limits[LEG_INGRESS].rate.burst_ns /= 2;
	rig_write(fd, &record);
	OK(natra_check(n, ids[0], &policy));

	/* With its program, this build also sets the limits that it
	 * computes. */
	OK(natra_upgrade(n, ids[0]));
	OK(natra_check(n, ids[0], &policy));
	assert_int_equal(bpf_map_lookup_elem(configs, &index, &config), 0);
	assert_int_equal(config.limits[config.active & 1].rate.burst_ns,
			 burst_ns);
	(void)close(configs);
	(void)close(fd);
}

static int count_stats(void *arg, const struct natra_info *info,
		       const struct natra_stats *stats)
{
	(void)info;
	(void)stats;
	++*(int *)arg;
	return 0;
}

static int count_infos(void *arg, const struct natra_info *info)
{
	assert_true(info->upgrade_is_in_place);
	++*(int *)arg;
	return 0;
}

/* A process asks the verifier once for each feature, and not for each attachment. */
TH_TEST(verifier_is_asked_once)
{
	struct natra *other = rig_open();
	int found = 0;

	assert_true(loads > 0);
	loads = 0;
	assert_int_equal(natra_foreach_attachment(other, count_infos, &found),
			 0);
	assert_int_equal(natra_foreach_stats(other, count_stats, &found), 0);
	assert_int_equal(found, 2 * PODS);
	assert_int_equal(loads, 0);
	natra_close(other);
}

TH_TEST(refusals)
{
	struct natra_target target = pod_target(&pods[1], "bare");
	struct natra_policy policy = policy_of(10, 20);

	GIVES(-ENOENT, natra_upgrade(n, "nobody"));
	says(n, "nobody", NULL);
	GIVES(-EINVAL, natra_upgrade(n, ""));
	GIVES(-EINVAL, natra_upgrade(n, NULL));
	assert_int_equal(natra_upgrade(NULL, ids[0]), -EINVAL);

	rig_detach(n, ids[1]);
	assert_int_equal(natra_record_unshaped(n, &target, &policy, "no BPF"),
			 0);
	GIVES(-EOPNOTSUPP, natra_upgrade(n, "bare"));
	says(n, "bare", "no BPF");
	rig_detach(n, "bare");

	rig_sh("ip -n %s link del eth0", pods[2].name);
	GIVES(-ENODEV, natra_upgrade(n, ids[2]));
	says(n, "eth0", ids[2]);
}

TH_TEST(maps_of_another_layout)
{
	static const struct {
		const char *name;
		enum bpf_map_type type;
		uint32_t value_size;
	} maps[] = {
		{"configs", BPF_MAP_TYPE_ARRAY, 8},
		{"configs", BPF_MAP_TYPE_ARRAY, 65536},
		{"configs", BPF_MAP_TYPE_HASH, sizeof(struct natra_config)},
		{"states", BPF_MAP_TYPE_ARRAY, 8},
		{"states", BPF_MAP_TYPE_ARRAY, sizeof(struct natra_state) - 8},
		{"states", BPF_MAP_TYPE_ARRAY, 1 << 20},
		{"object", BPF_MAP_TYPE_ARRAY, 4096},
		{"programs", BPF_MAP_TYPE_ARRAY, 4},
	};
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_policy policy = policy_of(30, 40);
	struct natra_flow flows[4];
	char path[600], kept[640];
	size_t len = 4;

	for (size_t i = 0; i < TH_LEN(maps); i++) {
		bank_pin(0, maps[i].name, path, sizeof(path));
		(void)snprintf(kept, sizeof(kept), "%s_kept", path);
		assert_int_equal(link(path, kept), 0);
		rig_replace_pin(path, maps[i].type, maps[i].value_size, 1, 0);

		/* Counters are read without the last two. */
		if (i < 6) {
			GIVES(-ESTALE, natra_stats(n, ids[0], &stats));
			says(n, path, "not this natra's");
		}
		GIVES(-ESTALE, natra_top(n, ids[0], NATRA_DIRECTION_INGRESS,
					 flows, &len));
		GIVES(-ESTALE, natra_check(n, ids[0], NULL));
		GIVES(-ESTALE, natra_configure(n, ids[0], &policy));
		/* Queries report the foreign map, others can still attach and
		 * detach, and nobody removes it. */
		assert_false(rig_query(n, ids[0]).program_is_current);
		rig_detach(n, ids[2]);
		assert_int_equal(attach(2), 0);
		OK(natra_gc(n, NULL, NULL, 0, NULL));
		assert_int_equal(unlink(path), 0);

		assert_int_equal(rename(kept, path), 0);
		OK(natra_check(n, ids[0], NULL));
	}
	/* Detaching works, whatever is in the bank. */
	bank_pin(0, "states", path, sizeof(path));
	rig_replace_pin(path, BPF_MAP_TYPE_ARRAY, 8, 1, 0);
	rig_detach(n, ids[0]);
	assert_int_equal(natra_check(n, ids[0], NULL), -ENOENT);
	*strrchr(path, '/') = '\0';
	rig_sh("rm -r %s", path);
}

#define FOREIGN BPFFS "/natra/abi99/engine_0123456789abcdef"

/* Makes a bank of another ABI, with an array of programs. */
static void make_foreign_engine(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "programs", 4, 4, 1,
				NULL);

	assert_true(fd >= 0);
	rig_sh("mkdir -p " FOREIGN "/0");
	assert_int_equal(bpf_obj_pin(fd, FOREIGN "/0/programs"), 0);
	(void)close(fd);
}

static bool has_foreign_engine(void)
{
	return access(FOREIGN "/0/programs", F_OK) == 0;
}

TH_TEST(engines_of_another_abi)
{
	int fd = open_record(0);
	struct record record = read_record(fd), other = record;

	make_foreign_engine();
	/* As long as there is a record of that ABI, it may have slots in that engine. */
	other.abi = 99;
	rig_write(fd, &other);
	rig_detach(n, ids[2]);
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	assert_true(has_foreign_engine());
	assert_int_equal(attach(2), 0);

	rig_write(fd, &record);
	(void)close(fd);
	rig_detach(n, ids[2]);
	assert_false(has_foreign_engine());
	make_foreign_engine();
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	assert_false(has_foreign_engine());
}

RIG_MAIN(begin, end)
