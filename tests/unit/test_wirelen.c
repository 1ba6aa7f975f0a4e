/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include "natra_wirelen.h"

#define HEADERS 66 /* of Ethernet, IPv4 and TCP with timestamps */
#define MSS     1448

/* Returns the wire length, counted segment by segment. */
static uint32_t cut(uint32_t payload, uint32_t size, uint32_t *ret_segs)
{
	uint32_t bytes = 0;

	*ret_segs = 0;
	while (payload > 0) {
		uint32_t piece = payload < size ? payload : size;

		bytes += HEADERS + piece;
		payload -= piece;
		(*ret_segs)++;
	}
	return bytes;
}

static void packet_without_gso_is_its_own_length(void **state)
{
	(void)state;
	assert_int_equal(natra_gso_len(60, 0, 0, HEADERS), 60);
	assert_int_equal(natra_gso_len(1514, 0, 0, HEADERS), 1514);
	assert_int_equal(natra_gso_len(1514, 1, 0, HEADERS), 1514);
}

static void every_segment_has_its_headers(void **state)
{
	(void)state;
	for (uint32_t payload = 1; payload < 600000; payload += 997) {
		uint32_t segs, want = cut(payload, MSS, &segs);

		assert_int_equal(
			natra_gso_len(HEADERS + payload, segs, MSS, HEADERS),
			want);
	}
}

static void missing_count_of_segments_is_worked_out(void **state)
{
	(void)state;
	for (uint32_t payload = 1; payload < 600000; payload += 997) {
		uint32_t segs, want = cut(payload, MSS, &segs);

		assert_int_equal(
			natra_gso_len(HEADERS + payload, 0, MSS, HEADERS),
			want);
	}
	/* In these packets the last segment is full. */
	for (uint32_t payload = MSS; payload < 600000; payload += MSS) {
		uint32_t segs, want = cut(payload, MSS, &segs);

		assert_int_equal(
			natra_gso_len(HEADERS + payload, 0, MSS, HEADERS),
			want);
	}
}

static void gso_data_without_payload_adds_nothing(void **state)
{
	(void)state;
	assert_int_equal(natra_gso_len(HEADERS, 0, MSS, HEADERS), HEADERS);
	assert_int_equal(natra_gso_len(40, 0, MSS, HEADERS), 40);
	assert_int_equal(natra_gso_len(40, 0, 1, HEADERS), 40);
	assert_int_equal(natra_gso_len(HEADERS, 1, MSS, HEADERS), HEADERS);
}

/* The segments have 1 byte of payload, at the end also with the longest headers
 * that are possible. */
static void made_up_segments_do_not_overflow(void **state)
{
	const uint32_t headers = 14 + 8 + 40 + 4 * 2048 + 60;
	const uint32_t most = 65535 * headers;

	(void)state;
	assert_int_equal(natra_gso_len(HEADERS + 60000, 60000, 1, HEADERS),
			 60000 * (HEADERS + 1));
	assert_in_range(natra_gso_len(headers + 600000, 0, 1, headers), most,
			most + 600000);
	assert_true(most + 600000 < NATRA_BYTES_MAX);
}

static void what_the_kernel_tells_is_at_least_the_packet(void **state)
{
	(void)state;
	assert_int_equal(natra_told_len(1514, 1514), 1514);
	assert_int_equal(natra_told_len(65226, 68130), 68130);
	/* The kernel's product of header length and segments has wrapped
	 * around. */
	assert_int_equal(natra_told_len(60066, 17), 60066);
	assert_int_equal(natra_told_len(60066, (1U << 31) + 17), 60066);
	assert_int_equal(natra_told_len(60066, UINT32_MAX), NATRA_BYTES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_without_gso_is_its_own_length),
		cmocka_unit_test(every_segment_has_its_headers),
		cmocka_unit_test(missing_count_of_segments_is_worked_out),
		cmocka_unit_test(gso_data_without_payload_adds_nothing),
		cmocka_unit_test(made_up_segments_do_not_overflow),
		cmocka_unit_test(what_the_kernel_tells_is_at_least_the_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
