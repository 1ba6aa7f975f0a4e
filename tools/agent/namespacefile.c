/* SPDX-License-Identifier: BSD-2-Clause */
#include "namespacefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "../common/dir.h"
#include "../common/namespaces.h"
#include "../common/text.h"

/* A file that is being written changes several times in a row. */
#define QUIET_MS   50
/* A mount over the directory is no event, and the copy may have gone. */
#define RECHECK_MS 60000

static void say(struct namespacefile *ns, const char *error)
{
	if (error[0] && strcmp(ns->said, error) != 0)
		log_write(ns->log, NATRA_LOG_ERROR,
			  "%s: %s: the namespaces keep what they have",
			  ns->path ? ns->path : NAMESPACES_FILE, error);
	(void)snprintf(ns->said, sizeof(ns->said), "%s", error);
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

/* Returns whether the copy has changed. */
static bool store(struct namespacefile *ns, const char *text)
{
	cleanup_close int root = open_root(ns);
	cleanup_text char *has = read_copy(root);
	const bool is_same =
		text && has ? strcmp(text, has) == 0 : !text && !has;
	int r = is_same ? 0 : namespaces_store(root, text);

	say(ns, r < 0 ? strerror(-r) : "");
	return r == 0 && !is_same;
}

static bool copy(struct namespacefile *ns)
{
	cleanup_text char *text = NULL;
	/* Opening a FIFO would wait for its other end. */
	cleanup_close int fd =
		open(ns->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : dir_read_fd(fd, &text);
	struct namespaces_error error;
	cJSON *file = NULL;

	if (r < 0) {
		say(ns, strerror(-r));
		return false;
	}
	if (namespaces_parse(text, &file, &error) < 0) {
		say(ns, error.text);
		return false;
	}
	cJSON_Delete(file);
	return store(ns, text);
}

static void look(void *arg)
{
	struct namespacefile *ns = arg;

	dirwatch_add_file(&ns->watch, ns->path);
	if (copy(ns)) {
		log_write(ns->log, NATRA_LOG_INFO,
			  "limits follow the namespaces in %s", ns->path);
		ns->changed(ns->arg);
	}
	timer_set(&ns->next, RECHECK_MS);
}

static void noticed(void *arg)
{
	struct namespacefile *ns = arg;

	timer_set(&ns->next, QUIET_MS);
}

int namespacefile_open(struct namespacefile *ns, struct loop *loop)
{
	int r;

	if (!ns->path) {
		(void)store(ns, NULL);
		return 0;
	}
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
	(void)copy(ns);
	timer_set(&ns->next, RECHECK_MS);
	return 0;
}

void namespacefile_close(struct namespacefile *ns)
{
	if (!ns->loop)
		return;
	dirwatch_close(&ns->watch);
	timer_close(&ns->next, ns->loop);
	ns->loop = NULL;
}
