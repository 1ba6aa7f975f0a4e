/* SPDX-License-Identifier: BSD-2-Clause */
#include "podevent.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <natra/natra.h>

#include "../../src/policy/fields.h"
#include "../common/json.h"
#include "../pods/wish.h"

/*
 * What is kept of a pod's annotations, which a tenant may fill with 256 KiB, in bytes of the
 * JSON that an edit is kept as: one byte of a value may take six there. No value that is longer
 * is valid: 1024 blocks of classes take less, and everything else is a number or a word. Of
 * names that natra does not know there are a few, which the configuration may put into the name
 * of a group.
 */
#define CLASSES_MAX 98304
#define VALUE_MAX   256
#define SHOWN_MAX   64
#define OTHERS_MAX  16

#define MIRROR_ANNOTATION "kubernetes.io/config.mirror"

/* HTTP's status 410 Gone: the server has forgotten the version from which the watch
 * should begin. */
#define CODE_GONE 410

static const char *text_at(const cJSON *object, const char *key)
{
	const char *text = json_text(json_get_exact(object, key));

	return text ? text : "";
}

static enum podevent_type type_of(const char *name)
{
	if (strcmp(name, "ADDED") == 0 || strcmp(name, "MODIFIED") == 0)
		return PODEVENT_PRESENT;
	if (strcmp(name, "DELETED") == 0)
		return PODEVENT_GONE;
	if (strcmp(name, "BOOKMARK") == 0)
		return PODEVENT_BOOKMARK;
	if (strcmp(name, "ERROR") == 0)
		return PODEVENT_ERROR;
	return name[0] ? PODEVENT_OTHER : PODEVENT_UNREADABLE;
}

/* Whether natra does not know the name, so that only the name of a group can need it. */
static bool is_of_group(const char *name)
{
	return !policy_annotation(name);
}

/* Whether the name of a group may have this value of an annotation that natra does not know. */
static bool fits_group(const char *name, const char *text)
{
	return strlen(name) <= NATRA_NAME_MAX &&
	       (!text || strlen(text) <= NATRA_GROUP_NAME_MAX);
}

/* Returns how many bytes a text takes in JSON. */
static size_t len_of_json(const char *text)
{
	size_t len = 0;

	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			len += 2;
		else
			len += (unsigned char)*text < ' '
				       ? sizeof("\\u0001") - 1
				       : 1;
	}
	return len;
}

static bool is_too_long(const char *name, const char *text)
{
	const bool is_classes = strcmp(name, POLICY_CLASSES_ANNOTATION) == 0;

	return len_of_json(text) > (is_classes ? CLASSES_MAX : VALUE_MAX);
}

bool podevent_wants(const char *name)
{
	return name && wish_follows(name);
}

void podevent_annotate(struct podevent *event, const char *name, cJSON *value)
{
	char shown[SHOWN_MAX + sizeof("...")];
	const char *text = json_text(value);

	if (is_of_group(name) &&
	    (++event->others > OTHERS_MAX || !fits_group(name, text))) {
		cJSON_Delete(value);
		return;
	}
	if (text && is_too_long(name, text)) {
		(void)snprintf(shown, sizeof(shown), "%.*s...", SHOWN_MAX,
			       text);
		cJSON_Delete(value);
		value = cJSON_CreateString(shown);
	}
	cJSON_AddItemToObject(event->annotations, name, value);
}

static void read_mirrored(struct podevent *event, const cJSON *value)
{
	const char *uid = json_text(value);

	if (uid && strlen(uid) < sizeof(event->mirrored))
		memcpy(event->mirrored, uid, strlen(uid) + 1);
}

static void read_annotation(struct podevent *event, const char *name,
			    cJSON *value)
{
	if (podevent_wants(name)) {
		podevent_annotate(event, name, value);
		return;
	}
	read_mirrored(event, value);
	cJSON_Delete(value);
}

/* A tenant may write 100 000 of them, so they are read one by one. */
static void read_annotations(struct podevent *event, const char *text)
{
	struct json_member member;

	while (text && json_next(&text, &member)) {
		cleanup_json cJSON *key =
			cJSON_ParseWithLength(member.key, member.key_len);
		const char *name = json_text(key);

		if (podevent_wants(name) ||
		    (name && strcmp(name, MIRROR_ANNOTATION) == 0))
			read_annotation(event, name,
					cJSON_ParseWithLength(member.value,
							      member.len));
	}
}

static const char *find(const char *text, const char *key)
{
	size_t len;

	return text ? json_find_text(text, key, &len) : NULL;
}

static cJSON *pick(const char *text, const char *const *keys)
{
	return json_pick(text ? text : "", keys);
}

void podevent_init(struct podevent *ret)
{
	*ret = (struct podevent){
		.meta = cJSON_CreateObject(),
		.annotations = cJSON_CreateObject(),
		.version = "",
		.message = "",
	};
}

void podevent_name(struct podevent *event)
{
	event->namespace = text_at(event->meta, "namespace");
	event->name = text_at(event->meta, "name");
	event->uid = text_at(event->meta, "uid");
}

bool podevent_has_names(const struct podevent *event)
{
	return event->uid[0] && event->name[0] && event->namespace[0];
}

static void fill(struct podevent *e, const char *line)
{
	static const char *const of_meta[] = {"resourceVersion", "namespace",
					      "name", "uid", NULL};
	static const char *const of_object[] = {"message", "code", NULL};
	static const char *const of_line[] = {"type", NULL};
	const char *object = find(line, "object");
	const char *meta = find(object, "metadata");
	const cJSON *code;

	e->json = pick(line, of_line);
	e->status = pick(object, of_object);
	cJSON_Delete(e->meta);
	e->meta = pick(meta, of_meta);
	podevent_name(e);
	e->type = type_of(text_at(e->json, "type"));
	e->is_change = e->type == PODEVENT_GONE ||
		       strcmp(text_at(e->json, "type"), "MODIFIED") == 0;
	e->message = text_at(e->status, "message");
	e->version = text_at(e->meta, "resourceVersion");
	code = json_get_exact(e->status, "code");
	if (e->type == PODEVENT_ERROR && cJSON_IsNumber(code) &&
	    code->valueint == CODE_GONE)
		e->type = PODEVENT_EXPIRED;
	if (e->type == PODEVENT_PRESENT)
		read_annotations(e, find(meta, "annotations"));
}

/* Returns whether what is needed of it was read. */
static bool is_complete(const struct podevent *e)
{
	switch (e->type) {
	case PODEVENT_PRESENT:
	case PODEVENT_GONE:
		return e->version[0] && podevent_has_names(e);
	case PODEVENT_BOOKMARK:
	case PODEVENT_OTHER:
		return e->version[0];
	default:
		return true;
	}
}

void podevent_read(struct podevent *ret, const char *line)
{
	size_t at;

	podevent_init(ret);
	fill(ret, line);
	if (!json_check(line, strlen(line), &at))
		ret->type = PODEVENT_GARBAGE;
	else if (!is_complete(ret))
		ret->type = PODEVENT_UNREADABLE;
}

void podevent_free(struct podevent *event)
{
	json_freep(&event->json);
	json_freep(&event->status);
	json_freep(&event->meta);
	json_freep(&event->annotations);
}
