/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/record.h"

#include <string.h>

struct natra_policy meta_get_policy(const struct meta *meta)
{
	const struct meta_policy *m = &meta->policy;
	bool shaped = meta->subnets == NATRA_SUBNETS_SHAPED;

	return (struct natra_policy){
		.sz = sizeof(struct natra_policy),
		.ingress_rate_bits_per_sec = m->ingress_rate_bits_per_sec,
		.egress_rate_bits_per_sec = m->egress_rate_bits_per_sec,
		.ingress_burst_bytes = m->ingress_burst_bytes,
		.egress_burst_bytes = m->egress_burst_bytes,
		.heavy_hitter_threshold_bytes = m->heavy_hitter_threshold_bytes,
		.horizon_ns = m->horizon_ns,
		.pace_limit_ns = m->pace_limit_ns,
		.fast_pass_share_percent = m->fast_pass_share_percent,
		.fast_pass = (enum natra_fast_pass)m->fast_pass,
		.ingress_mode = (enum natra_ingress_mode)m->ingress_mode,
		.mode = (enum natra_mode)m->mode,
		.edt = (enum natra_edt)m->edt,
		.sketch_width = m->sketch_width,
		.shaped_subnets_len = shaped ? meta->subnets_len : 0,
		.unshaped_subnets_len = shaped ? 0 : meta->subnets_len,
	};
}

void meta_set_policy(struct meta *meta, const struct natra_policy *p)
{
	meta->policy = (struct meta_policy){
		.ingress_rate_bits_per_sec = p->ingress_rate_bits_per_sec,
		.egress_rate_bits_per_sec = p->egress_rate_bits_per_sec,
		.ingress_burst_bytes = p->ingress_burst_bytes,
		.egress_burst_bytes = p->egress_burst_bytes,
		.heavy_hitter_threshold_bytes = p->heavy_hitter_threshold_bytes,
		.horizon_ns = p->horizon_ns,
		.pace_limit_ns = p->pace_limit_ns,
		.fast_pass_share_percent = p->fast_pass_share_percent,
		.fast_pass = p->fast_pass,
		.ingress_mode = p->ingress_mode,
		.mode = p->mode,
		.edt = p->edt,
		.sketch_width = p->sketch_width,
	};
	meta->subnets = p->shaped_subnets_len     ? NATRA_SUBNETS_SHAPED
			: p->unshaped_subnets_len ? NATRA_SUBNETS_UNSHAPED
						  : NATRA_SUBNETS_NONE;
	meta->subnets_len =
		(uint32_t)(p->shaped_subnets_len + p->unshaped_subnets_len);
}

const char *half_name(enum half half)
{
	static const char *const names[HALF_MAX] = {
		[HALF_INGRESS] = "ingress",
		[HALF_EGRESS] = "egress",
		[HALF_PACE] = "pace",
	};

	return names[half];
}

bool meta_has_hook(const struct meta *meta, bool on_host, enum meta_hook hook)
{
	for (int i = 0; i < HALF_MAX; i++) {
		const struct meta_half *h = &meta->half[i];

		if (h->hook != META_HOOK_NONE && (h->on_host != 0) == on_host &&
		    (hook == META_HOOK_NONE || h->hook == hook))
			return true;
	}
	return false;
}

bool meta_old_valid(struct meta *m)
{
	m->pod.ifname[sizeof(m->pod.ifname) - 1] = '\0';
	m->host.ifname[sizeof(m->host.ifname) - 1] = '\0';
	for (int i = 0; i < HALF_MAX; i++) {
		if (m->half[i].hook > META_HOOK_CLSACT)
			return false;
	}
	return m->magic == NATRA_PIN_MAGIC && m->mode < NATRA_MODE_MAX;
}

bool meta_valid(struct meta *m)
{
	struct natra_policy policy;
	char error[HANDLE_ERROR_MAX];

	if (!meta_old_valid(m) || m->abi != NATRA_PIN_ABI ||
	    m->size != sizeof(*m) || m->subnets > NATRA_SUBNETS_UNSHAPED ||
	    !m->subnets != !m->subnets_len)
		return false;
	m->id[sizeof(m->id) - 1] = '\0';
	m->network[sizeof(m->network) - 1] = '\0';
	m->label[sizeof(m->label) - 1] = '\0';
	m->reason[sizeof(m->reason) - 1] = '\0';
	policy = meta_get_policy(m);
	return policy_check(&policy, error, sizeof(error)) == 0;
}

/* Reads gso_segs out of a record of ABI 2, which has it where this ABI has:
 * natra gives the interface its old value back when it detaches such a
 * record. */
static void read_gso_segs(struct meta *meta, const void *value, size_t size)
{
	const size_t offset = offsetof(struct meta, gso_segs);

	if (meta->abi == 2 && size >= offset + sizeof(meta->gso_segs))
		memcpy(&meta->gso_segs, (const char *)value + offset,
		       sizeof(meta->gso_segs));
}

uint32_t meta_read(const void *value, size_t size, struct meta *ret_meta)
{
	struct meta meta = {0};

	if (size < offsetof(struct meta, complete))
		return 0;
	memcpy(&meta, value, offsetof(struct meta, complete));
	if (meta.magic != NATRA_PIN_MAGIC || meta.abi == 0)
		return 0;
	if (meta.abi > NATRA_PIN_ABI)
		return meta.abi;
	if (meta.abi < NATRA_PIN_ABI) {
		if (size < META_OLD_SIZE)
			return 0;
		memcpy(&meta, value, META_OLD_SIZE);
		if (!meta_old_valid(&meta))
			return 0;
		read_gso_segs(&meta, value, size);
	} else {
		if (size != sizeof(meta))
			return 0;
		memcpy(&meta, value, sizeof(meta));
		if (!meta_valid(&meta))
			return 0;
	}
	*ret_meta = meta;
	return meta.abi;
}
