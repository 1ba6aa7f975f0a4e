/* SPDX-License-Identifier: BSD-2-Clause */
/* natra_foreach_stats reports the same of each attachment as natra_query and
 * natra_stats. */
#include "rig.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state/record.h"

#define PODS 3

static struct natra *n;
static struct pod pods[PODS];
static const char *const ids[PODS] = {"net/a", "net/b", "net/c"};
static unsigned int lines;

static void note_line(void *arg, enum natra_log_level level, const char *line)
{
	(void)arg;
	if (level > NATRA_LOG_WARN)
		return;
	print_message("%s\n", line);
	lines++;
}

static void attach(int i, const struct natra_policy *policy)
{
	struct natra_target target = pod_target(&pods[i], ids[i]);

	target.label = "shop/web";
	assert_int_equal(natra_attach(n, &target, policy, NULL), 0);
}

/* The first has no limit of egress; the ingress of the second is paced where this
 * kernel can. The third has no limits, but a record. */
static int begin(void **state)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_policy first = policy_of(10, 0),
			    second = policy_of(10, 20);
	struct natra_features features = NATRA_INIT(features);
	struct natra_target target;

	(void)state;
	rig_reset();
	opts.bpffs_path = BPFFS;
	opts.log_fn = note_line;
	assert_int_equal(natra_open(&n, &opts), 0);
	pods[0] = pod_make("stats-a");
	pods[1] = pod_make("stats-b");
	pods[2] = pod_make("stats-c");
	assert_int_equal(natra_probe(n, &features), 0);
	if (features.fq)
		second.ingress_mode = NATRA_INGRESS_MODE_PACE;
	attach(0, &first);
	attach(1, &second);
	target = pod_target(&pods[2], ids[2]);
	assert_int_equal(natra_record_unshaped(n, &target, &second, "a test"),
			 0);
	lines = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	rig_end(n, pods, ids, PODS);
	return 0;
}

/* The results of a walk for each id. */
struct told {
	unsigned int calls, of_other_abi;
	bool has_stats[PODS];
	struct natra_info info[PODS];
	struct natra_stats stats[PODS];
};

static int note(void *arg, const struct natra_info *info,
		const struct natra_stats *stats)
{
	struct told *told = arg;

	assert_int_equal(info->sz, sizeof(*info));
	told->calls++;
	told->of_other_abi += info->other_abi;
	for (int i = 0; i < PODS; i++) {
		if (strcmp(info->id, ids[i]) != 0)
			continue;
		told->info[i] = *info;
		told->has_stats[i] = stats;
		if (stats)
			told->stats[i] = *stats;
	}
	return 0;
}

static struct told walk(void)
{
	struct told told = {0};

	OK(natra_foreach_stats(n, note, &told));
	return told;
}

/* Checks what is not a counter. A walk does not look for the interface, and does not
 * compare the program. */
static void is_info(const struct natra_info *info, const char *id)
{
	struct natra_info expected = rig_query(n, id);

	expected.interface_gone = info->interface_gone;
	expected.program_is_current = info->program_is_current;
	expected.upgrade_is_in_place = info->upgrade_is_in_place;
	assert_memory_equal(info, &expected, sizeof(expected));
}

/* Compares with natra_stats when no packet has come between two calls of it. */
static void is_stats(int i)
{
	struct natra_stats before = NATRA_INIT(before),
			   after = NATRA_INIT(after);
	struct told told;

	for (int tries = 0; tries < 100; tries++) {
		assert_int_equal(natra_stats(n, ids[i], &before), 0);
		told = walk();
		assert_int_equal(natra_stats(n, ids[i], &after), 0);
		if (memcmp(&before, &after, sizeof(after)) == 0)
			break;
		(void)usleep(20000);
	}
	assert_true(told.has_stats[i]);
	assert_memory_equal(&told.stats[i], &after, sizeof(after));
}

/* Waits until the pod has what was sent: a busy kernel takes it from the veth later. */
static void wait_for(int i, uint64_t packets)
{
	struct natra_stats now = NATRA_INIT(now);

	for (int tries = 0; tries < 250; tries++) {
		assert_int_equal(natra_stats(n, ids[i], &now), 0);
		if (now.ingress.mice.packets >= packets)
			return;
		(void)usleep(20000);
	}
	fail_msg("%s: no %" PRIu64 " packets came", ids[i], packets);
}

TH_TEST(each_has_its_info_and_its_counters)
{
	struct natra_count *mice;
	struct told told;

	pod_send(&pods[0], 70);
	pod_send(&pods[1], 30);
	wait_for(0, 70);
	wait_for(1, 30);
	is_stats(0);
	is_stats(1);
	told = walk();
	assert_int_equal(told.calls, PODS);
	assert_int_equal(told.of_other_abi, 0);
	/* The kernel may have sent a few packets of its own. */
	mice = &told.stats[0].ingress.mice;
	assert_in_range(mice->packets, 70, 90);
	assert_in_range(told.stats[0].backstop.mice.packets, 70, 90);
	mice = &told.stats[1].ingress.mice;
	assert_in_range(mice->packets, 30, 50);
	assert_in_range(told.stats[1].backstop.mice.packets, 30, 50);
	for (int i = 0; i < PODS; i++)
		is_info(&told.info[i], ids[i]);
	assert_false(told.has_stats[2]);
	assert_true(told.info[2].unshaped);
	assert_string_equal(told.info[2].reason, "a test");
	assert_int_equal(lines, 0);
}

/* Writes another ABI into the record of an attachment and checks the walk then. */
static void is_told_without_counters(int i, uint32_t abi)
{
	struct natra_info info = rig_query(n, ids[i]);
	int fd = rig_open_pin(n, ids[i], "meta");
	struct record record, other;
	struct told told;

	rig_read(fd, &record);
	other = record;
	other.abi = abi;
	rig_write(fd, &other);
	told = walk();
	assert_int_equal(told.calls, PODS);
	assert_int_equal(told.of_other_abi, 1);
	assert_true(told.info[i].other_abi);
	assert_int_equal(told.info[i].abi, abi);
	assert_string_equal(told.info[i].pin_path, info.pin_path);
	assert_int_equal(told.info[i].policy.ingress_rate_bits_per_sec,
			 info.policy.ingress_rate_bits_per_sec);
	assert_false(told.has_stats[i]);
	rig_write(fd, &record);
	(void)close(fd);
}

TH_TEST(another_abi_is_told_without_counters)
{
	is_told_without_counters(0, NATRA_PIN_ABI + 1);
	assert_int_equal(walk().of_other_abi, 0);
	assert_int_equal(lines, 0);
}

/* Somebody has put a directory in the place of the record. */
TH_TEST(what_cannot_be_read_is_logged_and_left_out)
{
	const struct natra_info info = rig_query(n, ids[1]);
	struct told told;

	rig_sh("cd %s && mv meta kept && mkdir meta", info.pin_path);
	told = walk();
	assert_int_equal(told.calls, PODS - 1);
	assert_string_equal(told.info[1].id, "");
	assert_true(told.has_stats[0]);
	assert_int_equal(lines, 1);
	rig_sh("cd %s && rmdir meta && mv kept meta", info.pin_path);
}

/* The slots have become another attachment's. */
TH_TEST(what_lost_its_slots_is_logged_and_told_without_counters)
{
	int fd = rig_open_pin(n, ids[0], "meta");
	struct record record, other;
	struct told told;

	rig_read(fd, &record);
	other = record;
	for (int leg = 0; leg < LEG_MAX; leg++)
		other.slot[leg].owner++;
	rig_write(fd, &other);
	told = walk();
	assert_int_equal(told.calls, PODS);
	assert_false(told.has_stats[0]);
	assert_true(told.has_stats[1]);
	is_info(&told.info[0], ids[0]);
	assert_int_equal(lines, 1);
	GIVES(-EBADE, natra_check(n, ids[0], NULL));
	rig_write(fd, &record);
	(void)close(fd);
}

/* The states of all banks are gone from bpffs, as after somebody's rm. */
TH_TEST(what_lost_its_maps_is_logged_and_told_without_counters)
{
	struct told told;

	rig_sh("rm " BPFFS "/natra/abi*/engine_*/*/states");
	told = walk();
	assert_int_equal(told.calls, PODS);
	for (int i = 0; i < PODS; i++)
		assert_false(told.has_stats[i]);
	is_info(&told.info[0], ids[0]);
	assert_false(told.info[0].unshaped);
	assert_int_equal(lines, 2);
	GIVES(-EBADE, natra_check(n, ids[0], NULL));
	GIVES(-ENOENT, natra_stats(n, ids[0], &told.stats[0]));
	says(n, "counters", ids[0]);
}

static int stop(void *arg, const struct natra_info *info,
		const struct natra_stats *stats)
{
	unsigned int *calls = arg;

	(void)info;
	(void)stats;
	++*calls;
	return 7;
}

TH_TEST(the_callback_ends_the_walk)
{
	unsigned int calls = 0;

	GIVES(7, natra_foreach_stats(n, stop, &calls));
	assert_int_equal(calls, 1);
	GIVES(-EINVAL, natra_foreach_stats(n, NULL, &calls));
	says(n, "fn", "missing");
	assert_int_equal(natra_foreach_stats(NULL, stop, &calls), -EINVAL);
	for (int i = 0; i < PODS; i++)
		rig_detach(n, ids[i]);
	OK(natra_foreach_stats(n, stop, &calls));
	assert_int_equal(calls, 1);
}

RIG_MAIN(begin, end)
