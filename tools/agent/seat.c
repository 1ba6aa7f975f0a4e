/* SPDX-License-Identifier: BSD-2-Clause */
#include "seat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/policy/fields.h"
#include "../common/dir.h"
#include "../common/text.h"
#include "../pods/netns.h"

bool seat_fill(struct seat *seat, const char *path, const struct cached *cached)
{
	seat->path = path;
	seat->cached = cached;
	cached_pod(cached, seat->pod, sizeof(seat->pod));
	/* An id that does not fit is never attached, not even by ADD. containerd also
	 * keeps a result of the loopback interface, which no annotation is about. */
	return cached_id(cached, seat->id, sizeof(seat->id)) &&
	       cached->netns[0] && strcmp(cached->ifname, "lo") != 0;
}

void seat_log(const struct seat *seat, enum natra_log_level level,
	      const char *msg, const char *error)
{
	struct log_words words = {0};

	log_add(&words, "id", seat->id);
	if (seat->pod[0])
		log_add(&words, "pod", seat->pod);
	if (error)
		log_add(&words, "error", error);
	log_line(seat->jobs->log, level, msg, &words);
}

const char *seat_error(const struct seat *seat, int r)
{
	const char *text = seat->why[0] ? seat->why : natra_error(seat->n);

	return text[0] ? text : strerror(-r);
}

bool seat_has_ended(const struct seat *seat, int r)
{
	const enum natra_code code =
		seat->why[0] ? NATRA_CODE_NONE : natra_error_code(seat->n);

	return r == -ENODEV || (r < 0 && (code == NATRA_CODE_NOT_ATTACHED ||
					  code == NATRA_CODE_NO_NETNS));
}

static bool any(const struct natra_leftovers *left)
{
	return left->tbf || left->ingress_redirect;
}

/* Returns whether natra limits each direction that upstream's plugin limits. A
 * redirect to an ifb that is gone is no limit. */
static bool covers(const struct natra_policy *policy,
		   const struct natra_leftovers *left)
{
	return (policy->ingress_rate_bits_per_sec || !left->tbf) &&
	       (policy->egress_rate_bits_per_sec || !left->ingress_redirect ||
		!left->ifb_ifname[0]);
}

/* Returns whether upstream's queues would have to drain now, and may not. */
static bool is_for_later(const struct seat *seat,
			 const struct natra_policy *policy,
			 const struct natra_leftovers *left)
{
	return left->waiting_ms && !seat->may_drain && covers(policy, left);
}

/* Removes upstream's limits beside natra's. Packets that wait in them leave before, while
 * they alone hold. */
static int take_away(const struct seat *seat, const struct natra_target *target,
		     const struct natra_policy *policy,
		     const struct natra_leftovers *left, enum seat_change *ret)
{
	int r = 0;

	if (!covers(policy, left)) {
		seat_log(
			seat, NATRA_LOG_DEBUG,
			"the bandwidth plugin's limits hold where natra has none",
			NULL);
		return 0;
	}
	*ret = SEAT_REPLACED;
	if (left->waiting_ms)
		r = natra_drain_leftovers(seat->n, target);
	if (r < 0 && !seat_has_ended(seat, r))
		seat_log(seat, NATRA_LOG_WARN,
			 "what waits in the bandwidth plugin's limits is lost",
			 seat_error(seat, r));
	return natra_remove_leftovers(seat->n, target);
}

/* Attaches while upstream's limits still hold, so that the pod has limits at each
 * moment. Upstream's limits are removed first only if they are in the way. */
static int replace(const struct seat *seat, const struct natra_target *target,
		   const struct natra_policy *policy,
		   const struct natra_leftovers *left, enum seat_change *ret)
{
	struct natra *n = seat->n;
	int r = natra_attach(n, target, policy, NULL);

	if (r == 0) {
		*ret = SEAT_LIMITED;
		return take_away(seat, target, policy, left, ret);
	}
	if (!covers(policy, left) ||
	    natra_error_code(n) != NATRA_CODE_LEFTOVERS)
		return r;
	*ret = SEAT_REPLACED;
	r = natra_drain_leftovers(n, target);
	if (r == 0)
		r = natra_remove_leftovers(n, target);
	return r < 0 ? r : natra_attach(n, target, policy, NULL);
}

static int attach(const struct seat *seat, const struct natra_target *target,
		  const struct natra_policy *policy, enum seat_change *ret)
{
	struct natra_leftovers left = NATRA_INIT(left);
	struct natra *n = seat->n;
	int r = natra_find_leftovers(n, target, &left);

	if (r < 0)
		return r;
	if (any(&left) && !seat->jobs->replace) {
		seat_log(seat, NATRA_LOG_DEBUG,
			 "the bandwidth plugin's limits hold", NULL);
		return 0;
	}
	if (is_for_later(seat, policy, &left)) {
		*ret = SEAT_LATER;
		return 0;
	}
	*ret = SEAT_LIMITED;
	return any(&left) ? replace(seat, target, policy, &left, ret)
			  : natra_attach(n, target, policy, NULL);
}

/* A pod may have both limits because an agent was killed between the two steps, or
 * because the plugin was not asked to replace anything. */
static int finish(const struct seat *seat, const struct natra_target *target,
		  const struct natra_policy *policy, enum seat_change *ret)
{
	struct natra_leftovers left = NATRA_INIT(left);
	int r = natra_find_leftovers(seat->n, target, &left);

	if (r < 0 || !any(&left))
		return r;
	if (is_for_later(seat, policy, &left)) {
		*ret = SEAT_LATER;
		return 0;
	}
	return take_away(seat, target, policy, &left, ret);
}

int seat_query(const struct seat *seat, struct natra_info *ret_info)
{
	int r;

	seat->why[0] = '\0';
	r = natra_query(seat->n, seat->id, ret_info);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Attaching replaces what natra of another ABI has attached. */
	return !ret_info->unshaped && !ret_info->interface_gone &&
	       !ret_info->other_abi;
}

/* Returns 0, -ENOENT if there is no result of the pod, or another -errno. */
static int find_result(const struct seat *seat)
{
	cleanup_close int fd = dir_open_path(seat->root_fd, seat->path, O_PATH);

	return fd < 0 ? fd : 0;
}

static int detach(const struct seat *seat)
{
	struct natra_target target = NATRA_INIT(target);
	int r;

	target.id = seat->id;
	r = natra_detach(seat->n, &target);
	return r < 0 ? r : 0;
}

/* A pod that ends meanwhile has been detached before it was attached; then there
 * is no result of it any more. */
static void undo_if_gone(const struct seat *seat)
{
	if (find_result(seat) == -ENOENT)
		(void)detach(seat);
}

/* The interface of a pod, its namespace, and how the library is told of them. */
struct place {
	int fd;
	struct pod_interface interface;
	struct natra_target target;
};

static void close_place(struct place *place)
{
	if (place->fd >= 0)
		(void)close(place->fd);
}
#define cleanup_place __attribute__((cleanup(close_place)))

/* Finds the interface. Once natra has limited it, the library knows which it is. */
static int find_interface(const struct seat *seat, struct place *place)
{
	struct natra_info info = NATRA_INIT(info);
	int r = interface_check_netns(seat->cached, place->fd, seat->why);

	if (r == 0)
		r = seat_query(seat, &info);
	if (r < 0)
		return r;
	if (r > 0) {
		(void)snprintf(place->interface.ifname,
			       sizeof(place->interface.ifname), "%s",
			       info.ifname);
		return 0;
	}
	return interface_find(seat->cached, seat->n, place->fd,
			      &place->interface, seat->why);
}

/* Fills in what the library needs to find the pod, until close_place. Returns 0, -ENOENT if
 * the pod has ended, or another -errno. */
static int open_place(const struct seat *seat, struct place *place)
{
	struct natra_target *target = &place->target;
	int r;

	*place = (struct place){.target = NATRA_INIT(place->target)};
	place->fd = netns_open(seat->root_fd, seat->cached->netns);
	if (place->fd < 0)
		return place->fd;
	r = find_interface(seat, place);
	target->id = seat->id;
	target->ifname = place->interface.ifname;
	target->netns_fd = place->fd;
	target->network = seat->cached->network;
	target->label = seat->pod;
	return r;
}

struct attaching {
	const struct seat *seat;
	const struct place *place;
	enum seat_change change;
};

static int attach_with(void *arg, const struct natra_policy *policy)
{
	struct attaching *a = arg;
	const bool is_replaced = a->change == SEAT_REPLACED;
	int r;

	/* Its group was all that limited it, and has gone. */
	if (!policy_has_limits(policy)) {
		a->change = SEAT_SAME;
		return detach(a->seat);
	}
	r = attach(a->seat, &a->place->target, policy, &a->change);
	if (is_replaced && a->change == SEAT_LIMITED)
		a->change = SEAT_REPLACED;
	return r;
}

/* Takes the limits back if they are not where they belong. */
static int confirm(const struct seat *seat, const struct place *place)
{
	int r = interface_confirm(&place->interface, seat->n, &place->target,
				  seat->why);

	if (r == -EBADE)
		(void)detach(seat);
	return r;
}

int seat_attach(const struct seat *seat, struct wish *wish,
		enum seat_change *ret_change)
{
	cleanup_place struct place place = {.fd = -1};
	struct attaching a = {seat, &place, SEAT_SAME};
	int r = open_place(seat, &place);

	*ret_change = SEAT_SAME;
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = wish_attach(wish, seat->n, seat->jobs->log, attach_with,
				&a);
	if (r == 0 && (a.change == SEAT_LIMITED || a.change == SEAT_REPLACED))
		r = confirm(seat, &place);
	if (seat_has_ended(seat, r))
		return 0;
	if (r == 0) {
		undo_if_gone(seat);
		*ret_change = a.change;
		/* The others are looked at again and again. */
		if ((a.change == SEAT_LIMITED || a.change == SEAT_REPLACED) &&
		    wish->settings.group_absence[0])
			seat_log(seat, NATRA_LOG_INFO,
				 "a running pod is in no group",
				 wish->settings.group_absence);
	}
	return r;
}

static int configure_with(void *arg, const struct natra_policy *policy)
{
	const struct seat *seat = arg;

	return natra_configure(seat->n, seat->id, policy);
}

int seat_configure(const struct seat *seat, struct wish *wish)
{
	struct seat copy = *seat;

	return wish_attach(wish, seat->n, seat->jobs->log, configure_with,
			   &copy);
}

int seat_finish(const struct seat *seat, const struct natra_policy *policy,
		enum seat_change *ret_change)
{
	cleanup_place struct place place = {.fd = -1};
	enum seat_change change = SEAT_SAME;
	int r;

	*ret_change = SEAT_SAME;
	if (!seat->jobs->replace)
		return 0;
	r = open_place(seat, &place);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = finish(seat, &place.target, policy, &change);
	if (r == 0) {
		undo_if_gone(seat);
		*ret_change = change;
	}
	return seat_has_ended(seat, r) ? 0 : r;
}
