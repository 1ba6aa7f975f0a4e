/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the runtime's lists: natra must be in one that is used, and must be given
 * something to limit. */
#include <string.h>

#include "../install/copy.h"
#include "../pods/element.h"
#include "../pods/wish.h"
#include "../common/json.h"
#include "../common/name.h"
#include "../common/text.h"
#include "check.h"

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"

/* These commands edit a list in place, and change only what is named here. */
#define EDIT(change)                                                           \
	"jq '" change                                                          \
	"' {file} > {file}.new && cat {file}.new > {file} && rm {file}.new"

static void no_dir(const struct finder *f)
{
	if (f->node->has_chain && f->node->net_error)
		found(f, "dir", f->node->net_dir, NULL);
}

static void other_place(const struct finder *f)
{
	if (f->node->has_chain && f->node->i->misplaced)
		found(f, "why", f->node->i->misplaced, NULL);
}

static void two_lists(const struct finder *f)
{
	const struct settings_of_runtime *settings = &f->node->i->settings;

	if (f->node->used && f->node->used->is_ours && settings->lists_max != 1)
		found(f, "file", settings->file, "list", f->node->used->file,
		      NULL);
}

static void no_list(const struct finder *f)
{
	if (!f->node->net_error && !f->node->used)
		found(f, "dir", f->node->net_dir, NULL);
}

static void not_json(const struct finder *f)
{
	const struct lists *lists = &f->node->lists;

	for (size_t n = 0; n < lists->len; n++) {
		cleanup_text char *path = text_format("%s/%s", f->node->net_dir,
						      lists->items[n].file);

		if (!lists->items[n].json)
			found(f, "file", path, "why", lists->items[n].wrong,
			      NULL);
	}
}

static void refused(const struct finder *f)
{
	const struct list *used = f->node->used;
	cleanup_text char *path = NULL;

	if (f->node->dropin_wrong)
		found(f, "file", f->node->dropin_wrong, "why",
		      f->node->dropin_why, NULL);
	if (!used || !used->json || !used->wrong)
		return;
	path = text_format("%s/%s", f->node->net_dir, used->file);
	found(f, "file", path, "why", used->wrong, NULL);
}

/* Returns another list that calls natra; NULL if there is none. */
static const struct list *other_list(const struct node *node)
{
	for (size_t n = 0; n < node->lists.len; n++) {
		const struct list *list = &node->lists.items[n];

		if (list != node->used && list_count(list, PLUGIN_NAME, NULL))
			return list;
	}
	return NULL;
}

/* Returns the network of a drop-in of natra's that is not that of the list in use, in
 * a text that the caller frees; NULL if there is none. */
static char *other_network(const struct node *node)
{
	DIR *entries = node->net_error ? NULL : dir_list(&node->i->net);
	const struct dirent *entry;
	char *name = NULL;

	while (!name && entries && (entry = readdir(entries))) {
		cleanup_dir struct dir dir = DIR_INIT;

		/* Its drop-in is of the list in use, even if it is broken. */
		if (node->used && node->used->name &&
		    strcmp(node->used->name, entry->d_name) == 0)
			continue;
		if (!name_wrong(entry->d_name) &&
		    dir_open_below(&dir, &node->i->net, entry->d_name) == 0 &&
		    dir_has(&dir, DROPIN_NAME))
			name = text_copy(entry->d_name);
	}
	if (entries)
		(void)closedir(entries);
	return name;
}

static bool has_no_natra(const struct node *node)
{
	return node->used && node->used->json && !node->element &&
	       !node->dropin_wrong;
}

static void not_called(const struct finder *f)
{
	const struct node *node = f->node;
	cleanup_text char *network = other_network(node);

	if (has_no_natra(node) && !other_list(node) && !network &&
	    !node->lists.renamed)
		found(f, "file", node->used->file, "dir", node->net_dir,
		      "install", node->install, NULL);
}

static void not_first(const struct finder *f)
{
	const struct list *other = other_list(f->node);

	if (has_no_natra(f->node) && other)
		found(f, "other", other->file, "file", f->node->used->file,
		      "install", f->node->install, NULL);
}

/* The configuration in the drop-in is kept by the command, which writes another one. */
static void other_dropin(const struct finder *f)
{
	cleanup_text char *network = other_network(f->node);
	const struct list *used = f->node->used;
	cleanup_text char *path = NULL, *install = NULL;
	cleanup_json cJSON *dropin = NULL;

	if (!has_no_natra(f->node) || !network)
		return;
	path = text_format("%s/%s/" DROPIN_NAME, f->node->net_dir, network);
	(void)node_read_object(f->node, path, &dropin);
	install = node_install_with(f->node, dropin);
	found(f, "network", network, "name", DROPIN_NAME, "used",
	      used->name ? used->name : "", "file", used->file, "install",
	      install, NULL);
}

static void renamed(const struct finder *f)
{
	const struct lists *lists = &f->node->lists;

	if (has_no_natra(f->node) && lists->renamed)
		found(f, "dir", f->node->net_dir, "file", lists->renamed, NULL);
}

/* Reports a drop-in that does not count because of `why`. */
static void found_mode(const struct finder *f, const char *why)
{
	cleanup_text char *install = node_install_option(
		f->node, f->node->install, "--mode", "list");

	found(f, "file", f->node->dropin_path, "why", why, "install", install,
	      NULL);
}

static void dropin_unread(const struct finder *f)
{
	const struct node *node = f->node;

	if (node->element && node->element == node->dropin &&
	    node->i->runtimes.known && !node->i->runtimes.read_dropins)
		found_mode(f, node->i->runtimes.text);
}

static void dropin_ignored(const struct finder *f)
{
	const struct node *node = f->node;

	if (node->element && node->element == node->dropin &&
	    list_says_true(node->used, "loadOnlyInlinedPlugins"))
		found_mode(f, node->used->file);
}

static bool has_capability(const cJSON *element, const char *name)
{
	const cJSON *all = json_get_exact(element, "capabilities");

	return cJSON_IsTrue(json_get_exact(all, name));
}

static void no_bandwidth(const struct finder *f)
{
	const cJSON *element = f->node->element;

	if (element && !has_capability(element, "bandwidth") &&
	    !json_get(element, "ingressRate") &&
	    !json_get(element, "egressRate"))
		found(f, "file", f->node->element_path, "type", f->node->type,
		      NULL);
}

static void no_annotations(const struct finder *f)
{
	const cJSON *element = f->node->element;

	if (element && json_get(element, "allowAnnotations") &&
	    !has_capability(element, ANNOTATIONS))
		found(f, "file", f->node->element_path, "type", f->node->type,
		      NULL);
}

/* Reads natra's configuration as the plugin does. Returns 0 or a code, with the
 * text in *failure. */
static int read_settings(const struct node *node, struct failure *failure)
{
	struct settings *settings = memory_new(sizeof(*settings));
	int r = wish_read_keys(settings, node->element, node->n, failure);

	settings_free(settings);
	free(settings);
	return r;
}

static void settings(const struct finder *f)
{
	struct failure failure = {0};

	if (f->node->element && read_settings(f->node, &failure))
		found(f, "file", f->node->element_path, "why", failure.msg,
		      NULL);
}

static void new_version(const struct finder *f)
{
	const struct node *node = f->node;
	const char *runtime = node->i->runtimes.text;

	if (node->used && node->used->version && runtime &&
	    strcmp(node->used->version, "1.1.0") == 0 &&
	    strstr(runtime, "containerd 1."))
		found(f, "runtime", runtime, "list", node->used->file, "dir",
		      node->net_dir, NULL);
}

/* Finds an element before which there is no interface. If no other plugin is there, a change of
 * the order does not mend that. */
static void first_element(const struct finder *f, bool is_alone)
{
	const struct node *node = f->node;
	const struct list *used = node->used;

	if (!node->element || node->element == node->dropin ||
	    (used->is_chain && node->element != used->plugins->child))
		return;
	if (is_alone == (!used->is_chain || !node->element->next))
		found(f, "file", node->element_path, "type", node->type, NULL);
}

static void no_interface(const struct finder *f)
{
	first_element(f, false);
}

static void natra_alone(const struct finder *f)
{
	first_element(f, true);
}

static void twice(const struct finder *f)
{
	const struct node *node = f->node;
	size_t count =
		node->element ? list_count(node->used, node->type, NULL) : 0;

	if (count > 1)
		found(f, "file", node->element_path, "type", node->type, NULL);
}

static void both_ways(const struct finder *f)
{
	const struct node *node = f->node;

	if (node->element && node->dropin && node->element != node->dropin &&
	    (!node->i->runtimes.known || node->i->runtimes.read_dropins))
		found(f, "file", node->element_path, "dropin",
		      node->dropin_path, NULL);
}

static void both(const struct finder *f)
{
	const struct node *node = f->node;
	cleanup_text char *path = NULL;

	if (!node->element || strcmp(node->type, BANDWIDTH_NAME) == 0 ||
	    !list_count(node->used, BANDWIDTH_NAME, NULL))
		return;
	path = text_format("%s/%s", node->net_dir, node->used->file);
	found(f, "file", path, NULL);
}

static void both_by_dropin(const struct finder *f)
{
	const struct node *node = f->node;

	if (node->element && node->dropin_bandwidth &&
	    (!node->i->runtimes.known || node->i->runtimes.read_dropins))
		found(f, "file", node->dropin_bandwidth, NULL);
}

static bool is_changed(const struct list *copy, const struct list *primary)
{
	const cJSON *theirs = primary->plugins ? primary->plugins->child : NULL;
	const cJSON *ours;
	bool has_natra = false;

	cJSON_ArrayForEach(ours, copy->plugins)
	{
		bool is_natra = element_has_type(ours, PLUGIN_NAME);

		/* natra's element is in the place of the bandwidth plugin's, or
		 * behind all others. */
		has_natra |= is_natra;
		if (is_natra && !element_has_type(theirs, BANDWIDTH_NAME))
			continue;
		if (!is_natra && !cJSON_Compare(ours, theirs, true) &&
		    copy_is_guest(ours, has_natra && !theirs))
			continue;
		if (!theirs ||
		    (!is_natra && !cJSON_Compare(ours, theirs, true)))
			return true;
		theirs = theirs->next;
	}
	return theirs != NULL;
}

static void old_copy(const struct finder *f)
{
	const struct list *used = f->node->used, *primary;

	if (!used || !used->is_ours || !used->name)
		return;
	primary = lists_primary(&f->node->lists, used->name);
	if (primary && primary->is_chain && primary->json &&
	    is_changed(used, primary))
		found(f, "copy", used->file, "file", primary->file, "install",
		      f->node->install, NULL);
}

static void orphan(const struct finder *f)
{
	const struct list *used = f->node->used;

	if (used && used->is_ours && used->name &&
	    !lists_primary(&f->node->lists, used->name))
		found(f, "file", used->file, "dir", f->node->net_dir, NULL);
}

static void interrupted(const struct finder *f)
{
	const struct node *node = f->node;
	const char *name;

	if (node->net_error || (!dir_has(&node->i->net, DIR_SCRATCH) &&
				!dir_has(&node->i->net, DIR_TEMPORARY)))
		return;
	name = dir_has(&node->i->net, DIR_SCRATCH) ? DIR_SCRATCH
						   : DIR_TEMPORARY;
	found(f, "name", name, "dir", node->net_dir, "install", node->install,
	      NULL);
}

const struct check checks_of_list[] = {
	{"no-list-dir",
	 "{dir}, where the runtime's lists should be, is missing",
	 "containerd config dump | grep -e conf_dir -e bin_dir", no_dir},
	{"other-place", "{why}",
	 "containerd config dump | grep -e conf_dir -e bin_dir", other_place},
	{"two-lists",
	 "max_conf_num in {file} is not 1, so pods get an interface of {list} and one of its original",
	 "sudoedit {file}", two_lists},
	{"no-list", "{dir} has no list: no network plugin is installed yet",
	 "kubectl -n kube-system get pods -o wide", no_list},
	{"not-json", "{file} {why}, and a runtime can fail at it",
	 "jq . {file}", not_json},
	{"refused-list", "the runtime refuses {file}: {why}", "sudoedit {file}",
	 refused},
	{"not-called",
	 "{file} in {dir}, the list that the runtime uses, does not call natra",
	 "{=install}", not_called},
	{"not-first",
	 "{other} calls natra, but the runtime uses {file}, which is the first one or CRI-O's cni_default_network",
	 "{=install}", not_first},
	{"other-network",
	 "{network}/{name} is for network '{network}', but the runtime uses {file} of network '{used}'",
	 "{=install}", other_dropin},
	{"renamed-list",
	 "Cilium has renamed a list in {dir} to {file}, and natra is in no other list; its chart has the value cni.exclusive, too",
	 CILIUM_SET("cni-exclusive",
		    "false") " && mv -t /var/tmp {dir}/*.cilium_bak",
	 renamed},
	{"dropin-unread",
	 "natra is in {file} only, and {why} does not read drop-ins",
	 "{=install}", dropin_unread},
	{"dropin-ignored",
	 "natra is in {file} only, and {why} says loadOnlyInlinedPlugins",
	 "{=install}", dropin_ignored},
	{"no-capability",
	 "natra's element in {file} lacks the capability bandwidth, so the runtime passes no rates",
	 EDIT("(.. | objects | select(.type? == \"{type}\")).capabilities.bandwidth = true"),
	 no_bandwidth},
	{"no-annotations",
	 "natra's element in {file} has allowAnnotations, but lacks the capability " ANNOTATIONS,
	 EDIT("(.. | objects | select(.type? == \"{type}\")).capabilities[\"" ANNOTATIONS
	      "\"] = true"),
	 no_annotations},
	{"settings", "natra's element in {file} is wrong: {why}",
	 "sudoedit {file}", settings},
	{"new-version",
	 "{list} in {dir} has cniVersion 1.1.0, which {runtime} refuses",
	 "sed -i 's/\"1\\.1\\.0\"/\"1.0.0\"/' {dir}/{list}", new_version},
	{"no-interface",
	 "natra is the first plugin in {file}, where there is no interface yet",
	 EDIT(".plugins |= map(select(.type != \"{type}\")) + map(select(.type == \"{type}\"))"),
	 no_interface},
	{"natra-alone",
	 "natra is the only plugin in {file}, and makes no interface: it belongs in a list, behind the plugin that makes one",
	 "sudoedit {file}", natra_alone},
	{"twice", "{file} calls natra twice, and the last element counts",
	 EDIT(".plugins |= map(select(.type != \"{type}\")) + [map(select(.type == \"{type}\"))[-1]]"),
	 twice},
	{"list-and-dropin",
	 "{file} calls natra, and so does {dropin}, which counts",
	 "rm {dropin}", both_ways},
	{"both-plugins",
	 "{file} calls the bandwidth plugin, too, so two limits hold",
	 EDIT("del(.plugins[] | select(.type == \"bandwidth\"))"), both},
	{"both-by-dropin",
	 "{file}, too, calls the bandwidth plugin, so two limits hold",
	 "rm {file}", both_by_dropin},
	{"old-copy", "{copy} is a copy of {file}, which has changed since",
	 "{=install}", old_copy},
	{"orphan",
	 "{file} in {dir} is natra's copy of a list that is gone, and the runtime still uses it",
	 "rm {dir}/{file}", orphan},
	{"interrupted",
	 "{dir}/{name} was left by an installation that was interrupted, so the runtime may not have read its lists",
	 "{=install}", interrupted},
	{0},
};
