/* SPDX-License-Identifier: BSD-2-Clause */
#include "output.h"

#include <stdarg.h>
#include <string.h>

#include "../../src/util/escape.h"

static struct unit_text scaled(uint64_t number, const char *const *units,
			       size_t units_len)
{
	struct unit_text out;
	double value = (double)number;
	size_t i = 0;

	/* 999.95 would be printed as 1000. */
	while (i + 1 < units_len && value >= 999.95) {
		value /= 1000;
		i++;
	}
	snprintf(out.text, sizeof(out.text), "%.4g%s", value, units[i]);
	return out;
}

#define SCALED(number, units)                                                  \
	scaled(number, units, sizeof(units) / sizeof((units)[0]))

struct unit_text unit_rate(uint64_t bits_per_sec)
{
	static const char *const units[] = {" bit/s",  " kbit/s", " Mbit/s",
					    " Gbit/s", " Tbit/s", " Pbit/s"};

	return SCALED(bits_per_sec, units);
}

struct unit_text unit_limit(uint64_t bits_per_sec)
{
	if (bits_per_sec == 0)
		return (struct unit_text){"unlimited"};
	return unit_rate(bits_per_sec);
}

struct unit_text unit_bits(uint64_t bits)
{
	static const char *const units[] = {" bit",  " kbit", " Mbit", " Gbit",
					    " Tbit", " Pbit", " Ebit"};

	return SCALED(bits, units);
}

struct unit_text unit_size(uint64_t bytes)
{
	static const char *const units[] = {" B",  " kB", " MB", " GB",
					    " TB", " PB", " EB"};

	return SCALED(bytes, units);
}

struct unit_text unit_time(uint64_t ns)
{
	static const char *const units[] = {" ns", " us", " ms", " s"};

	return SCALED(ns, units);
}

int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (int)strlen(escape_byte(*text).text);
	return width;
}

int print_text(FILE *file, const char *text, int width)
{
	int columns = text_width(text);

	for (; *text; text++)
		fputs(escape_byte(*text).text, file);
	if (columns < width)
		columns += fprintf(file, "%*s", width - columns, "");
	return columns;
}

void copy_text(char *to, size_t size, const char *text)
{
	size_t len = 0;

	for (; *text; text++) {
		const struct escaped escaped = escape_byte(*text);
		const size_t more = strlen(escaped.text);

		if (len + more >= size)
			break;
		memcpy(to + len, escaped.text, more);
		len += more;
	}
	to[len] = '\0';
}

int usage_error(const char *what, const char *value, const char *format, ...)
{
	va_list args;

	fputs("natractl: ", stderr);
	print_text(stderr, what, 0);
	fputs(": ", stderr);
	if (value) {
		fputc('\'', stderr);
		print_text(stderr, value, 0);
		fputs("' ", stderr);
	}
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_USAGE;
}
