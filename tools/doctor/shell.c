/* SPDX-License-Identifier: BSD-2-Clause */
#include "shell.h"

#include <string.h>

#include "../common/text.h"

void shell_text(struct shell *shell, const char *text, size_t len)
{
	shell->text = memory_grow(shell->text, shell->len + len + 1);
	memcpy(shell->text + shell->len, text, len);
	shell->len += len;
	shell->text[shell->len] = '\0';
}

void shell_quoted(struct shell *shell, const char *text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		"@%_+=:,./-";

	if (text[0] && strspn(text, plain) == strlen(text)) {
		shell_text(shell, text, strlen(text));
		return;
	}
	shell_text(shell, "'", 1);
	for (; *text; text++) {
		if (*text == '\'')
			shell_text(shell, "'\\''", 4);
		else
			shell_text(shell, text, 1);
	}
	shell_text(shell, "'", 1);
}

void shell_word(struct shell *shell, const char *text)
{
	if (shell->len)
		shell_text(shell, " ", 1);
	shell_quoted(shell, text);
}

char *shell_command(const char *const *words)
{
	struct shell shell = {0};

	while (*words)
		shell_word(&shell, *words++);
	return shell.text;
}
