/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../common/namespaces.h"
#include "../common/text.h"
#include "cli.h"
#include "install_ask.h"
#include "install_show.h"
#include "json.h"
#include "output.h"

/* How often a list may change while it is read, before natractl gives up. */
#define ROUNDS 5

struct job {
	const struct cli *cli;
	struct install *i;
	bool uninstall;
	cJSON *changes;  /* the changes that were made */
	cJSON *warnings; /* of all plans */
};

static int install_failure(const char *why)
{
	fputs("natractl: ", stderr);
	(void)print_text(stderr, why, 0);
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

/* Counts the attachments that the plugin made, which have a network: those that
 * natractl made do not need the plugin. */
static int count_pods(void *arg, const struct natra_info *info)
{
	size_t *count = arg;

	*count += info->network[0] != '\0';
	return 0;
}

/* Writes to `text` why pods still need the plugin; "" if they do not. */
static void find_pods(struct natra *n, char *text, size_t size)
{
	size_t count = 0;
	int r = natra_foreach_attachment(n, count_pods, &count);

	text[0] = '\0';
	if (r < 0)
		(void)snprintf(text, size,
			       "the attachments cannot be listed: %s",
			       strerror(-r));
	else if (count)
		(void)snprintf(text, size,
			       "%zu pod%s limited by natra, see natractl list",
			       count, count == 1 ? " is" : "s are");
}

static int make_plan(const struct job *job, struct install_plan **ret)
{
	char pods[128];

	if (!job->uninstall)
		return install_plan(job->i, ret);
	/* This is asked for each plan: a pod may have been made since the last
	 * one. */
	find_pods(job->cli->n, pods, sizeof(pods));
	return install_plan_removal(job->i, pods[0] ? pods : NULL,
				    job->cli->opts.value[OPT_FORCE], ret);
}

static void show_changes(const struct job *job, const struct install_plan *plan,
			 size_t len, bool whole)
{
	for (size_t n = 0; n < len; n++) {
		if (wants_json(job->cli))
			cJSON_AddItemToArray(
				job->changes,
				install_change_json(&plan->changes[n]));
		else
			install_show_change(&plan->changes[n], whole);
	}
}

static void note_warning(const struct job *job, const char *text)
{
	const cJSON *known;

	cJSON_ArrayForEach(known, job->warnings)
	{
		if (strcmp(known->valuestring, text) == 0)
			return;
	}
	cJSON_AddItemToArray(job->warnings, cJSON_CreateString(text));
}

static void note_warnings(const struct job *job,
			  const struct install_plan *plan)
{
	for (size_t n = 0; n < plan->warnings_len; n++)
		note_warning(job, plan->warnings[n]);
}

/* Says of a copy that is in use that nobody stays here who sees what becomes of the lists. */
static void note_copy(const struct job *job, const struct install_plan *plan)
{
	if (!job->uninstall && plan->mode == INSTALL_LIST) {
		cleanup_text char *text = text_format(
			"natra's copy of %s hides what changes there, and lists that come later,"
			" until natractl install runs again; natra-agent sees to that itself",
			plan->primary_file);

		note_warning(job, text);
	}
}

/* Plans and applies until nothing is left to do. *ret is the last plan; it
 * stays NULL if there was something left to do each time. */
static int work(struct job *job, struct install_plan **ret)
{
	struct install_plan *plan = NULL;
	bool dry = job->cli->opts.value[OPT_DRY_RUN];
	int r = 0;

	for (int n = 0; n < ROUNDS; n++) {
		size_t made;

		r = make_plan(job, &plan);
		if (r < 0)
			return r;
		made = plan->changes_len;
		if (!dry)
			r = install_apply(job->i, plan, &made);
		show_changes(job, plan, made, dry);
		note_warnings(job, plan);
		if (r == 0 && (dry || plan->changes_len == 0)) {
			note_copy(job, plan);
			*ret = plan;
			return 0;
		}
		install_plan_free(plan);
		if (r < 0 && r != -EAGAIN)
			return r;
	}
	return r;
}

static void show_warnings(const struct job *job)
{
	const cJSON *warning;

	cJSON_ArrayForEach(warning, job->warnings)
	{
		fputs("natractl: warning: ", stderr);
		(void)print_text(stderr, warning->valuestring, 0);
		fputc('\n', stderr);
	}
}

static void show_kept(const struct install_plan *plan)
{
	if (!plan->kept)
		return;
	fputs("natractl: the plugin stays: ", stderr);
	(void)print_text(stderr, plan->kept, 0);
	fputc('\n', stderr);
}

static void add_lists(const struct job *job, cJSON *json)
{
	cJSON_AddItemToObject(json, "changes",
			      cJSON_Duplicate(job->changes, true));
	cJSON_AddItemToObject(json, "warnings",
			      cJSON_Duplicate(job->warnings, true));
}

static void show_json(const struct job *job, const struct install_plan *plan)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "net_dir", install_net_dir(job->i));
	json_add_text(json, "bin_dir", install_bin_dir(job->i));
	if (!job->uninstall) {
		json_add_text(json, "mode", install_mode_name(plan->mode));
		json_add_text(json, "reason", plan->reason);
	} else {
		cJSON_AddBoolToObject(json, "plugin_kept", plan->kept != NULL);
	}
	add_lists(job, json);
	json_print(json);
}

static void show_end(const struct job *job, const struct install_plan *plan)
{
	if (wants_json(job->cli)) {
		show_json(job, plan);
	} else if (!job->uninstall) {
		printf("mode %s: ", install_mode_name(plan->mode));
		(void)print_text(stdout, plan->reason, 0);
		putchar('\n');
	}
	show_warnings(job);
	show_kept(plan);
}

/* Files that were changed before the failure stay changed, so the changes are shown, too. */
static int show_failure(const struct job *job, const char *why)
{
	if (wants_json(job->cli)) {
		cJSON *json = cJSON_CreateObject();

		add_lists(job, json);
		json_add_text(json, "error", why);
		json_print(json);
	}
	show_warnings(job);
	return install_failure(why);
}

/* Pods that start later have nothing of natra's, once no list names the plugin; one that stays may
 * be called by an element that asks for the file, without which no pod would start. Returns why
 * the file cannot be removed, which the caller frees, or NULL. */
static char *remove_namespaces(const struct job *job,
			       const struct install_plan *plan)
{
	const struct cli *cli = job->cli;
	const char *root = cli->opts.value[OPT_ROOT];
	cleanup_close int fd = -1;
	int r;

	if (!job->uninstall || plan->kept || cli->opts.value[OPT_DRY_RUN])
		return NULL;
	/* The directory goes with the file, unless the lock's file is in it. */
	install_unlock(job->i);
	fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : namespaces_store(fd, NULL);
	return r < 0 ? text_format("%s: %s", NAMESPACES_FILE, strerror(-r))
		     : NULL;
}

static int run(struct job *job, const struct install_request *request)
{
	struct install_plan *plan = NULL;
	cleanup_text char *why = NULL;
	int code;

	if (install_open(job->i, request) < 0 || work(job, &plan) < 0)
		return show_failure(job, install_error(job->i));
	if (!plan)
		return show_failure(
			job,
			"somebody keeps changing the directories, natractl has given up");
	why = remove_namespaces(job, plan);
	if (why) {
		code = show_failure(job, why);
	} else {
		show_end(job, plan);
		code = plan->kept ? EXIT_NO : EXIT_SUCCESS;
	}
	install_plan_free(plan);
	return code;
}

static int start(struct job *job)
{
	struct install_request request;
	cJSON *conf = NULL;
	int r = install_ask(job->cli, &request, &conf);

	if (r)
		return r;
	request.removal = job->uninstall;
	request.dry_run = job->cli->opts.value[OPT_DRY_RUN];
	/* A user who may not load BPF may ask for a dry run. */
	request.is_own_kernel = !request.root && !request.dry_run;
	job->i = install_new();
	job->changes = cJSON_CreateArray();
	job->warnings = cJSON_CreateArray();
	/* Attachments whose interface does not exist do not need the plugin. */
	if (job->uninstall && !request.dry_run)
		(void)natra_gc(job->cli->n, NULL, NULL, 0, NULL);
	r = run(job, &request);
	cJSON_Delete(job->changes);
	cJSON_Delete(job->warnings);
	install_free(job->i);
	cJSON_Delete(conf);
	return r;
}

int cmd_install(struct cli *cli)
{
	struct job job = {.cli = cli};

	return start(&job);
}

int cmd_uninstall(struct cli *cli)
{
	struct job job = {.cli = cli, .uninstall = true};

	return start(&job);
}
