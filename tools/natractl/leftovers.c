/* SPDX-License-Identifier: BSD-2-Clause */
#include "leftovers.h"

#include "output.h"

bool leftovers_any(const struct natra_leftovers *leftovers)
{
	return leftovers->tbf || leftovers->ingress_redirect;
}

void leftovers_print(FILE *file, const struct natra_leftovers *leftovers)
{
	const char *ifb = leftovers->ifb_ifname;

	if (leftovers->tbf)
		fputs("tbf", file);
	if (leftovers->ingress_redirect) {
		fputs(leftovers->tbf ? " and redirect to " : "redirect to ",
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
	cJSON_AddBoolToObject(o, "tbf", leftovers->tbf);
	cJSON_AddBoolToObject(o, "ingress_redirect",
			      leftovers->ingress_redirect);
	json_add_text(o, "ifb_ifname", leftovers->ifb_ifname);
	return o;
}
