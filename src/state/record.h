/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is pinned beside the maps of an attachment: one record which tells what
 * natra put where. It is written before each step that it describes, so that
 * whoever finds it after a crash can undo all of it.
 */
#ifndef NATRA_STATE_RECORD_H
#define NATRA_STATE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/netns.h"
#include "policy/policy.h"
#include "../../bpf/natra_shared.h"

#define META_REASON_MAX 256

/* enum natra_mode has other values as the API may; these are pinned. */
enum meta_hook {
	META_HOOK_NONE,
	META_HOOK_TCX,
	META_HOOK_CLSACT,
};

/* One program: where it is attached, if hook is not META_HOOK_NONE. */
struct meta_half {
	uint32_t hook;         /* enum meta_hook */
	uint32_t on_host;      /* on the host-side veth, else on the pod's */
	uint32_t hook_ingress; /* of that interface */
	uint32_t prog_id;
};

/* Where its limits and its state are, if engine is not 0; see engine.h. */
struct meta_slot {
	uint64_t engine;
	uint64_t owner; /* what the slot says while it is this one's */
	uint32_t bank;
	uint32_t index;
};

struct meta_policy {
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	uint64_t ingress_burst_bytes;
	uint64_t egress_burst_bytes;
	uint64_t heavy_hitter_threshold_bytes;
	uint64_t horizon_ns;
	uint64_t pace_limit_ns;
	uint32_t fast_pass_share_percent;
	uint32_t fast_pass;
	uint32_t ingress_mode;
	uint32_t mode;
	uint32_t edt;
	uint32_t sketch_width;
};

struct meta_link {
	uint64_t netns_inode;
	uint64_t netns_cookie;
	uint32_t ifindex; /* 0: not used */
	uint32_t fq;      /* natra's fq is its root qdisc */
	char ifname[16];
};

/*
 * The first three members stay where they are in every layout, and those up to
 * half in every one that a newer natra can still detach: META_OLD_SIZE.
 */
struct meta {
	uint32_t magic;
	uint32_t abi;
	uint32_t size;
	uint32_t complete; /* attached; else the work of a killed process */
	uint32_t mode;     /* as attached */
	uint32_t edt;      /* natra_edt paces the pod's egress */
	struct meta_link pod;
	struct meta_link host;
	struct meta_half half[HALF_MAX];
	struct meta_slot slot[HALF_MAX];
	struct meta_policy policy;
	char id[NATRA_ID_MAX + 1];
	char network[NATRA_NAME_MAX + 1];
	char label[NATRA_NAME_MAX + 1];
	char reason[META_REASON_MAX];
	uint32_t subnets; /* enum natra_subnets */
	uint32_t subnets_len;
	uint32_t unshaped;  /* no programs: only a record, `reason` says why */
	uint32_t gso_segs;  /* see gso.h; 0: as it was */
	uint32_t l2_halves; /* bit of a half: it has Ethernet headers */
	uint32_t pad;
	/* The limits that were last written to the slots: another build may
	 * derive other numbers from the same policy. */
	struct natra_limits limits[HALF_MAX];
	/* All 0. A field may be added here without a new ABI if 0 in it means
	 * what builds without the field do. */
	uint8_t reserved[128];
};

#define META_OLD_SIZE offsetof(struct meta, slot)

_Static_assert(META_OLD_SIZE == 152, "pinned layout of all ABIs");
_Static_assert(offsetof(struct meta, gso_segs) == 1340, "as in ABI 2");
_Static_assert(sizeof(struct meta) == 1744, "pinned layout: NATRA_PIN_ABI");

struct natra_policy meta_get_policy(const struct meta *meta);
void meta_set_policy(struct meta *meta, const struct natra_policy *policy);

static inline struct netns_id meta_netns(const struct meta_link *link)
{
	return (struct netns_id){link->netns_inode, link->netns_cookie};
}

/* "ingress", "egress", "pace": in pins and in messages. */
const char *half_name(enum half half);

/* Whether a half's packets can be given a departure time. */
static inline bool meta_is_paced(const struct meta *meta, enum half half)
{
	return half == HALF_PACE || (half == HALF_EGRESS && meta->edt);
}

/* Whether a half is attached by `hook` (META_HOOK_NONE: by any) on that side. */
bool meta_has_hook(const struct meta *meta, bool on_host, enum meta_hook hook);

/* The same for what all layouts have, of an older one. */
bool meta_old_valid(struct meta *meta);

/*
 * Reads a record as it was pinned, by whatever build. Returns the ABI that the
 * record names, or 0 if it is no record. *ret_meta is valid if that is
 * NATRA_PIN_ABI; of an older ABI it has the first META_OLD_SIZE bytes, and of
 * ABI 2 gso_segs, too; it is untouched if the ABI is newer.
 */
uint32_t meta_read(const void *value, size_t size, struct meta *ret_meta);

/* Whether the record is of this build's layout and its numbers are in range;
 * ends its strings. Whatever could write to the pin is not trusted further. */
bool meta_valid(struct meta *meta);

#endif
