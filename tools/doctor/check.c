/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/text.h"
#include "shell.h"

#define WORDS_MAX 12

struct word {
	const char *key, *value;
};

static const char *value_of(const struct word *words, size_t len,
			    const char *key, size_t key_len)
{
	for (size_t i = 0; i < len; i++) {
		if (strlen(words[i].key) == key_len &&
		    strncmp(words[i].key, key, key_len) == 0)
			return words[i].value;
	}
	return "?";
}

static char *fill(const char *form, const struct word *words, size_t len,
		  bool is_command)
{
	struct shell page = {0};

	while (*form) {
		size_t plain = strcspn(form, "{");
		const char *key = form + plain + 1, *value;
		size_t key_len;
		bool is_raw;

		shell_text(&page, form, plain);
		form += plain;
		if (!*form)
			break;
		is_raw = *key == '=' || !is_command;
		key += *key == '=';
		key_len = strcspn(key, "}");
		value = value_of(words, len, key, key_len);
		if (is_raw)
			shell_text(&page, value, strlen(value));
		else
			shell_quoted(&page, value);
		form = key + key_len + 1;
	}
	return page.text;
}

static void add(const struct finder *f, bool is_note, va_list args)
{
	struct doctor_report *report = f->report;
	const char *subject = f->pod ? pod_title(f->pod) : "node";
	struct word words[WORDS_MAX] = {{"subject", subject},
					{"natractl", f->node->natractl}};
	size_t len = 2;
	const char *key;

	while (len < WORDS_MAX && (key = va_arg(args, const char *)))
		words[len++] = (struct word){key, va_arg(args, const char *)};
	report->findings =
		memory_grow(report->findings,
			    (report->len + 1) * sizeof(report->findings[0]));
	report->findings[report->len++] = (struct finding){
		.check = f->check->name,
		.subject = text_copy(subject),
		.text = fill(f->check->text, words, len, false),
		.mend = fill(f->check->mend, words, len, true),
		.is_note = is_note,
	};
	report->faults += !is_note;
}

void found(const struct finder *f, ...)
{
	va_list args;

	va_start(args, f);
	add(f, false, args);
	va_end(args);
}

void found_note(const struct finder *f, ...)
{
	va_list args;

	va_start(args, f);
	add(f, true, args);
	va_end(args);
}
