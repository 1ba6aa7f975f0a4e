/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/identity.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "kernel/hook.h"
#include "kernel/netns.h"
#include "util/cleanup.h"

int identity_ask_link(struct natra *n, const struct pin_gen *gen, enum leg leg,
		      struct bpf_link_info *ret_info)
{
	uint32_t len = sizeof(*ret_info);
	cleanup_close int fd = -1;
	int r = pin_open_link(n, gen, leg, &fd);

	if (r < 0)
		return r;
	r = bpf_obj_get_info_by_fd(fd, ret_info, &len);
	return r < 0 ? fail_errno(n, r, "ask for the %s link", leg_name(leg))
		     : 0;
}

/* Gets the index that the interface on one side has now; 0: no link tells it. */
static int ask_index(struct natra *n, const struct pin_gen *gen, bool on_host,
		     uint32_t *ret_ifindex)
{
	*ret_ifindex = 0;
	for (int i = 0; i < LEG_MAX && !*ret_ifindex; i++) {
		const struct record_leg *leg = &gen->record.leg[i];
		struct bpf_link_info info = {0};
		int r;

		if (leg->hook != RECORD_HOOK_TCX ||
		    (leg->on_host != 0) != on_host)
			continue;
		r = identity_ask_link(n, gen, (enum leg)i, &info);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0)
			*ret_ifindex = info.tcx.ifindex;
	}
	return 0;
}

static int has_link(struct natra *n, const struct pin_gen *gen)
{
	uint32_t ifindex = 0;
	int r = 0;

	for (int on_host = 0; on_host < 2 && r == 0 && !ifindex; on_host++)
		r = ask_index(n, gen, on_host, &ifindex);
	return r < 0 ? r : ifindex != 0;
}

void identity_follow(struct natra *n, struct pin_gen *gen)
{
	KEEP_ERROR_SCOPE(n);

	for (int on_host = 0; on_host < 2; on_host++) {
		struct record_link *link =
			on_host ? &gen->record.host : &gen->record.pod;
		uint32_t ifindex;

		if (ask_index(n, gen, on_host, &ifindex) == 0 && ifindex)
			link->ifindex = ifindex;
	}
}

static bool is_same_port(const struct record_port *port,
			 const struct link_info *link)
{
	return !port->is_known || (port->peer_ifindex == link->peer_ifindex &&
				   port->peer_nsid == link->peer_nsid &&
				   strcmp(port->kind, link->kind) == 0);
}

/* Counts the programs of a record that are in the pod, and those of them that are on an
 * interface. */
static int count_programs(struct natra *n, const struct record *record,
			  uint32_t ifindex, unsigned int *ret_all,
			  unsigned int *ret_there)
{
	*ret_all = *ret_there = 0;
	for (int i = 0; i < LEG_MAX; i++) {
		const struct record_leg *leg = &record->leg[i];
		struct hook hook = {ifindex, leg->hook_ingress};
		struct hook_program own;
		int r;

		if (leg->hook == RECORD_HOOK_NONE || leg->on_host)
			continue;
		r = leg->hook == RECORD_HOOK_CLSACT
			    ? hook_clsact_find(n, &hook, leg->prog_id, &own)
			    : hook_tcx_find(n, &hook, leg->prog_id);
		if (r < 0)
			return r;
		++*ret_all;
		*ret_there += r == 1;
	}
	return 0;
}

int identity_look(struct natra *n, const struct record *record,
		  const struct link_info *link)
{
	unsigned int all, there;
	int r = count_programs(n, record, link->ifindex, &all, &there);

	if (r < 0)
		return r;
	if (there)
		return IDENTITY_PROGRAMS;
	return is_same_port(&record->port, link) ? IDENTITY_PORT
						 : IDENTITY_OTHER;
}

int identity_refuse(struct natra *n, const struct record *record,
		    const char *ifname, uint32_t ifindex)
{
	return with_code(
		n, NATRA_CODE_OTHER_INTERFACE,
		refuse(n, -EBADE,
		       "interface '%s' (index %u) is not the one that has the limits of '%s'",
		       ifname, ifindex, record->id));
}

struct look {
	struct natra *n;
	const struct record *record;
	const struct record *after;
	uint32_t ifindex;
	struct link_info link;
	enum identity identity;
	bool is_in_place; /* a program is where the record says, which is elsewhere */
	bool after_is_there; /* all programs of `after` are */
};

/* Runs in the pod's namespace. */
static int look_around(void *arg)
{
	cleanup_netlink struct netlink nl = {0};
	struct look *look = arg;
	unsigned int all, there;
	int r = netlink_open(look->n, &nl);

	if (r == 0)
		r = link_by_index(&nl, look->ifindex, &look->link);
	if (r < 0)
		return fail_errno(look->n, r, "look up interface %u",
				  look->ifindex);
	r = identity_look(look->n, look->record, &look->link);
	if (r < 0)
		return r;
	look->identity = (enum identity)r;
	r = count_programs(look->n, look->record, look->record->pod.ifindex,
			   &all, &there);
	look->is_in_place = look->record->pod.ifindex != look->ifindex && there;
	/* Between this and the look at the programs before there is no time to change the
	 * interface: to move one takes an RCU grace period. */
	if (r == 0 && look->after) {
		r = count_programs(look->n, look->after, look->ifindex, &all,
				   &there);
		look->after_is_there = all == there;
	}
	return r;
}

static bool is_pair(const struct record_port *port)
{
	return strcmp(port->kind, "veth") == 0 ||
	       strcmp(port->kind, "netkit") == 0;
}

/* Returns 1 if the other end of a pair exists, and with it the pod's interface, wherever that
 * is; or else 0. */
static int pair_exists(struct natra *n, const struct record_port *port)
{
	cleanup_netlink struct netlink nl = {0};
	struct link_info peer;
	int r;

	if (!is_pair(port))
		return 0;
	r = netlink_open(n, &nl);
	if (r < 0)
		return r;
	r = link_by_index(&nl, port->peer_ifindex, &peer);
	if (r < 0 && r != -ENODEV)
		return fail_errno(n, r, "look up interface %u",
				  port->peer_ifindex);
	return r == 0 && strcmp(peer.kind, port->kind) == 0;
}

int identity_exists(struct natra *n, const struct pin_gen *gen)
{
	int r = has_link(n, gen);

	return r != 0 ? r : pair_exists(n, &gen->record.port);
}

int identity_explain(struct natra *n, const struct pin_gen *gen, int r)
{
	if (r != -ENODEV || identity_exists(n, gen) != 1)
		return r;
	return with_code(
		n, NATRA_CODE_OTHER_INTERFACE,
		refuse(n, -EBADE,
		       "the interface that has the limits of '%s' is not in its network namespace any more",
		       gen->record.id));
}

int identity_check(struct natra *n, const struct pin_gen *gen, int pod_fd,
		   uint32_t ifindex, const struct record *after)
{
	const struct record *record = &gen->record;
	struct look look = {
		.n = n, .record = record, .after = after, .ifindex = ifindex};
	uint32_t elsewhere;
	int r;

	r = netns_run(n, pod_fd, look_around, &look);
	if (r == 0)
		r = ask_index(n, gen, false, &elsewhere);
	if (r < 0)
		return r;
	if (look.identity == IDENTITY_PROGRAMS)
		r = 0;
	else if (elsewhere || look.is_in_place)
		r = 1;
	else if (look.identity == IDENTITY_OTHER)
		/* A TCX link that is on no device has outlived it, but a filter may have been
		 * removed. */
		r = is_pair(&record->port)
			    ? pair_exists(n, &record->port)
			    : record_has_hook(record, false,
					      RECORD_HOOK_CLSACT);
	if (r == 0 && after)
		r = !look.after_is_there;
	return r == 1 ? identity_refuse(n, record, look.link.ifname, ifindex)
		      : r;
}
