/* SPDX-License-Identifier: BSD-2-Clause */
#include "namespacefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "../common/dir.h"
#include "../common/namespaces.h"
#include "../common/text.h"

/* A mount over the directory is no event, and the copy may have gone. */
#define RECHECK_MS 60000

/* A copy of an agent that has no file. */
#define NO_RULES "{}"

/* Logs an error once as long as it lasts. */
static void say(struct namespacefile *ns, const char *path, const char *error,
		const char *so)
{
	char text[sizeof(ns->said)] = "";

	if (error[0])
		(void)snprintf(text, sizeof(text), "%s: %s: %s", path, error,
			       so);
	if (error[0] && strcmp(ns->said, text) != 0)
		log_write(ns->log, NATRA_LOG_ERROR, "%s", text);
	memcpy(ns->said, text, sizeof(text));
}

static int open_root(const struct namespacefile *ns)
{
	return open(ns->root ? ns->root : "/",
		    O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Reads the copy. Returns NULL if there is none. */
static char *read_copy(int root)
{
	cleanup_close int fd = dir_open_path(root, NAMESPACES_FILE, O_RDONLY);
	char *text = NULL;

	if (fd >= 0 && dir_read_fd(fd, &text) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* Puts what was parsed of a text in force. Takes both over, and returns whether they are new. Jobs keep
 * the rules that are in force until changed() says so: the same text leaves them where they are. */
static bool take(struct namespacefile *ns, char *text, cJSON *rules)
{
	const bool is_new = !ns->text || strcmp(ns->text, text) != 0;

	cJSON_Delete(is_new ? ns->rules : rules);
	free(is_new ? ns->text : text);
	if (!is_new)
		return false;
	ns->rules = rules;
	ns->text = text;
	return true;
}

/* Reads the file. Returns whether it has other rules than those in force; *error is "" if nothing is
 * wrong. */
static bool read_file(struct namespacefile *ns, struct namespaces_error *error)
{
	char *text = NULL;
	/* Opening a FIFO would wait for its other end. */
	cleanup_close int fd =
		open(ns->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : dir_read_fd(fd, &text);
	cJSON *rules = NULL;

	error->text[0] = '\0';
	if (r < 0)
		(void)snprintf(error->text, sizeof(error->text), "%s",
			       strerror(-r));
	else if (text && namespaces_parse(text, &rules, error) == 0)
		return take(ns, text, rules);
	free(text);
	return false;
}

/* Takes the copy of an earlier agent for the file, unless that had no file either. */
static bool read_earlier(struct namespacefile *ns, int root)
{
	char *text = read_copy(root);
	struct namespaces_error error;
	cJSON *rules = NULL;

	if (text && strcmp(text, NO_RULES) != 0 &&
	    namespaces_parse(text, &rules, &error) == 0)
		return take(ns, text, rules);
	free(text);
	return false;
}

/* Makes the copy of what is in force, if there is another one. Returns 0 or -errno. */
static int store(struct namespacefile *ns, int root)
{
	cleanup_text char *has = read_copy(root);
	int r = has && strcmp(ns->text, has) == 0
			? 0
			: namespaces_store(root, ns->text);

	/* An older copy is better than none. */
	ns->has_copy = r == 0 || has;
	return r;
}

static void report(struct namespacefile *ns, const char *wrong, int stored)
{
	ns->health->old_namespaces = wrong[0] || stored < 0;
	if (ns->rules && ns->has_copy)
		health_ready(ns->health, PART_NAMESPACES);
	if (!ns->rules)
		health_fail(ns->health, PART_NAMESPACES, NATRA_LOG_ERROR,
			    "%s: %s: natra limits no other pods before it was"
			    " read once",
			    ns->path, wrong);
	else if (!ns->has_copy)
		health_fail(ns->health, PART_NAMESPACES, NATRA_LOG_ERROR,
			    "%s: %s: pods that start have no maximum",
			    NAMESPACES_FILE, strerror(-stored));
	else if (wrong[0])
		say(ns, ns->path, wrong, "the namespaces keep what they have");
	else
		say(ns, NAMESPACES_FILE, stored < 0 ? strerror(-stored) : "",
		    "pods that start have what it had");
}

/* Returns whether pods have something else now. */
static bool read_all(struct namespacefile *ns)
{
	cleanup_close int root = open_root(ns);
	struct namespaces_error error;
	const bool had_copy = ns->has_copy;
	bool is_new = read_file(ns, &error);
	int r = 0;

	if (!ns->rules)
		is_new = read_earlier(ns, root);
	if (ns->rules)
		r = store(ns, root);
	report(ns, error.text, r);
	return is_new || (ns->has_copy && !had_copy);
}

static void look(void *arg)
{
	struct namespacefile *ns = arg;

	ns->unseen.is_changed = false;
	dirwatch_add_file(&ns->watch, ns->path);
	if (read_all(ns)) {
		log_write(ns->log, NATRA_LOG_INFO,
			  "limits follow the namespaces in %s", ns->path);
		ns->changed(ns->arg);
	}
	timer_set(&ns->next, RECHECK_MS);
}

static void noticed(void *arg)
{
	struct namespacefile *ns = arg;

	if (dirwatch_note(&ns->unseen))
		timer_set(&ns->next, DIRWATCH_QUIET_MS);
}

int namespacefile_open(struct namespacefile *ns, struct loop *loop)
{
	int r;

	if (!ns->path)
		return 0;
	health_expect(ns->health, PART_NAMESPACES);
	ns->next.source.fd = -1;
	ns->watch.changed = ns->watch.removed = noticed;
	ns->watch.arg = ns;
	r = dirwatch_open(&ns->watch, loop);
	if (r < 0)
		log_write(ns->log, NATRA_LOG_WARN,
			  "%s: is looked at every %d s only: %s", ns->path,
			  RECHECK_MS / 1000, strerror(-r));
	ns->loop = loop;
	r = timer_open(&ns->next, loop, look, ns);
	if (r < 0)
		return r;
	dirwatch_add_file(&ns->watch, ns->path);
	(void)read_all(ns);
	timer_set(&ns->next, RECHECK_MS);
	return 0;
}

void namespacefile_close(struct namespacefile *ns)
{
	if (!ns->loop)
		return;
	dirwatch_close(&ns->watch);
	timer_close(&ns->next, ns->loop);
	cJSON_Delete(ns->rules);
	free(ns->text);
	ns->rules = NULL;
	ns->text = NULL;
	ns->loop = NULL;
}

bool namespacefile_is_read(const struct namespacefile *ns)
{
	return !ns->path || ns->rules;
}

bool namespacefile_is_copied(const struct namespacefile *ns)
{
	return !ns->path || (ns->rules && ns->has_copy);
}

void namespacefile_forget(struct namespacefile *ns)
{
	cleanup_close int root = open_root(ns);
	cleanup_text char *has = ns->path ? NULL : read_copy(root);
	int r;

	if (!has || strcmp(has, NO_RULES) == 0)
		return;
	r = namespaces_store(root, NO_RULES);
	say(ns, NAMESPACES_FILE, r < 0 ? strerror(-r) : "",
	    "pods that start have what it had");
}
