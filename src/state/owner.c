/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/owner.h"

#include "base/handle.h"
#include "util/random.h"

/* Owners are a hash of the id, so many random bits, the leg, and 1, since none is 0. */
#define OWNER_ID_SHIFT  32
#define OWNER_LEG_SHIFT 1
#define OWNER_LEG_MASK  3U
#define OWNER_LOW_MASK  7U

static uint32_t hash_id(const char *id)
{
	uint32_t h = 0x811c9dc5U; /* FNV-1a */

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 0x01000193U;
	return h;
}

int owner_make(struct natra *n, const char *id, enum leg leg, uint64_t *ret)
{
	uint32_t low;
	int r = random_fill(&low, sizeof(low));

	if (r < 0)
		return fail_errno(n, r, "random owner");
	low = (low & ~OWNER_LOW_MASK) | (uint32_t)leg << OWNER_LEG_SHIFT | 1;
	*ret = (uint64_t)hash_id(id) << OWNER_ID_SHIFT | low;
	return 0;
}

bool owner_is_of(uint64_t owner, const char *id)
{
	return owner >> OWNER_ID_SHIFT == hash_id(id);
}

enum leg owner_leg(uint64_t owner)
{
	return (enum leg)(owner >> OWNER_LEG_SHIFT & OWNER_LEG_MASK);
}
