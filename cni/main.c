/* SPDX-License-Identifier: BSD-2-Clause */
/* natra as a CNI plugin: finds the command, runs it, and logs and prints its
 * outcome. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../tools/common/memory.h"
#include "command.h"
#include "io.h"
#include "settings.h"
#include "../tools/common/annotations.h"

struct command {
	const char *name;
	unsigned int needs;
	enum version since;
	/* The level at which a success is logged: the runtime calls some
	 * commands all the time. */
	enum natra_log_level level;
	int (*run)(struct call *call);
};

static const struct command commands[] = {
	{"ADD", ENV_CONTAINERID | ENV_NETNS | ENV_IFNAME, VERSION_0_3_0,
	 NATRA_LOG_INFO, cmd_add},
	{"DEL", ENV_CONTAINERID | ENV_IFNAME, VERSION_0_3_0, NATRA_LOG_INFO,
	 cmd_del},
	{"CHECK", ENV_CONTAINERID | ENV_NETNS | ENV_IFNAME, VERSION_0_4_0,
	 NATRA_LOG_DEBUG, cmd_check},
	{"GC", ENV_PATH, VERSION_1_1_0, NATRA_LOG_DEBUG, cmd_gc},
	{"STATUS", 0, VERSION_1_1_0, NATRA_LOG_DEBUG, cmd_status},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* Explains the plugin to a person who runs it by hand. */
static int show_about(void)
{
	fprintf(stderr,
		"CNI plugin natra %s\nCNI protocol versions supported: ",
		natra_version());
	for (int i = 0; i < VERSION_MAX; i++)
		fprintf(stderr, "%s%s", i ? ", " : "",
			version_name((enum version)i));
	fputc('\n', stderr);
	return EXIT_SUCCESS;
}

static int show_versions(void)
{
	cleanup_json cJSON *json = cJSON_CreateObject();
	cJSON *list;
	char *text;
	int r;

	cJSON_AddStringToObject(json, "cniVersion",
				version_name(VERSION_NEWEST));
	list = cJSON_AddArrayToObject(json, "supportedVersions");
	for (int i = 0; i < VERSION_MAX; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(version_name(
						   (enum version)i)));
	text = cJSON_PrintUnformatted(json);
	r = io_write_line(STDOUT_FILENO, text);
	cJSON_free(text);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Logs a line of the library. Its information is a detail here, since each
 * command logs one line of its own. */
static void log_library(void *arg, enum natra_log_level level, const char *line)
{
	if (level == NATRA_LOG_INFO)
		level = NATRA_LOG_DEBUG;
	log_write(arg, level, "%s", line);
}

static void begin_log(struct call *call)
{
	struct log_settings settings = settings_log(call->conf.json);
	struct log_words *about = &call->log.about;

	call->log.path = settings.file;
	call->log.level = settings.level;
	log_add(about, "command", call->env.command);
	log_add(about, "network", call->conf.name);
	if (call->env.container_id[0])
		log_add(about, "containerid", call->env.container_id);
	if (call->env.ifname[0])
		log_add(about, "ifname", call->env.ifname);
	if (call->pod[0])
		log_add(about, "pod", call->pod);
}

static void end_log(struct call *call, int r, const struct timespec *begin)
{
	struct timespec now;
	char ms[32];

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)snprintf(ms, sizeof(ms), "%.1f",
		       (double)(now.tv_sec - begin->tv_sec) * 1e3 +
			       (double)(now.tv_nsec - begin->tv_nsec) / 1e6);
	log_add(&call->facts, "duration_ms", ms);
	if (r) {
		log_add_u64(&call->facts, "code", (uint64_t)r);
		log_line(&call->log, NATRA_LOG_ERROR, call->failure.msg,
			 &call->facts);
	} else {
		log_line(&call->log, call->level, call->outcome, &call->facts);
	}
	log_close(&call->log);
}

static int run_command(struct call *call, const struct command *command)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	int r;

	opts.log_fn = log_library;
	opts.log_arg = &call->log;
	/* The next pod will need the programs soon. */
	opts.keep_programs = true;
	r = natra_open(&call->n, &opts);
	if (r < 0)
		return failure_set(&call->failure, CNI_TRY_AGAIN,
				   "open libnatra: %s", strerror(-r));
	r = command->run(call);
	natra_close(call->n);
	return r;
}

static int read_configuration(struct call *call, const struct command *command,
			      char **ret_text)
{
	size_t len = 0;
	int r;

	r = io_read_all(STDIN_FILENO, ret_text, &len, &call->failure);
	if (r == 0)
		r = conf_parse(&call->conf, *ret_text, len, &call->failure);
	if (r == 0 && call->conf.version < command->since)
		r = failure_set(&call->failure, CNI_INCOMPATIBLE_VERSION,
				"config version does not allow %s",
				command->name);
	return r;
}

static int answer(struct call *call, char **ret_text)
{
	const struct command *command = find_command(call->env.command);
	struct timespec begin;
	int r;

	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!command)
		return failure_set(&call->failure, CNI_BAD_ENVIRONMENT,
				   "unknown CNI_COMMAND: %s",
				   call->env.command);
	r = env_check(&call->env, command->needs, &call->failure);
	if (r == 0)
		r = read_configuration(call, command, ret_text);
	/* Without a configuration the plugin does not know where to log. */
	if (r)
		return r;
	env_pod(call->env.args, call->pod, sizeof(call->pod));
	call->level = command->level;
	begin_log(call);
	r = run_command(call, command);
	end_log(call, r, &begin);
	return r;
}

int main(void)
{
	struct call call = {
		.conf = {.name = "", .version = VERSION_NEWEST},
		.log = LOG_INIT,
		.outcome = "",
	};
	char *text = NULL; /* the configuration's */
	int r;

	io_init();
	memory_init(STDOUT_FILENO, "{\"cniVersion\":\"1.1.0\",\"code\":11,"
				   "\"msg\":\"out of memory\"}\n");
	/* The library's threads are short-lived and run one at a time, but
	 * malloc would map an arena for each. */
	(void)mallopt(M_ARENA_MAX, 1);
	call.env = env_read();
	if (!call.env.command[0])
		return show_about();
	if (strcmp(call.env.command, "VERSION") == 0)
		return show_versions();
	r = answer(&call, &text);
	if (r)
		io_print_failure(&call.failure,
				 version_name(call.conf.version));
	annotations_free(&call.asker.annotations);
	cJSON_Delete(call.namespaces);
	conf_free(&call.conf);
	cJSON_free(text);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
