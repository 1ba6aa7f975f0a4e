/* SPDX-License-Identifier: BSD-2-Clause */
#include "decide.h"

#include <errno.h>
#include <string.h>

#include "../common/keys.h"
#include "../common/text.h"
#include "dropins.h"

/* Each of the functions against_*() returns why a way into the chain cannot be taken,
 * as a text that the caller frees; NULL if it can. */

/* What is known of the chain that the runtime reads. */
struct chain {
	struct install *i;
	const struct lists *lists;
	const struct list *primary;
	struct dropins dropins; /* of others */
};

/* Returns what the drop-ins of others say against a drop-in or a list, if the runtime reads
 * them. */
static char *against_dropins(const struct chain *chain)
{
	if (!chain->dropins.bandwidth)
		return NULL;
	return text_format("%s has the plugin bandwidth, and both would limit",
			   chain->dropins.bandwidth);
}

/* Returns whether Multus delegates to the primary list, or will again: it takes its own list
 * away when its pod ends, and if natra's copy went then, Multus would find the list without
 * natra when it starts. */
static bool is_behind_multus(const struct chain *chain)
{
	const struct install *i = chain->i;
	const struct list *first = lists_first(i, chain->lists);

	return (first && first->is_multus) || i->multus.fd >= 0 ||
	       (lists_have_ours(chain->lists) &&
		(dir_has(&i->bin, MULTUS_NAME) ||
		 dir_has(&i->bin, MULTUS_SHIM_NAME)));
}

static char *against_dropin(const struct chain *chain)
{
	const struct list *primary = chain->primary;

	if (is_behind_multus(chain))
		return text_copy("Multus reads no drop-ins");
	if (!primary->is_chain)
		return text_format("%s is not a .conflist", primary->file);
	if (list_says_true(primary, "loadOnlyInlinedPlugins"))
		return text_format("%s says loadOnlyInlinedPlugins",
				   primary->file);
	if (list_count(primary, BANDWIDTH_NAME, NULL))
		return text_format(
			"%s has the plugin bandwidth, and both would limit",
			primary->file);
	return against_dropins(chain);
}

static bool reads_dropins(const struct chain *chain)
{
	return chain->i->runtimes.known && chain->i->runtimes.read_dropins &&
	       chain->primary->is_chain &&
	       !list_says_true(chain->primary, "loadOnlyInlinedPlugins");
}

static char *against_runtime(const struct install *i)
{
	if (!i->runtimes.known)
		return text_copy("the runtime's version is not known");
	if (!i->runtimes.read_dropins)
		return text_format("%s does not read drop-ins",
				   i->runtimes.text);
	return NULL;
}

/* Returns why natra cannot have a list of its own before all others of the network; NULL if
 * it can. */
static char *against_first(const struct chain *chain)
{
	const struct lists *lists = chain->lists;
	const struct list *primary = chain->primary;

	if (primary != lists_primary(lists, lists_network(chain->i, lists)))
		return text_format(
			"%s is not the list that the runtime uses, and a copy would become it",
			primary->file);
	if (strcmp(primary->file, LIST_PREFIX) < 0)
		return text_format("%s comes before natra's list",
				   primary->file);
	return NULL;
}

static char *against_list(const struct chain *chain)
{
	const struct lists *lists = chain->lists;
	const struct list *primary = chain->primary;

	if (chain->i->settings.lists_max != 1)
		return text_format(
			"%s: max_conf_num is %ld, and pods would get an interface of the copy, too",
			chain->i->settings.file, chain->i->settings.lists_max);
	/* Cilium never gives the old name back, so the file may be one of the past, but nothing
	 * else on the node says what Cilium does. */
	if (lists->renamed)
		return text_format(
			"Cilium has renamed a list to %s/%s: set cni.exclusive=false, restart its pods, and remove that file",
			chain->i->net.path, lists->renamed);
	if (lists_is_wrapper(lists, primary))
		return text_format(
			"%s is another installer's copy, which natra's would hide",
			primary->file);
	if (list_count(primary, BANDWIDTH_NAME, NULL) > 1)
		return text_format("%s has the plugin bandwidth twice",
				   primary->file);
	if (reads_dropins(chain) && chain->dropins.bandwidth)
		return against_dropins(chain);
	return against_first(chain);
}

/* Returns whether natra's element is to have keys that nothing stands in for. The agent adds
 * requireNamespaces to whatever its user gives: the plugin reads the file of namespaces without
 * that, too, and an element that cannot have it only lets pods start while the file is missing. */
static bool has_keys(const struct install *i)
{
	const cJSON *key;

	cJSON_ArrayForEach(key, i->request->conf)
	{
		if (strcmp(key->string, REQUIRE_NAMESPACES) != 0)
			return true;
	}
	return false;
}

static char *against_bandwidth(const struct chain *chain)
{
	const struct install *i = chain->i;
	const struct list *primary = chain->primary;

	if (!list_count(primary, BANDWIDTH_NAME, NULL) &&
	    !(reads_dropins(chain) && chain->dropins.bandwidth))
		return text_format("%s has no plugin bandwidth", primary->file);
	if (has_keys(i))
		return text_format(
			"keys of the configuration cannot be written into %s, which is not natra's",
			primary->file);
	return NULL;
}

static int refuse_mode(struct install *i, enum install_mode mode,
		       const char *why)
{
	return install_fail(i, -EOPNOTSUPP, "mode %s: %s",
			    install_mode_name(mode), why);
}

/* Decides for a node of which a list, or a drop-in of others, has natra in it already. */
static int decide_present(struct install *i, const char *file,
			  struct choice *ret)
{
	cleanup_text char *why = text_format("%s has natra already", file);

	if (i->request->mode != INSTALL_AUTO)
		return refuse_mode(i, i->request->mode, why);
	if (has_keys(i))
		return install_fail(i, -EOPNOTSUPP,
				    "%s, and is not natra's to change", why);
	ret->mode = INSTALL_PRESENT;
	ret->reason = text_copy(why);
	return 0;
}

static int decide_auto(const struct chain *chain, struct choice *ret)
{
	struct install *i = chain->i;
	cleanup_text char *dropin = against_dropin(chain), *list = NULL;

	if (!dropin)
		dropin = against_runtime(i);
	if (!dropin) {
		ret->mode = INSTALL_DROPIN;
		ret->reason =
			text_format("%s reads drop-ins of %s", i->runtimes.text,
				    chain->primary->file);
		return 0;
	}
	list = against_list(chain);
	if (list && strcmp(list, dropin) == 0)
		return install_fail(i, -EOPNOTSUPP, "%s", list);
	if (list)
		return install_fail(
			i, -EOPNOTSUPP,
			"no drop-in, because %s; no list, because %s", dropin,
			list);
	ret->mode = INSTALL_LIST;
	ret->reason = text_copy(dropin);
	return 0;
}

static int decide_asked(const struct chain *chain, struct choice *ret)
{
	struct install *i = chain->i;
	enum install_mode mode = i->request->mode;
	cleanup_text char *why = NULL;

	if (mode == INSTALL_DROPIN) {
		why = against_dropin(chain);
		/* The user who asks for this mode may know more of the runtime
		 * than could be found out. */
		if (!why && i->runtimes.known)
			why = against_runtime(i);
	} else {
		why = mode == INSTALL_LIST ? against_list(chain)
					   : against_bandwidth(chain);
	}
	if (why)
		return refuse_mode(i, mode, why);
	ret->mode = mode;
	ret->reason = text_copy("asked for");
	return 0;
}

/* Returns natra's element in a list; NULL if its number is none. */
static char *element_of(const struct list *list)
{
	const cJSON *element;
	char *json, *text;
	int at = -1;

	(void)list_count(list, PLUGIN_NAME, &at);
	element = cJSON_GetArrayItem(list->plugins, at);
	json = element ? cJSON_PrintUnformatted(element) : NULL;
	text = json ? text_copy(json) : NULL;
	cJSON_free(json);
	return text;
}

static int decide_chain(const struct chain *chain, struct choice *ret)
{
	/* The runtime refuses the whole network for it. */
	if (chain->dropins.wrong &&
	    (reads_dropins(chain) || chain->i->request->mode == INSTALL_DROPIN))
		return install_fail(chain->i, -EINVAL, "%s",
				    chain->dropins.wrong);
	if (list_count(chain->primary, PLUGIN_NAME, NULL)) {
		ret->element = element_of(chain->primary);
		return decide_present(chain->i, chain->primary->file, ret);
	}
	if (chain->dropins.natra && reads_dropins(chain)) {
		ret->element = text_copy(chain->dropins.element);
		return decide_present(chain->i, chain->dropins.natra, ret);
	}
	return chain->i->request->mode == INSTALL_AUTO
		       ? decide_auto(chain, ret)
		       : decide_asked(chain, ret);
}

int decide(struct install *i, const struct lists *lists,
	   const struct list *primary, struct choice *ret)
{
	struct chain chain = {i, lists, primary, {0}};
	int r;

	*ret = (struct choice){0};
	dropins_look(i, primary->name, &chain.dropins);
	r = decide_chain(&chain, ret);
	dropins_free(&chain.dropins);
	return r;
}
