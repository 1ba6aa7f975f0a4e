/* SPDX-License-Identifier: BSD-2-Clause */
#include "podproto.h"

#include <stdbool.h>
#include <string.h>

#include "../common/json.h"
#include "../common/text.h"

/* Numbers of fields: of v1alpha1.WatchPodsEvent, of v1.Pod, of its PodStatus, of ObjectMeta, and
 * of an entry of a map. */
enum { EVENT_TYPE = 1, EVENT_POD = 2 };
enum { POD_METADATA = 1, POD_STATUS = 3 };
enum { STATUS_PHASE = 1 };
enum { META_NAME = 1, META_NAMESPACE = 3, META_UID = 5, META_ANNOTATIONS = 12 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* v1alpha1.EventType, as it is since Kubernetes 1.37. */
enum { TYPE_ADDED = 1, TYPE_MODIFIED, TYPE_DELETED };

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct span {
	const uint8_t *at;
	size_t len;
};

struct field {
	uint64_t number;
	uint64_t value;    /* of a varint */
	struct span bytes; /* of another field, {0} if it has none */
};

static bool take_varint(struct span *s, uint64_t *ret)
{
	*ret = 0;
	for (unsigned int shift = 0; s->len && shift < 64; shift += 7) {
		uint8_t byte = *s->at++;

		s->len--;
		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take_bytes(struct span *s, uint64_t len, struct span *ret)
{
	if (len > s->len)
		return false;
	*ret = (struct span){s->at, (size_t)len};
	s->at += len;
	s->len -= (size_t)len;
	return true;
}

static bool take_known(struct span *s, struct field *ret)
{
	uint64_t key, len;

	if (!take_varint(s, &key))
		return false;
	ret->number = key >> 3;
	switch (key & 7) {
	case WIRE_VARINT:
		return take_varint(s, &ret->value);
	case WIRE_64:
		return take_bytes(s, 8, &ret->bytes);
	case WIRE_BYTES:
		return take_varint(s, &len) && take_bytes(s, len, &ret->bytes);
	case WIRE_32:
		return take_bytes(s, 4, &ret->bytes);
	default:
		return false;
	}
}

/* Takes the next field of a message. Returns false at its end, where s->len is 0, and where it
 * is wrong, where it is not. */
static bool take_field(struct span *s, struct field *ret)
{
	*ret = (struct field){0};
	if (!s->len)
		return false;
	if (take_known(s, ret))
		return true;
	s->len = 1;
	return false;
}

static cJSON *text_of(struct span bytes)
{
	cleanup_text char *text = text_part(
		(const char *)(bytes.at ? bytes.at : (const uint8_t *)""),
		bytes.len);

	return cJSON_CreateString(text);
}

static bool read_annotation(struct podevent *e, struct span entry)
{
	struct span key = {0}, value = {0};
	cleanup_json cJSON *name = NULL;
	struct field f;

	while (take_field(&entry, &f)) {
		if (f.number == ENTRY_KEY)
			key = f.bytes;
		else if (f.number == ENTRY_VALUE)
			value = f.bytes;
	}
	name = text_of(key);
	if (podevent_wants(name->valuestring))
		podevent_annotate(e, name->valuestring, text_of(value));
	return !entry.len;
}

static bool read_meta(struct podevent *e, struct span meta)
{
	bool is_right = true;
	struct field f;

	while (is_right && take_field(&meta, &f)) {
		switch (f.number) {
		case META_NAME:
			cJSON_AddItemToObject(e->meta, "name",
					      text_of(f.bytes));
			break;
		case META_NAMESPACE:
			cJSON_AddItemToObject(e->meta, "namespace",
					      text_of(f.bytes));
			break;
		case META_UID:
			cJSON_AddItemToObject(e->meta, "uid", text_of(f.bytes));
			break;
		case META_ANNOTATIONS:
			is_right = read_annotation(e, f.bytes);
			break;
		default:
			break;
		}
	}
	return is_right && !meta.len;
}

static bool is_text(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* Pods that have ended stay as long as their objects. */
static bool has_ended(struct span status)
{
	struct field f;

	while (take_field(&status, &f)) {
		if (f.number == STATUS_PHASE)
			return is_text(f.bytes, "Succeeded") ||
			       is_text(f.bytes, "Failed");
	}
	return false;
}

static bool read_pod(struct podevent *e, struct span pod, bool *ret_has_ended)
{
	struct field f;

	while (take_field(&pod, &f)) {
		if (f.number == POD_METADATA && !read_meta(e, f.bytes))
			return false;
		if (f.number == POD_STATUS)
			*ret_has_ended = has_ended(f.bytes);
	}
	return !pod.len;
}

static enum podevent_type type_of(uint64_t type)
{
	switch (type) {
	case TYPE_ADDED:
	case TYPE_MODIFIED:
		return PODEVENT_PRESENT;
	case TYPE_DELETED:
		return PODEVENT_GONE;
	default:
		return PODEVENT_OTHER;
	}
}

void podproto_read(struct podevent *ret, const uint8_t *bytes, size_t len)
{
	struct span event = {bytes, len};
	bool is_right = true, ended = false;
	struct field f;

	podevent_init(ret);
	ret->type = PODEVENT_OTHER;
	while (is_right && take_field(&event, &f)) {
		if (f.number == EVENT_TYPE)
			ret->type = type_of(f.value);
		else if (f.number == EVENT_POD)
			is_right = read_pod(ret, f.bytes, &ended);
	}
	if (ended && ret->type == PODEVENT_PRESENT)
		ret->type = PODEVENT_GONE;
	podevent_name(ret);
	if (!is_right || event.len ||
	    (ret->type != PODEVENT_OTHER && !podevent_has_names(ret)))
		ret->type = PODEVENT_UNREADABLE;
}
