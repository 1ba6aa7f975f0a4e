/* SPDX-License-Identifier: BSD-2-Clause */
#include "decide.h"

#include <errno.h>
#include <string.h>

#include "../common/text.h"

/* Each of the functions against_*() returns why a way into the chain cannot be taken,
 * as a text that the caller frees; NULL if it can. */

static char *against_dropin(const struct install *i, const struct lists *lists,
			    const struct list *primary)
{
	if (lists_first(lists)->is_multus || i->multus.fd >= 0)
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
	return NULL;
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

/* Returns why natra cannot have a list of its own before all others; NULL if it can. */
static char *against_first(const struct lists *lists, const struct list *first,
			   const struct list *primary)
{
	if (first->is_multus)
		first = lists_primary(lists, NULL);
	if (first != primary)
		return text_format(
			"%s is not the list that the runtime uses, and a copy would become it",
			primary->file);
	if (strcmp(first->file, LIST_PREFIX) < 0)
		return text_format("%s comes before natra's list", first->file);
	return NULL;
}

static char *against_list(const struct lists *lists, const struct list *primary)
{
	if (lists->cilium_is_exclusive)
		return text_copy(
			"Cilium renames other lists to .cilium_bak; it needs cni.exclusive=false");
	if (lists_is_wrapper(lists, primary))
		return text_format(
			"%s is another installer's copy, which natra's would hide",
			primary->file);
	if (list_count(primary, BANDWIDTH_NAME, NULL) > 1)
		return text_format("%s has the plugin bandwidth twice",
				   primary->file);
	return against_first(lists, lists_first(lists), primary);
}

static char *against_bandwidth(const struct install *i,
			       const struct list *primary)
{
	if (!list_count(primary, BANDWIDTH_NAME, NULL))
		return text_format("%s has no plugin bandwidth", primary->file);
	if (i->request->conf && i->request->conf->child)
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

/* Decides for a node of which a list has natra in it already. */
static int decide_present(struct install *i, const struct list *primary,
			  struct choice *ret)
{
	cleanup_text char *why =
		text_format("%s has natra already", primary->file);

	if (i->request->mode != INSTALL_AUTO)
		return refuse_mode(i, i->request->mode, why);
	if (i->request->conf && i->request->conf->child)
		return install_fail(i, -EOPNOTSUPP,
				    "%s, and is not natra's to change", why);
	ret->mode = INSTALL_PRESENT;
	ret->reason = text_copy(why);
	return 0;
}

static int decide_auto(struct install *i, const struct lists *lists,
		       const struct list *primary, struct choice *ret)
{
	cleanup_text char *dropin = against_dropin(i, lists, primary);
	cleanup_text char *list = NULL;

	if (!dropin)
		dropin = against_runtime(i);
	if (!dropin) {
		ret->mode = INSTALL_DROPIN;
		ret->reason = text_format("%s reads drop-ins of %s",
					  i->runtimes.text, primary->file);
		return 0;
	}
	list = against_list(lists, primary);
	if (list)
		return install_fail(
			i, -EOPNOTSUPP,
			"no drop-in, because %s; no list, because %s", dropin,
			list);
	ret->mode = INSTALL_LIST;
	ret->reason = text_copy(dropin);
	return 0;
}

int decide(struct install *i, const struct lists *lists,
	   const struct list *primary, struct choice *ret)
{
	enum install_mode mode = i->request->mode;
	cleanup_text char *why = NULL;

	if (list_count(primary, PLUGIN_NAME, NULL))
		return decide_present(i, primary, ret);
	if (mode == INSTALL_AUTO)
		return decide_auto(i, lists, primary, ret);
	if (mode == INSTALL_DROPIN) {
		why = against_dropin(i, lists, primary);
		/* The user who asks for this mode may know more of the runtime
		 * than could be found out. */
		if (!why && i->runtimes.known)
			why = against_runtime(i);
	} else {
		why = mode == INSTALL_LIST ? against_list(lists, primary)
					   : against_bandwidth(i, primary);
	}
	if (why)
		return refuse_mode(i, mode, why);
	ret->mode = mode;
	ret->reason = text_copy("asked for");
	return 0;
}
