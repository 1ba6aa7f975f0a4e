/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that describe one attachment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/check.h"
#include "state/engine.h"
#include "state/place.h"
#include "util/cleanup.h"
#include "util/str.h"

int require_id(struct natra *n, const char *id)
{
	if (!begin_call(n))
		return -EINVAL;
	if (!id || !id[0])
		return refuse(n, -EINVAL, "id: missing");
	return 0;
}

/* Returns what the prefix of a foreign record has of its policy. */
static struct natra_policy rates_of(const struct record *record)
{
	return (struct natra_policy){
		.sz = sizeof(struct natra_policy),
		.ingress_rate_bits_per_sec = record->ingress_rate_bits_per_sec,
		.egress_rate_bits_per_sec = record->egress_rate_bits_per_sec,
	};
}

void info_of(const struct pin_gen *gen, struct natra_info *info)
{
	const struct record *m = &gen->record;

	*info = (struct natra_info){.sz = sizeof(*info)};
	(void)str_copy(info->id, sizeof(info->id), m->id);
	(void)str_copy(info->ifname, sizeof(info->ifname), m->pod.ifname);
	(void)str_copy(info->network, sizeof(info->network), m->network);
	(void)str_copy(info->label, sizeof(info->label), m->label);
	(void)str_copy(info->reason, sizeof(info->reason), m->reason);
	(void)str_copy(info->pin_path, sizeof(info->pin_path),
		       place_public(gen->path));
	if (gen->kind == RECORD_OWN) {
		info->policy = record_get_policy(m);
		info->effective = policy_effective(&info->policy);
	} else {
		info->policy = rates_of(m);
		info->effective = info->policy;
		info->other_abi = true;
	}
	info->mode = (enum natra_attach_mode)m->mode;
	info->edt_active = m->edt != 0;
	info->pace_active = record_is_paced(m, LEG_HOST);
	info->fq_is_ours = m->pod.fq != 0;
	info->host_fq_is_ours = m->host.fq != 0;
	info->unshaped = m->unshaped != 0;
	info->ifindex = m->pod.ifindex;
	(void)str_copy(info->host_ifname, sizeof(info->host_ifname),
		       m->host.ifname);
	info->host_ifindex = m->host.ifindex;
	info->netns_inode = m->pod.netns_inode;
	info->abi = m->abi;
	info->ingress_prog_id = m->leg[LEG_INGRESS].prog_id;
	info->egress_prog_id = m->leg[LEG_EGRESS].prog_id;
	info->host_prog_id = m->leg[LEG_HOST].prog_id;
}

void info_set_bypass(struct natra_info *info, const struct bypass *bypass)
{
	info->ingress_bypassed_percent =
		carried_percent(&bypass->share[NATRA_DIRECTION_INGRESS]);
	info->egress_bypassed_percent =
		carried_percent(&bypass->share[NATRA_DIRECTION_EGRESS]);
}

void read_bypass(struct natra *n, const struct pin_gen *gen,
		 struct natra_info *info)
{
	struct bypass bypass = {0};
	KEEP_ERROR_SCOPE(n);

	if (gen->kind == RECORD_OWN && !gen->record.unshaped)
		(void)bypass_look(n, gen, -1, &bypass);
	info_set_bypass(info, &bypass);
}

int read_upgrade(struct natra *n, const struct pin_gen *gen,
		 struct natra_info *info)
{
	bool all = gen->kind == RECORD_OWN && !gen->record.unshaped;

	for (int i = 0; i < LEG_MAX && all; i++) {
		int r = 0;

		if (gen->record.leg[i].hook)
			r = engine_is_current(n, &gen->record.slot[i], &all);
		if (r == -ENOENT || r == -ESTALE)
			all = false;
		else if (r < 0)
			return r;
	}
	info->program_is_current = all;
	info->upgrade_is_in_place = gen->kind == RECORD_OWN &&
				    !gen->record.unshaped &&
				    engine_serves(&gen->record);
	return 0;
}

int natra_query(struct natra *n, const char *id, struct natra_info *ret_info)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_info info = {0};
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = attachment_find_any(n, id, &gen);
	if (r < 0)
		return r;
	r = check_exists(n, &gen);
	if (r < 0)
		return r;
	info_of(&gen, &info);
	info.interface_gone = r == 0;
	if (r == 1)
		read_bypass(n, &gen, &info);
	r = read_upgrade(n, &gen, &info);
	if (r < 0)
		return r;
	return finish(n,
		      struct_out(n, "ret_info", ret_info, EXTENT_INFO, &info));
}

/* Finds the attachment whose parts a caller's function is to be called for. */
static int find_to_walk(struct natra *n, const char *id, bool has_fn,
			struct pin_gen *ret_gen)
{
	int r = require_id(n, id);

	if (r == 0 && !has_fn)
		r = refuse(n, -EINVAL, "fn: missing");
	return r < 0 ? r : attachment_find(n, id, ret_gen);
}

static int read_subnets(struct natra *n, const char *id, struct pin_gen *gen,
			struct subnets *ret_subnets)
{
	int r;

	do {
		r = attachment_read_subnets(n, gen, ret_subnets);
	} while (r == -ENOENT && attachment_find_newer(n, id, gen));
	return r;
}

int natra_foreach_subnet(struct natra *n, const char *id, natra_subnet_fn fn,
			 void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	char text[SUBNET_TEXT_MAX];
	int r = find_to_walk(n, id, fn != NULL, &gen);

	if (r < 0)
		return r;
	r = read_subnets(n, id, &gen, &subnets);
	for (size_t i = 0; i < subnets.len && r == 0; i++) {
		subnet_format(&subnets.list[i], text);
		forget_error(n);
		r = fn(arg, text);
	}
	return finish_walk(n, r);
}

/* Calls fn for a class, with its subnets as text. */
static int tell_class(struct natra *n, const struct peer_class *class,
		      natra_class_fn fn, void *arg)
{
	struct natra_class told = {
		.sz = sizeof(told),
		.name = class->name,
		.ingress_rate_bits_per_sec = class->ingress_rate_bits_per_sec,
		.egress_rate_bits_per_sec = class->egress_rate_bits_per_sec,
		.dscps = class->dscps,
		.subnets_len = class->len,
	};
	cleanup_free char *texts = calloc(class->len + 1, SUBNET_TEXT_MAX);
	cleanup_free const char **list =
		calloc(class->len + 1, sizeof(const char *));

	if (!texts || !list)
		return fail_errno(n, -ENOMEM, "tell the classes");
	for (size_t i = 0; i < class->len; i++) {
		char *text = texts + i * SUBNET_TEXT_MAX;

		subnet_format(&class->list[i], text);
		list[i] = text;
	}
	told.subnets = list;
	forget_error(n);
	return fn(arg, &told);
}

int natra_foreach_class(struct natra *n, const char *id, natra_class_fn fn,
			void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	int r = find_to_walk(n, id, fn != NULL, &gen);

	if (r < 0)
		return r;
	r = read_subnets(n, id, &gen, &subnets);
	for (size_t i = 0; i < subnets.classes_len && r == 0; i++)
		r = tell_class(n, &subnets.classes[i], fn, arg);
	return finish_walk(n, r);
}

int natra_foreach_neighbour(struct natra *n, const char *id,
			    natra_neighbour_fn fn, void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = find_to_walk(n, id, fn != NULL, &gen);

	return r < 0 && r != -ESTALE
		       ? r
		       : finish_walk(n, check_neighbours(n, &gen, fn, arg));
}
