/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <stdio.h>

#include <natra/natra.h>

#define UNTOUCHED 0xdeadbeefULL

struct example {
	const char *text;
	int result;
	uint64_t value;
};

typedef int (*parse_fn)(const char *text, uint64_t *ret);

static void check(parse_fn parse, const struct example *examples, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const struct example *e = &examples[i];
		uint64_t value = UNTOUCHED;
		int r = parse(e->text, &value);

		if (r != e->result)
			fail_msg("'%s' gives %d, not %d", e->text, r,
				 e->result);
		if (value != (r == 0 ? e->value : UNTOUCHED))
			fail_msg("'%s' gives %lu", e->text,
				 (unsigned long)value);
	}
}

/* The values are what containerd made of the same annotation, recorded from the
 * runtime. But containerd refuses rates under 1k, which upstream's plugin
 * takes. */
TH_TEST(rates_are_those_of_a_container_runtime)
{
	static const struct example examples[] = {
		{"1k", 0, 1000},
		{"999", 0, 999},
		{"1", 0, 1},
		{"1500m", 0, 2},
		/* Rates under 1 bit/s are refused, not rounded up: whoever
		 * wrote 10m meant 10M. */
		{"10m", -ERANGE, 0},
		{"999m", -ERANGE, 0},
		{"1500", 0, 1500},
		{"10Mi", 0, 10485760},
		{"1.5G", 0, 1500000000},
		{"2500000", 0, 2500000},
		{"12.5M", 0, 12500000},
		{"4G", 0, 4000000000},
		{"5G", 0, 5000000000},
		{"40G", 0, 40000000000},
		{"1P", 0, 1000000000000000},
		{"1000000000000000.1", -ERANGE, 0},
		{"10", 0, 10},
		{"-1M", -EINVAL, 0},
		{"abc", -EINVAL, 0},
		{"0", -ERANGE, 0},
		{"", -EINVAL, 0},
	};

	check(natra_parse_rate, examples, TH_LEN(examples));
}

TH_TEST(every_suffix_of_kubernetes_is_known)
{
	static const struct example examples[] = {
		{"7", 0, 7},
		{"7k", 0, 7000},
		{"7M", 0, 7000000},
		{"7G", 0, 7000000000},
		{"7T", 0, 7000000000000},
		{"7P", 0, 7000000000000000},
		{"7E", 0, 7000000000000000000},
		{"7Ki", 0, 7ULL << 10},
		{"7Mi", 0, 7ULL << 20},
		{"7Gi", 0, 7ULL << 30},
		{"7Ti", 0, 7ULL << 40},
		{"7Pi", 0, 7ULL << 50},
		{"7Ei", 0, 7ULL << 60},
		{"7000m", 0, 7},
		{"7000000u", 0, 7},
		{"7000000000n", 0, 7},
		{"7e0", 0, 7},
		{"7e3", 0, 7000},
		{"7E3", 0, 7000},
		{"7e+3", 0, 7000},
		{"7000e-3", 0, 7},
		{"7000E-3", 0, 7},
		{"+7k", 0, 7000},
		{"007", 0, 7},
	};

	check(natra_parse_size, examples, TH_LEN(examples));
}

TH_TEST(fractions_are_exact_and_rounded_up)
{
	static const struct example examples[] = {
		{"1.5", 0, 2},
		{"1.0", 0, 1},
		{"1.", 0, 1},
		{".5k", 0, 500},
		{"1001m", 0, 2},
		{"1.0001k", 0, 1001},
		{"1.001k", 0, 1001},
		{"0.5Ki", 0, 512},
		{"0.3Ki", 0, 308},
		{"2.7182818284Gi", 0, 2918732889},
		{"0.000000001E", 0, 1000000000},
		{"1.000000000000000001", 0, 2},
		{"9007199254740993", 0, 9007199254740993},
		{"0.1e1", 0, 1},
	};

	check(natra_parse_size, examples, TH_LEN(examples));
}

TH_TEST(what_does_not_fit_is_out_of_range)
{
	static const struct example examples[] = {
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"18446744073709551615", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"8Ei", -ERANGE, 0},
		{"7.9999999999Ei", 0, 9223372036739483658},
		{"10E", -ERANGE, 0},
		{"16Ei", -ERANGE, 0},
		{"1e19", -ERANGE, 0},
		{"1e30", -ERANGE, 0},
		{"1e31", -ERANGE, 0},
		{"1e99999999999999999999", -ERANGE, 0},
		{"999999999999999999999999999999Ei", -ERANGE, 0},
		{"9999999999999999999999999999999", -ERANGE, 0},
		{"0", -ERANGE, 0},
		{"0.0", -ERANGE, 0},
		{"0Ei", -ERANGE, 0},
		{"0.999", -ERANGE, 0},
		{".5", -ERANGE, 0},
		{"10m", -ERANGE, 0},
		{"1n", -ERANGE, 0},
		{"1e-30", -ERANGE, 0},
	};

	check(natra_parse_size, examples, TH_LEN(examples));
}

TH_TEST(what_is_no_quantity_is_refused)
{
	static const char *const bad[] = {
		"",     " ",    " 1",    "1 ",       "1 M",   "1M ",   "M",
		"Mi",   ".",    "+",     "-",        "-1",    "-0",    "--1",
		"++1",  "+-1",  "1.2.3", "1..2",     "1,5M",  "1_000", "0x10",
		"1K",   "1m1",  "1ki",   "1mi",      "1B",    "1MB",   "1Mbit",
		"10mb", "1MiB", "1Mii",  "1e",       "1e+",   "1e-",   "1e1.5",
		"1e3k", "1ee3", "1e 3",  "1e3 ",     "1i",    "1ii",   "nan",
		"inf",  "1Zi",  "1Y",    "1\n",      "1M\n",  "\t1",   "1g",
		"1t",   "1p",   "1%",    "\xc2\xb2", "1\xff", "k1",
	};

	for (size_t i = 0; i < TH_LEN(bad); i++) {
		const struct example size = {bad[i], -EINVAL, 0};

		check(natra_parse_size, &size, 1);
		check(natra_parse_rate, &size, 1);
		check(natra_parse_time, &size, 1);
	}
}

TH_TEST(times_need_a_unit)
{
	static const struct example examples[] = {
		{"1ns", 0, 1},
		{"1us", 0, 1000},
		{"50ms", 0, 50000000},
		{"2s", 0, 2000000000},
		{"1.5s", 0, 1500000000},
		{"0.25us", 0, 250},
		{".5ms", 0, 500000},
		{"+2s", 0, 2000000000},
		{"0.1ns", 0, 1},
		{"1.0000000001s", 0, 1000000001},
		{"3600s", 0, 3600000000000},
		{"3600.000000001s", -ERANGE, 0},
		{"3601s", -ERANGE, 0},
		{"99999999999999999999s", -ERANGE, 0},
		{"9999999999999999999999999999999s", -ERANGE, 0},
		{"0s", -ERANGE, 0},
		{"0ns", -ERANGE, 0},
		{"1", -EINVAL, 0},
		{"0", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"1m", -EINVAL, 0},
		{"1h", -EINVAL, 0},
		{"1S", -EINVAL, 0},
		{"1sec", -EINVAL, 0},
		{"1 s", -EINVAL, 0},
		{"1s ", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"1e3s", -EINVAL, 0},
		{"1s1ms", -EINVAL, 0},
	};

	check(natra_parse_time, examples, TH_LEN(examples));
}

TH_TEST(missing_pointers_are_refused)
{
	uint64_t value = UNTOUCHED;

	assert_int_equal(natra_parse_rate(NULL, &value), -EINVAL);
	assert_int_equal(natra_parse_size(NULL, &value), -EINVAL);
	assert_int_equal(natra_parse_time(NULL, &value), -EINVAL);
	assert_int_equal(value, UNTOUCHED);
	assert_int_equal(natra_parse_rate("1M", NULL), -EINVAL);
	assert_int_equal(natra_parse_size("1M", NULL), -EINVAL);
	assert_int_equal(natra_parse_time("1s", NULL), -EINVAL);
}

TH_MAIN(NULL, NULL)
