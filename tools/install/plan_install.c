/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../common/json.h"
#include "../common/keys.h"
#include "../common/name.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "copy.h"
#include "decide.h"
#include "dropins.h"
#include "plan.h"
#include "plugin.h"

#define PARTIAL_TRIES    10
#define PARTIAL_PAUSE_NS 100000000

static int no_list(struct install *i, const char *network)
{
	if (network)
		return install_fail(
			i, -ENOENT, "%s: has no list of network '%s'%s",
			i->net.path, network,
			i->request->network ? ""
					    : ", CRI-O's cni_default_network");
	return install_fail(i, -ENOENT,
			    "%s: has no list of a network plugin yet",
			    i->net.path);
}

/* Returns whether a list gives a pod nothing but its own lo, which no network plugin's does. */
static bool has_only_loopback(const struct list *list)
{
	size_t count = list_count(list, "loopback", NULL);

	return count && (!list->is_chain ||
			 (int)count == cJSON_GetArraySize(list->plugins));
}

static int half_list(struct install *i, const struct list *partial,
		     const struct list *primary, const char *network)
{
	if (partial == primary)
		return install_fail(i, -EAGAIN, "%s/%s: %s", i->net.path,
				    partial->file, partial->wrong);
	return install_fail(
		i, -EAGAIN, "%s: has no list of network '%s', and %s %s",
		i->net.path, network, partial->file, partial->wrong);
}

/* Reads the lists and waits for one that is not JSON yet: not every network
 * plugin writes its list in one step, so it may be JSON a moment later, and be
 * that of the network that is asked for. */
static int read_lists(struct install *i, struct lists *lists,
		      const struct list **ret_primary)
{
	const struct timespec pause = {.tv_nsec = PARTIAL_PAUSE_NS};
	const struct list *primary, *partial;
	const char *network;

	for (int n = 0;; n++) {
		int r = lists_read(i, &i->net, lists);

		if (r < 0)
			return r;
		network = i->request->network;
		if (!network)
			network = lists_network(i, lists);
		primary = lists_primary(lists, network);
		partial =
			primary && primary->json ? NULL : lists_partial(lists);
		if (!partial)
			break;
		if (n == PARTIAL_TRIES)
			return half_list(i, partial, primary, network);
		lists_free(lists);
		(void)nanosleep(&pause, NULL);
	}
	if (!primary)
		return no_list(i, network);
	if (has_only_loopback(primary))
		return install_fail(
			i, -ENOENT,
			"%s: has no list of a network plugin yet, and %s is only for loopback",
			i->net.path, primary->file);
	*ret_primary = primary;
	return 0;
}

/* Returns the version that the runtime takes; NULL if it takes none. */
static const char *version_of(const struct install *i,
			      const struct list *primary)
{
	return primary->newest && i->runtimes.known && i->runtimes.read_dropins
		       ? primary->newest
		       : primary->version;
}

static int check_primary(struct install *i, const struct list *primary)
{
	const char *wrong = NULL;

	if (strncmp(primary->file, LIST_PREFIX, strlen(LIST_PREFIX)) == 0)
		return install_fail(
			i, -EEXIST,
			"%s/%s: has the name of natra's list, and is not natra's own",
			i->net.path, primary->file);
	if (primary->wrong)
		return install_fail(i, -EINVAL, "%s/%s: %s", i->net.path,
				    primary->file, primary->wrong);
	if (!primary->name)
		return install_fail(i, -EINVAL, "%s/%s: has no name",
				    i->net.path, primary->file);
	wrong = name_wrong(primary->name);
	if (wrong)
		return install_fail(i, -EINVAL, "%s/%s: name '%s' %s",
				    i->net.path, primary->file, primary->name,
				    wrong);
	if (!version_of(i, primary))
		return install_fail(i, -EINVAL, "%s/%s: has no cniVersion",
				    i->net.path, primary->file);
	return 0;
}

/* Warns of an element that is not natra's to change, and lets pods start without a maximum while the
 * plugin's file of namespaces is missing. */
static void warn_of_namespaces(const struct install *i,
			       struct install_plan *plan)
{
	cleanup_json cJSON *element =
		plan->element ? cJSON_Parse(plan->element) : NULL;

	if ((plan->mode == INSTALL_PRESENT ||
	     plan->mode == INSTALL_BANDWIDTH) &&
	    cJSON_IsTrue(json_get(i->request->conf, REQUIRE_NAMESPACES)) &&
	    !cJSON_IsTrue(json_get(element, REQUIRE_NAMESPACES)))
		plan_warn(
			plan,
			"the list's own element says no " REQUIRE_NAMESPACES
			": pods that start while natra-agent's copy of the namespaces' maximums is missing have none");
}

static void warn(const struct install *i, struct install_plan *plan,
		 const struct lists *lists, const struct list *primary)
{
	const struct list *first = lists_first(i, lists);
	cleanup_dropins struct dropins dropins = {0};

	if (((first && first->is_multus) || i->multus.fd >= 0) &&
	    !(first && element_names(first->json, PLUGIN_NAME)))
		plan_warn(
			plan,
			"pods get natra from the next start of Multus' pod on, and only if %s is the network that Multus delegates to",
			primary->file);
	for (size_t n = 0; n < lists->len; n++) {
		const struct list *list = &lists->items[n];

		if (list != primary && !list->is_ours && !list->is_multus)
			plan_warn(plan,
				  "%s stays without natra, which is for %s",
				  list->file, primary->file);
	}
	if (list_count(primary, "calico", NULL) &&
	    !list_count(primary, BANDWIDTH_NAME, NULL))
		plan_warn(
			plan,
			"Calico 3.30 and later limit pods by kubernetes.io/*-bandwidth themselves, and %s does not contain the version: with these, both limit",
			primary->file);
	if (plan->mode == INSTALL_DROPIN && !i->runtimes.known)
		plan_warn(
			plan,
			"the runtime's version is not known: without drop-ins (containerd before 2.1, CRI-O before 1.33) it does not call natra");
	dropins_look(i, primary->name, &dropins);
	if (plan->mode == INSTALL_LIST && !i->runtimes.known &&
	    dropins.bandwidth)
		plan_warn(
			plan,
			"the runtime's version is not known: if it reads drop-ins, %s calls the plugin bandwidth, and both limit",
			dropins.bandwidth);
	warn_of_namespaces(i, plan);
	if (i->misplaced)
		plan_warn(plan, "%s", i->misplaced);
	if (i->settings.wrong)
		plan_warn(plan,
			  "%s: the runtime's directories are not known from it",
			  i->settings.wrong);
	if (i->plugin_status)
		plan_warn(plan, "natra cannot limit on this node: %s",
			  i->plugin_status);
}

static bool has_plugins(const struct dir *dir, const struct list *list)
{
	const cJSON *plugin =
		list->is_chain ? list->plugins->child : list->json;

	for (; plugin; plugin = plugin->next) {
		const char *type = json_text(json_get(plugin, "type"));

		if (type && !strchr(type, '/') && dir_has(dir, type))
			return true;
	}
	return false;
}

/* Checks that the runtime finds natra where it finds the list's other plugins, if its
 * configuration does not say where it looks. */
static int check_place(struct install *i, const struct list *primary)
{
	static const char *const places[] = {"/opt/cni/bin", "/usr/lib/cni",
					     "/usr/libexec/cni"};

	if (i->settings.bin_len || i->request->bin_dir ||
	    has_plugins(&i->bin, primary))
		return 0;
	for (size_t n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
		cleanup_dir struct dir dir = DIR_INIT;

		if (dir_open(&dir, i->root_fd, places[n]) == 0 &&
		    has_plugins(&dir, primary))
			return install_fail(
				i, -EINVAL,
				"%s/%s: its plugins are in %s, and not in %s (--bin-dir)",
				i->net.path, primary->file, places[n],
				i->bin.path);
	}
	return 0;
}

static int plan_plugin(struct install *i, struct install_plan *plan)
{
	bool as_bandwidth = plan->mode == INSTALL_BANDWIDTH;
	const char *name = as_bandwidth ? BANDWIDTH_NAME : PLUGIN_NAME;
	const char *wrong = NULL;

	if (plugin_is_installed(i, name))
		return 0;
	if (!as_bandwidth && dir_has(&i->bin, name))
		wrong = plugin_wrong(&i->bin, name);
	if (wrong)
		return install_fail(i, -EEXIST, "%s/%s: is there, and %s",
				    i->bin.path, name, wrong);
	plan_bin(i, plan, INSTALL_COPY, name);
	return 0;
}

/* Returns whether natra may overwrite this text, which has one of natra's
 * names: it has natra's mark, or is the beginning of the new text. */
static bool is_own_text(const char *text, const char *after)
{
	return strstr(text, ELEMENT_MARK) ||
	       strncmp(after, text, strlen(text)) == 0;
}

/* Plans to write a file, unless it already has the content `after`. `is_ours`
 * says that the present content has been found to be natra's. */
static int plan_file(struct install *i, struct install_plan *plan,
		     const struct dir *dir, const char *subdir,
		     const char *name, const char *after, bool is_ours)
{
	cleanup_text char *before = NULL;
	int r = dir->fd < 0 ? -ENOENT : dir_read(dir, name, &before);

	if (r < 0 && r != -ENOENT)
		return install_fail(i, r, "%s/%s: %s", dir->path, name,
				    r == -ELOOP ? "is a symbolic link"
						: strerror(-r));
	if (before && strcmp(before, after) == 0)
		return 0;
	if (before && !is_ours && !is_own_text(before, after))
		return install_fail(i, -EEXIST,
				    "%s/%s: exists, and is not natra's own",
				    dir->path, name);
	plan_write(i, plan, subdir, name, before, after);
	return 0;
}

static int plan_dropin(struct install *i, struct install_plan *plan,
		       const struct lists *lists, const struct list *primary)
{
	cleanup_text char *text = element_file(i->request->conf);
	cleanup_dir struct dir dir = DIR_INIT;
	int r = dir_open_below(&dir, &i->net, primary->name);

	if (r < 0 && r != -ENOENT)
		return install_fail(i, r,
				    "%s/%s: is not a directory of its own",
				    i->net.path, primary->name);
	r = plan_file(i, plan, &dir, primary->name, DROPIN_NAME, text, false);
	if (r < 0)
		return r;
	plan_remove_lists(i, plan, lists, NULL, NULL);
	plan_remove_dropins(i, plan, lists, primary->name, true);
	return 0;
}

/* Returns natra's own list of this name, else one of the network, whose original had another
 * name then; NULL if there is neither. */
static const struct list *find_own(const struct lists *lists, const char *file,
				   const char *network)
{
	const struct list *found = NULL;

	for (size_t n = 0; n < lists->len; n++) {
		const struct list *list = &lists->items[n];

		if (!list->is_ours)
			continue;
		if (strcmp(list->file, file) == 0)
			return list;
		if (!found && list_is_of(list, network))
			found = list;
	}
	return found;
}

static int plan_list(struct install *i, struct install_plan *plan,
		     const struct lists *lists, const struct list *primary)
{
	cleanup_text char *name = list_copy_name(primary);
	const struct list *present = find_own(lists, name, primary->name);
	cleanup_text char *text = copy_make(i, primary, present);
	int r;

	if (!text)
		return install_fail(
			i, -EINVAL,
			"%s/%s: natra cannot be added, because there is not exactly one list \"plugins\"",
			i->net.path, primary->file);
	r = plan_file(i, plan, &i->net, NULL, name, text,
		      present && strcmp(present->file, name) == 0);
	if (r < 0)
		return r;
	plan_remove_lists(i, plan, lists, name, present);
	plan_remove_dropins(i, plan, lists, primary->name, false);
	return 0;
}

static int plan_net(struct install *i, struct install_plan *plan,
		    const struct lists *lists, const struct list *primary)
{
	if (plan->mode == INSTALL_DROPIN)
		return plan_dropin(i, plan, lists, primary);
	if (plan->mode == INSTALL_LIST)
		return plan_list(i, plan, lists, primary);
	plan_remove_lists(i, plan, lists, NULL, NULL);
	plan_remove_dropins(i, plan, lists, primary->name, false);
	return 0;
}

/* Returns whether the runtime calls natra already. */
static bool is_called(const struct install *i, const struct install_plan *plan,
		      const struct lists *lists, const struct list *primary)
{
	cleanup_dropins struct dropins dropins = {0};

	if (plan->mode == INSTALL_PRESENT || lists_have_ours(lists) ||
	    plugin_is_natra(&i->bin, BANDWIDTH_NAME))
		return true;
	dropins_look(i, primary->name, &dropins);
	return dropins.natra;
}

/* Where natra cannot limit, a runtime that calls it starts no pod that has limits, and takes its network
 * for broken if it asks for STATUS. A runtime that calls natra already is left with it. */
static int check_kernel(struct install *i, const struct install_plan *plan,
			const struct lists *lists, const struct list *primary)
{
	if (!i->plugin_status || !i->request->is_own_kernel ||
	    is_called(i, plan, lists, primary))
		return 0;
	return install_fail(
		i, -EOPNOTSUPP,
		"natra cannot limit on this node, so it is not installed: %s",
		i->plugin_status);
}

static int make(struct install *i, struct install_plan *plan,
		const struct lists *lists, const struct list *primary)
{
	cleanup_json cJSON *element = element_json(i->request->conf, NULL);
	struct choice choice = {0};
	int r;

	r = check_primary(i, primary);
	if (r == 0)
		r = check_place(i, primary);
	if (r == 0)
		r = plugin_check(i, version_of(i, primary), element);
	if (r == 0)
		r = decide(i, lists, primary, &choice);
	plan->mode = choice.mode;
	plan->reason = choice.reason;
	plan->element = choice.element;
	if (r == 0)
		r = check_kernel(i, plan, lists, primary);
	if (r < 0)
		return r;
	plan->primary_file = text_copy(primary->file);
	plan->primary_text = text_copy(primary->text);
	warn(i, plan, lists, primary);
	plan_stale(i, plan, lists);
	/* The plugin comes before the list, since a runtime drops a list of
	 * which a plugin is missing. */
	r = plan_plugin(i, plan);
	if (r == 0)
		r = plan_net(i, plan, lists, primary);
	if (r < 0)
		return r;
	plan_reload(i, plan);
	if (plan->mode != INSTALL_BANDWIDTH)
		(void)plan_restore(i, plan);
	return 0;
}

int install_plan(struct install *i, struct install_plan **ret)
{
	cleanup_plan struct install_plan *plan = plan_new();
	cleanup_lists struct lists lists = {0};
	const struct list *primary = NULL;
	int r;

	r = read_lists(i, &lists, &primary);
	if (r < 0 || !primary)
		return r;
	r = make(i, plan, &lists, primary);
	if (r < 0)
		return r;
	*ret = plan;
	plan = NULL;
	return 0;
}
