/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kubernetes quantities and times, exact: a decimal number of up to 30 digits
 * times a suffix, in integer arithmetic, rounded up like Quantity.Value().
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <natra/natra.h>

__extension__ typedef unsigned __int128 u128;

#define MAX_DIGITS     30
#define MAX_EXPONENT   30
#define HOUR_NS        3600000000000ULL
#define SIZE_MAX_BYTES ((uint64_t)INT64_MAX)

/* Reads digits / 10^fraction; *ret_rest is the text that follows. */
struct decimal {
	u128 digits;
	int fraction;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int parse_decimal(const char *text, struct decimal *ret,
			 const char **ret_rest)
{
	struct decimal d = {0};
	bool point = false;
	int digits = 0;

	if (*text == '+')
		text++;
	for (;; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!is_digit(*text))
			break;
		if (++digits > MAX_DIGITS)
			return -ERANGE;
		d.digits = d.digits * 10 + (unsigned int)(*text - '0');
		d.fraction += point;
	}
	if (!digits)
		return -EINVAL;
	*ret = d;
	*ret_rest = text;
	return 0;
}

/* Reads an exponent such as e3 or E-2, which moves the decimal point. */
static int parse_exponent(const char *text, int *ret_exponent)
{
	bool negative = false;
	int exponent = 0;

	if (*text == '+' || *text == '-')
		negative = *text++ == '-';
	if (!is_digit(*text))
		return -EINVAL;
	for (; is_digit(*text); text++) {
		exponent = exponent * 10 + (*text - '0');
		if (exponent > MAX_EXPONENT)
			return -ERANGE;
	}
	if (*text)
		return -EINVAL;
	*ret_exponent = negative ? -exponent : exponent;
	return 0;
}

/* Reads a suffix, whose value is 10^ten * 2^two. */
static int parse_suffix(const char *text, int *ret_ten, int *ret_two)
{
	static const char decimal[] = "kMGTPE";
	static const char binary[] = "KMGTPE";
	const char *c;

	*ret_ten = 0;
	*ret_two = 0;
	if (!*text)
		return 0;
	if (text[1] == 'i' && !text[2]) {
		c = strchr(binary, text[0]);
		if (!c)
			return -EINVAL;
		*ret_two = 10 * (int)(c - binary + 1);
		return 0;
	}
	if (!text[1]) {
		c = strchr(decimal, text[0]);
		if (c)
			*ret_ten = 3 * (int)(c - decimal + 1);
		else if (text[0] == 'm')
			*ret_ten = -3;
		else if (text[0] == 'u')
			*ret_ten = -6;
		else if (text[0] == 'n')
			*ret_ten = -9;
		else
			return -EINVAL;
		return 0;
	}
	if (text[0] == 'e' || text[0] == 'E')
		return parse_exponent(text + 1, ret_ten);
	return -EINVAL;
}

/* Computes digits * 10^ten * 2^two, rounded up. Returns -ERANGE if that is over
 * 64 bits. *ret_below_one is whether the number was under 1, and not 0,
 * before it was rounded. */
static int scale(u128 digits, int ten, int two, uint64_t *ret,
		 bool *ret_below_one)
{
	bool rest = false;

	for (; two > 0; two--) {
		if (digits >> 126)
			return -ERANGE;
		digits <<= 1;
	}
	for (; ten > 0; ten--) {
		if (digits > ~(u128)0 / 10)
			return -ERANGE;
		digits *= 10;
	}
	for (; ten < 0; ten++) {
		rest = rest || digits % 10;
		digits /= 10;
	}
	*ret_below_one = rest && !digits;
	digits += rest;
	if (digits > UINT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)digits;
	return 0;
}

static int parse_quantity(const char *text, uint64_t *ret, bool *ret_below_one)
{
	struct decimal d;
	int r, ten, two;

	if (!text)
		return -EINVAL;
	r = parse_decimal(text, &d, &text);
	if (r < 0)
		return r;
	r = parse_suffix(text, &ten, &two);
	if (r < 0)
		return r;
	return scale(d.digits, ten - d.fraction, two, ret, ret_below_one);
}

int natra_parse_rate(const char *text, uint64_t *ret_bits_per_sec)
{
	uint64_t value;
	bool below_one;
	int r = ret_bits_per_sec ? parse_quantity(text, &value, &below_one)
				 : -EINVAL;

	if (r < 0)
		return r;
	/* "10m" is a hundredth of a bit/s, but was most likely meant as
	 * "10M". */
	if (below_one || value < NATRA_RATE_MIN_BITS_PER_SEC ||
	    value > NATRA_RATE_MAX_BITS_PER_SEC)
		return -ERANGE;
	*ret_bits_per_sec = value;
	return 0;
}

int natra_parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t value;
	bool below_one;
	int r = ret_bytes ? parse_quantity(text, &value, &below_one) : -EINVAL;

	if (r < 0)
		return r;
	if (below_one || value == 0 || value > SIZE_MAX_BYTES)
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

int natra_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		int ten;
	} units[] = {{"ns", 0}, {"us", 3}, {"ms", 6}, {"s", 9}};
	struct decimal d;
	bool below_one;
	uint64_t value;
	int r;

	if (!text || !ret_ns)
		return -EINVAL;
	r = parse_decimal(text, &d, &text);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text, units[i].unit) != 0)
			continue;
		r = scale(d.digits, units[i].ten - d.fraction, 0, &value,
			  &below_one);
		if (r < 0)
			return r;
		if (value == 0 || value > HOUR_NS)
			return -ERANGE;
		*ret_ns = value;
		return 0;
	}
	return -EINVAL;
}
