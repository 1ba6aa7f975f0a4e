/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests replace the pinned record of an attachment by one of another ABI or
 * by garbage: natra reports it and never misreads it. */
#include "rig.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../bpf/natra_shared.h"

#define ID          "record"
#define FOREIGN_ABI 99
/* These are the first words of every layout. */
#define WORD_MAGIC  0
#define WORD_ABI    1
#define WORD_SIZE   2
#define VALUE_MAX   4096

static struct natra *n;
static struct pod pod;

/* This is the pinned map of the record, and its value as natra wrote it. */
static struct {
	char path[600];
	int fd;
	uint32_t size;
	unsigned char value[VALUE_MAX];
} record;

static int begin(void **state)
{
	struct natra_policy policy = policy_of(10, 20);
	struct bpf_map_info map = {0};
	struct natra_info info = NATRA_INIT(info);
	struct natra_target target;
	uint32_t len = sizeof(map);

	(void)state;
	rig_reset();
	n = rig_open();
	pod = pod_make("record");
	target = pod_target(&pod, ID);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	assert_int_equal(natra_query(n, ID, &info), 0);
	(void)snprintf(record.path, sizeof(record.path), "%s/meta",
		       info.pin_path);
	record.fd = bpf_obj_get(record.path);
	assert_true(record.fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(record.fd, &map, &len), 0);
	record.size = map.value_size;
	assert_true(record.size <= VALUE_MAX && record.size % 4 == 0);
	rig_read(record.fd, record.value);
	return 0;
}

static void restore_engine(void)
{
	rig_sh("cd " BPFFS "/natra; if [ -e abi%d/engine_* ]; then"
	       "  rm -rf abi%d; mv abi%d abi%d; fi",
	       FOREIGN_ABI, NATRA_PIN_ABI, FOREIGN_ABI, NATRA_PIN_ABI);
}

static int end(void **state)
{
	struct natra_target target = pod_target(&pod, ID);

	(void)state;
	/* A case that failed has not restored the value. */
	rig_write(record.fd, record.value);
	restore_engine();
	(void)close(record.fd);
	assert_true(natra_detach(n, &target) >= 0);
	assert_int_equal(natra_gc(n, NULL, NULL, 0, NULL), 0);
	assert_int_equal(rig_pins(), 0);
	pod_remove(&pod);
	natra_close(n);
	return 0;
}

static void write_word(int word, uint32_t number)
{
	unsigned char value[VALUE_MAX];

	memcpy(value, record.value, record.size);
	memcpy(value + (size_t)word * sizeof(number), &number, sizeof(number));
	rig_write(record.fd, value);
}

/* Makes the attachment one of another ABI, with its engine. */
static void become_foreign(void)
{
	write_word(WORD_ABI, FOREIGN_ABI);
	rig_sh("mv " BPFFS "/natra/abi%d " BPFFS "/natra/abi%d", NATRA_PIN_ABI,
	       FOREIGN_ABI);
}

static void restore(void)
{
	struct natra_policy policy = policy_of(10, 20);

	rig_write(record.fd, record.value);
	restore_engine();
	assert_int_equal(natra_check(n, ID, &policy), 0);
}

static int tell(void *arg, const struct natra_info *info)
{
	struct natra_info *ret = arg;

	*ret = *info;
	return 0;
}

/* Checks that the calls which need more than the prefix say so, and that those which
 * do not work. None of them changes anything. */
static void is_known_by_its_prefix(const char *why)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(30, 40);
	struct natra_info info, listed = NATRA_INIT(listed);
	struct natra_stats stats = NATRA_INIT(stats);
	char *before = rig_state(), id[NATRA_ID_MAX + 1];
	struct natra_flow flow;
	size_t len = 1, removed = 77;
	struct stat st;

	info = rig_query(n, ID);
	assert_true(info.other_abi);
	assert_false(info.program_is_current || info.interface_gone ||
		     info.upgrade_is_in_place);
	assert_int_equal(info.policy.ingress_rate_bits_per_sec, 10 * MBIT);
	assert_int_equal(info.policy.egress_rate_bits_per_sec, 20 * MBIT);
	assert_int_equal(info.policy.pace_limit_ns, 0);
	assert_memory_equal(&info.effective, &info.policy, sizeof(info.policy));
	assert_int_equal(fstat(pod.fd, &st), 0);
	assert_int_equal(info.netns_inode, st.st_ino);
	OK(natra_foreach_attachment(n, tell, &listed));
	assert_memory_equal(&listed, &info, sizeof(info));
	target.id = NULL;
	OK(natra_find(n, &target, id, sizeof(id)));
	assert_string_equal(id, ID);

	GIVES(-ESTALE, natra_check(n, ID, NULL));
	says(n, ID, why);
	GIVES(-ESTALE, natra_stats(n, ID, &stats));
	says(n, ID, why);
	GIVES(-ESTALE, natra_top(n, ID, NATRA_DIRECTION_EGRESS, &flow, &len));
	says(n, ID, why);
	GIVES(-ESTALE, natra_configure(n, ID, &policy));
	says(n, why, "attach it again");
	GIVES(-ESTALE, natra_upgrade(n, ID));
	says(n, why, "attach it again");
	target.id = "another";
	GIVES(-EBUSY, natra_attach(n, &target, &policy, NULL));
	says(n, ID, NULL);
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
	rig_same_state(before);
	free(before);
}

TH_TEST(foreign_abi)
{
	become_foreign();
	assert_int_equal(rig_query(n, ID).abi, FOREIGN_ABI);
	is_known_by_its_prefix("ABI 99");
	restore();
}

static char refused[256];

static void note_error(void *arg, enum natra_log_level level, const char *line)
{
	(void)arg;
	if (level == NATRA_LOG_ERROR)
		(void)snprintf(refused, sizeof(refused), "%s", line);
}

static int open_own_abi_only(void)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *own = NULL;
	int r;

	opts.bpffs_path = BPFFS;
	opts.log_fn = note_error;
	opts.refuse_other_abi = true;
	r = natra_open(&own, &opts);
	assert_int_equal(own == NULL, r < 0);
	natra_close(own);
	return r;
}

/* A program that cannot change what is there learns it when it opens the library. */
TH_TEST(foreign_abi_is_told_at_once)
{
	assert_int_equal(open_own_abi_only(), 0);
	become_foreign();
	assert_int_equal(open_own_abi_only(), -ESTALE);
	assert_non_null(strstr(refused, "'" ID "'"));
	assert_non_null(strstr(refused, "ABI 99"));
	restore();
}

/* natra_check reports what it can see. */
TH_TEST(foreign_abi_checked)
{
	struct natra_info info = rig_query(n, ID);

	become_foreign();
	rig_sh("mv %s/ingress_link %s/kept", info.pin_path, info.pin_path);
	GIVES(-EBADE, natra_check(n, ID, NULL));
	says(n, "ingress link", NULL);
	rig_sh("mv %s/kept %s/ingress_link", info.pin_path, info.pin_path);
	restore();
}

TH_TEST(foreign_abi_replaced)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(30, 40);
	struct natra_info before = rig_query(n, ID), info;

	become_foreign();
	OK(natra_record_unshaped(n, &target, &policy, "-"));
	assert_true(rig_query(n, ID).other_abi);
	OK(natra_attach(n, &target, &policy, NULL));
	info = rig_query(n, ID);
	assert_false(info.other_abi);
	assert_int_equal(info.abi, before.abi);
	assert_int_not_equal(info.ingress_prog_id, before.ingress_prog_id);
	OK(natra_check(n, ID, &policy));
}

/* A link is detached by its pin, whatever the other ABI calls the leg, and at once, whoever
 * else has it open. */
TH_TEST(foreign_abi_detached)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_info info = rig_query(n, ID);
	char path[sizeof(info.pin_path) + 16];
	int link;

	become_foreign();
	rig_sh("mv %s/egress_link %s/new_link", info.pin_path, info.pin_path);
	(void)snprintf(path, sizeof(path), "%s/new_link", info.pin_path);
	link = bpf_obj_get(path);
	assert_true(link >= 0);
	target.id = ID;
	GIVES(1, natra_detach(n, &target));
	assert_int_equal(natra_query(n, ID, &info), -ENOENT);
	rig_sh("! nsenter --net=%s bpftool -j net show | grep prog_id",
	       pod.path);
	(void)close(link);
}

/* An interface that is gone takes the record of any ABI with it. */
TH_TEST(foreign_abi_gone)
{
	size_t removed = 0;

	become_foreign();
	rig_sh("ip -n %s link del eth0", pod.name);
	assert_true(rig_query(n, ID).interface_gone);
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 1);
}

/* An attachment of a foreign ABI does not disturb calls about others. */
TH_TEST(foreign_abi_beside)
{
	struct natra_policy policy = policy_of(10, 20);
	struct pod other = pod_make("beside");
	struct natra_target target = pod_target(&other, "beside");
	char id[NATRA_ID_MAX + 1];

	become_foreign();
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_find(n, &target, id, sizeof(id)));
	assert_string_equal(id, "beside");
	OK(natra_gc(n, NULL, NULL, 0, NULL));
	OK(natra_check(n, "beside", &policy));
	GIVES(1, natra_detach(n, &target));
	restore();
	pod_remove(&other);
}

/* Any result is right, but an error must have a text and garbage is not
 * believed. */
static void orderly(const char *what, size_t offset)
{
	struct natra_info info = NATRA_INIT(info);
	int r = natra_query(n, ID, &info);

	if (r > 0 || (r < 0 && (natra_error(n)[0] == '\0' ||
				strchr(natra_error(n), '\n'))))
		fail_msg("%s %zu: query %d, '%s'", what, offset, r,
			 natra_error(n));
	if (r == 0 && (info.policy.attach_mode >= NATRA_ATTACH_MODE_MAX ||
		       info.policy.sli >= NATRA_SLI_MAX))
		fail_msg("%s %zu: query believes it", what, offset);
	r = natra_check(n, ID, NULL);
	if (r > 0 || (r < 0 && natra_error(n)[0] == '\0'))
		fail_msg("%s %zu: check %d", what, offset, r);
	r = natra_foreach_attachment(n, tell, &info);
	if (r > 0 || (r < 0 && natra_error(n)[0] == '\0'))
		fail_msg("%s %zu: foreach %d", what, offset, r);
}

/* Inverts each byte of the numbers, and some bytes of the texts. */
TH_TEST(every_byte_wrong)
{
	unsigned char value[VALUE_MAX];

	for (size_t i = 0; i < record.size; i++) {
		if (i > 320 && i % 32)
			continue;
		memcpy(value, record.value, record.size);
		value[i] ^= 0xff;
		rig_write(record.fd, value);
		orderly("byte", i);
	}
	restore();
}

TH_TEST(strings_without_end)
{
	unsigned char value[VALUE_MAX];
	size_t texts = record.size - 4 * (NATRA_ID_MAX + 1);

	memcpy(value, record.value, record.size);
	memset(value + texts, 'x', record.size - texts);
	rig_write(record.fd, value);
	orderly("texts", texts);
	restore();
}

/* A record without the magic is not natra's, and an attach replaces it. */
TH_TEST(no_magic)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info = NATRA_INIT(info);

	write_word(WORD_MAGIC, 0);
	assert_true(KEPT(natra_query(n, ID, &info)) < 0);
	says(n, NULL, NULL);
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, ID, &policy));
}

/* A value of the right ABI whose size field is wrong is of another layout. */
TH_TEST(wrong_size_told)
{
	write_word(WORD_SIZE, record.size + 8);
	is_known_by_its_prefix("another build of ABI 1");
	restore();
}

static int count_group(void *arg, const struct natra_group_info *group)
{
	(void)group;
	++*(int *)arg;
	return 0;
}

/* Nobody knows in which group such an attachment is, so all groups stay. */
TH_TEST(no_group_is_removed)
{
	struct natra_group_info group = NATRA_INIT(group);
	struct natra_policy policy = policy_of(10, 20);
	struct pod other = pod_make("other");
	struct natra_target target = pod_target(&other, "other");
	int left = 0;

	group.name = "team";
	group.ingress_rate_bits_per_sec = 1000000;
	assert_int_equal(natra_group_set(n, &group), 0);
	write_word(WORD_MAGIC, 0);
	GIVES(-EBUSY, natra_group_remove(n, "team"));
	says(n, "'team' may have", BPFFS);
	write_word(WORD_SIZE, record.size + 8);
	GIVES(-EBUSY, natra_group_remove(n, "team"));
	says(n, "'team' may have", "'" ID "'");
	(void)snprintf(policy.group, sizeof(policy.group), "own");
	policy.automatic_group = &group;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	assert_int_equal(natra_detach(n, &target), 1);
	assert_int_equal(natra_foreach_group(n, count_group, &left), 0);
	assert_int_equal(left, 2);
	rig_write(record.fd, record.value);
	GIVES(1, natra_group_remove(n, "team"));
	left = 0;
	assert_int_equal(natra_foreach_group(n, count_group, &left), 0);
	assert_int_equal(left, 0);
	pod_remove(&other);
	restore();
}

/* A map of another type or size is pinned in the record's place. */
TH_TEST(another_map)
{
	static const struct {
		enum bpf_map_type type;
		uint32_t key, value;
	} maps[] = {
		{BPF_MAP_TYPE_ARRAY, 4, 8},
		{BPF_MAP_TYPE_ARRAY, 4, 16},
		{BPF_MAP_TYPE_ARRAY, 4, 65536},
		{BPF_MAP_TYPE_HASH, 8, 1256},
	};

	for (size_t i = 0; i < TH_LEN(maps); i++) {
		int fd = bpf_map_create(maps[i].type, "other", maps[i].key,
					maps[i].value, 1, NULL);

		assert_true(fd >= 0);
		assert_int_equal(unlink(record.path), 0);
		assert_int_equal(bpf_obj_pin(fd, record.path), 0);
		(void)close(fd);
		orderly("map", i);
	}
	assert_int_equal(unlink(record.path), 0);
	assert_int_equal(bpf_obj_pin(record.fd, record.path), 0);
	restore();
}

RIG_MAIN(begin, end)
