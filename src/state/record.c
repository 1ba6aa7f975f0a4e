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
	};

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		memcpy((char *)&policy + field->offset, pinned + field->pinned,
		       field->size);
	}
	return policy;
}

void record_set_policy(struct record *record, const struct natra_policy *p)
{
	char *pinned = (char *)record->policy;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		memcpy(pinned + field->pinned, (const char *)p + field->offset,
		       field->size);
	}
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
		[LEG_PACE] = "pace",
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

bool record_old_valid(struct record *m)
{
	m->pod.ifname[sizeof(m->pod.ifname) - 1] = '\0';
	m->host.ifname[sizeof(m->host.ifname) - 1] = '\0';
	for (int i = 0; i < LEG_MAX; i++) {
		if (m->leg[i].hook > RECORD_HOOK_CLSACT)
			return false;
	}
	return m->magic == NATRA_PIN_MAGIC && m->mode < NATRA_MODE_MAX;
}

bool record_valid(struct record *m)
{
	struct natra_policy policy;
	char error[HANDLE_ERROR_MAX];

	if (!record_old_valid(m) || m->abi != NATRA_PIN_ABI ||
	    m->size != sizeof(*m) || m->subnets > SUBNETS_UNSHAPED ||
	    !m->subnets != !m->subnets_len)
		return false;
	m->id[sizeof(m->id) - 1] = '\0';
	m->network[sizeof(m->network) - 1] = '\0';
	m->label[sizeof(m->label) - 1] = '\0';
	m->reason[sizeof(m->reason) - 1] = '\0';
	policy = record_get_policy(m);
	return policy_check(&policy, error, sizeof(error)) == 0;
}

/* Reads gso_segs out of an older record, which has it from ABI 2 on: natra gives
 * the interface its old value back when it detaches such a record. */
static void read_gso_segs(struct record *record, const void *value, size_t size)
{
	size_t offset = record->abi >= 5 ? RECORD_ABI_5_GSO : RECORD_ABI_2_GSO;

	if (record->abi >= 2 && size >= offset + sizeof(record->gso_segs))
		memcpy(&record->gso_segs, (const char *)value + offset,
		       sizeof(record->gso_segs));
}

uint32_t record_read(const void *value, size_t size, struct record *ret_record)
{
	struct record record = {0};

	if (size < offsetof(struct record, complete))
		return 0;
	memcpy(&record, value, offsetof(struct record, complete));
	if (record.magic != NATRA_PIN_MAGIC || record.abi == 0)
		return 0;
	if (record.abi > NATRA_PIN_ABI)
		return record.abi;
	if (record.abi < NATRA_PIN_ABI) {
		if (size < RECORD_OLD_SIZE)
			return 0;
		memcpy(&record, value, RECORD_OLD_SIZE);
		if (!record_old_valid(&record))
			return 0;
		read_gso_segs(&record, value, size);
	} else {
		if (size != sizeof(record) || record.size != sizeof(record))
			return RECORD_ABI_UNKNOWN;
		memcpy(&record, value, sizeof(record));
		if (!record_valid(&record))
			return 0;
	}
	*ret_record = record;
	return record.abi;
}
