/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how natra finds out which interfaces still exist, for one
 * attachment and for very many. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORDS    1000
#define FEW        5
#define NAMESPACES 250

static struct natra *n;

static int begin(void **state)
{
	(void)state;
	rig_reset();
	n = rig_open();
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(natra_gc(n, NULL, NULL, 0, NULL), 0);
	natra_close(n);
	return 0;
}

static size_t gc(void)
{
	size_t removed = 99;

	OK(natra_gc(n, NULL, NULL, 0, &removed));
	return removed;
}

/* The attachment's link is no longer pinned, which alone does not make the
 * attachment garbage. */
TH_TEST(an_attachment_without_its_link_goes_with_the_interface)
{
	struct natra_policy policy = policy_of(10, 10);
	struct pod pod = pod_make("unlinked");
	struct natra_target target = pod_target(&pod, "unlinked");

	if (!rig_has_tcx())
		skip();
	policy.attach_mode = NATRA_ATTACH_MODE_TCX_PODSIDE;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("rm %s/ingress_link", rig_query(n, "unlinked").pin_path);
	assert_int_equal(natra_check(n, "unlinked", NULL), -EBADE);
	says(n, "link", NULL);
	assert_false(rig_query(n, "unlinked").interface_gone);
	assert_int_equal(gc(), 0);
	OK(natra_configure(n, "unlinked", &policy));

	rig_sh("ip link del h-unlinked");
	assert_true(rig_query(n, "unlinked").interface_gone);
	GIVES(-ENODEV, natra_configure(n, "unlinked", &policy));
	assert_int_equal(gc(), 1);
	assert_int_equal(rig_pins(), 0);
	pod_remove(&pod);
}

struct tally {
	size_t all;
	size_t gone;
};

static int count(void *arg, const struct natra_info *info)
{
	struct tally *tally = arg;

	tally->all++;
	tally->gone += info->interface_gone;
	return 0;
}

static struct tally walk(void)
{
	struct tally tally = {0};

	OK(natra_foreach_attachment(n, count, &tally));
	return tally;
}

/* In every mode, the interface counts as present until it is deleted. */
TH_TEST(each_mode_is_there_until_it_goes)
{
	for (int mode = 1; mode < NATRA_ATTACH_MODE_MAX; mode++) {
		struct natra_policy policy = policy_of(10, 10);
		struct pod pod = pod_make("mode");
		struct natra_target target = pod_target(&pod, "mode");
		struct tally tally;
		int r;

		policy.attach_mode = (enum natra_attach_mode)mode;
		r = natra_attach(n, &target, &policy, NULL);
		if (r == 0) {
			tally = walk();
			assert_int_equal(tally.all, 1);
			assert_int_equal(tally.gone, 0);
			assert_int_equal(gc(), 0);
			/* The namespace stays, and no new interface gets this
			 * one's index. */
			rig_sh("ip link del h-mode");
			tally = walk();
			assert_int_equal(tally.all, 1);
			assert_int_equal(tally.gone, 1);
			assert_true(rig_query(n, "mode").interface_gone);
			assert_int_equal(gc(), 1);
		} else {
			assert_int_equal(r, -EOPNOTSUPP);
		}
		pod_remove(&pod);
	}
}

/* Somebody may have put anything among the namespaces that have names. */
TH_TEST(what_is_no_namespace_is_passed_over)
{
	struct natra_policy policy = policy_of(10, 10);
	struct pod pod = pod_make("among");
	struct natra_target target = pod_target(&pod, "among");
	struct tally tally;

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("cd /run/netns && ln -s itself itself && mkfifo fifo &&"
	       "  ln -s nothing broken && mkdir directory");
	tally = walk();
	assert_int_equal(tally.all, 1);
	assert_int_equal(tally.gone, 0);
	assert_int_equal(gc(), 0);
	OK(natra_check(n, "among", NULL));
	rig_sh("cd /run/netns && rm -r itself fifo broken directory");
	assert_int_equal(natra_detach(n, &target), 1);
	pod_remove(&pod);
}

static size_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

/* Counts the files that a walk of counters has open at its only attachment. */
static int note_files(void *arg, const struct natra_info *info,
		      const struct natra_stats *stats)
{
	size_t *files = arg;

	(void)info;
	(void)stats;
	assert_int_equal(*files, 0);
	*files = open_files();
	return 0;
}

static void note_line(void *arg, enum natra_log_level level, const char *line)
{
	unsigned int *lines = arg;

	(void)level;
	print_message("%s\n", line);
	++*lines;
}

TH_TEST(id_that_is_being_attached_is_no_line)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_policy policy = policy_of(10, 10);
	struct pod pod = pod_make("begun");
	struct natra_target target = pod_target(&pod, "begun");
	unsigned int lines = 0;
	struct natra *logged;
	size_t files = 0;

	opts.bpffs_path = BPFFS;
	opts.log_fn = note_line;
	opts.log_arg = &lines;
	assert_int_equal(natra_open(&logged, &opts), 0);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	rig_sh("mkdir " BPFFS "/natra/%032d", 0);
	assert_int_equal(natra_foreach_stats(logged, note_files, &files), 0);
	assert_int_equal(lines, 0);
	assert_true(files > 0);
	rig_sh("rmdir " BPFFS "/natra/%032d", 0);
	natra_close(logged);
	pod_remove(&pod);
	(void)gc();
}

/* A node may have hundreds of banks, and each bank stays open during the walk. */
TH_TEST(a_bank_keeps_one_file_open)
{
	struct natra_policy policy = policy_of(10, 10);
	struct pod pod = pod_make("files");
	struct natra_target target = pod_target(&pod, "files");
	size_t with_bank = 0, without = 0;

	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	assert_int_equal(natra_foreach_stats(n, note_files, &with_bank), 0);
	assert_int_equal(natra_detach(n, &target), 1);
	assert_int_equal(natra_record_unshaped(n, &target, &policy, "a test"),
			 0);
	assert_int_equal(natra_foreach_stats(n, note_files, &without), 0);
	/* Each direction may have a bank of its own. */
	assert_in_range(with_bank, without + 1, without + 2);
	pod_remove(&pod);
	(void)gc();
}

static double walk_seconds(size_t gone)
{
	double best = 1e9;

	/* The shortest of several walks counts, and its CPU time, because other
	 * processes can only make a walk longer. */
	for (int i = 0; i < 5; i++) {
		struct timespec from, to;
		struct tally tally;
		double took;

		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		tally = walk();
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		assert_int_equal(tally.all, RECORDS);
		assert_int_equal(tally.gone, gone);
		took = (double)(to.tv_sec - from.tv_sec) +
		       (double)(to.tv_nsec - from.tv_nsec) / 1e9;
		best = took < best ? took : best;
	}
	return best;
}

/* Makes many records for few interfaces, which is possible because these
 * records have no programs. */
static void record_many(const struct pod *pods)
{
	struct natra_policy policy = policy_of(10, 10);
	char id[32];

	for (int i = 0; i < RECORDS; i++) {
		const struct pod *pod = &pods[i % FEW];
		struct natra_target target;

		(void)snprintf(id, sizeof(id), "many-%d", i);
		target = pod_target(pod, id);
		assert_int_equal(
			natra_record_unshaped(n, &target, &policy, "a test"),
			0);
	}
}

TH_TEST(many_are_listed_with_one_look_at_all_namespaces)
{
	struct pod pods[FEW];
	double few, many;
	size_t removed;
	char name[16];

	for (int i = 0; i < FEW; i++) {
		(void)snprintf(name, sizeof(name), "walk-%d", i);
		pods[i] = pod_make(name);
	}
	record_many(pods);
	few = walk_seconds(0);
	/* natra looks into these namespaces, too, and has nothing in any of
	 * them. */
	rig_sh("for i in $(seq %d); do echo netns add other-$i; done |"
	       "ip -batch -",
	       NAMESPACES);
	many = walk_seconds(0);
	print_message("%d records: %.3f s; beside %d namespaces more: %.3f s\n",
		      RECORDS, few, NAMESPACES, many);
	/* One walk through all namespaces takes some ms. A walk for each record
	 * took a second. */
	assert_true(many < 0.2 || many < 2 * few);

	for (int i = 0; i < FEW; i++)
		pod_remove(&pods[i]);
	many = walk_seconds(RECORDS);
	print_message("the same when all are gone: %.3f s\n", many);
	assert_true(many < 0.2 || many < 2 * few);
	removed = gc();
	assert_int_equal(removed, RECORDS);
	assert_int_equal(rig_pins(), 0);
	rig_sh("for i in $(seq %d); do echo netns del other-$i; done |"
	       "ip -batch -",
	       NAMESPACES);
}

RIG_MAIN(begin, end)
