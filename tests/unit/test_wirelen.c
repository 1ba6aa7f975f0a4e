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

TH_TEST(packet_without_gso_is_its_own_length)
{
	assert_int_equal(natra_gso_len(60, 0, 0, HEADERS), 60);
	assert_int_equal(natra_gso_len(1514, 0, 0, HEADERS), 1514);
	assert_int_equal(natra_gso_len(1514, 1, 0, HEADERS), 1514);
}

TH_TEST(every_segment_has_its_headers)
{
	for (uint32_t payload = 1; payload < 600000; payload += 997) {
		uint32_t segs, want = cut(payload, MSS, &segs);

		assert_int_equal(
			natra_gso_len(HEADERS + payload, segs, MSS, HEADERS),
			want);
	}
}

TH_TEST(missing_count_of_segments_is_worked_out)
{
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

TH_TEST(gso_data_without_payload_adds_nothing)
{
	assert_int_equal(natra_gso_len(HEADERS, 0, MSS, HEADERS), HEADERS);
	assert_int_equal(natra_gso_len(40, 0, MSS, HEADERS), 40);
	assert_int_equal(natra_gso_len(40, 0, 1, HEADERS), 40);
	assert_int_equal(natra_gso_len(HEADERS, 1, MSS, HEADERS), HEADERS);
}

/* The segments have 1 byte of payload, at the end also with the longest headers
 * that are possible. */
TH_TEST(made_up_segments_do_not_overflow)
{
	const uint32_t headers = 14 + 8 + 40 + 4 * 2048 + 60;

	assert_int_equal(natra_gso_len(HEADERS + 60000, 60000, 1, HEADERS),
			 60000 * (HEADERS + 1));
	assert_int_equal(natra_gso_len(headers + 65535, 65535, 1, headers),
			 65535 * (headers + 1));
	assert_int_equal(natra_gso_len(headers + 600000, 0, 1, headers),
			 NATRA_BYTES_MAX);
	assert_int_equal(natra_gso_len(600000, 40000, 1, headers),
			 NATRA_BYTES_MAX);
	assert_int_equal(natra_hidden_len(600000, 0, 1, 14), NATRA_BYTES_MAX);
	assert_int_equal(natra_hidden_len(600000, 60000, 1, 600000 - 60000),
			 NATRA_BYTES_MAX);
}

/* The kernel's number has 16 bits. */
TH_TEST(number_of_segments_that_has_wrapped_is_worked_out)
{
	const uint32_t many = 65537 * 3;

	for (uint32_t segs = 0; segs <= 1; segs++) {
		assert_int_equal(
			natra_gso_len(HEADERS + many, segs, 3, HEADERS),
			65537 * (HEADERS + 3));
		assert_in_range(natra_segs(HEADERS + many, segs, 3), 65537,
				65537 + HEADERS / 3);
	}
	assert_true(natra_gso_len(HEADERS + many, 2, 3, HEADERS) >=
		    65537 * (HEADERS + 3));
	assert_int_equal(natra_segs(HEADERS + 5 * MSS + 1, 6, MSS), 6);
	assert_int_equal(natra_segs(HEADERS + 100 * 8, 100, 8), 100);
	assert_int_equal(natra_segs(HEADERS, 0, 0), 1);
	assert_int_equal(natra_segs(HEADERS + MSS, 0, MSS), 2);
}

/* Headers behind those that are known leave the segments less than so many need. */
TH_TEST(headers_that_are_not_known_show_in_the_number_of_segments)
{
	const uint32_t hidden = 74, known = 42;

	for (uint32_t segs = 2; segs < 500; segs++)
		assert_int_equal(natra_gso_len(known + hidden + segs * 76, segs,
					       76, known),
				 segs * (known + hidden + 76));
}

/* Whatever is hidden, what is charged is at least what is on the wire. */
TH_TEST(hidden_headers_are_charged_at_least)
{
	static const uint32_t sizes[] = {1, 8, 40, 1000, 1448};

	for (size_t i = 0; i < TH_LEN(sizes); i++) {
		for (uint32_t len = 200; len < 70000; len += 1717) {
			for (uint32_t header = 14; header < len; header += 61) {
				uint32_t segs = (len - header + sizes[i] - 1) /
						sizes[i];
				uint32_t wire = len + (segs - 1) * header;

				assert_true(natra_hidden_len(len, segs,
							     sizes[i],
							     14) >= wire);
				assert_true(natra_hidden_len(len, 0, sizes[i],
							     14) >= wire);
				/* Each has a segment's payload too many,
				 * unless their number may have wrapped. */
				assert_true(len - 14 > sizes[i] * 65535 ||
					    natra_hidden_len(len, segs,
							     sizes[i], 14) <
						    wire + segs * sizes[i]);
			}
		}
	}
	assert_int_equal(natra_hidden_len(1514, 0, 0, 14), 1514);
	assert_int_equal(natra_hidden_len(14, 0, 8, 14), 14);
	/* SCTP has no size of its segments, but a number for that. */
	assert_true(natra_hidden_len(30000, 20, 65535, 14) >= 30000);
}

TH_TEST(what_the_kernel_tells_is_at_least_the_packet)
{
	assert_int_equal(natra_told_len(1514, 1514), 1514);
	assert_int_equal(natra_told_len(65226, 68130), 68130);
	/* The kernel's product of header length and segments has wrapped
	 * around. */
	assert_int_equal(natra_told_len(60066, 17), 60066);
	assert_int_equal(natra_told_len(60066, (1U << 31) + 17), 60066);
	assert_int_equal(natra_told_len(60066, UINT32_MAX), NATRA_BYTES_MAX);
}

TH_TEST(only_what_no_stack_makes_is_crafted)
{
	uint32_t segs;

	/* The least MSS has 36 bytes beside the timestamps. */
	assert_false(
		natra_is_crafted(cut(60000, 36, &segs), HEADERS + 60000, true));
	assert_false(natra_is_crafted(600000, 600000, true));
	assert_false(natra_is_crafted(6000, 1500, true));
	assert_true(natra_is_crafted(6001, 1500, true));
	assert_false(natra_is_crafted(NATRA_WIRE_BELIEVED, 1500, false));
	assert_true(natra_is_crafted(NATRA_WIRE_BELIEVED + 1, 1500, false));
	assert_true(
		natra_is_crafted(cut(60000, 1, &segs), HEADERS + 60000, false));
	assert_true(natra_is_crafted(NATRA_BYTES_MAX, 600000, false));
}

TH_MAIN(NULL, NULL)
