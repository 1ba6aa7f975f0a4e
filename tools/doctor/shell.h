/* SPDX-License-Identifier: BSD-2-Clause */
/* Text that a shell reads. */
#ifndef NATRA_DOCTOR_SHELL_H
#define NATRA_DOCTOR_SHELL_H

#include <stddef.h>

/* A text that grows; it begins as {0}, and the caller frees it. */
struct shell {
	char *text;
	size_t len;
};

/* Adds text as it is. */
void shell_text(struct shell *shell, const char *text, size_t len);
/* Adds text in such quotes that a shell takes it as one word: names may come from a
 * pod. */
void shell_quoted(struct shell *shell, const char *text);
/* Adds a word, quoted, behind a space if it is not the first one. */
void shell_word(struct shell *shell, const char *text);
/* Returns the command of these words, behind the last of which is NULL. The caller frees it. */
char *shell_command(const char *const *words);

#endif
