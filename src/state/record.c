/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/record.h"

#include <string.h>

struct natra_policy record_get_policy(const struct record *record)
{
	const char *pinned = (const char *)record->policy;
	bool shaped = record->subnets == SUBNETS_SHAPED;
	struct natra_policy policy = {
		.sz = sizeof(struct natra_policy),
		.shaped_subnets_len = shaped ? record->subnets_len : 0,
		.unshaped_subnets_len = shaped ? 0 : record->subnets_len,
		.classes_len = record->classes_len,
		.group_is_automatic = record->group_is_automatic != 0,
	};

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->unit != POLICY_GROUP)
			memcpy((char *)&policy + field->offset,
			       pinned + field->pinned, field->size);
	}
	memcpy(policy.group, record->group, sizeof(policy.group));
	return policy;
}

void record_set_policy(struct record *record, const struct natra_policy *p)
{
	char *pinned = (char *)record->policy;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->unit != POLICY_GROUP)
			memcpy(pinned + field->pinned,
			       (const char *)p + field->offset, field->size);
	}
	record->ingress_rate_bits_per_sec = p->ingress_rate_bits_per_sec;
	record->egress_rate_bits_per_sec = p->egress_rate_bits_per_sec;
	memcpy(record->group, p->group, sizeof(record->group));
	record->group_is_automatic = p->group_is_automatic;
	record->subnets = p->shaped_subnets_len     ? SUBNETS_SHAPED
			  : p->unshaped_subnets_len ? SUBNETS_UNSHAPED
						    : SUBNETS_NONE;
	record->subnets_len =
		(uint32_t)(p->shaped_subnets_len + p->unshaped_subnets_len);
	record->classes_len = (uint32_t)p->classes_len;
}

void record_set_classes(struct record_classes *classes,
			const struct subnets *subnets)
{
	for (size_t i = 0; i < subnets->classes_len; i++) {
		const struct peer_class *from = &subnets->classes[i];
		struct record_class *class = &classes->list[i];

		memcpy(class->name, from->name, sizeof(class->name));
		class->ingress_rate_bits_per_sec =
			from->ingress_rate_bits_per_sec;
		class->egress_rate_bits_per_sec =
			from->egress_rate_bits_per_sec;
	}
}

const char *leg_name(enum leg leg)
{
	static const char *const names[LEG_MAX] = {
		[LEG_INGRESS] = "ingress",
		[LEG_EGRESS] = "egress",
		[LEG_HOST] = "host",
	};

	return names[leg];
}

bool record_has_hook(const struct record *record, bool on_host,
		     enum record_hook hook)
{
	for (int i = 0; i < LEG_MAX; i++) {
		const struct record_leg *h = &record->leg[i];

		if (h->hook != RECORD_HOOK_NONE &&
		    (h->on_host != 0) == on_host &&
		    (hook == RECORD_HOOK_NONE || h->hook == hook))
			return true;
	}
	return false;
}

static void terminate_strings(struct record *m)
{
	m->pod.ifname[sizeof(m->pod.ifname) - 1] = '\0';
	m->host.ifname[sizeof(m->host.ifname) - 1] = '\0';
	m->id[sizeof(m->id) - 1] = '\0';
	m->network[sizeof(m->network) - 1] = '\0';
	m->label[sizeof(m->label) - 1] = '\0';
	m->reason[sizeof(m->reason) - 1] = '\0';
}

bool record_valid(struct record *m)
{
	struct natra_policy policy;
	char error[HANDLE_ERROR_MAX];

	terminate_strings(m);
	m->group[sizeof(m->group) - 1] = '\0';
	m->port.kind[sizeof(m->port.kind) - 1] = '\0';
	for (int i = 0; i < LEG_MAX; i++) {
		if (m->leg[i].hook > RECORD_HOOK_CLSACT)
			return false;
	}
	if (m->magic != NATRA_PIN_MAGIC || m->abi != NATRA_PIN_ABI ||
	    m->size != sizeof(*m) || m->mode >= NATRA_ATTACH_MODE_MAX ||
	    m->subnets > SUBNETS_UNSHAPED || !m->subnets != !m->subnets_len ||
	    m->group_number > NATRA_GROUPS || m->group_next > NATRA_GROUPS)
		return false;
	policy = record_get_policy(m);
	return policy_check(&policy, error, sizeof(error)) == 0;
}

static bool read_own(const void *value, size_t size, struct record *ret_record)
{
	if (size != sizeof(*ret_record))
		return false;
	memcpy(ret_record, value, size);
	return record_valid(ret_record);
}

enum record_kind record_read(const void *value, size_t size,
			     struct record *ret_record)
{
	struct record record = {0};

	if (size < RECORD_PREFIX_SIZE)
		return RECORD_NONE;
	memcpy(&record, value, RECORD_PREFIX_SIZE);
	if (record.magic != NATRA_PIN_MAGIC || record.abi == 0)
		return RECORD_NONE;
	if (read_own(value, size, &record)) {
		*ret_record = record;
		return RECORD_OWN;
	}
	record = (struct record){0};
	memcpy(&record, value, RECORD_PREFIX_SIZE);
	terminate_strings(&record);
	if (record.mode >= NATRA_ATTACH_MODE_MAX)
		record.mode = NATRA_ATTACH_MODE_AUTO;
	*ret_record = record;
	return RECORD_FOREIGN;
}
