/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/list.h"

#include <errno.h>
#include <string.h>

#include "api/internal.h"
#include "attach/attachment.h"
#include "attach/check.h"
#include "attach/identity.h"
#include "state/pin_dir.h"
#include "util/cleanup.h"

static int add_attachment(struct attachments *all,
			  const struct attachment *attachment)
{
	struct attachment *list =
		realloc(all->list, (all->len + 1) * sizeof(*list));

	if (!list)
		return fail_errno(all->n, -ENOMEM, "list attachments");
	all->list = list;
	all->list[all->len++] = *attachment;
	return 0;
}

static int add_key(void *arg, const char *path)
{
	struct attachments *all = arg;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct attachment a;
	int r = pin_find_gen(all->n, path, &gen);

	if (r == -ENOENT)
		return 0;
	if (r == 0 || r == -ESTALE) {
		info_of(&gen, &a.info);
		r = read_upgrade(all->n, &gen, &a.info);
	}
	if (r == 0) {
		const struct record_link *link = check_sought_link(&gen);

		a.lookup.netns = record_netns(link);
		a.lookup.ifindex = link->ifindex;
		a.lookup.exists = identity_exists(all->n, &gen) == 1;
		return add_attachment(all, &a);
	}
	return all->skip_errors ? 0 : r;
}

/* Walks all namespaces once to find out which interfaces exist, for attachments of which neither TCX
 * links nor the other end of a pair prove it. */
static int look_up_all(struct attachments *all, struct netns_index *index)
{
	cleanup_free struct netns_lookup **lookups =
		calloc(all->len, sizeof(struct netns_lookup *));
	size_t len = 0;
	int r;

	if (!lookups)
		return fail_errno(all->n, -ENOMEM, "list attachments");
	for (size_t i = 0; i < all->len; i++) {
		if (all->list[i].lookup.exists == 0)
			lookups[len++] = &all->list[i].lookup;
	}
	if (!len)
		return 0;
	r = index ? netns_index_look(index, lookups, len) : -ENOENT;
	return r < 0 ? fail_errno(all->n, r, "look for interfaces") : 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct attachment *)a)->info.id,
		      ((const struct attachment *)b)->info.id);
}

int read_attachments(struct attachments *all, struct netns_index **ret_index)
{
	int r = pin_dir_foreach_id(all->n, add_key, all);

	if (r < 0)
		return r;
	if (!all->len)
		return 0;
	qsort(all->list, all->len, sizeof(all->list[0]), compare_ids);
	r = netns_index_make(ret_index);
	/* Without /proc there is no index, but it may not be needed. */
	if (r < 0 && r != -ENOENT)
		return fail_errno(all->n, r, "look for network namespaces");
	return look_up_all(all, *ret_index);
}

/* It may have been detached since the list was made. */
static void find_bypass(struct natra *n, struct netns_index *index,
			struct natra_info *info)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	KEEP_ERROR_SCOPE(n);

	n->netns_index = index;
	if (attachment_find(n, info->id, &gen) == 0)
		read_bypass(n, &gen, info);
	n->netns_index = NULL;
}

static int tell_of(struct natra *n, struct netns_index *index,
		   struct attachment *a, natra_attachment_fn fn, void *arg)
{
	if (a->lookup.exists < 0)
		return fail_errno(n, a->lookup.exists,
				  "look for interface '%s' of '%s'",
				  a->info.ifname, a->info.id);
	a->info.interface_gone = a->lookup.exists == 0;
	if (!a->info.interface_gone && !a->info.unshaped)
		find_bypass(n, index, &a->info);
	forget_error(n);
	return fn(arg, &a->info);
}

int natra_foreach_attachment(struct natra *n, natra_attachment_fn fn, void *arg)
{
	cleanup_netns_index struct netns_index *index = NULL;
	struct attachments all = {.n = n};
	int r;

	if (!begin_call(n))
		return -EINVAL;
	if (!fn)
		return refuse(n, -EINVAL, "fn: missing");
	r = read_attachments(&all, &index);
	for (size_t i = 0; i < all.len && r == 0; i++)
		r = tell_of(n, index, &all.list[i], fn, arg);
	free(all.list);
	return finish_walk(n, r);
}
