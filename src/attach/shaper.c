/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/shaper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/bypass.h"
#include "attach/carry.h"
#include "attach/check.h"
#include "attach/classes.h"
#include "attach/gso.h"
#include "attach/leftovers.h"
#include "attach/limits.h"
#include "attach/teardown.h"
#include "kernel/hook.h"
#include "kernel/qdisc_fq.h"
#include "policy/classes.h"
#include "policy/mode.h"
#include "state/connects_map.h"
#include "state/engine.h"
#include "state/group_set.h"
#include "state/journal.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"
#include "util/str.h"

/* The state of one attempt to attach in one mode. */
struct attempt {
	struct natra *n;
	const struct order *order;
	const char *why;              /* this mode was chosen */
	const struct pin_gen *before; /* what it replaces, or NULL */
	struct link_info host;        /* ifindex 0: not used */
	struct pin_gen gen;
	struct stub stub[LEG_MAX];
	int table_fd; /* of connections; -1: they are not measured */
	int trie_fd;  /* of classes and subnets; -1: there are none */
	uint64_t keys[NATRA_HASH_KEYS];
	struct record_classes classes;
};

static bool is_tcx(enum natra_attach_mode mode)
{
	return mode == NATRA_ATTACH_MODE_TCX_PODSIDE ||
	       mode == NATRA_ATTACH_MODE_TCX_HOSTSIDE;
}

/* Returns whether a direction gets what limits need. Both get it where no limit is left,
 * so that packets are counted and the next limit is only written. */
static bool limits(const struct order *order, bool egress)
{
	return classes_limit(&order->policy, &order->subnets, egress) ||
	       !classes_limit(&order->policy, &order->subnets, !egress);
}

static bool paces_ingress(const struct order *order)
{
	return order->policy.ingress_mode == NATRA_INGRESS_MODE_PACE &&
	       limits(order, false);
}

/* Decides where a leg's program goes, and notes whether packets begin with an
 * Ethernet header there. */
static void place_leg(struct attempt *a, enum leg leg)
{
	struct record *record = &a->gen.record;
	bool hostside = mode_is_hostside((enum natra_attach_mode)record->mode);
	struct record_leg *h = &record->leg[leg];

	h->hook = is_tcx((enum natra_attach_mode)record->mode)
			  ? RECORD_HOOK_TCX
			  : RECORD_HOOK_CLSACT;
	h->on_host = hostside || leg == LEG_HOST;
	/* Packets into the pod are sent by the host-side veth, and received by
	 * the pod's. */
	h->hook_ingress = (leg == LEG_EGRESS) == (h->on_host != 0);
	if (h->on_host ? a->host.has_l2 : a->order->scene.pod.has_l2)
		record->l2_legs |= 1U << leg;
}

static bool leg_wanted(const struct attempt *a, enum leg leg)
{
	const struct natra_policy *p = &a->order->policy;
	const bool hostside =
		mode_is_hostside((enum natra_attach_mode)a->gen.record.mode);

	/* Connections are measured where SYNs go one way and answers the
	 * other. */
	bool both = p->sli == NATRA_SLI_ON;

	switch (leg) {
	case LEG_EGRESS:
		return limits(a->order, true) || both;
	case LEG_HOST:
		return hostside ? paces_ingress(a->order)
				: limits(a->order, false) && a->host.ifindex;
	case LEG_INGRESS:
		/* On the host side the pacer has the only hook that there
		 * is. */
		return (limits(a->order, false) || both) &&
		       !(paces_ingress(a->order) && hostside);
	default:
		return false;
	}
}

static int load_leg(struct attempt *a, enum leg leg)
{
	struct record *record = &a->gen.record;
	struct natra_limits of[1 + NATRA_CLASSES_MAX];
	const struct slot_content content = {
		of, a->keys, carry_replaced(a->before, record, leg),
		a->table_fd, a->trie_fd};
	struct program_options options;
	int r;

	options = engine_options(record, leg);
	classes_leg_limits(record, leg, record->group_number, &a->order->policy,
			   &a->order->subnets, of);
	record->limits[leg] = of[0];
	for (uint32_t i = 1; i < record_slots(record); i++)
		a->classes.list[i - 1].limits[leg] = of[i];
	r = engine_enter(a->n, &a->gen, leg, &options, &content, &a->stub[leg]);
	record->leg[leg].prog_id = a->stub[leg].prog_id;
	return r;
}

static int load_legs(struct attempt *a)
{
	int r = bank_make_keys(a->n, a->keys);

	/* What a leg's limits are depends on which others there are. */
	for (int i = 0; i < LEG_MAX; i++) {
		if (leg_wanted(a, (enum leg)i))
			place_leg(a, (enum leg)i);
	}
	if (r == 0 && a->order->policy.sli == NATRA_SLI_ON)
		r = connects_table_make(a->n, &a->table_fd);
	if (r == 0 && subnets_any(&a->order->subnets))
		r = subnets_map_make(a->n, &a->order->subnets, &a->trie_fd);
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (a->gen.record.leg[i].hook)
			r = load_leg(a, (enum leg)i);
	}
	if (r == 0)
		r = classes_pin(a->n, &a->gen, &a->order->subnets, &a->classes,
				a->trie_fd);
	cleanup_closep(&a->table_fd);
	cleanup_closep(&a->trie_fd);
	a->table_fd = a->trie_fd = -1;
	return r < 0 ? r : journal_write(a->n, &a->gen, JOURNAL_PROGRAMS);
}

static int attach_leg(struct attempt *a, struct netlink *nl, enum leg leg)
{
	const struct record *record = &a->gen.record;
	const struct record_leg *h = &record->leg[leg];
	cleanup_close int link_fd = -1;
	struct hook hook = {
		.ifindex =
			h->on_host ? record->host.ifindex : record->pod.ifindex,
		.ingress = h->hook_ingress,
	};
	int r;

	if (h->hook == RECORD_HOOK_CLSACT)
		return hook_clsact_attach(a->n, nl, &hook, a->stub[leg].prog_fd,
					  a->stub[leg].prog_id);
	r = hook_tcx_attach(a->n, &hook, a->stub[leg].prog_fd, &link_fd);
	if (r < 0)
		return r;
	return pin_link(a->n, &a->gen, leg, link_fd);
}

static int attach_site(struct attempt *a, struct netlink *nl, bool on_host)
{
	int r = 0;

	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		const struct record_leg *h = &a->gen.record.leg[i];

		if (h->hook && (h->on_host != 0) == on_host)
			r = attach_leg(a, nl, (enum leg)i);
	}
	return r;
}

static int add_fq(struct attempt *a, struct netlink *nl,
		  struct record_link *link)
{
	int r;

	link->fq = 1;
	a->gen.record.fq_orphan_mask = QDISC_FQ_ORPHAN_MASK;
	r = journal_write(a->n, &a->gen, JOURNAL_FQ);
	if (r == 0)
		r = qdisc_fq_add(a->n, nl, link->ifindex);
	/* After any other error fq may be there, since the kernel's answer may
	 * have been lost. */
	if (r == -EOPNOTSUPP || r == -EBUSY)
		link->fq = 0;
	return r;
}

/* Decides whether egress gets departure times, and puts fq there if so. Runs in
 * the pod's namespace. */
static int prepare_edt(struct attempt *a, struct netlink *nl, char *reason,
		       size_t size)
{
	struct record *record = &a->gen.record;
	int r;

	if (!limits(a->order, true) ||
	    a->order->policy.edt_pacing == NATRA_EDT_PACING_OFF) {
		(void)str_copy(reason, size, "edt is off");
		if (a->order->policy.edt_pacing != NATRA_EDT_PACING_OFF)
			(void)str_copy(reason, size, "no egress limit");
		return 0;
	}
	if (mode_is_hostside((enum natra_attach_mode)record->mode)) {
		(void)str_copy(reason, size, "no edt on the host side");
		if (a->order->policy.edt_pacing == NATRA_EDT_PACING_ON)
			return refuse(a->n, -EOPNOTSUPP,
				      "edt: on needs a podside mode");
		return 0;
	}
	r = add_fq(a, nl, &record->pod);
	if (r == 0) {
		record->edt = 1;
		(void)str_copy(reason, size, "edt with fq");
		return 0;
	}
	if (a->order->policy.edt_pacing == NATRA_EDT_PACING_AUTO &&
	    (r == -EOPNOTSUPP || r == -EBUSY)) {
		(void)snprintf(reason, size, "no edt: %s", last_error(a->n));
		return 0;
	}
	return r;
}

static int prepare_pace(struct attempt *a)
{
	cleanup_netlink struct netlink nl = {0};
	enum natra_code code;
	int r;

	if (!paces_ingress(a->order))
		return 0;
	r = netlink_open(a->n, &nl);
	if (r == 0)
		r = add_fq(a, &nl, &a->gen.record.host);
	if (r != -EOPNOTSUPP && r != -EBUSY)
		return r;
	code = leftovers_code(a->n, &a->order->scene.pod,
			      a->order->scene.pod_fd, true);
	return with_code(a->n, code,
			 refuse(a->n, r, "ingress_mode: pace on '%s': %s",
				a->host.ifname, last_error(a->n)));
}

/*
 * Returns whether ingress is judged on the host side as well, if there is one. Packet
 * sockets in the pod receive in front of its own hook. A group has to see each packet
 * once, also one that came past the host side: it stays with the pod's hook.
 */
static bool prefers_host(const struct order *order)
{
	return limits(order, false) && !order->policy.group[0];
}

/* Returns 0 and the host side if a program can be there, or -EOPNOTSUPP. */
static int find_usable_host(struct natra *n, struct netlink *nl,
			    const struct order *order,
			    enum natra_attach_mode mode,
			    struct link_info *ret_host)
{
	struct link_info host;
	int r = link_host_peer(n, nl, &order->scene.pod, order->scene.pod_fd,
			       &host);

	if (r == 0 && !is_tcx(mode)) {
		const struct hook egress = {.ifindex = host.ifindex};

		r = hook_clsact_check_place(n, nl, &egress, host.ifname);
	}
	if (r == 0)
		*ret_host = host;
	return r;
}

static int find_host(struct attempt *a, enum natra_attach_mode mode)
{
	const bool needed = mode_is_hostside(mode) || paces_ingress(a->order);
	cleanup_netlink struct netlink nl = {0};
	int r;

	if (!needed && !prefers_host(a->order))
		return 0;
	r = netlink_open(a->n, &nl);
	if (r < 0)
		return r;
	if (needed)
		return link_host_peer(a->n, &nl, &a->order->scene.pod,
				      a->order->scene.pod_fd, &a->host);
	r = find_usable_host(a->n, &nl, a->order, mode, &a->host);
	if (r != -EOPNOTSUPP)
		return r;
	log_line(a->n, NATRA_LOG_DEBUG, "ingress is judged in the pod: %s",
		 last_error(a->n));
	forget_error(a->n);
	return 0;
}

/* Does all that has to be done in the pod's namespace, in one visit. */
static int build_pod_site(void *arg)
{
	struct attempt *a = arg;
	struct natra_policy fastest;
	char edt_reason[RECORD_REASON_MAX / 2];
	struct record *record = &a->gen.record;
	cleanup_netlink struct netlink nl = {0};
	int r;

	r = netlink_open(a->n, &nl);
	if (r == 0)
		r = prepare_edt(a, &nl, edt_reason, sizeof(edt_reason));
	if (r == 0)
		r = teardown_note(a->n, &nl,
				  a->before ? &a->before->record : NULL,
				  record);
	if (r < 0)
		return r;
	fastest = classes_fastest(&a->order->policy, &a->order->subnets);
	gso_plan(record, a->before ? &a->before->record : record,
		 gso_segs(record, &fastest));
	(void)snprintf(record->reason, sizeof(record->reason), "%.120s; %s",
		       a->why, edt_reason);
	r = load_legs(a);
	if (r == 0)
		r = attach_site(a, &nl, false);
	/* JOURNAL_COMPLETE writes whether it is done. */
	if (r == 0 && (record->gso_segs || record->gso_before) &&
	    gso_change(a->n, &nl, record, record->gso_segs) == 0)
		record->gso_before = 0;
	return r;
}

static int attach_host_site(struct attempt *a)
{
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(a->n, &nl);

	if (r == 0)
		r = attach_site(a, &nl, true);
	return r < 0 ? with_code(a->n,
				 leftovers_code(a->n, &a->order->scene.pod,
						a->order->scene.pod_fd, false),
				 r)
		     : 0;
}

/* Builds a generation that exists; the caller undoes it if this fails. */
static int build(struct attempt *a)
{
	struct record *record = &a->gen.record;
	int r;

	r = prepare_pace(a);
	if (r == 0)
		r = netns_run(a->n, a->order->scene.pod_fd, build_pod_site, a);
	return r == 0 && record->host.ifindex ? attach_host_site(a) : r;
}

/* Pins the record, while the group that it names cannot be removed. */
static int begin(struct attempt *a, const struct pin_dir *dir,
		 struct record *record, const struct pin_gen *before)
{
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = group_enter(a->n, a->order->id, a->order->label,
			    &a->order->policy, &groups, &record->group_number);

	return r < 0 ? r
		     : journal_begin(a->n, dir, before ? before->number : 0,
				     record, &a->gen);
}

/* Attaches in one mode, or leaves nothing behind. Other generations are not
 * touched. */
static int try_mode(struct natra *n, const struct pin_dir *dir,
		    const struct order *order, enum natra_attach_mode mode,
		    const char *why, const struct pin_gen *before,
		    struct pin_gen *ret_gen)
{
	struct record record = order_record(order);
	struct attempt a = {
		.n = n,
		.order = order,
		.why = why,
		.before = before,
		.gen = PIN_GEN_INIT,
		.stub = {STUB_INIT, STUB_INIT, STUB_INIT},
		.table_fd = -1,
		.trie_fd = -1,
	};
	int r;

	if (is_tcx(mode)) {
		r = hook_tcx_supported(n);
		if (r == 0)
			return refuse(n, -EOPNOTSUPP,
				      "this kernel has no TCX (Linux 6.6)");
		if (r < 0)
			return r;
	}
	r = find_host(&a, mode);
	if (r < 0)
		return r;
	record.mode = mode;
	if (a.host.ifindex)
		order_set_link(&record.host, &a.host, &order->scene.host_netns);
	r = begin(&a, dir, &record, before);
	if (r < 0)
		return r;
	r = build(&a);
	for (int i = 0; i < LEG_MAX; i++)
		stub_close(&a.stub[i]);
	if (r == 0) {
		*ret_gen = a.gen;
		return 0;
	}
	teardown_undo(n, &a.gen, before ? &before->record : NULL,
		      order->scene.pod_fd);
	pin_close_gen(&a.gen);
	return r;
}

static int try_modes(struct natra *n, const struct pin_dir *dir,
		     const struct order *order, const struct pin_gen *before,
		     struct pin_gen *ret_gen)
{
	static const enum natra_attach_mode with_edt[] = {
		NATRA_ATTACH_MODE_TCX_PODSIDE,
		NATRA_ATTACH_MODE_CLSACT_PODSIDE,
		NATRA_ATTACH_MODE_TCX_HOSTSIDE,
		NATRA_ATTACH_MODE_CLSACT_HOSTSIDE,
	};
	static const enum natra_attach_mode without_edt[] = {
		NATRA_ATTACH_MODE_TCX_PODSIDE,
		NATRA_ATTACH_MODE_TCX_HOSTSIDE,
		NATRA_ATTACH_MODE_CLSACT_PODSIDE,
		NATRA_ATTACH_MODE_CLSACT_HOSTSIDE,
	};
	const enum natra_attach_mode *modes =
		order->policy.edt_pacing == NATRA_EDT_PACING_OFF ? without_edt
								 : with_edt;
	char why[RECORD_REASON_MAX / 2 - 2] = "first choice of auto";
	struct kept_error best = {0};
	bool found = false;
	int r;

	if (order->policy.attach_mode != NATRA_ATTACH_MODE_AUTO)
		return try_mode(n, dir, order, order->policy.attach_mode,
				"asked for", before, ret_gen);
	for (int i = 0; i < NATRA_ATTACH_MODE_MAX - 1; i++) {
		r = try_mode(n, dir, order, modes[i], why, before, ret_gen);
		if (r != -EOPNOTSUPP)
			return r;
		if (!found)
			best = keep_error(n);
		(void)snprintf(why, sizeof(why), "not %s: %s",
			       natra_attach_mode_name(modes[i]), last_error(n));
		log_line(n, NATRA_LOG_INFO, "%s", why);
		found = found || !is_tcx(modes[i]) ||
			hook_tcx_supported(n) != 0;
	}
	/* The error of the mode that would have been best says more than that
	 * of the last one, unless it only says that the kernel has no TCX, which
	 * does not explain why clsact is impossible. */
	restore_error(&best);
	return r;
}

/* Returns whether ingress is judged in the pod alone although there is a host side: an
 * older build attached it, or there was none. */
static bool may_gain_host(struct natra *n, const struct record *record,
			  const struct order *order)
{
	const enum natra_attach_mode mode =
		(enum natra_attach_mode)record->mode;
	cleanup_netlink struct netlink nl = {0};
	struct link_info host;
	KEEP_ERROR_SCOPE(n);

	return !record->leg[LEG_HOST].hook && !mode_is_hostside(mode) &&
	       prefers_host(order) && netlink_open(n, &nl) == 0 &&
	       find_usable_host(n, &nl, order, mode, &host) == 0;
}

static bool can_keep(struct natra *n, const struct pin_gen *gen,
		     const struct order *order)
{
	struct natra_policy before = record_get_policy(&gen->record);
	cleanup_subnets struct subnets subnets = {0};

	return gen->kind == RECORD_OWN && !gen->record.unshaped &&
	       order_is_for(&gen->record, &order->scene) &&
	       !may_gain_host(n, &gen->record, order) &&
	       pin_read_subnets(n, gen, &subnets) == 0 &&
	       subnets_same_shape(&subnets, &order->subnets) &&
	       policy_same_shape(&before, &order->policy) &&
	       limits_cover(&gen->record, &subnets, &order->policy,
			    &order->subnets) &&
	       engine_serves(&gen->record) &&
	       check_attached(n, gen, order->scene.pod_fd) == 0 &&
	       !check_is_overtaken(n, gen);
}

static int keep(struct natra *n, struct pin_gen *gen, const struct order *order)
{
	order_set_names(&gen->record, order);
	for (int i = 0; i < LEG_MAX; i++) {
		struct program_options options =
			engine_options(&gen->record, (enum leg)i);
		int r = gen->record.leg[i].hook
				? engine_renew(n, &gen->record.slot[i],
					       &options)
				: 0;

		if (r < 0)
			return r;
	}
	return limits_set(n, gen, &order->policy, &order->subnets,
			  order->keeps_half, order->scene.pod_fd);
}

int shaper_attach(struct natra *n, const struct pin_dir *dir,
		  const struct order *order, struct pin_gen *ret_gen)
{
	cleanup_pin_gen struct pin_gen before = PIN_GEN_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	bool exists;
	int r;

	r = link_check_type(n, &order->scene.pod);
	if (r < 0)
		return r;
	r = order_look_before(n, dir, &order->scene, &before);
	if (r < 0)
		return r;
	exists = r == 1;
	/* This removes what killed processes have left: all but the generation
	 * that counts, if there is one. */
	r = dir->is_new ? 0
			: teardown_all(n, dir, exists ? &before : NULL,
				       order->scene.pod_fd);
	if (r < 0)
		return r;
	if (exists && can_keep(n, &before, order)) {
		r = keep(n, &before, order);
		if (r < 0)
			return r;
		bypass_begin(n, &before, order->scene.pod_fd);
		*ret_gen = TAKE_GEN(before);
		return 0;
	}

	r = try_modes(n, dir, order, exists ? &before : NULL, &gen);
	if (r == 0)
		r = order_complete(n, order, exists ? &before : NULL, &gen);
	if (r < 0) {
		if (order->policy.automatic_group)
			groups_sweep(n);
		return r;
	}
	log_line(
		n, NATRA_LOG_INFO, "%s: %s (%s)", order->id,
		natra_attach_mode_name((enum natra_attach_mode)gen.record.mode),
		gen.record.reason);
	/* For a moment both generations judge each packet. A gap between them would be
	 * worse. */
	if (exists && carry_debts(n, &before, &gen) < 0)
		log_line(n, NATRA_LOG_ERROR, "%s: begins with a full burst: %s",
			 order->id, last_error(n));
	r = dir->is_new ? 0 : teardown_all(n, dir, &gen, order->scene.pod_fd);
	if (r < 0)
		log_line(n, NATRA_LOG_ERROR, "%s: the replaced state stays: %s",
			 order->id, last_error(n));
	groups_left(n, &before.record, gen.record.group_number);
	bypass_begin(n, &gen, order->scene.pod_fd);
	*ret_gen = TAKE_GEN(gen);
	return 0;
}
