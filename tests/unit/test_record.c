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
	p.attach_mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	p.edt_pacing = NATRA_EDT_PACING_ON;
	p.sli = NATRA_SLI_ON;
	p.unshaped_subnets_len = 9;
	memcpy(p.group, "team", 5);
	p.group_is_automatic = 1;
	return p;
}

static struct record good_record(void)
{
	struct natra_policy policy = full_policy();
	struct record m = {
		.magic = NATRA_PIN_MAGIC,
		.abi = NATRA_PIN_ABI,
		.size = sizeof(m),
		.mode = NATRA_ATTACH_MODE_TCX_PODSIDE,
		.id = "pod",
	};

	record_set_policy(&m, &policy);
	return m;
}

TH_TEST(policy_comes_back_whole)
{
	struct natra_policy p = full_policy();
	struct natra_policy back;
	struct record m;

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

TH_TEST(record_of_this_build_is_valid)
{
	struct record m = good_record();
	const struct record before = m;

	assert_true(record_valid(&m));
	assert_memory_equal(&m, &before, sizeof(m));
}

/* This build must neither check nor lose what a later build writes there. */
TH_TEST(reserved_space_is_kept_and_not_read)
{
	struct record m = good_record(), back;

	memset(m.reserved, 0xff, sizeof(m.reserved));
	assert_true(record_valid(&m));
	assert_int_equal(record_read(&m, sizeof(m), &back), RECORD_OWN);
	assert_memory_equal(&back, &m, sizeof(m));
}

/* Fails unless a record with this value is no valid one. */
#define INVALID(member, value)                                                 \
	do {                                                                   \
		struct record invalid = good_record();                         \
                                                                               \
		invalid.member = (value);                                      \
		assert_false(record_valid(&invalid));                          \
	} while (0)

TH_TEST(record_of_another_layout_is_not)
{
	struct record m;

	INVALID(magic, NATRA_PIN_MAGIC ^ 1);
	INVALID(abi, NATRA_PIN_ABI + 1);
	INVALID(size, sizeof(m) + 1);
	memset(&m, 0, sizeof(m));
	assert_false(record_valid(&m));
	memset(&m, 0xff, sizeof(m));
	assert_false(record_valid(&m));
}

/* Checks that only the prefix of a record was read. */
static void is_read_as_foreign(const void *value, size_t size)
{
	struct record prefix = {0}, back = {.l2_legs = 99};

	memcpy(&prefix, value, RECORD_PREFIX_SIZE);
	assert_int_equal(record_read(value, size, &back), RECORD_FOREIGN);
	assert_memory_equal(&back, &prefix, sizeof(prefix));
}

/* Whatever stands behind the prefix in another ABI, and however much. */
TH_TEST(prefix_of_another_abi_is_read)
{
	unsigned char value[2 * sizeof(struct record)];
	struct record m = good_record();
	const size_t sizes[] = {RECORD_PREFIX_SIZE, sizeof(m) - 1, sizeof(m),
				sizeof(value)};

	m.leg[LEG_EGRESS].hook = RECORD_HOOK_TCX;
	m.leg[LEG_EGRESS].prog_id = 7;
	memset(m.reserved_prefix, 0xff, sizeof(m.reserved_prefix));
	for (uint32_t abi = NATRA_PIN_ABI + 1; abi; abi <<= 1) {
		m.abi = abi;
		memset(value, 0xff, sizeof(value));
		memcpy(value, &m, RECORD_PREFIX_SIZE);
		for (size_t i = 0; i < 4; i++)
			is_read_as_foreign(value, sizes[i]);
	}
}

/* Whoever forgets a new number for a new layout must not lose attachments, nor must
 * whoever adds a value that this build does not know. */
TH_TEST(record_of_this_abi_and_another_layout_is_foreign)
{
	unsigned char value[sizeof(struct record) + 8] = {0};
	struct record m = good_record();

	memcpy(value, &m, sizeof(m));
	is_read_as_foreign(value, sizeof(m) - 1);
	is_read_as_foreign(value, sizeof(m) + 8);
	m.size--;
	is_read_as_foreign(&m, sizeof(m));
	m = good_record();
	m.subnets = SUBNETS_UNSHAPED + 1;
	is_read_as_foreign(&m, sizeof(m));
}

/* A mode that this build has no word for is not believed, and a hook that it does not
 * know is of a program whose link is pinned. */
TH_TEST(values_of_another_abi_may_be_new)
{
	struct record m = good_record(), back;

	m.abi++;
	m.mode = NATRA_ATTACH_MODE_MAX;
	m.leg[LEG_EGRESS].hook = RECORD_HOOK_CLSACT + 1;
	assert_int_equal(record_read(&m, sizeof(m), &back), RECORD_FOREIGN);
	assert_int_equal(back.mode, NATRA_ATTACH_MODE_AUTO);
	assert_int_equal(back.leg[LEG_EGRESS].hook, RECORD_HOOK_CLSACT + 1);
}

TH_TEST(prefix_has_the_rates)
{
	struct record m = good_record();

	assert_int_equal(m.ingress_rate_bits_per_sec, 1000001);
	assert_int_equal(m.egress_rate_bits_per_sec, 1000002);
}

TH_TEST(policy_out_of_range_is_refused)
{
	struct natra_policy p;
	struct record m;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (policy_fields[i].max == UINT64_MAX ||
		    policy_fields[i].unit == POLICY_GROUP)
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

TH_TEST(numbers_out_of_range_are_refused)
{
	struct record m = good_record();

	INVALID(mode, NATRA_ATTACH_MODE_MAX);
	for (int i = 0; i < LEG_MAX; i++)
		INVALID(leg[i].hook, RECORD_HOOK_CLSACT + 1);
	INVALID(subnets, SUBNETS_UNSHAPED + 1);
	INVALID(subnets, SUBNETS_NONE);
	INVALID(subnets_len, 0);
	INVALID(subnets_len, NATRA_SUBNETS_MAX + 1);
	INVALID(classes_len, NATRA_CLASSES_MAX + 1);
	m.classes_len = NATRA_CLASSES_MAX;
	assert_true(record_valid(&m));
}

TH_TEST(strings_without_an_end_get_one)
{
	struct record m = good_record(), back;

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
	memset(m.id, 'x', sizeof(m.id));
	m.abi++;
	assert_int_equal(record_read(&m, sizeof(m), &back), RECORD_FOREIGN);
	assert_int_equal(strnlen(back.id, 999), NATRA_ID_MAX);
}

/* A record that is read back may have any size, and anybody may have pinned
 * it. */
TH_TEST(what_is_no_record_changes_nothing)
{
	struct record m = good_record(), back = {.mode = 99};
	const struct record before = back;

	assert_int_equal(record_read(&m, 0, &back), RECORD_NONE);
	assert_int_equal(record_read(&m, RECORD_PREFIX_SIZE - 1, &back),
			 RECORD_NONE);
	m.abi = 0;
	assert_int_equal(record_read(&m, sizeof(m), &back), RECORD_NONE);
	m = good_record();
	m.magic++;
	assert_int_equal(record_read(&m, sizeof(m), &back), RECORD_NONE);
	assert_memory_equal(&back, &before, sizeof(before));
}

TH_MAIN(NULL, NULL)
