/* SPDX-License-Identifier: BSD-2-Clause */
#include "exposition.h"

#include <inttypes.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../../src/util/escape.h"

static const struct {
	const char *name;
	const char *openmetrics_name;
	const char *suffix;
} types[] = {
	[METRIC_GAUGE] = {"gauge", "gauge", ""},
	[METRIC_COUNTER] = {"counter", "counter", "_total"},
	[METRIC_INFO] = {"gauge", "info", "_info"},
	[METRIC_HISTOGRAM] = {"histogram", "histogram", ""},
};

void exposition_begin(struct exposition *e, const struct metric *metric)
{
	e->metric = metric;
	e->has_head = false;
}

/* In OpenMetrics the name of a metric is without the end of its samples. */
static void write_head(struct exposition *e)
{
	const struct metric *m = e->metric;
	const char *suffix = e->is_openmetrics ? "" : types[m->type].suffix;

	if (e->has_head)
		return;
	e->has_head = true;
	fprintf(e->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, suffix,
		m->help, m->name, suffix,
		e->is_openmetrics ? types[m->type].openmetrics_name
				  : types[m->type].name);
	if (e->is_openmetrics && m->unit)
		fprintf(e->out, "# UNIT %s %s\n", m->name, m->unit);
}

/* A sample, which is written at once: a scrape has tens of thousands, and a call of
 * stdio for each part of one would take most of its time. */
struct line {
	FILE *out;
	size_t len;
	char text[1024];
};

static void flush(struct line *line)
{
	(void)fwrite(line->text, 1, line->len, line->out);
	line->len = 0;
}

static void put_bytes(struct line *line, const char *text, size_t len)
{
	while (len > sizeof(line->text) - line->len) {
		size_t room = sizeof(line->text) - line->len;

		memcpy(line->text + line->len, text, room);
		line->len += room;
		text += room;
		len -= room;
		flush(line);
	}
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

static void put(struct line *line, const char *text)
{
	put_bytes(line, text, strlen(text));
}

/* Puts a byte as valid UTF-8: what is no printable ASCII becomes \xNN. */
static void put_byte(struct line *line, char c)
{
	const struct escaped escaped = escape_byte(c);

	if (c == '\n') {
		put(line, "\\n");
		return;
	}
	if (c == '"' || escaped.text[0] == '\\')
		put(line, "\\");
	put(line, escaped.text);
}

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* Nearly all values have nothing to escape. */
static void put_value(struct line *line, const char *value)
{
	while (*value) {
		size_t len = 0;

		while (is_plain(value[len]))
			len++;
		put_bytes(line, value, len);
		value += len;
		if (*value)
			put_byte(line, *value++);
	}
}

static void put_name(struct line *line, const struct metric *metric,
		     const char *suffix, const struct label *labels)
{
	const char *before = "{";

	put(line, metric->name);
	put(line, suffix);
	for (; labels->name; labels++) {
		if (!labels->value)
			continue;
		put(line, before);
		put(line, labels->name);
		put(line, "=\"");
		put_value(line, labels->value);
		put(line, "\"");
		before = ",";
	}
	if (before[0] == ',')
		put(line, "}");
	put(line, " ");
}

static void write_sample(struct exposition *e, const char *suffix,
			 const struct label *labels, const char *value)
{
	struct line line;

	write_head(e);
	line.out = e->out;
	line.len = 0;
	put_name(&line, e->metric, suffix, labels);
	put(&line, value);
	put(&line, "\n");
	flush(&line);
}

static void write_count(struct exposition *e, const char *suffix,
			const struct label *labels, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	write_sample(e, suffix, labels, text);
}

/* A time in seconds. */
struct seconds {
	char text[32];
};

static struct seconds seconds_of(uint64_t ns)
{
	struct seconds s;

	(void)snprintf(s.text, sizeof(s.text), "%" PRIu64 ".%09" PRIu64,
		       ns / NS_PER_S, ns % NS_PER_S);
	return s;
}

void exposition_count(struct exposition *e, const struct label *labels,
		      uint64_t value)
{
	write_count(e, types[e->metric->type].suffix, labels, value);
}

void exposition_seconds(struct exposition *e, const struct label *labels,
			uint64_t ns)
{
	write_sample(e, types[e->metric->type].suffix, labels,
		     seconds_of(ns).text);
}

void exposition_percent(struct exposition *e, const struct label *labels,
			uint32_t percent)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u.%02u", percent / 100,
		       percent % 100);
	write_sample(e, types[e->metric->type].suffix, labels, text);
}

/* Adds the label `le` behind the others. */
static void write_bucket(struct exposition *e, const struct label *labels,
			 const char *bound, uint64_t count)
{
	struct label with_bound[LABELS_MAX + 1];
	size_t len = 0;

	for (; labels[len].name; len++)
		with_bound[len] = labels[len];
	with_bound[len] = (struct label){"le", bound};
	with_bound[len + 1] = (struct label){NULL, NULL};
	write_count(e, "_bucket", with_bound, count);
}

void exposition_histogram(struct exposition *e, const struct label *labels,
			  const struct natra_histogram *h,
			  const struct buckets *buckets)
{
	size_t next = buckets->first;
	uint64_t count = 0;

	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++) {
		count += h->count[i];
		if (i != next || i > buckets->last)
			continue;
		next += buckets->step;
		write_bucket(e, labels,
			     seconds_of(NATRA_HISTOGRAM_UP_TO(i)).text, count);
	}
	write_bucket(e, labels, "+Inf", count);
	write_sample(e, "_sum", labels, seconds_of(h->sum_ns).text);
	write_count(e, "_count", labels, count);
}

void exposition_end(struct exposition *e)
{
	if (e->is_openmetrics)
		fputs("# EOF\n", e->out);
}

const char *exposition_content_type(bool is_openmetrics)
{
	return is_openmetrics
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

static bool has_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && strncmp(text, word, len) == 0;
}

/* Reads "0.75" in thousandths. */
static int read_quality(const char *text, size_t len)
{
	int quality = 0, unit = 1000;

	for (size_t i = 0; i < len && i < 5; i++) {
		if (text[i] == '.')
			continue;
		if (text[i] < '0' || text[i] > '9')
			return 0;
		quality += unit * (text[i] - '0');
		unit /= 10;
	}
	return quality;
}

/* Reads the parameters of a media range up to its end. Returns its quality, or
 * 0 if a version of OpenMetrics other than the one that is written is wanted. */
static int read_range(const char *range, size_t len, bool is_openmetrics)
{
	int quality = 1000;

	while (len > 0) {
		size_t n = 0;

		while (n < len && range[n] != ';')
			n++;
		if (n > 2 && strncmp(range, "q=", 2) == 0)
			quality = read_quality(range + 2, n - 2);
		else if (is_openmetrics && n > 8 &&
			 strncmp(range, "version=", 8) == 0 &&
			 !has_word(range + 8, n - 8, "1.0.0"))
			return 0;
		n += n < len;
		range += n;
		len -= n;
		while (len > 0 && *range == ' ') {
			range++;
			len--;
		}
	}
	return quality;
}

bool exposition_accepts_openmetrics(const char *accept)
{
	int openmetrics = 0, text = 0;

	while (accept && *accept) {
		size_t len, type;
		bool is_openmetrics;
		int quality;

		accept += strspn(accept, " ,\t");
		len = strcspn(accept, ",");
		type = strcspn(accept, "; ,");
		is_openmetrics =
			has_word(accept, type, "application/openmetrics-text");
		quality = read_range(accept + type, len - type, is_openmetrics);
		if (is_openmetrics && quality > openmetrics)
			openmetrics = quality;
		else if (has_word(accept, type, "text/plain") && quality > text)
			text = quality;
		accept += len;
	}
	return openmetrics > 0 && openmetrics >= text;
}
