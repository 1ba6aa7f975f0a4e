/* SPDX-License-Identifier: BSD-2-Clause */
/* What "/pods" says, which a child process writes as JSON, a pod at a time. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../common/flows.h"
#include "../common/json_write.h"
#include "../common/memory.h"
#include "../common/text.h"
#include "../common/traffic.h"
#include "jobs.h"
#include "page.h"

/* A node has fewer pods. What more there is counts as left out, so that nobody can make the
 * agent's memory full of text. */
#define PODS_MAX 2000

struct writer {
	const struct page *page;
	FILE *out;
	size_t pods, left_out;
	/* The ids of those whose flows are wanted. */
	char ids[PAGE_KEYS_MAX][NATRA_ID_MAX + 1];
	size_t ids_len;
	struct natra_info *
		classed; /* attachments with classes, whose counters are apart */
	size_t classed_len;
};

struct key_text {
	char text[17];
};

static struct key_text key_text(const char *id)
{
	struct key_text key;

	(void)snprintf(key.text, sizeof(key.text), "%016" PRIx64,
		       text_hash(id));
	return key;
}

static void write_json(FILE *out, cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	fputs(text, out);
	cJSON_free(text);
	cJSON_Delete(json);
}

static void add_direction(cJSON *json, const char *name, uint64_t limit,
			  const struct traffic *traffic)
{
	cJSON *o = cJSON_AddObjectToObject(json, name);

	json_add_u64(o, "limit_bits_per_sec", limit);
	json_add_u64(o, "passed_bytes", traffic->passed);
	json_add_u64(o, "held_bytes", traffic->held);
	json_add_u64(o, "marked_bytes", traffic->marked);
	json_add_u64(o, "dropped_bytes", traffic->dropped);
}

static void add_directions(cJSON *json, const struct natra_info *info,
			   uint64_t ingress, uint64_t egress,
			   const struct natra_stats *stats)
{
	const struct traffic in =
		traffic_of(&stats->ingress, info->pace_active);
	const struct traffic out = traffic_of(&stats->egress, info->edt_active);

	add_direction(json, natra_direction_name(NATRA_DIRECTION_INGRESS),
		      ingress, &in);
	add_direction(json, natra_direction_name(NATRA_DIRECTION_EGRESS),
		      egress, &out);
}

/* Says why the limits are not there, or what is shown of them is not, or "". */
static void add_why(cJSON *json, const struct natra_info *info, bool has_stats)
{
	const uint32_t bypassed =
		info->ingress_bypassed_percent > info->egress_bypassed_percent
			? info->ingress_bypassed_percent
			: info->egress_bypassed_percent;
	char text[sizeof(info->reason)] = "";

	if (info->unshaped)
		(void)snprintf(text, sizeof(text), "%s",
			       info->reason[0] ? info->reason
					       : "it has no limits");
	else if (info->other_abi)
		(void)snprintf(
			text, sizeof(text),
			"another natra (ABI %" PRIu32
			") made its limits, which hold and are not counted here",
			info->abi);
	else if (!has_stats)
		(void)snprintf(text, sizeof(text),
			       "its counters cannot be read; natractl doctor"
			       " says what is wrong");
	else if (bypassed)
		(void)snprintf(
			text, sizeof(text),
			"%" PRIu32
			" %% of its bytes pass natra by; natractl doctor says how",
			bypassed);
	json_add_text(json, "why", text);
}

static cJSON *row_of(const char *kind, const char *pod, const char *part)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "kind", kind);
	json_add_text(json, "pod", pod);
	json_add_text(json, "part", part);
	return json;
}

static void write_row(struct writer *w, cJSON *json)
{
	if (w->pods++)
		fputs(",\n", w->out);
	write_json(w->out, json);
}

static int write_pod(void *arg, const struct natra_info *info,
		     const struct natra_stats *stats)
{
	static const struct natra_stats none = {0};
	struct writer *w = arg;
	cJSON *json;

	if (w->pods >= PODS_MAX) {
		w->left_out++;
		return 0;
	}
	json = row_of("pod", info->label[0] ? info->label : info->id, "");
	json_add_text(json, "key", key_text(info->id).text);
	json_add_text(json, "ifname", info->ifname);
	json_add_text(json, "mode",
		      natra_attach_mode_name(info->mode)
			      ? natra_attach_mode_name(info->mode)
			      : "");
	json_add_text(json, "group", info->effective.group);
	cJSON_AddBoolToObject(json, "unshaped", info->unshaped);
	add_why(json, info, stats);
	add_directions(json, info, info->effective.ingress_rate_bits_per_sec,
		       info->effective.egress_rate_bits_per_sec,
		       stats ? stats : &none);
	write_row(w, json);
	if (w->ids_len < PAGE_KEYS_MAX &&
	    page_has_key(w->page->read, text_hash(info->id)))
		memcpy(w->ids[w->ids_len++], info->id, sizeof(info->id));
	if (stats && info->policy.classes_len) {
		w->classed = memory_grow(w->classed,
					 (w->classed_len + 1) * sizeof(*info));
		w->classed[w->classed_len++] = *info;
	}
	return 0;
}

struct class_of {
	struct writer *w;
	const struct natra_info *info;
};

static int write_class(void *arg, const struct natra_class *class,
		       const struct natra_stats *stats)
{
	const struct class_of *of = arg;
	const struct natra_info *info = of->info;
	cJSON *json = row_of("class", info->label[0] ? info->label : info->id,
			     class->name);

	add_directions(json, info, class->ingress_rate_bits_per_sec,
		       class->egress_rate_bits_per_sec, stats);
	write_row(of->w, json);
	return 0;
}

static int write_group(void *arg, const struct natra_group_info *group)
{
	const struct traffic in =
		traffic_of_group(group, NATRA_DIRECTION_INGRESS);
	const struct traffic out =
		traffic_of_group(group, NATRA_DIRECTION_EGRESS);
	cJSON *json = row_of(group->automatic ? "automatic group" : "group", "",
			     group->name);

	json_add_u64(json, "members", group->members);
	add_direction(json, natra_direction_name(NATRA_DIRECTION_INGRESS),
		      group->ingress_rate_bits_per_sec, &in);
	add_direction(json, natra_direction_name(NATRA_DIRECTION_EGRESS),
		      group->egress_rate_bits_per_sec, &out);
	write_row(arg, json);
	return 0;
}

/* What has gone meanwhile has no classes, and what else is pinned in the place of the groups
 * is none of this page's. */
static int write_rows(struct writer *w, struct natra *n)
{
	int r = natra_foreach_stats(n, write_pod, w);

	for (size_t i = 0; i < w->classed_len && r == 0; i++) {
		struct class_of of = {w, &w->classed[i]};

		r = natra_foreach_class_stats(n, of.info->id, write_class, &of);
		r = r == -ENOENT ? 0 : r;
	}
	if (r == 0)
		r = natra_foreach_group(n, write_group, w);
	return r == -ESTALE ? 0 : r;
}

static void write_flows(const struct writer *w, struct natra *n)
{
	for (size_t i = 0; i < w->ids_len; i++) {
		cJSON *json = cJSON_CreateObject();

		for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
			struct natra_flow flows[NATRA_FLOWS_MAX];
			size_t len = NATRA_FLOWS_MAX;

			/* It may have gone meanwhile. */
			if (natra_top(n, w->ids[i], (enum natra_direction)d,
				      flows, &len) < 0)
				len = 0;
			cJSON_AddItemToObject(json, natra_direction_name(d),
					      flows_json(flows, len));
		}
		fprintf(w->out, "%s\"%s\":", i ? ",\n" : "",
			key_text(w->ids[i]).text);
		write_json(w->out, json);
	}
}

static void write_head(const struct writer *w)
{
	const struct health *health = w->page->health;
	cJSON *json = cJSON_CreateObject(), *parts;
	char *text;

	json_add_text(json, "node", w->page->node);
	json_add_text(json, "version", natra_version());
	json_add_u64(json, "time_ns", clock_ns(CLOCK_MONOTONIC));
	cJSON_AddBoolToObject(json, "ready", health_is_ready(health));
	parts = cJSON_AddArrayToObject(json, "parts");
	for (int part = 0; part < PART_MAX; part++) {
		cJSON *o;

		if (!health->parts[part].is_on)
			continue;
		o = cJSON_CreateObject();
		json_add_text(o, "name", health_part_name((enum part)part));
		cJSON_AddBoolToObject(o, "ready", health->parts[part].is_ready);
		json_add_text(o, "why", health->parts[part].why);
		json_add_text(o, "note", health->parts[part].note);
		cJSON_AddItemToArray(parts, o);
	}
	text = cJSON_PrintUnformatted(json);
	/* The other members follow, so its brace stays open. */
	text[strlen(text) - 1] = '\0';
	fputs(text, w->out);
	cJSON_free(text);
	cJSON_Delete(json);
}

static int write_all(struct writer *w, struct natra *n)
{
	int r;

	write_head(w);
	fputs(",\n\"rows\":[", w->out);
	r = write_rows(w, n);
	fprintf(w->out, "],\n\"left_out\":%zu,\n\"flows\":{", w->left_out);
	write_flows(w, n);
	fputs("}}\n", w->out);
	free(w->classed);
	return r;
}

int page_job_write(const struct page *page, char *error, size_t size)
{
	const struct jobs jobs = {.bpffs = page->bpffs, .log = page->log};
	struct writer w = {.page = page};
	struct natra *n = NULL;
	int r = jobs_open(&jobs, &n);

	w.out = r < 0 ? NULL : fdopen(page->fd, "w");
	if (r == 0 && !w.out)
		r = -errno;
	if (r == 0)
		r = write_all(&w, n);
	(void)snprintf(error, size, "%s",
		       n && natra_error(n)[0] ? natra_error(n) : strerror(-r));
	if (w.out && fclose(w.out) != 0 && r == 0) {
		r = -EIO;
		(void)snprintf(error, size, "write the text");
	}
	natra_close(n);
	return r;
}
