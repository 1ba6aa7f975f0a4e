/* SPDX-License-Identifier: BSD-2-Clause */
#include "neighbours.h"

#include <stdio.h>

#include "json.h"
#include "output.h"

static const char *direction_name(enum natra_direction direction)
{
	return direction == NATRA_DIRECTION_INGRESS ? "ingress" : "egress";
}

static const char *hook_side(const struct natra_neighbour *entry)
{
	return entry->hook_is_ingress ? "ingress" : "egress";
}

/* Prints a program, or a filter that is not BPF, whose name is its kind. */
static void print_program(FILE *file, const struct natra_neighbour *entry)
{
	if (entry->prog_id)
		fprintf(file, "program %u ", entry->prog_id);
	else
		fputs("filter ", file);
	print_text(file, entry->prog_name, 0);
}

static int print_entry(void *arg, const struct natra_neighbour *entry)
{
	bool *first = arg;

	printf("  %-15s %-7s ", *first ? "hooks" : "",
	       direction_name(entry->direction));
	print_text(stdout, entry->ifname, 0);
	printf(" %s %s %u: ", entry->hook, hook_side(entry), entry->position);
	print_program(stdout, entry);
	if (entry->priority || entry->handle)
		printf(" priority %u handle %#x", entry->priority,
		       entry->handle);
	puts(entry->is_ours          ? " (this)"
	     : entry->is_before_ours ? " (before this)"
				     : "");
	*first = false;
	return 0;
}

int hooks_print(const struct cli *cli, const char *id)
{
	bool first = true;

	return natra_foreach_neighbour(cli->n, id, print_entry, &first);
}

static int add_entry(void *arg, const struct natra_neighbour *entry)
{
	cJSON *array = arg, *o = cJSON_CreateObject();

	json_add_text(o, "direction", direction_name(entry->direction));
	json_add_text(o, "ifname", entry->ifname);
	json_add_text(o, "hook", entry->hook);
	json_add_text(o, "hook_side", hook_side(entry));
	json_add_u64(o, "position", entry->position);
	json_add_u64(o, "prog_id", entry->prog_id);
	json_add_text(o, "prog_name", entry->prog_name);
	json_add_u64(o, "priority", entry->priority);
	json_add_u64(o, "handle", entry->handle);
	cJSON_AddBoolToObject(o, "is_ours", entry->is_ours);
	cJSON_AddBoolToObject(o, "is_before_ours", entry->is_before_ours);
	cJSON_AddBoolToObject(o, "is_on_host", entry->is_on_host);
	cJSON_AddItemToArray(array, o);
	return 0;
}

int hooks_json(const struct cli *cli, const char *id, cJSON *array)
{
	return natra_foreach_neighbour(cli->n, id, add_entry, array);
}

static int warn_of(void *arg, const struct natra_neighbour *entry)
{
	(void)arg;
	if (!entry->is_before_ours)
		return 0;
	fputs("natractl: warning: ", stderr);
	print_program(stderr, entry);
	fprintf(stderr, " on the %s %s of ", entry->hook, hook_side(entry));
	print_text(stderr, entry->ifname, 0);
	fputs(" runs before natra: what it accepts or redirects is not limited\n",
	      stderr);
	return 0;
}

void hooks_warn(const struct cli *cli, const char *id)
{
	(void)natra_foreach_neighbour(cli->n, id, warn_of, NULL);
}

bool leftovers_any(const struct natra_leftovers *leftovers)
{
	return leftovers->limits_ingress || leftovers->limits_egress;
}

void leftovers_print(FILE *file, const struct natra_leftovers *leftovers)
{
	const char *ifb = leftovers->ifb_ifname;

	if (leftovers->limits_ingress)
		fputs(leftovers->is_htb ? "htb" : "tbf", file);
	if (leftovers->limits_egress) {
		fputs(leftovers->limits_ingress ? " and redirect to "
						: "redirect to ",
		      file);
		print_text(file, ifb[0] ? ifb : "an ifb that is gone", 0);
	}
	fputs(" on ", file);
	print_text(file, leftovers->host_ifname, 0);
}

cJSON *leftovers_json(const struct natra_leftovers *leftovers)
{
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "host_ifname", leftovers->host_ifname);
	cJSON_AddBoolToObject(o, "limits_ingress", leftovers->limits_ingress);
	cJSON_AddBoolToObject(o, "is_htb", leftovers->is_htb);
	cJSON_AddBoolToObject(o, "limits_egress", leftovers->limits_egress);
	json_add_text(o, "ifb_ifname", leftovers->ifb_ifname);
	json_add_u64(o, "waiting_ns", leftovers->waiting_ns);
	return o;
}
