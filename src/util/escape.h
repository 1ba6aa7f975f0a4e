/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRA_UTIL_ESCAPE_H
#define NATRA_UTIL_ESCAPE_H

/* The array lives until the end of the full expression, so that a call fits
 * into that of a printing function. */
struct escaped {
	char text[5];
};

/* Returns a byte of an untrusted text in the form in which it is shown: printable ASCII
 * stays, and any other byte, which may be a terminal's escape or the end of a line,
 * becomes \xNN. */
static inline struct escaped escape_byte(char c)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char byte = (unsigned char)c;

	if (byte >= ' ' && byte < 0x7f)
		return (struct escaped){{c}};
	return (struct escaped){
		{'\\', 'x', digits[byte >> 4], digits[byte & 0xf]}};
}

#endif
