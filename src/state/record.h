/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of an attachment, which is pinned as `meta`: what natra has put
 * where, for which pod, and with which policy. journal.h says when it is written.
 *
 * It begins with a prefix that natra of every ABI reads, so that an older or newer one
 * lists, names, detaches and replaces what this one has attached.
 */
#ifndef NATRA_STATE_RECORD_H
#define NATRA_STATE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/netns.h"
#include "policy/fields.h"
#include "policy/policy.h"
#include "policy/subnets.h"
#include "../../bpf/natra_shared.h"

#define RECORD_REASON_MAX 256

/* How much of a pinned value this build can read. */
enum record_kind {
	RECORD_NONE,    /* it is no record */
	RECORD_FOREIGN, /* only its prefix can be read */
	RECORD_OWN,
};

/* These values are in the prefix: a new hook of any ABI is a new one. A program that is
 * attached by a link is detached by its pin, `<name>_link`, whatever its hook. */
enum record_hook {
	RECORD_HOOK_NONE,
	RECORD_HOOK_TCX,
	RECORD_HOOK_CLSACT,
};

/* The place where the program of a leg is attached, if hook is not RECORD_HOOK_NONE. */
struct record_leg {
	uint32_t hook;         /* enum record_hook */
	uint32_t on_host;      /* on the host-side veth, else on the pod's */
	uint32_t hook_ingress; /* of that interface */
	uint32_t prog_id;
};

/* The place of a leg's limits and state, if engine is not 0; see engine.h. */
struct record_slot {
	uint64_t engine;
	uint64_t owner; /* what the slot says while it is this one's */
	uint32_t bank;
	uint32_t index;
};

struct record_link {
	uint64_t netns_inode;
	uint64_t netns_cookie;
	uint32_t ifindex; /* 0: not used */
	uint32_t fq;      /* natra's fq is its root qdisc */
	char ifname[16];
};

/* A class, whose subnets are in the map that is pinned as `subnets`. */
struct record_class {
	char name[NATRA_CLASS_NAME_MAX + 1];
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	/* Those that were last written to its slots. */
	struct natra_limits limits[LEG_MAX];
};

/* What an attachment with classes has beside its record, pinned as `classes`. */
struct record_classes {
	struct record_class list[NATRA_CLASSES_MAX];
};

_Static_assert(sizeof(struct record_class) == 3 * NATRA_MOVED + 768,
	       "pinned layout: NATRA_PIN_ABI");

/* What is behind the pod's interface: a process in the pod can give another interface its
 * name, index and address, but no other link to the node. The kernel keeps the number of a
 * namespace as long as both exist. */
struct record_port {
	uint32_t is_known; /* 0: an older build made the record */
	uint32_t peer_ifindex;
	int32_t peer_nsid; /* as the pod's namespace numbers it; -1: itself */
	char kind[16];
	uint32_t pad;
};

/* The first RECORD_PREFIX_SIZE bytes are the prefix. */
struct record {
	/* The prefix never changes, whatever the ABI: it may only grow at its end, into its
	 * reserved bytes, which are 0, and 0 in a new member means what builds without the
	 * member do. What is behind it may be anything in another ABI. */
	uint32_t magic;
	uint32_t abi;
	uint32_t size;     /* of all of the record */
	uint32_t complete; /* attached; else the work of a killed process */
	uint32_t mode;     /* as attached */
	uint32_t edt;      /* natra_edt paces the pod's egress */
	uint32_t unshaped; /* no programs: only a record, `reason` says why */
	uint32_t gso_segs; /* see gso.h; 0: as it was */
	/* The orphan_mask of natra's fq; 0 if there is none. */
	uint32_t fq_orphan_mask;
	uint32_t pod_clsact; /* natra made the clsact of the pod's interface */
	struct record_link pod;
	struct record_link host;
	struct record_leg leg[LEG_MAX];
	/* Those of the policy, which is behind the prefix. */
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	char id[NATRA_ID_MAX + 1];
	char network[NATRA_NAME_MAX + 1];
	char label[NATRA_NAME_MAX + 1];
	char reason[RECORD_REASON_MAX];
	/* The value that gso_max_segs of the pod's interface may still have in place of gso_segs,
	 * while a change of it has begun and is not known to have ended; see gso.h. 0: none. */
	uint32_t gso_before;
	uint8_t reserved_prefix[308];

	/* The rest is of this ABI. */
#ifdef NATRA_NEXT_ABI
	uint8_t moved[NATRA_MOVED];
#endif
	struct record_slot slot[LEG_MAX];
	/* The policy, as policy_fields have it in `pinned`. */
	uint64_t policy[POLICY_PINNED_SIZE / 8];
	uint32_t subnets; /* enum subnets_kind */
	uint32_t subnets_len;
	uint32_t classes_len;
	uint32_t pad;
	/* The limits that were last written to the slots: another build may
	 * derive other numbers from the same policy. */
	struct natra_limits limits[LEG_MAX];
	uint32_t l2_legs; /* bit of a leg: it has Ethernet headers */
	/* A change of the classes or the subnets has begun, which a process that is killed does not
	 * end: the lists may be merged, or have other limits than the rest. */
	uint32_t is_changing;
	/* The group that it is a member of, by its place in the map of groups as well; see
	 * state/group_map.h. One that is `unshaped` has the name alone. */
	char group[NATRA_GROUP_NAME_MAX + 1];
	uint32_t group_is_automatic;
	uint32_t group_number; /* 0: in none */
	struct record_port port;
	/* The group that its slots are being put into, which a process that is killed does not end: it
	 * is a member of both. 0: none, or the same one. */
	uint32_t group_next;
	/* These bytes are 0. A field may be added here without a new ABI if 0
	 * in it means what builds without the field do. */
	uint8_t reserved[388];
};

#define RECORD_PREFIX_SIZE 1520

#define IN_PREFIX(member, offset)                                              \
	_Static_assert(offsetof(struct record, member) == (offset),            \
		       "the prefix is the same in all ABIs")
IN_PREFIX(magic, 0);
IN_PREFIX(abi, 4);
IN_PREFIX(size, 8);
IN_PREFIX(complete, 12);
IN_PREFIX(mode, 16);
IN_PREFIX(edt, 20);
IN_PREFIX(unshaped, 24);
IN_PREFIX(gso_segs, 28);
IN_PREFIX(fq_orphan_mask, 32);
IN_PREFIX(pod_clsact, 36);
IN_PREFIX(pod, 40);
IN_PREFIX(host, 80);
IN_PREFIX(leg, 120);
IN_PREFIX(ingress_rate_bits_per_sec, 168);
IN_PREFIX(egress_rate_bits_per_sec, 176);
IN_PREFIX(id, 184);
IN_PREFIX(network, 440);
IN_PREFIX(label, 696);
IN_PREFIX(reason, 952);
IN_PREFIX(gso_before, 1208);
IN_PREFIX(reserved_prefix, 1212);
IN_PREFIX(slot, RECORD_PREFIX_SIZE + NATRA_MOVED);
_Static_assert(sizeof(struct record_link) == 40 &&
		       sizeof(struct record_leg) == 16,
	       "the prefix is the same in all ABIs");
_Static_assert(sizeof(struct record) == 4 * NATRA_MOVED + 3152,
	       "pinned layout: NATRA_PIN_ABI");

struct natra_policy record_get_policy(const struct record *record);
void record_set_policy(struct record *record,
		       const struct natra_policy *policy);
/* Sets what the classes are called, and their rates. The limits stay. */
void record_set_classes(struct record_classes *classes,
			const struct subnets *subnets);

static inline struct netns_id record_netns(const struct record_link *link)
{
	return (struct netns_id){link->netns_inode, link->netns_cookie};
}

/* Returns how many slots an attachment has for each leg: its own, and behind that one
 * for each class. */
static inline uint32_t record_slots(const struct record *record)
{
	return 1 + record->classes_len;
}

/* Returns whether its programs tell peers apart: by classes, or by subnets, which they
 * look for in the same way. */
static inline bool record_has_classes(const struct record *record)
{
	return record->subnets || record->classes_len;
}

/* Returns the limits that were last written to the slot of a leg: 0 is its own slot, which
 * is that of the rest, and behind it is one for each class. */
static inline const struct natra_limits *
record_limits(const struct record *record, const struct record_classes *classes,
	      uint32_t slot, enum leg leg)
{
	return slot ? &classes->list[slot - 1].limits[leg]
		    : &record->limits[leg];
}

/* Returns "ingress", "egress" or "host", for the names of pins and for
 * messages. */
const char *leg_name(enum leg leg);

/* Returns whether a leg's packets can be given a departure time. */
static inline bool record_is_paced(const struct record *record, enum leg leg)
{
	return (leg == LEG_HOST && record->host.fq) ||
	       (leg == LEG_EGRESS && record->edt);
}

/* Returns whether a leg is attached by `hook` on that side; RECORD_HOOK_NONE
 * stands for any hook. */
bool record_has_hook(const struct record *record, bool on_host,
		     enum record_hook hook);

/*
 * Reads a record as it was pinned, by whatever build. One of this ABI that has another
 * size, or numbers that are out of range, is foreign like one of another ABI: then
 * *ret_record has its prefix, and 0 behind that. If it is no record, *ret_record is
 * untouched.
 */
enum record_kind record_read(const void *value, size_t size,
			     struct record *ret_record);

/* Returns whether the record is of this build's layout and its numbers are in range,
 * and terminates its strings. This is all that is trusted, since another program may
 * have written to the pin. */
bool record_valid(struct record *record);

#endif
