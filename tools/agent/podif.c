/* SPDX-License-Identifier: BSD-2-Clause */
#include "podif.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/policy/fields.h"
#include "../common/dir.h"
#include "../common/text.h"
#include "../pods/netns.h"
#include "turns.h"

bool podif_fill(struct podif *podif, const char *path,
		const struct cached *cached)
{
	podif->path = path;
	podif->cached = cached;
	cached_pod(cached, podif->pod, sizeof(podif->pod));
	/* An id that does not fit is never attached, not even by ADD. containerd also
	 * keeps a result of the loopback interface, which no annotation is about. */
	return cached_id(cached, podif->id, sizeof(podif->id)) &&
	       cached->netns[0] && strcmp(cached->ifname, "lo") != 0;
}

void podif_log(const struct podif *podif, enum natra_log_level level,
	       const char *msg, const char *error)
{
	struct log_words words = {0};

	log_add(&words, "id", podif->id);
	if (podif->pod[0])
		log_add(&words, "pod", podif->pod);
	if (error)
		log_add(&words, "error", error);
	log_line(podif->jobs->log, level, msg, &words);
}

const char *podif_error(const struct podif *podif, int r)
{
	const char *text = podif->why[0] ? podif->why : natra_error(podif->n);

	return text[0] ? text : strerror(-r);
}

bool podif_has_ended(const struct podif *podif, int r)
{
	const enum natra_code code =
		podif->why[0] ? NATRA_CODE_NONE : natra_error_code(podif->n);

	return r == -ENODEV || (r < 0 && (code == NATRA_CODE_NOT_ATTACHED ||
					  code == NATRA_CODE_NO_NETNS));
}

static bool any(const struct natra_leftovers *left)
{
	return left->limits_ingress || left->limits_egress;
}

/* Returns whether natra limits each direction that upstream's plugin limits. A
 * redirect to an ifb that is gone is no limit. */
static bool covers(const struct natra_policy *policy,
		   const struct natra_leftovers *left)
{
	return (policy->ingress_rate_bits_per_sec || !left->limits_ingress) &&
	       (policy->egress_rate_bits_per_sec || !left->limits_egress ||
		!left->ifb_ifname[0]);
}

/* Returns whether upstream's queues would have to drain now, and may not. */
static bool is_for_later(const struct podif *podif,
			 const struct natra_policy *policy,
			 const struct natra_leftovers *left)
{
	return left->waiting_ns && !podif->may_drain && covers(policy, left);
}

/* If it was ended half-way, the pod would be without limits until the next look. */
static int drain(const struct podif *podif, const struct natra_target *target)
{
	turn_extend();
	return natra_drain_leftovers(podif->n, target);
}

/* Removes upstream's limits beside natra's. Packets that wait in them leave before, while
 * they alone hold. */
static int take_away(const struct podif *podif,
		     const struct natra_target *target,
		     const struct natra_policy *policy,
		     const struct natra_leftovers *left, enum podif_change *ret)
{
	int r = 0;

	if (!covers(policy, left)) {
		podif_log(
			podif, NATRA_LOG_DEBUG,
			"the bandwidth plugin's limits hold where natra has none",
			NULL);
		return 0;
	}
	*ret = PODIF_REPLACED;
	if (left->waiting_ns)
		r = drain(podif, target);
	if (r < 0 && !podif_has_ended(podif, r))
		podif_log(podif, NATRA_LOG_WARN,
			  "what waits in the bandwidth plugin's limits is lost",
			  podif_error(podif, r));
	return natra_remove_leftovers(podif->n, target);
}

/* Attaches while upstream's limits still hold, so that the pod has limits at each
 * moment. Upstream's limits are removed first only if they are in the way. */
static int replace(const struct podif *podif, const struct natra_target *target,
		   const struct natra_policy *policy,
		   const struct natra_leftovers *left, enum podif_change *ret)
{
	struct natra *n = podif->n;
	int r = natra_attach(n, target, policy, NULL);

	if (r == 0) {
		*ret = PODIF_LIMITED;
		return take_away(podif, target, policy, left, ret);
	}
	if (!covers(policy, left) ||
	    natra_error_code(n) != NATRA_CODE_LEFTOVERS)
		return r;
	*ret = PODIF_REPLACED;
	r = drain(podif, target);
	if (r == 0)
		r = natra_remove_leftovers(n, target);
	return r < 0 ? r : natra_attach(n, target, policy, NULL);
}

static int attach(const struct podif *podif, const struct natra_target *target,
		  const struct natra_policy *policy, enum podif_change *ret)
{
	struct natra_leftovers left = NATRA_INIT(left);
	struct natra *n = podif->n;
	int r = natra_find_leftovers(n, target, &left);

	if (r < 0)
		return r;
	if (any(&left) && !podif->jobs->replace) {
		podif_log(podif, NATRA_LOG_DEBUG,
			  "the bandwidth plugin's limits hold", NULL);
		return 0;
	}
	if (is_for_later(podif, policy, &left)) {
		*ret = PODIF_LATER;
		return 0;
	}
	*ret = PODIF_LIMITED;
	return any(&left) ? replace(podif, target, policy, &left, ret)
			  : natra_attach(n, target, policy, NULL);
}

/* A pod may have both limits because an agent was killed between the two steps, or
 * because the plugin was not asked to replace anything. */
static int finish(const struct podif *podif, const struct natra_target *target,
		  const struct natra_policy *policy, enum podif_change *ret)
{
	struct natra_leftovers left = NATRA_INIT(left);
	int r = natra_find_leftovers(podif->n, target, &left);

	if (r < 0 || !any(&left))
		return r;
	if (is_for_later(podif, policy, &left)) {
		*ret = PODIF_LATER;
		return 0;
	}
	return take_away(podif, target, policy, &left, ret);
}

int podif_query(const struct podif *podif, struct natra_info *ret_info)
{
	int r;

	podif->why[0] = '\0';
	r = natra_query(podif->n, podif->id, ret_info);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Attaching replaces what natra of another ABI has attached. */
	return !ret_info->unshaped && !ret_info->interface_gone &&
	       !ret_info->other_abi;
}

/* Returns 0, -ENOENT if there is no result of the pod, or another -errno. */
static int find_result(const struct podif *podif)
{
	cleanup_close int fd =
		dir_open_path(podif->root_fd, podif->path, O_PATH);

	return fd < 0 ? fd : 0;
}

static int detach(const struct podif *podif)
{
	struct natra_target target = NATRA_INIT(target);
	int r;

	target.id = podif->id;
	r = natra_detach(podif->n, &target);
	return r < 0 ? r : 0;
}

/* A pod that ends meanwhile has been detached before it was attached; then there
 * is no result of it any more. */
static void undo_if_gone(const struct podif *podif)
{
	if (find_result(podif) == -ENOENT)
		(void)detach(podif);
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
static int find_interface(const struct podif *podif, struct place *place)
{
	struct natra_info info = NATRA_INIT(info);
	int r = interface_check_netns(podif->cached, place->fd, podif->why);

	if (r == 0)
		r = podif_query(podif, &info);
	if (r < 0)
		return r;
	if (r > 0) {
		(void)snprintf(place->interface.ifname,
			       sizeof(place->interface.ifname), "%s",
			       info.ifname);
		return 0;
	}
	return interface_find(podif->root_fd, podif->cached, podif->n,
			      place->fd, &place->interface, podif->why);
}

/* Fills in what the library needs to find the pod, until close_place. Returns 0, -ENOENT if
 * the pod has ended, or another -errno. */
static int open_place(const struct podif *podif, struct place *place)
{
	struct natra_target *target = &place->target;
	int r;

	*place = (struct place){.target = NATRA_INIT(place->target)};
	place->fd = netns_open(podif->root_fd, podif->cached->netns);
	if (place->fd < 0)
		return place->fd;
	r = find_interface(podif, place);
	target->id = podif->id;
	target->ifname = place->interface.ifname;
	target->netns_fd = place->fd;
	target->network = podif->cached->network;
	target->label = podif->pod;
	return r;
}

struct attaching {
	const struct podif *podif;
	const struct place *place;
	enum podif_change change;
};

static int attach_with(void *arg, const struct natra_policy *policy)
{
	struct attaching *a = arg;
	const bool is_replaced = a->change == PODIF_REPLACED;
	int r;

	/* Its group was all that limited it, and has gone. */
	if (!policy_has_limits(policy)) {
		a->change = PODIF_SAME;
		return detach(a->podif);
	}
	r = attach(a->podif, &a->place->target, policy, &a->change);
	if (is_replaced && a->change == PODIF_LIMITED)
		a->change = PODIF_REPLACED;
	return r;
}

/* Takes the limits back if they are not where they belong. */
static int confirm(const struct podif *podif, const struct place *place)
{
	int r = interface_confirm(&place->interface, podif->n, &place->target,
				  podif->why);

	if (r == -EBADE)
		(void)detach(podif);
	return r;
}

int podif_attach(const struct podif *podif, struct wish *wish,
		 enum podif_change *ret_change)
{
	cleanup_place struct place place = {.fd = -1};
	struct attaching a = {podif, &place, PODIF_SAME};
	int r = open_place(podif, &place);
	const bool was_there = r == 0;

	*ret_change = PODIF_SAME;
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = wish_attach(wish, podif->n, podif->jobs->log, attach_with,
				&a);
	if (r == 0 && (a.change == PODIF_LIMITED || a.change == PODIF_REPLACED))
		r = confirm(podif, &place);
	/* A pod that goes on renaming its interface has not ended. */
	if (was_there && r == -ENODEV && find_result(podif) == 0)
		return r;
	if (podif_has_ended(podif, r))
		return 0;
	if (r == 0) {
		undo_if_gone(podif);
		*ret_change = a.change;
		if (wish->settings.dropped[0])
			podif_log(podif, NATRA_LOG_WARN,
				  "annotations of a running pod do not count",
				  wish->settings.dropped);
		/* The others are looked at again and again. */
		if ((a.change == PODIF_LIMITED || a.change == PODIF_REPLACED) &&
		    wish->settings.group_absence[0])
			podif_log(podif, NATRA_LOG_INFO,
				  "a running pod is in no group",
				  wish->settings.group_absence);
	}
	return r;
}

static int configure_with(void *arg, const struct natra_policy *policy)
{
	const struct podif *podif = arg;

	return natra_configure(podif->n, podif->id, policy);
}

int podif_configure(const struct podif *podif, struct wish *wish)
{
	struct podif copy = *podif;

	return wish_attach(wish, podif->n, podif->jobs->log, configure_with,
			   &copy);
}

int podif_finish(const struct podif *podif, const struct natra_policy *policy,
		 enum podif_change *ret_change)
{
	cleanup_place struct place place = {.fd = -1};
	enum podif_change change = PODIF_SAME;
	int r;

	*ret_change = PODIF_SAME;
	if (!podif->jobs->replace)
		return 0;
	r = open_place(podif, &place);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = finish(podif, &place.target, policy, &change);
	if (r == 0) {
		undo_if_gone(podif);
		*ret_change = change;
	}
	return podif_has_ended(podif, r) ? 0 : r;
}
