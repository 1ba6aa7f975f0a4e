/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on what upstream's bandwidth plugin left. */
#include <errno.h>

#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/leftovers.h"
#include "attach/limits.h"
#include "util/cleanup.h"
#include "util/str.h"

/* A sender's estimate of its round trip falls by an eighth with each acknowledgement,
 * but what it adds for deviations falls by a quarter with each window only. The
 * windows are what waits, or what Linux lets one connection have on the way. */
#define LENT_WINDOWS   16
#define LENT_BYTES_MIN (64U << 20)
#define LENT_BYTES_MAX (256U << 20)
/* A shorter queue makes no timeout long. */
#define WAIT_MIN_MS    100

struct look {
	struct natra *n;
	const struct natra_target *target;
	struct link_info pod;
};

/* Runs in the pod's namespace. */
static int look_at_pod(void *arg)
{
	struct look *look = arg;
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(look->n, &nl);

	return r < 0 ? r
		     : link_by_name(look->n, &nl, look->target->ifname,
				    &look->pod);
}

/* Finds the interface that the caller means and what is left beside it. */
static int begin(struct natra *n, const struct natra_target *target,
		 struct netlink *ret_nl, struct leftovers *ret_leftovers)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_close int pod_fd = -1;
	struct natra_target t;
	struct look look = {.n = n, .target = &t};
	int r;

	if (!n)
		return -EINVAL;
	r = target_in(n, target, &t);
	if (r < 0)
		return r;
	if (t.ifname && t.ifname[0]) {
		r = netns_open(n, &t, &pod_fd);
	} else if (t.id && t.id[0]) {
		/* An id alone stands for the interface that is on record. */
		r = attachment_find(n, t.id, &gen);
		if (r == 0)
			r = attachment_open_netns(n, &gen.record.pod, -1,
						  &pod_fd);
		t.ifname = gen.record.pod.ifname;
	} else {
		return refuse(n, -EINVAL, "id, ifname: one is needed");
	}
	if (r == 0)
		r = netlink_open(n, ret_nl);
	if (r == 0)
		r = netns_run(n, pod_fd, look_at_pod, &look);
	return r < 0 ? r
		     : leftovers_find(n, ret_nl, &look.pod, pod_fd,
				      ret_leftovers);
}

int natra_find_leftovers(struct natra *n, const struct natra_target *target,
			 struct natra_leftovers *ret_leftovers)
{
	cleanup_netlink struct netlink nl = {0};
	struct natra_leftovers found = {0};
	struct leftovers l;
	int r = begin(n, target, &nl, &l);

	if (r < 0)
		return r;
	(void)str_copy(found.host_ifname, sizeof(found.host_ifname),
		       l.host.ifname);
	found.tbf = l.tbf.kind[0] != '\0';
	found.ingress_redirect = l.redirect.handle != 0;
	(void)str_copy(found.ifb_ifname, sizeof(found.ifb_ifname),
		       l.ifb.ifname);
	found.waiting_bytes = l.waiting_bytes;
	return finish(n, struct_out(n, "ret_leftovers", ret_leftovers, &found,
				    sizeof(found)));
}

/* Locks the limits that the target's id has. Returns 0, 1 if it has none, or
 * -errno. */
static int lock_limits(struct natra *n, const struct natra_target *target,
		       struct pin_dir *ret_dir, struct pin_gen *ret_gen)
{
	struct natra_target t;
	int r = target_in(n, target, &t);

	if (r < 0)
		return r;
	if (!t.id || !t.id[0])
		return 1;
	r = attachment_lock(n, t.id, ret_dir, ret_gen);
	if (r == -ENOENT || (r == 0 && ret_gen->record.unshaped))
		return 1;
	return r;
}

/* Returns for how long bytes wait at a rate. */
static uint64_t wait_ms(uint64_t bytes, uint64_t rate_bits_per_sec)
{
	return rate_bits_per_sec ? bytes * 8000 / rate_bits_per_sec : 0;
}

static bool is_long(const struct leftovers *l, const struct record *record)
{
	struct natra_policy p = record_get_policy(record);

	return wait_ms(l->tbf.backlog, p.ingress_rate_bits_per_sec) >=
		       WAIT_MIN_MS ||
	       wait_ms(l->ifb_tbf.backlog, p.egress_rate_bits_per_sec) >=
		       WAIT_MIN_MS;
}

static uint64_t loan(uint64_t waiting_bytes)
{
	uint64_t bytes = waiting_bytes * LENT_WINDOWS;

	if (bytes < LENT_BYTES_MIN)
		return LENT_BYTES_MIN;
	return bytes < LENT_BYTES_MAX ? bytes : LENT_BYTES_MAX;
}

int natra_drain_leftovers(struct natra *n, const struct natra_target *target,
			  uint64_t *ret_bytes)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_netlink struct netlink nl = {0};
	struct leftovers l;
	int r;

	if (n && !ret_bytes)
		return refuse(n, -EINVAL, "ret_bytes: is NULL");
	r = begin(n, target, &nl, &l);
	if (r < 0)
		return r;
	r = lock_limits(n, target, &dir, &gen);
	if (r == 1)
		return refuse(n, -ENOENT, "id: '%s' has no limits",
			      target->id ? target->id : "");
	if (r < 0)
		return r;
	*ret_bytes = is_long(&l, &gen.record) ? l.waiting_bytes : 0;
	if (!*ret_bytes)
		return finish(n, 0);
	r = limits_lend(n, &gen, loan(l.waiting_bytes));
	if (r == 0)
		r = leftovers_open(n, &nl, &l);
	return r < 0 ? r : finish(n, 0);
}

/* Takes back what natra_drain_leftovers has lent, here or in a process that was
 * killed. */
static int take_back(struct natra *n, const struct natra_target *target)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = lock_limits(n, target, &dir, &gen);

	return r == 0 ? limits_take_back(n, &gen) : r < 0 ? r : 0;
}

int natra_remove_leftovers(struct natra *n, const struct natra_target *target)
{
	cleanup_netlink struct netlink nl = {0};
	struct leftovers l;
	int r = begin(n, target, &nl, &l);

	if (r == 0 && (l.tbf.kind[0] || l.redirect.handle)) {
		r = take_back(n, target);
		if (r == 0)
			r = leftovers_remove(n, &nl, &l);
	}
	return r < 0 ? r : finish(n, r);
}
