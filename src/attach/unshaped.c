/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/unshaped.h"

#include "attach/classes.h"
#include "attach/teardown.h"
#include "state/group_map.h"
#include "state/journal.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"
#include "util/str.h"

static int write_record(struct natra *n, struct pin_gen *gen,
			const struct subnets *subnets)
{
	struct record_classes classes = {0};
	cleanup_close int fd = -1;
	int r = 0;

	if (subnets_any(subnets))
		r = subnets_map_make(n, subnets, &fd);
	if (r == 0)
		r = classes_pin(n, gen, subnets, &classes, fd);
	if (r < 0)
		return r;
	return journal_write(n, gen, JOURNAL_COMPLETE);
}

int unshaped_record(struct natra *n, const struct pin_dir *dir,
		    const struct order *order, const char *reason)
{
	cleanup_pin_gen struct pin_gen before = PIN_GEN_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct record record = order_record(order);
	bool exists;
	int r;

	r = order_look_before(n, dir, &order->scene, &before);
	if (r < 0)
		return r;
	exists = r == 1;
	if (exists && !before.record.unshaped &&
	    order_is_for(&before.record, &order->scene))
		return 0;
	r = teardown_all(n, dir, exists ? &before : NULL, order->scene.pod_fd);
	if (r < 0)
		return r;
	record.unshaped = 1;
	(void)str_copy(record.reason, sizeof(record.reason), reason);
	r = journal_begin(n, dir, exists ? before.number : 0, &record, &gen);
	if (r < 0)
		return r;
	r = write_record(n, &gen, &order->subnets);
	if (r < 0) {
		teardown_undo(n, &gen, NULL, order->scene.pod_fd);
		return r;
	}
	r = teardown_all(n, dir, &gen, order->scene.pod_fd);
	groups_left(n, &before.record, 0);
	return r;
}
