/* SPDX-License-Identifier: BSD-2-Clause */
/* natra_gc, which removes the attachments whose interface does not exist any
 * more, or which the caller does not need, and repairs the others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/list.h"
#include "attach/check.h"
#include "attach/gso.h"
#include "attach/limits.h"
#include "attach/teardown.h"
#include "state/engine.h"
#include "state/group_map.h"

struct sweep {
	struct natra *n;
	const char *network;
	const char *const *keep;
	size_t keep_len;
	size_t removed;
	int first_error;
	struct kept_error first_text;
};

static bool is_kept(const struct sweep *sweep, const char *id)
{
	for (size_t i = 0; i < sweep->keep_len; i++) {
		if (strcmp(sweep->keep[i], id) == 0)
			return true;
	}
	return false;
}

/* Returns 1 if the attachment can be removed, 0 if it may be needed. */
static int is_garbage(const struct sweep *sweep, const struct pin_gen *gen)
{
	const bool is_of_network =
		sweep->network &&
		strcmp(sweep->network, gen->record.network) == 0;
	int exists;

	/* Whoever says which ids are in use knows better than a look. */
	if (is_of_network)
		return !is_kept(sweep, gen->record.id);
	exists = check_exists(sweep->n, gen);
	return exists < 0 ? exists : !exists;
}

/* Gives an attachment the limits back that a killed process has lifted, and ends a change of
 * gso_max_segs that it has begun. It is not what the caller asked for, so it is no error if
 * it fails; natra_check reports limits. */
static void repair(struct natra *n, struct pin_gen *gen)
{
	KEEP_ERROR_SCOPE(n);

	if (gen->kind == RECORD_OWN && limits_repair(n, gen) < 0)
		log_line(n, NATRA_LOG_WARN,
			 "the limits of '%s' may not hold: %s", gen->record.id,
			 last_error(n));
	if (gen->kind == RECORD_OWN)
		gso_settle(n, gen, -1);
}

/* Writes the limits of groups that a killed process has not written, in the same way. */
static void repair_groups(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);

	if (groups_repair(n) < 0)
		log_line(n, NATRA_LOG_WARN,
			 "the limits of groups may not hold: %s",
			 last_error(n));
}

/* Sweeps the directory of an id, which is locked: a generation that is not complete was
 * left by a killed process. */
static int sweep_locked(struct sweep *sweep, const struct pin_dir *dir)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = pin_find_gen(sweep->n, dir->path, &gen);

	if (r < 0 && r != -ENOENT && r != -ESTALE)
		return r;
	if (r != -ENOENT) {
		r = is_garbage(sweep, &gen);
		if (r < 0)
			return r;
		if (r == 0) {
			repair(sweep->n, &gen);
			return teardown_all(sweep->n, dir, &gen, -1);
		}
		sweep->removed++;
	}
	r = teardown_all(sweep->n, dir, NULL, -1);
	if (r == 0)
		pin_dir_remove(dir);
	return r;
}

/* All is tried, and the first error is the call's. */
static void note_failure(struct sweep *sweep, int r)
{
	if (r >= 0 || sweep->first_error)
		return;
	sweep->first_error = r;
	sweep->first_text = keep_error(sweep->n);
}

static int sweep_key(void *arg, const char *path)
{
	struct sweep *sweep = arg;
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r = pin_dir_lock(sweep->n, path, &dir);

	if (r == 0)
		r = sweep_locked(sweep, &dir);
	if (r != -ENOENT)
		note_failure(sweep, r);
	return 0;
}

static int sweep_all(struct sweep *sweep)
{
	struct natra *n = sweep->n;
	int r = pin_dir_foreach_id(n, sweep_key, sweep);

	note_failure(sweep, r);
	note_failure(sweep, engine_gc(n));
	repair_groups(n);
	note_failure(sweep, pin_dir_gc_netns(n));
	restore_error(&sweep->first_text);
	return sweep->first_error;
}

int natra_gc(struct natra *n, const char *network, const char *const *keep,
	     size_t keep_len, size_t *ret_removed)
{
	cleanup_netns_index struct netns_index *index = NULL;
	struct attachments all = {.n = n, .skip_errors = true};
	struct sweep sweep = {
		.n = n,
		.network = network,
		.keep = keep,
		.keep_len = keep_len,
	};
	int r;

	if (!begin_call(n))
		return -EINVAL;
	if (keep_len && !keep)
		return refuse(n, -EINVAL, "keep: missing");
	if (keep_len && !network)
		return refuse(n, -EINVAL, "keep: %zu ids without a network",
			      keep_len);
	for (size_t i = 0; i < keep_len; i++) {
		if (!keep[i])
			return refuse(n, -EINVAL, "keep: an id is missing");
	}
	r = read_attachments(&all, &index);
	if (r == 0) {
		n->netns_index = index;
		r = sweep_all(&sweep);
		n->netns_index = NULL;
	}
	free(all.list);
	if (r == 0 && ret_removed)
		*ret_removed = sweep.removed;
	return finish(n, r);
}
