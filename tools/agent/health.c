/* SPDX-License-Identifier: BSD-2-Clause */
#include "health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "../../src/util/escape.h"
#include "loop.h"

static const char *const names[PART_MAX] = {
	[PART_INSTALL] = "install", [PART_PROGRAMS] = "programs",
	[PART_PODS] = "pods",       [PART_NAMESPACES] = "namespaces",
	[PART_GROUPS] = "groups",   [PART_JOBS] = "jobs",
	[PART_API] = "api",
};

void health_init(struct health *health, struct log *log)
{
	*health = (struct health){
		.log = log,
		.unreadable_said = {.times = 20, .period_ms = 60000},
	};
}

void health_expect(struct health *health, enum part part)
{
	health->parts[part].is_on = true;
}

void health_ready(struct health *health, enum part part)
{
	struct log_words words = {0};

	if (health->parts[part].is_ready)
		return;
	health->parts[part].is_ready = true;
	health->parts[part].why[0] = '\0';
	log_add(&words, "part", names[part]);
	log_line(health->log, NATRA_LOG_INFO, "ready", &words);
}

void health_fail(struct health *health, enum part part,
		 enum natra_log_level level, const char *format, ...)
{
	struct log_words words = {0};
	char why[sizeof(health->parts[part].why)];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	/* A reason that lasts is logged once. */
	if (!health->parts[part].is_ready &&
	    strcmp(health->parts[part].why, why) == 0)
		return;
	health->parts[part].is_ready = false;
	memcpy(health->parts[part].why, why, sizeof(why));
	log_add(&words, "part", names[part]);
	log_line(health->log, level, why, &words);
}

void health_note(struct health *health, enum part part, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(health->parts[part].note,
			sizeof(health->parts[part].note), format, args);
	va_end(args);
}

void health_unreadable_event(struct health *health, const char *namespace,
			     const char *pod, const char *why)
{
	struct log_words words = {0};
	const uint64_t now_ms = clock_ms();

	health->unreadable_events++;
	health_note(health, PART_API, "%" PRIu64 " events could not be read",
		    health->unreadable_events);
	if (budget_wait_ms(&health->unreadable_said, now_ms))
		return;
	budget_take(&health->unreadable_said, now_ms);
	log_add(&words, "namespace", namespace);
	log_add(&words, "pod", pod);
	log_add(&words, "error", why);
	log_line(health->log, NATRA_LOG_ERROR,
		 "an event of a pod cannot be read", &words);
}

bool health_is_ready(const struct health *health)
{
	for (int part = 0; part < PART_MAX; part++) {
		if (part != PART_API && health->parts[part].is_on &&
		    !health->parts[part].is_ready)
			return false;
	}
	return true;
}

const char *health_part_name(enum part part)
{
	return names[part];
}

static void show_text(FILE *body, const char *text)
{
	for (; *text; text++)
		fputs(escape_byte(*text).text, body);
}

int health_answer(const struct health *health, const char *path, FILE *body)
{
	if (strcmp(path, "/healthz") == 0) {
		fputs("ok\n", body);
		return 200;
	}
	if (strcmp(path, "/readyz") != 0)
		return 404;
	for (int part = 0; part < PART_MAX; part++) {
		if (!health->parts[part].is_on)
			continue;
		fprintf(body, "%s %s",
			health->parts[part].is_ready ? "[+]" : "[-]",
			names[part]);
		if (health->parts[part].why[0]) {
			fputs(": ", body);
			show_text(body, health->parts[part].why);
		}
		if (health->parts[part].note[0])
			fprintf(body, ": %s", health->parts[part].note);
		fputc('\n', body);
	}
	fputs(health_is_ready(health) ? "ready\n" : "not ready\n", body);
	return health_is_ready(health) ? 200 : 503;
}
