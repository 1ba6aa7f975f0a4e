/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that find an attachment by its interface. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/admission.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/scene.h"
#include "attach/teardown.h"
#include "state/engine.h"
#include "state/group_map.h"
#include "util/cleanup.h"
#include "util/str.h"

/* Finds the id that a target means: its own, or that of the attachment on its
 * interface. */
static int resolve_id(struct natra *n, const struct natra_target *t, int fd,
		      char *ret_id)
{
	struct scene scene;
	int r;

	if (t->id && t->id[0]) {
		(void)str_copy(ret_id, NATRA_ID_MAX + 1, t->id);
		return 0;
	}
	if (!t->ifname || !t->ifname[0])
		return refuse(n, -EINVAL, "id, ifname: one is needed");
	r = scene_look(n, fd, t->ifname, &scene);
	if (r < 0)
		return r;
	return attachment_owner(n, &scene.pod_netns, scene.pod.ifindex, false,
				ret_id);
}

/* Returns whether an attachment has the id that it gets if none is given. */
static bool has_default_id(const struct record *record)
{
	char id[NATRA_ID_MAX + 1];

	(void)snprintf(id, sizeof(id), "%" PRIu64 "-%s",
		       record->pod.netns_inode, record->pod.ifname);
	return strcmp(record->id, id) == 0;
}

/* Removes what is in the directory. A caller that names no id has attached without one: what
 * another one has attached under an id is not removed. */
static int remove_found(struct natra *n, const struct natra_target *t, int fd,
			const struct pin_dir *dir, bool *ret_is_there)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	const bool is_there = pin_find_gen(n, dir->path, &gen) != -ENOENT;

	if ((!t->id || !t->id[0]) && gen.kind != RECORD_NONE &&
	    !has_default_id(&gen.record))
		return with_code(n, NATRA_CODE_OTHER_ID,
				 refuse(n, -EBUSY,
					"interface '%s' is attached as '%s'",
					t->ifname, gen.record.id));
	*ret_is_there = is_there;
	return teardown_all(n, dir, NULL, fd);
}

int natra_detach(struct natra *n, const struct natra_target *target)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	char id[NATRA_ID_MAX + 1];
	struct natra_target t;
	cleanup_close int fd = -1;
	bool is_there = false;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	r = target_in(n, target, &t);
	if (r < 0)
		return r;
	/* If there is an id, the namespace only helps to find the interface. */
	r = netns_open(n, &t, &fd);
	if (r == -ENOENT || (r == -EINVAL && t.netns)) {
		/* The namespace is gone, or the path is the empty file that was
		 * its mount point. */
		if (!t.id || !t.id[0])
			return r == -ENOENT || netns_is_left(t.netns)
				       ? finish(n, 0)
				       : r;
	} else if (r < 0) {
		return r;
	}
	r = resolve_id(n, &t, fd, id);
	/* It may have another name by now; its default id still has the old one. */
	if (r == -ENOENT || r == -ENODEV)
		r = admission_id(n, &t, fd, id);
	if (r == 0)
		r = pin_dir_lock_id(n, id, false, &dir);
	if (r == 0)
		r = remove_found(n, &t, fd, &dir, &is_there);
	if (r == 0)
		pin_dir_remove(&dir);
	/* This is also done if nothing was attached: the last call may have
	 * failed just here. */
	if (r == 0 || r == -ENOENT) {
		if (n->keep_programs)
			groups_sweep(n);
		else
			r = engine_sweep(n);
	}
	r = finish(n, r == -ENOENT ? 0 : r);
	return r < 0 ? r : is_there;
}

int natra_find(struct natra *n, const struct natra_target *target, char *ret_id,
	       size_t size)
{
	char id[NATRA_ID_MAX + 1];
	struct natra_target t;
	cleanup_close int fd = -1;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	if (!ret_id)
		return refuse(n, -EINVAL, "ret_id: missing");
	r = struct_in(n, "target", &t, EXTENT_TARGET, target);
	/* An id is not read, so that it may be anything. */
	t.id = NULL;
	if (r == 0)
		r = target_in(n, &t, &t);
	if (r == 0)
		r = netns_open(n, &t, &fd);
	if (r < 0)
		return r;
	if (!t.ifname || !t.ifname[0])
		return refuse(n, -EINVAL, "ifname: missing");
	r = resolve_id(n, &t, fd, id);
	if (r == -ENOENT)
		return with_code(
			n, NATRA_CODE_NOT_ATTACHED,
			refuse(n, r, "nothing is attached to '%s'", t.ifname));
	if (r == 0 && strlen(id) >= size)
		r = refuse(n, -ERANGE, "ret_id: '%s' needs more than %zu bytes",
			   id, size);
	if (r == 0)
		(void)str_copy(ret_id, size, id);
	return finish(n, r);
}
