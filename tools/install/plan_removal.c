/* SPDX-License-Identifier: BSD-2-Clause */
#include <fnmatch.h>
#include <string.h>

#include "../common/text.h"
#include "../pods/element.h"
#include "plan.h"
#include "plugin.h"
#include "use.h"

/* Returns why the plugin under this name has to stay, as a text that the caller
 * frees; NULL if it can go. A list or drop-in that names it belongs to the
 * network, and not even `force` breaks that. */
static char *against_removal(struct install *i, struct install_plan *plan,
			     const struct lists *lists, const char *name,
			     const char *in_use, bool force)
{
	char *why = use_find_list(i, lists, name);

	if (!why)
		why = use_find_dropin(i, plan, name);
	if (why)
		return why;
	if (force)
		return NULL;
	return in_use ? text_copy(in_use) : use_find(i, plan, name);
}

static void plan_natra(struct install *i, struct install_plan *plan,
		       const struct lists *lists, const char *in_use,
		       bool force)
{
	const char *wrong;

	if (!dir_has(&i->bin, PLUGIN_NAME))
		return;
	wrong = plugin_wrong(&i->bin, PLUGIN_NAME);
	if (wrong) {
		plan_warn(plan, "%s/%s %s, and stays", i->bin.path, PLUGIN_NAME,
			  wrong);
		return;
	}
	plan->kept =
		against_removal(i, plan, lists, PLUGIN_NAME, in_use, force);
	if (!plan->kept)
		plan_bin(i, plan, INSTALL_REMOVE, PLUGIN_NAME);
}

/* Returns why the plugin from before natra cannot come back yet, as a text that the caller frees;
 * NULL if it can. CRI-O calls CHECK for the pods that run when it starts. That plugin would fail,
 * since the limits are not its own, and kubelet makes a pod anew of which CRI-O has no address.
 * Other runtimes do not call CHECK. */
static char *against_restoring(const struct install *i, const char *pods)
{
	if (!pods || !(i->runtimes.kinds & RUNTIME_CRIO) ||
	    !dir_has(&i->bin, KEPT_NAME))
		return NULL;
	return text_format(
		"%s; with the plugin from before, such pods may be made anew when CRI-O starts again; new pods get natra's limits, too, until --force brings that plugin back",
		pods);
}

/* Plans the removal of natra's plugin under the name bandwidth, of which the list of others goes on
 * to make pods. So the plugin that had the name before is back while natra's pods run: its DEL of
 * them succeeds, and leaves what natra keeps of them to gc. */
static void plan_bandwidth(struct install *i, struct install_plan *plan,
			   const struct lists *lists, const char *pods,
			   bool force)
{
	char *kept;

	if (!plugin_is_natra(&i->bin, BANDWIDTH_NAME)) {
		(void)plan_restore(i, plan);
		return;
	}
	kept = force ? NULL : against_restoring(i, pods);
	if (!kept && plan_restore(i, plan)) {
		if (pods)
			plan_warn(
				plan,
				"%s; %s/" BANDWIDTH_NAME
				" is the plugin from before natra again, so what natra keeps of such a pod stays after its end until natractl gc",
				pods, i->bin.path);
		return;
	}
	if (!kept)
		kept = against_removal(i, plan, lists, BANDWIDTH_NAME, pods,
				       force);
	if (!kept)
		plan_bin(i, plan, INSTALL_REMOVE, BANDWIDTH_NAME);
	else if (plan->kept)
		free(kept);
	else
		plan->kept = kept;
}

/* Plans to remove copies of natra's that Cilium has renamed. No runtime reads them, but they
 * would keep natra from being installed again. */
static void plan_renamed(const struct install *i, struct install_plan *plan)
{
	DIR *entries = dir_list(&i->net);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		const char *name = entry->d_name;
		cleanup_text char *text = NULL;

		if (fnmatch(LIST_PREFIX "*.conflist.cilium_bak", name, 0) ==
			    0 &&
		    dir_read(&i->net, name, &text) == 0 &&
		    strstr(text, ELEMENT_MARK))
			plan_remove(i, plan, NULL, name, text);
	}
	if (entries)
		(void)closedir(entries);
}

static bool changes_net(const struct install_plan *plan)
{
	for (size_t n = 0; n < plan->changes_len; n++) {
		if (!plan->changes[n].in_bin_dir)
			return true;
	}
	return false;
}

int install_plan_removal(struct install *i, const char *in_use, bool force,
			 struct install_plan **ret)
{
	cleanup_plan struct install_plan *plan = plan_new();
	cleanup_lists struct lists lists = {0};
	cleanup_text char *delegation = NULL;
	const char *kept = NULL;
	int r = lists_read(i, &i->net, &lists);

	if (r < 0)
		return r;
	/* Only the administrator can make Multus delegate to another list, and until
	 * then the plugin stays, too. */
	if (!force)
		delegation = use_find_delegation(i, &lists, &kept);
	plan_stale(i, plan, &lists);
	plan_remove_lists(i, plan, &lists, kept, NULL);
	plan_remove_dropins(i, plan, NULL, NULL, false);
	plan_renamed(i, plan);
	plan_reload(i, plan);
	if (i->request->dry_run || !changes_net(plan)) {
		plan_natra(i, plan, &lists, delegation ? delegation : in_use,
			   force);
		plan_bandwidth(i, plan, &lists, in_use, force);
	}
	*ret = plan;
	plan = NULL;
	return 0;
}
