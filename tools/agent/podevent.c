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
 * What is kept of a pod's annotations, which a tenant may fill with 256 KiB: no value that is
 * longer is valid (1024 blocks of classes take less), and of names that natra does not know
 * a few, which the configuration may put into the name of a group.
 */
#define VALUE_MAX  65536
#define SHOWN_MAX  64
#define OTHERS_MAX 16

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
	return name[0] ? PODEVENT_OTHER : PODEVENT_GARBAGE;
}

static void fill(struct podevent *e)
{
	const cJSON *object = json_get_exact(e->json, "object");
	const cJSON *meta = json_get_exact(object, "metadata");
	const cJSON *code = json_get_exact(object, "code");

	e->type = type_of(text_at(e->json, "type"));
	e->message = text_at(object, "message");
	if (e->type == PODEVENT_ERROR) {
		if (cJSON_IsNumber(code) && code->valueint == CODE_GONE)
			e->type = PODEVENT_EXPIRED;
		return;
	}
	e->version = text_at(meta, "resourceVersion");
	e->namespace = text_at(meta, "namespace");
	e->name = text_at(meta, "name");
	e->uid = text_at(meta, "uid");
	e->annotations = json_get_exact(meta, "annotations");
	if (!cJSON_IsObject(e->annotations))
		e->annotations = NULL;
	if (!e->version[0] ||
	    (e->type != PODEVENT_BOOKMARK && e->type != PODEVENT_OTHER &&
	     (!e->uid[0] || !e->name[0] || !e->namespace[0])))
		e->type = PODEVENT_GARBAGE;
}

void podevent_read(struct podevent *ret, const char *line)
{
	size_t at;

	*ret = (struct podevent){.type = PODEVENT_GARBAGE, .message = ""};
	if (!json_check(line, strlen(line), &at))
		return;
	ret->json = cJSON_Parse(line);
	if (cJSON_IsObject(ret->json))
		fill(ret);
}

void podevent_free(struct podevent *event)
{
	json_freep(&event->json);
}

/* Returns a copy of an annotation's value, or of the beginning of one that is too long to be
 * valid, which says so to whoever reads the error. */
static cJSON *copy_value(const cJSON *item)
{
	const char *text = json_text(item);
	char shown[SHOWN_MAX + sizeof("...")];

	if (!text || strlen(text) <= VALUE_MAX)
		return cJSON_Duplicate(item, true);
	(void)snprintf(shown, sizeof(shown), "%.*s...", SHOWN_MAX, text);
	return cJSON_CreateString(shown);
}

/* Whether natra does not know the name, so that only the name of a group can need it. */
static bool is_of_group(const cJSON *item)
{
	return !policy_annotation(item->string);
}

cJSON *podevent_relevant(const cJSON *annotations)
{
	cJSON *copy = cJSON_CreateObject();
	const cJSON *item;
	int others = 0;

	cJSON_ArrayForEach(item, annotations)
	{
		if (!wish_follows(item->string))
			continue;
		if (is_of_group(item) &&
		    (++others > OTHERS_MAX ||
		     strlen(item->string) > NATRA_NAME_MAX ||
		     (json_text(item) &&
		      strlen(json_text(item)) > NATRA_GROUP_NAME_MAX)))
			continue;
		cJSON_AddItemToObject(copy, item->string, copy_value(item));
	}
	return copy;
}

/* FNV-1a. */
uint64_t podevent_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash;
}
