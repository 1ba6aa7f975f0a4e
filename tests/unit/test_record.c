/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>

#include "state/record.h"

static struct natra_policy full_policy(void)
{
	struct natra_policy p = NATRA_INIT(p);

	p.ingress_rate_bits_per_sec = 1000001;
	p.egress_rate_bits_per_sec = 1000002;
	p.ingress_burst_bits = 3;
	p.egress_burst_bits = 4;
	p.heavy_hitter_threshold_bytes = 5;
	p.horizon_ns = 6;
	p.pace_limit_ns = 7;
	p.fast_pass_share_percent = 8;
	p.fast_pass = NATRA_FAST_PASS_OFF;
	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	p.attach_mode = NATRA_MODE_CLSACT_HOSTSIDE;
	p.edt_pacing = NATRA_EDT_ON;
	p.sli = NATRA_SLI_ON;
	p.fast_pass_guard_bits_per_sec = 10;
	p.unshaped_subnets_len = 9;
	return p;
}

static struct record good_record(void)
{
	struct natra_policy policy = full_policy();
	struct record m = {
		.magic = NATRA_PIN_MAGIC,
		.abi = NATRA_PIN_ABI,
		.size = sizeof(m),
		.mode = NATRA_MODE_TCX_PODSIDE,
		.id = "pod",
	};

	record_set_policy(&m, &policy);
	return m;
}

static void policy_comes_back_whole(void **state)
{
	struct natra_policy p = full_policy();
	struct natra_policy back;
	struct record m;

	(void)state;
	memset(&m, 0xff, sizeof(m));
	record_set_policy(&m, &p);
	back = record_get_policy(&m);
	assert_memory_equal(&back, &p, sizeof(p));
	p.shaped_subnets_len = 4;
	p.unshaped_subnets_len = 0;
	record_set_policy(&m, &p);
	back = record_get_policy(&m);
	assert_memory_equal(&back, &p, sizeof(p));
	p.shaped_subnets_len = 0;
	record_set_policy(&m, &p);
	back = record_get_policy(&m);
	assert_memory_equal(&back, &p, sizeof(p));
}

static void record_of_this_build_is_valid(void **state)
{
	struct record m = good_record();
	const struct record before = m;

	(void)state;
	assert_true(record_valid(&m));
	assert_memory_equal(&m, &before, sizeof(m));
}

/* This build must neither check nor lose what a later build writes there. */
static void reserved_space_is_kept_and_not_read(void **state)
{
	struct record m = good_record(), back;

	(void)state;
	memset(m.reserved, 0xff, sizeof(m.reserved));
	assert_true(record_valid(&m));
	assert_int_equal(record_read(&m, sizeof(m), &back), NATRA_PIN_ABI);
	assert_memory_equal(&back, &m, sizeof(m));
}

static void record_of_another_layout_is_not(void **state)
{
	struct record m = good_record();

	(void)state;
	m.magic ^= 1;
	assert_false(record_valid(&m));
	m = good_record();
	m.abi++;
	assert_false(record_valid(&m));
	m = good_record();
	m.abi--;
	assert_false(record_valid(&m));
	m = good_record();
	m.size++;
	assert_false(record_valid(&m));
	memset(&m, 0, sizeof(m));
	assert_false(record_valid(&m));
	memset(&m, 0xff, sizeof(m));
	assert_false(record_valid(&m));
}

/* Writes a record as an older ABI had it, of which this ABI reads the beginning and
 * gso_segs. */
static void make_old(const struct record *m, uint32_t segs, size_t segs_offset,
		     unsigned char *ret_value, size_t size)
{
	memset(ret_value, 0, size);
	memcpy(ret_value, m, RECORD_OLD_SIZE);
	memcpy(ret_value + segs_offset, &segs, sizeof(segs));
}

static void record_of_an_older_abi_is_read(void **state)
{
	static const struct {
		uint32_t abi;
		size_t size;
		size_t segs_offset;
	} rows[] = {{3, 1744, 1340}, {4, 1792, 1340}, {5, 2816, 1516}};
	unsigned char value[2816];
	struct record m = good_record(), back;

	(void)state;
	m.leg[LEG_EGRESS].hook = RECORD_HOOK_TCX;
	m.leg[LEG_EGRESS].prog_id = 7;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m.abi = rows[i].abi;
		m.size = (uint32_t)rows[i].size;
		make_old(&m, 2, rows[i].segs_offset, value, rows[i].size);
		assert_int_equal(record_read(value, rows[i].size, &back),
				 rows[i].abi);
		assert_int_equal(back.mode, m.mode);
		assert_memory_equal(back.leg, m.leg, sizeof(m.leg));
		assert_int_equal(back.gso_segs, 2);
	}
}

/* Whoever forgets a new number for a new layout must not lose attachments. */
static void record_of_this_abi_and_another_size_is_unknown(void **state)
{
	unsigned char value[sizeof(struct record) + 8] = {0};
	struct record m = good_record(), back = {.mode = 99};
	const struct record before = back;

	(void)state;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, 12, &back), RECORD_ABI_UNKNOWN);
	assert_int_equal(record_read(value, sizeof(m) - 1, &back),
			 RECORD_ABI_UNKNOWN);
	assert_int_equal(record_read(value, sizeof(m) + 8, &back),
			 RECORD_ABI_UNKNOWN);
	m.size--;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, sizeof(m), &back),
			 RECORD_ABI_UNKNOWN);
	assert_memory_equal(&back, &before, sizeof(before));
}

static void lowered_gso_segs_of_abi_2_are_not_lost(void **state)
{
	unsigned char value[1344];
	struct record m = good_record(), back;

	(void)state;
	m.abi = 2;
	m.size = sizeof(value);
	make_old(&m, 2, 1340, value, sizeof(value));
	assert_int_equal(record_read(value, sizeof(value), &back), 2);
	assert_int_equal(back.gso_segs, 2);
	/* ABI 1 had another field in this place, or none. */
	m.abi = 1;
	make_old(&m, 2, 1340, value, sizeof(value));
	assert_int_equal(record_read(value, sizeof(value), &back), 1);
	assert_int_equal(back.gso_segs, 0);
}

/* Only those fields of an older record are read that a detach needs. */
static void record_of_an_older_layout_can_be_detached(void **state)
{
	struct record m = good_record();

	(void)state;
	m.abi = 1;
	m.size = 1256;
	assert_true(record_old_valid(&m));
	assert_false(record_valid(&m));
	m.leg[LEG_EGRESS].hook = RECORD_HOOK_CLSACT + 1;
	assert_false(record_old_valid(&m));
	m = good_record();
	m.mode = NATRA_MODE_MAX;
	assert_false(record_old_valid(&m));
}

static void policy_out_of_range_is_refused(void **state)
{
	struct natra_policy p;
	struct record m;

	(void)state;
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (policy_fields[i].max == UINT64_MAX)
			continue;
		m = good_record();
		p = record_get_policy(&m);
		policy_field_set(&policy_fields[i], &p,
				 policy_fields[i].max + 1);
		record_set_policy(&m, &p);
		if (record_valid(&m))
			fail_msg("%s is not checked", policy_fields[i].name);
	}
}

static void numbers_out_of_range_are_refused(void **state)
{
	struct record m = good_record();

	(void)state;
	m.mode = NATRA_MODE_MAX;
	assert_false(record_valid(&m));
	for (int i = 0; i < LEG_MAX; i++) {
		m = good_record();
		m.leg[i].hook = RECORD_HOOK_CLSACT + 1;
		assert_false(record_valid(&m));
	}
	m = good_record();
	m.subnets = SUBNETS_UNSHAPED + 1;
	assert_false(record_valid(&m));
	m = good_record();
	m.subnets = SUBNETS_NONE;
	assert_false(record_valid(&m));
	m = good_record();
	m.subnets_len = 0;
	assert_false(record_valid(&m));
	m = good_record();
	m.subnets_len = NATRA_SUBNETS_MAX + 1;
	assert_false(record_valid(&m));
	m = good_record();
	m.classes_len = NATRA_CLASSES_MAX;
	assert_true(record_valid(&m));
	m.classes_len++;
	assert_false(record_valid(&m));
}

static void strings_without_an_end_get_one(void **state)
{
	struct record m = good_record();

	(void)state;
	memset(m.pod.ifname, 'x', sizeof(m.pod.ifname));
	memset(m.host.ifname, 'x', sizeof(m.host.ifname));
	memset(m.id, 'x', sizeof(m.id));
	memset(m.network, 'x', sizeof(m.network));
	memset(m.label, 'x', sizeof(m.label));
	memset(m.reason, 'x', sizeof(m.reason));
	assert_true(record_valid(&m));
	assert_int_equal(strnlen(m.pod.ifname, 99), 15);
	assert_int_equal(strnlen(m.host.ifname, 99), 15);
	assert_int_equal(strnlen(m.id, 999), NATRA_ID_MAX);
	assert_int_equal(strnlen(m.network, 999), NATRA_NAME_MAX);
	assert_int_equal(strnlen(m.label, 999), NATRA_NAME_MAX);
	assert_int_equal(strnlen(m.reason, 999), RECORD_REASON_MAX - 1);
}

/* A record that is read back may have any size, and anybody may have pinned
 * it. */
static void record_is_read_by_its_abi(void **state)
{
	unsigned char value[sizeof(struct record) + 8] = {0};
	struct record m = good_record(), back = {.mode = 99};

	(void)state;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, sizeof(m), &back), NATRA_PIN_ABI);
	assert_memory_equal(&back, &m, sizeof(m));
	/* Only the part of an older record is read that all ABIs share. */
	for (uint32_t abi = 1; abi < NATRA_PIN_ABI; abi++) {
		m.abi = abi;
		memcpy(value, &m, sizeof(m));
		assert_int_equal(record_read(value, RECORD_OLD_SIZE, &back),
				 abi);
		assert_memory_equal(&back, &m, RECORD_OLD_SIZE);
		assert_int_equal(record_get_policy(&back).pace_limit_ns, 0);
		assert_string_equal(back.id, "");
	}
}

static void what_is_no_record_changes_nothing(void **state)
{
	unsigned char value[sizeof(struct record) + 8] = {0};
	struct record m = good_record(), back = {.mode = 99};
	const struct record before = back;

	(void)state;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, 0, &back), 0);
	assert_int_equal(record_read(value, 11, &back), 0);
	m.mode = NATRA_MODE_MAX;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, sizeof(m), &back), 0);
	m = good_record();
	m.abi = 1;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, RECORD_OLD_SIZE - 1, &back), 0);
	m.abi = 0;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, sizeof(m), &back), 0);
	m.abi = NATRA_PIN_ABI + 1;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, 12, &back), NATRA_PIN_ABI + 1);
	m.magic++;
	memcpy(value, &m, sizeof(m));
	assert_int_equal(record_read(value, 12, &back), 0);
	assert_memory_equal(&back, &before, sizeof(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policy_comes_back_whole),
		cmocka_unit_test(record_of_this_build_is_valid),
		cmocka_unit_test(reserved_space_is_kept_and_not_read),
		cmocka_unit_test(record_of_another_layout_is_not),
		cmocka_unit_test(record_of_an_older_layout_can_be_detached),
		cmocka_unit_test(lowered_gso_segs_of_abi_2_are_not_lost),
		cmocka_unit_test(record_of_an_older_abi_is_read),
		cmocka_unit_test(
			record_of_this_abi_and_another_size_is_unknown),
		cmocka_unit_test(policy_out_of_range_is_refused),
		cmocka_unit_test(numbers_out_of_range_are_refused),
		cmocka_unit_test(strings_without_an_end_get_one),
		cmocka_unit_test(record_is_read_by_its_abi),
		cmocka_unit_test(what_is_no_record_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
