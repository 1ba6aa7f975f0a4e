/* SPDX-License-Identifier: BSD-2-Clause */
/* natra-agent keeps natra installed on a node, and its pods limited. It has no
 * state of its own: limits are the kernel's and hold when it ends. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../common/memory.h"
#include "groupfile.h"
#include "hookwatch.h"
#include "http.h"
#include "installer.h"
#include "keeper.h"
#include "live.h"
#include "namespacefile.h"
#include "opts.h"
#include "page.h"
#include "pluginlog.h"
#include "scrape.h"

struct agent {
	struct options options;
	struct log log;
	struct loop loop;
	struct source signals;
	struct workers workers;
	struct health health;
	struct installer installer;
	cJSON *element; /* of a list of others; NULL: they have none */
	struct keeper keeper;
	struct groupfile groups;
	struct namespacefile namespaces;
	struct hookwatch hooks;
	struct live *live;
	struct pluginlog pluginlog;
	struct scrape scrape;
	struct page page;
	struct http http;
	struct http metrics; /* a second address, without the probes */
};

/* A disk that hangs is no reason to be silent. */
static void stuck(void *arg, const struct work *work)
{
	struct agent *agent = arg;
	struct health *health = &agent->health;

	health->stuck_jobs += work->is_stuck ? 1 : -1;
	if (work->is_view)
		health->stuck_views += work->is_stuck ? 1 : -1;
	if (!work->is_stuck) {
		if (health->stuck_jobs == health->stuck_views &&
		    health->parts[PART_JOBS].is_on)
			health_ready(health, PART_JOBS);
		return;
	}
	if (work->is_view) {
		log_write(&agent->log, NATRA_LOG_ERROR,
			  "%s: the job hangs and cannot be killed", work->name);
		return;
	}
	health_expect(health, PART_JOBS);
	health_fail(health, PART_JOBS, NATRA_LOG_ERROR,
		    "%s: the job took over %d s, hangs and cannot be killed",
		    work->name, (int)(work->time_max_ms / 1000));
}

static int start_failure(struct agent *agent, int r, const char *what,
			 const char *object)
{
	log_write(&agent->log, NATRA_LOG_ERROR, "%s '%s': %s", what, object,
		  strerror(-r));
	return r;
}

static int answer_metrics(void *arg, const struct http_request *request,
			  struct http_body *body)
{
	struct agent *agent = arg;

	return strcmp(request->path, "/metrics") == 0
		       ? scrape_answer(&agent->scrape, request, body)
		       : 404;
}

static int answer(void *arg, const struct http_request *request,
		  struct http_body *body)
{
	struct agent *agent = arg;
	int status = health_answer(&agent->health, request->path, body->out);

	if (status == 404)
		status = answer_metrics(arg, request, body);
	return status == 404 ? page_answer(&agent->page, request, body)
			     : status;
}

static void collected(void *arg)
{
	struct agent *agent = arg;

	if (agent->http.loop)
		http_resume(&agent->http);
	if (agent->metrics.loop)
		http_resume(&agent->metrics);
}

static int serve_on(struct agent *agent, struct http *http, const char *address,
		    http_answer_fn fn)
{
	int r;

	if (!address[0])
		return 0;
	r = http_open(http, &agent->loop, address, fn, agent);
	if (r < 0)
		return start_failure(agent, r, "listen on", address);
	if (http->socket)
		log_write(&agent->log, NATRA_LOG_INFO, "listens on %s",
			  http->socket);
	else
		log_write(&agent->log, NATRA_LOG_INFO, "listens on port %u",
			  http_port(http));
	return 0;
}

/* It shows who talks to whom, so it is for those on this machine. */
static int open_page(struct agent *agent)
{
	const struct options *o = &agent->options;
	struct page *page = &agent->page;
	int r;

	if (o->no_page || o->no_pods || !o->listen[0])
		return 0;
	if (!http_is_local(&agent->http)) {
		log_write(&agent->log, NATRA_LOG_INFO,
			  "serves no page, which is for loopback only");
		return 0;
	}
	page->log = &agent->log;
	page->health = &agent->health;
	page->bpffs = o->bpffs;
	page->node = o->live.node;
	page->is_on = true;
	page->collected = collected;
	page->arg = agent;
	r = page_open(page, &agent->workers);
	return r < 0 ? start_failure(agent, r, "start", "the page") : 0;
}

static int serve(struct agent *agent)
{
	const struct options *o = &agent->options;
	struct scrape *scrape = &agent->scrape;
	int r;

	if (!o->listen[0] && !o->metrics[0])
		return 0;
	scrape->log = &agent->log;
	scrape->health = &agent->health;
	scrape->installer = o->no_install ? NULL : &agent->installer;
	scrape->bpffs = o->bpffs;
	scrape->reads_pods = !o->no_pods;
	scrape->options = o->families;
	scrape->collected = collected;
	scrape->arg = agent;
	r = scrape_open(scrape, &agent->workers);
	if (r < 0)
		return start_failure(agent, r, "start", "the metrics");
	r = serve_on(agent, &agent->http, o->listen, answer);
	if (r == 0)
		r = open_page(agent);
	if (r < 0)
		return r;
	/* Pods need their limits even where nobody can read the metrics; the log
	 * has the reason. */
	(void)serve_on(agent, &agent->metrics, o->metrics, answer_metrics);
	return 0;
}

static void signals_ready(void *arg, uint32_t events)
{
	struct agent *agent = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(agent->signals.fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD) {
		workers_reap(&agent->workers);
		return;
	}
	log_write(&agent->log, NATRA_LOG_INFO,
		  "ends by signal %u; what is installed and limited stays",
		  info.ssi_signo);
	loop_stop(&agent->loop);
}

static int watch_signals(struct agent *agent)
{
	sigset_t set;
	int fd;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	agent->signals = (struct source){fd, signals_ready, agent};
	return loop_add(&agent->loop, &agent->signals, EPOLLIN);
}

static void completed(void *arg)
{
	struct agent *agent = arg;
	struct keeper *k = &agent->keeper;
	cJSON *conf;

	cJSON_Delete(agent->element);
	agent->element = cJSON_Parse(agent->installer.element);
	conf = agent->element ? agent->element : agent->options.conf;
	pluginlog_change(&agent->pluginlog, conf);
	/* Pods that start have no defaults or maximums of an earlier agent any more. */
	namespacefile_forget(&agent->namespaces);
	if (agent->options.no_pods)
		return;
	k->jobs.conf = conf;
	keeper_ask(k);
	live_begin(agent->live);
}

/* natra was uninstalled: attachments and programs stay in the kernel, and no new ones
 * are made. */
static void removed(void *arg)
{
	struct agent *agent = arg;

	live_close(agent->live);
	agent->live = NULL;
	namespacefile_close(&agent->namespaces);
	groupfile_close(&agent->groups);
	hookwatch_close(&agent->hooks);
	keeper_close(&agent->keeper);
}

static int keep_installed(struct agent *agent)
{
	struct installer *in = &agent->installer;
	int r;

	/* A pod that starts before may have any rate. */
	if (agent->options.no_install || in->work.workers ||
	    !namespacefile_is_copied(&agent->namespaces))
		return 0;
	in->log = &agent->log;
	in->health = &agent->health;
	in->request = &agent->options.install;
	in->completed = completed;
	in->removed = removed;
	in->arg = agent;
	in->repairs = agent->options.repairs;
	r = installer_open(in, &agent->workers);
	return r < 0 ? start_failure(agent, r, "start", "the installer") : 0;
}

static void pins_lost(void *arg)
{
	struct agent *agent = arg;

	groupfile_ask(&agent->groups);
	live_again(agent->live);
}

static int keep_pods(struct agent *agent)
{
	const struct options *o = &agent->options;
	struct keeper *k = &agent->keeper;
	int r;

	if (o->no_pods)
		return 0;
	k->jobs = (struct jobs){
		.root = o->install.root,
		.bpffs = o->bpffs,
		.conf = o->conf,
		.namespaces = agent->namespaces.rules,
		.adopt = !o->no_adopt &&
			 namespacefile_is_read(&agent->namespaces),
		.replace = o->replace_bandwidth,
		.edits = o->edits,
		.log = &agent->log,
	};
	k->health = &agent->health;
	k->period_ms = o->period_ms;
	k->lost = pins_lost;
	k->arg = agent;
	r = keeper_open(k, &agent->workers);
	return r < 0 ? start_failure(agent, r, "start", "the keeper") : 0;
}

/* Running pods may belong to the new groups. */
static void groups_made(void *arg)
{
	struct agent *agent = arg;

	keeper_ask(&agent->keeper);
}

static int follow_groups(struct agent *agent)
{
	const struct options *o = &agent->options;
	struct groupfile *g = &agent->groups;
	int r;

	if (o->no_pods || !o->groups)
		return 0;
	g->jobs = &agent->keeper.jobs;
	g->path = o->groups;
	g->health = &agent->health;
	g->made = groups_made;
	g->arg = agent;
	r = groupfile_open(g, &agent->workers);
	return r < 0 ? start_failure(agent, r, "follow", o->groups) : 0;
}

/* The list that the installer finds may have another configuration. */
static void begin_edits(struct agent *agent)
{
	if (agent->options.no_install &&
	    namespacefile_is_read(&agent->namespaces))
		live_begin(agent->live);
}

/* Pods get other defaults and maximums, also those that had no limits; natra may be installed
 * now, and the first ones let running pods be limited. */
static void namespaces_changed(void *arg)
{
	struct agent *agent = arg;

	(void)keep_installed(agent);
	if (agent->options.no_pods)
		return;
	agent->keeper.jobs.namespaces = agent->namespaces.rules;
	agent->keeper.jobs.adopt = !agent->options.no_adopt;
	begin_edits(agent);
	live_again(agent->live);
	keeper_ask(&agent->keeper);
}

static int follow_namespaces(struct agent *agent)
{
	const struct options *o = &agent->options;
	struct namespacefile *ns = &agent->namespaces;
	int r;

	/* It is to take natra away, or to do nothing. */
	if (o->no_install && o->no_pods)
		return 0;
	ns->path = o->namespaces;
	ns->root = o->install.root;
	ns->log = &agent->log;
	ns->health = &agent->health;
	ns->changed = namespaces_changed;
	ns->arg = agent;
	if (o->no_install)
		namespacefile_forget(ns);
	r = namespacefile_open(ns, &agent->loop);
	return r < 0 ? start_failure(agent, r, "follow", o->namespaces) : 0;
}

static int watch_hooks(struct agent *agent)
{
	int r;

	if (agent->options.no_pods)
		return 0;
	agent->hooks.jobs = &agent->keeper.jobs;
	agent->hooks.health = &agent->health;
	r = hookwatch_open(&agent->hooks, &agent->workers);
	return r < 0 ? start_failure(agent, r, "watch", "the hooks") : 0;
}

static int follow_edits(struct agent *agent)
{
	const struct options *o = &agent->options;
	int r;

	if (o->no_pods || !o->live.node[0])
		return 0;
	r = live_open(&agent->live, &o->live, &agent->keeper.jobs,
		      &agent->health, &agent->workers);
	if (r < 0)
		return start_failure(agent, r, "follow the pods of",
				     o->live.node);
	log_write(&agent->log, NATRA_LOG_INFO, "follows pods by %s",
		  o->live.kubelet_socket[0] ? o->live.kubelet_socket
					    : o->live.url);
	begin_edits(agent);
	return 0;
}

static int repeat_log(struct agent *agent)
{
	const struct options *o = &agent->options;
	int r;

	agent->pluginlog.log = &agent->log;
	r = pluginlog_open(&agent->pluginlog, o->install.root, o->conf,
			   &agent->loop);
	return r < 0 ? start_failure(agent, r, "start",
				     "the reader of the plugin's log")
		     : 0;
}

static int begin(struct agent *agent)
{
	int r = loop_open(&agent->loop);

	if (r == 0)
		r = watch_signals(agent);
	if (r < 0)
		return start_failure(agent, r, "start", "the event loop");
	log_write(&agent->log, NATRA_LOG_INFO, "natra-agent %s starts",
		  natra_version());
	agent->workers.loop = &agent->loop;
	agent->workers.stuck = stuck;
	agent->workers.arg = agent;
	r = repeat_log(agent);
	if (r == 0)
		r = follow_namespaces(agent);
	if (r == 0)
		r = serve(agent);
	if (r == 0)
		r = keep_pods(agent);
	if (r == 0)
		r = follow_groups(agent);
	if (r == 0)
		r = watch_hooks(agent);
	if (r == 0)
		r = follow_edits(agent);
	return r < 0 ? r : keep_installed(agent);
}

static void end(struct agent *agent)
{
	live_close(agent->live);
	pluginlog_close(&agent->pluginlog);
	namespacefile_close(&agent->namespaces);
	groupfile_close(&agent->groups);
	hookwatch_close(&agent->hooks);
	keeper_close(&agent->keeper);
	installer_close(&agent->installer);
	scrape_close(&agent->scrape);
	page_close(&agent->page);
	if (agent->http.loop)
		http_close(&agent->http);
	if (agent->metrics.loop)
		http_close(&agent->metrics);
	loop_close_source(&agent->loop, &agent->signals);
	loop_close(&agent->loop);
}

static int run(struct agent *agent)
{
	int r = begin(agent);

	if (r == 0)
		r = loop_run(&agent->loop);
	end(agent);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	/* It is static because it is large. */
	static struct agent agent = {
		.log = {.path = "stderr", .fd = STDERR_FILENO},
		.loop = LOOP_INIT,
		.signals = SOURCE_INIT,
	};
	int r;

	/* Whoever does not read the log must not stop the agent. */
	log_never_wait(&agent.log);
	/* This process ends when memory is short, and is started again. */
	memory_init(STDERR_FILENO, "out of memory\n");
	r = options_read(&agent.options, argc, argv);
	if (r)
		return r;
	if (agent.options.show_help) {
		options_help();
		return EXIT_SUCCESS;
	}
	if (agent.options.show_version) {
		printf("natra-agent %s\n", natra_version());
		return EXIT_SUCCESS;
	}
	/* One arena is enough for one thread, and what is free goes back soon. */
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_TRIM_THRESHOLD, 65536);
	agent.log.level = agent.options.log_level;
	health_init(&agent.health, &agent.log);
	r = run(&agent);
	cJSON_Delete(agent.element);
	options_free(&agent.options);
	return r;
}
