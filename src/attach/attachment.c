/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/attachment.h"

#include <errno.h>
#include <time.h>

#include "attach/identity.h"
#include "kernel/netns_find.h"
#include "util/cleanup.h"
#include "util/str.h"

static int word_absence(struct natra *n, int r, const char *id)
{
	return r == -ENOENT
		       ? with_code(n, NATRA_CODE_NOT_ATTACHED,
				   refuse(n, r, "'%s' is not attached", id))
		       : r;
}

int attachment_find(struct natra *n, const char *id, struct pin_gen *ret_gen)
{
	int r = pin_find(n, id, ret_gen);

	if (r == 0 || r == -ESTALE)
		identity_follow(n, ret_gen);
	return word_absence(n, r, id);
}

bool attachment_find_newer(struct natra *n, const char *id, struct pin_gen *gen)
{
	KEEP_ERROR_SCOPE(n);
	cleanup_pin_gen struct pin_gen now = PIN_GEN_INIT;

	if (pin_find(n, id, &now) < 0 || now.number == gen->number)
		return false;
	identity_follow(n, &now);
	pin_close_gen(gen);
	*gen = TAKE_GEN(now);
	return true;
}

int attachment_find_any(struct natra *n, const char *id,
			struct pin_gen *ret_gen)
{
	int r = attachment_find(n, id, ret_gen);

	return r == -ESTALE ? 0 : r;
}

int attachment_lock(struct natra *n, const char *id, struct pin_dir *ret_dir,
		    struct pin_gen *ret_gen)
{
	int r = pin_dir_lock_id(n, id, false, ret_dir);

	if (r == 0)
		r = pin_find_gen(n, ret_dir->path, ret_gen);
	if (r == 0 || r == -ESTALE)
		identity_follow(n, ret_gen);
	return word_absence(n, r, id);
}

struct owner {
	struct natra *n;
	const struct netns_id *netns;
	uint32_t ifindex;
	bool by_side;
	char *ret_id;
	bool found;
};

static bool is_at(const struct owner *owner, const struct record_link *link)
{
	return link->netns_cookie == owner->netns->cookie &&
	       link->ifindex == owner->ifindex;
}

static int match_owner(void *arg, const char *path)
{
	struct owner *owner = arg;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = pin_find_gen(owner->n, path, &gen);

	if (r == -ENOENT)
		return 0;
	if (r < 0 && r != -ESTALE)
		return r;
	if (!owner->by_side &&
	    gen.record.pod.netns_cookie != owner->netns->cookie)
		return 0;
	identity_follow(owner->n, &gen);
	if (!is_at(owner, &gen.record.pod) &&
	    !(owner->by_side && is_at(owner, &gen.record.host)))
		return 0;
	(void)str_copy(owner->ret_id, NATRA_ID_MAX + 1, gen.record.id);
	owner->found = true;
	/* Another id may have limits where this one has only a record. */
	return !gen.record.unshaped;
}

int attachment_owner(struct natra *n, const struct netns_id *netns,
		     uint32_t ifindex, bool by_side, char *ret_id)
{
	struct owner owner = {n, netns, ifindex, by_side, ret_id, false};
	int r = pin_dir_foreach_id(n, match_owner, &owner);

	if (r < 0)
		return r;
	return owner.found ? 0 : -ENOENT;
}

int attachment_read_subnets(struct natra *n, const struct pin_gen *gen,
			    struct subnets *ret_subnets)
{
	int r = pin_read_subnets(n, gen, ret_subnets);

	if (r == -ENOENT)
		return refuse(n, r, "the subnets of '%s' are gone",
			      gen->record.id);
	return r;
}

int attachment_open_netns(struct natra *n, const struct record_link *link,
			  int hint_fd, int *ret_fd)
{
	struct netns_id id = record_netns(link);
	int r = netns_find(n, &id, hint_fd, ret_fd);

	if (r == -ENOENT)
		return refuse(n, -ENODEV, "the netns of '%s' is gone",
			      link->ifname);
	return r < 0 ? fail_errno(n, r, "find the netns of '%s'", link->ifname)
		     : 0;
}

int attachment_visit(struct natra *n, const struct record_link *link,
		     int hint_fd, int (*fn)(void *arg), void *arg)
{
	cleanup_close int fd = -1;
	int r = attachment_open_netns(n, link, hint_fd, &fd);

	return r < 0 ? r : netns_run(n, fd, fn, arg);
}

void attachment_wait_dying(void)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000000L};

	(void)nanosleep(&pause, NULL);
}
