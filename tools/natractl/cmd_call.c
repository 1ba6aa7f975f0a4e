/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls the library's functions for programs that cannot link it. A request is a line of
 * JSON on stdin, and its answer a line on stdout. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/policy/environment.h"
#include "../common/memory.h"
#include "call_annotate.h"
#include "cli.h"
#include "events.h"
#include "../common/flows.h"
#include "info.h"
#include "neighbours.h"
#include "output.h"
#include "probe.h"
#include "stats.h"

/* The function that is called, with its arguments as the library takes them. */
struct call {
	struct cli *cli; /* its handle is that of the last `open` */
	struct natra_events *events;
	struct request request;
	const struct natra_target *target;
	const struct natra_policy *policy;
	const char *id, *network, *reason, *text;
	cJSON *result; /* NULL: there is none */
};

static volatile sig_atomic_t is_stopped;

static void stop(int signal)
{
	(void)signal;
	is_stopped = 1;
}

static bool cancelled(void *arg)
{
	(void)arg;
	return is_stopped;
}

static void log_json(void *arg, enum natra_log_level level, const char *line)
{
	cJSON *json = cJSON_CreateObject();

	(void)arg;
	json_add_u64(json, "log", level);
	json_add_text(json, "line", line);
	json_print_line(json);
}

static int open_handle(struct call *call, struct natra_open_opts *opts)
{
	struct natra *n;
	int r;

	opts->cancelled_fn = cancelled;
	r = natra_open(&n, opts);
	if (r < 0)
		return r;
	natra_events_close(call->events);
	natra_close(call->cli->n);
	call->events = NULL;
	call->cli->n = n;
	return 0;
}

static int call_open(struct call *call)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct request *request = &call->request;
	bool wants_log = false;
	int r = call_read_text(request, "bpffs_path", &opts.bpffs_path);

	if (r == 0)
		r = call_read_bool(request, "keep_programs",
				   &opts.keep_programs);
	if (r == 0)
		r = call_read_bool(request, "refuse_other_abi",
				   &opts.refuse_other_abi);
	if (r == 0)
		r = call_read_bool(request, "log", &wants_log);
	if (r < 0)
		return r;
	if (wants_log)
		opts.log_fn = log_json;
	return open_handle(call, &opts);
}

static int call_attach(struct call *call)
{
	struct natra_info info = NATRA_INIT(info);
	struct natra_policy policy;
	int r;

	if (!call->policy)
		return natra_attach(call->cli->n, call->target, NULL, &info);
	policy = *call->policy;
	r = environment_read(&policy, call->request.error,
			     sizeof(call->request.error));
	if (r == 0)
		r = natra_attach(call->cli->n, call->target, &policy, &info);
	if (r == 0)
		call->result = info_json(call->cli->n, &info);
	return r;
}

static int call_configure(struct call *call)
{
	return natra_configure(call->cli->n, call->id, call->policy);
}

static int call_upgrade(struct call *call)
{
	return natra_upgrade(call->cli->n, call->id);
}

static int call_detach(struct call *call)
{
	int r = natra_detach(call->cli->n, call->target);

	if (r < 0)
		return r;
	call->result = cJSON_CreateObject();
	cJSON_AddBoolToObject(call->result, "removed", r == 1);
	return 0;
}

static int call_check(struct call *call)
{
	return natra_check(call->cli->n, call->id, call->policy);
}

static int call_query(struct call *call)
{
	struct natra_info info = NATRA_INIT(info);
	int r = natra_query(call->cli->n, call->id, &info);

	if (r == 0)
		call->result = info_json(call->cli->n, &info);
	return r;
}

static int call_find(struct call *call)
{
	char id[NATRA_ID_MAX + 1];
	int r = natra_find(call->cli->n, call->target, id, sizeof(id));

	if (r == 0) {
		call->result = cJSON_CreateObject();
		json_add_text(call->result, "id", id);
	}
	return r;
}

static int call_stats(struct call *call)
{
	struct natra_info info = NATRA_INIT(info);
	struct natra_stats stats = NATRA_INIT(stats);
	struct sample sample;
	int r = natra_stats(call->cli->n, call->id, &stats);

	/* It says which parts of the counters there are. */
	if (r == 0)
		r = natra_query(call->cli->n, call->id, &info);
	if (r < 0)
		return r;
	sample = sample_of(&info, &stats);
	call->result = stats_json(&sample);
	return 0;
}

/* What natra_foreach_stats has told. info_json() asks the library again, so it has to
 * wait until the walk has ended. */
struct walked {
	size_t len;
	struct walked_one {
		struct natra_info info;
		bool has_stats;
		struct sample sample;
	} * items;
};

static int add_walked(void *arg, const struct natra_info *info,
		      const struct natra_stats *stats)
{
	struct walked *walked = arg;
	struct walked_one *items =
		memory_grow(walked->items, (walked->len + 1) * sizeof(*items));

	walked->items = items;
	items += walked->len++;
	*items = (struct walked_one){.info = *info, .has_stats = stats};
	if (stats)
		items->sample = sample_of(info, stats);
	return 0;
}

static int call_foreach_stats(struct call *call)
{
	struct walked walked = {0};
	int r = natra_foreach_stats(call->cli->n, add_walked, &walked);

	call->result = cJSON_CreateArray();
	for (size_t i = 0; i < walked.len && r == 0; i++) {
		const struct walked_one *one = &walked.items[i];
		cJSON *json = cJSON_CreateObject();

		cJSON_AddItemToObject(json, "info",
				      info_json(call->cli->n, &one->info));
		if (one->has_stats)
			cJSON_AddItemToObject(json, "stats",
					      stats_json(&one->sample));
		cJSON_AddItemToArray(call->result, json);
	}
	free(walked.items);
	return r;
}

static int call_foreach_attachment(struct call *call)
{
	struct info_list list;
	int r = info_list_read(call->cli->n, &list);

	if (r < 0)
		return r;
	call->result = cJSON_CreateArray();
	for (size_t i = 0; i < list.len; i++)
		cJSON_AddItemToArray(call->result,
				     info_json(call->cli->n, &list.items[i]));
	info_list_free(&list);
	return 0;
}

static int call_foreach_neighbour(struct call *call)
{
	call->result = cJSON_CreateArray();
	return hooks_json(call->cli, call->id, call->result);
}

static int add_subnet(void *arg, const char *cidr)
{
	cJSON_AddItemToArray(arg, cJSON_CreateString(cidr));
	return 0;
}

static int call_foreach_subnet(struct call *call)
{
	call->result = cJSON_CreateArray();
	return natra_foreach_subnet(call->cli->n, call->id, add_subnet,
				    call->result);
}

static int call_top(struct call *call)
{
	struct natra_flow flows[NATRA_FLOWS_MAX];
	uint64_t direction = 0;
	size_t len = NATRA_FLOWS_MAX;
	int r = call_read_number(&call->request, "direction", UINT32_MAX,
				 &direction);

	if (r == 0)
		r = natra_top(call->cli->n, call->id,
			      (enum natra_direction)direction, flows, &len);
	if (r == 0)
		call->result = flows_json(flows, len);
	return r;
}

static int call_events_open(struct call *call)
{
	struct natra_events *events;
	int r = natra_events_open(call->cli->n, &events);

	if (r < 0)
		return r;
	natra_events_close(call->events);
	call->events = events;
	return 0;
}

/* Returns all events that are there now. */
static int call_events_read(struct call *call)
{
	struct natra_event event = NATRA_INIT(event);
	int r;

	call->result = cJSON_CreateArray();
	while ((r = natra_events_read(call->events, &event)) == 1)
		cJSON_AddItemToArray(call->result, event_json(&event));
	return r;
}

static int call_record_unshaped(struct call *call)
{
	return natra_record_unshaped(call->cli->n, call->target, call->policy,
				     call->reason);
}

static int call_find_leftovers(struct call *call)
{
	struct natra_leftovers leftovers = NATRA_INIT(leftovers);
	int r = natra_find_leftovers(call->cli->n, call->target, &leftovers);

	if (r == 0)
		call->result = leftovers_json(&leftovers);
	return r;
}

static int call_drain_leftovers(struct call *call)
{
	return natra_drain_leftovers(call->cli->n, call->target);
}

static int call_remove_leftovers(struct call *call)
{
	return natra_remove_leftovers(call->cli->n, call->target);
}

static int call_gc(struct call *call)
{
	const char **keep = NULL;
	size_t len = 0, removed = 0;
	int r = call_read_texts(
		&call->request, "keep",
		cJSON_GetObjectItemCaseSensitive(call->request.json, "keep"),
		&keep, &len);

	if (r < 0)
		return r;
	r = natra_gc(call->cli->n, call->network, keep, len, &removed);
	cJSON_free(keep);
	if (r == 0) {
		call->result = cJSON_CreateObject();
		json_add_u64(call->result, "removed", removed);
	}
	return r;
}

static int call_probe(struct call *call)
{
	struct natra_features features = NATRA_INIT(features);
	int r = natra_probe(call->cli->n, &features);

	if (r == 0)
		call->result = features_json(&features);
	return r;
}

static int call_status(struct call *call)
{
	return natra_status(call->cli->n);
}

static int call_policy_check(struct call *call)
{
	return natra_policy_check(call->cli->n, call->policy);
}

static int call_policy_annotate(struct call *call)
{
	return call_annotate(call->cli->n, &call->request, call->policy,
			     &call->result);
}

static int call_policy_annotate_pod(struct call *call)
{
	return call_annotate_pod(call->cli->n, &call->request, call->policy,
				 &call->result);
}

static int parse(struct call *call, int (*parser)(const char *, uint64_t *))
{
	uint64_t value;
	int r = parser(call->text, &value);

	/* These functions have no handle, so the text of the handle's is older. */
	if (r < 0) {
		snprintf(call->request.error, sizeof(call->request.error), "%s",
			 strerror(-r));
		return r;
	}
	call->result = cJSON_CreateObject();
	json_add_u64(call->result, "value", value);
	return 0;
}

static int call_parse_rate(struct call *call)
{
	return parse(call, natra_parse_rate);
}

static int call_parse_size(struct call *call)
{
	return parse(call, natra_parse_size);
}

static int call_parse_time(struct call *call)
{
	return parse(call, natra_parse_time);
}

/* The functions have the names of the library's, and their arguments those of its
 * parameters; policy_annotate_pod is none of the library's. Each takes at most seven besides
 * `call`. */
static const struct function {
	const char *name;
	int (*run)(struct call *call);
	const char *members[8];
} functions[] = {
	{"open",
	 call_open,
	 {"bpffs_path", "keep_programs", "refuse_other_abi", "log"}},
	{"attach", call_attach, {"target", "policy"}},
	{"configure", call_configure, {"id", "policy"}},
	{"upgrade", call_upgrade, {"id"}},
	{"detach", call_detach, {"target"}},
	{"check", call_check, {"id", "policy"}},
	{"query", call_query, {"id"}},
	{"find", call_find, {"target"}},
	{"stats", call_stats, {"id"}},
	{"foreach_stats", call_foreach_stats, {NULL}},
	{"foreach_attachment", call_foreach_attachment, {NULL}},
	{"foreach_neighbour", call_foreach_neighbour, {"id"}},
	{"foreach_subnet", call_foreach_subnet, {"id"}},
	{"top", call_top, {"id", "direction"}},
	{"events_open", call_events_open, {NULL}},
	{"events_read", call_events_read, {NULL}},
	{"record_unshaped",
	 call_record_unshaped,
	 {"target", "policy", "reason"}},
	{"find_leftovers", call_find_leftovers, {"target"}},
	{"drain_leftovers", call_drain_leftovers, {"target"}},
	{"remove_leftovers", call_remove_leftovers, {"target"}},
	{"gc", call_gc, {"network", "keep"}},
	{"probe", call_probe, {NULL}},
	{"status", call_status, {NULL}},
	{"policy_check", call_policy_check, {"policy"}},
	{"policy_annotate",
	 call_policy_annotate,
	 {"policy", "annotations", "allowed", "allow_all", "skip_bad"}},
	{"policy_annotate_pod",
	 call_policy_annotate_pod,
	 {"policy", "annotations", "allowed", "skip_bad", "pod", "namespaces",
	  "require_namespaces"}},
	{"parse_rate", call_parse_rate, {"text"}},
	{"parse_size", call_parse_size, {"text"}},
	{"parse_time", call_parse_time, {"text"}},
};

static const struct function *find_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	}
	return NULL;
}

/* Reads the arguments that several functions have. */
static int read_arguments(struct call *call, struct natra_target *target,
			  struct natra_policy *policy)
{
	struct request *request = &call->request;
	int r = call_read_target(request, target, &call->target);

	if (r == 0)
		r = call_read_policy(request, policy, &call->policy);
	if (r == 0)
		r = call_read_text(request, "id", &call->id);
	if (r == 0)
		r = call_read_text(request, "network", &call->network);
	if (r == 0)
		r = call_read_text(request, "reason", &call->reason);
	if (r == 0)
		r = call_read_text(request, "text", &call->text);
	return r;
}

static int run_function(struct call *call)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = NATRA_INIT(policy);
	const char *names[10] = {"call"}, *name = "";
	const struct function *function;
	int r = call_read_text(&call->request, "call", &name);

	if (r < 0)
		return r;
	function = find_function(name);
	if (!function) {
		snprintf(call->request.error, sizeof(call->request.error),
			 "call: natractl %s has no '%.40s'", natra_version(),
			 name);
		return -EOPNOTSUPP;
	}
	memcpy(names + 1, function->members, sizeof(function->members));
	r = call_read_known(&call->request, "", call->request.json, names);
	if (r == 0)
		r = read_arguments(call, &target, &policy);
	if (r == 0)
		r = function->run(call);
	call_policy_free(&call->request);
	return r;
}

/* Prints the answer to a request. What is wrong with the request itself begins with the name of
 * the member, as libnatra's text does with NATRA_CODE_FIELD. */
static void answer(struct call *call, int r)
{
	const char *text = call->request.error, *code = "", *about = "";
	char member[NATRA_NAME_MAX + 1];
	cJSON *json = cJSON_CreateObject();

	json_add_u64(json, "errno", (uint64_t)-r);
	if (r < 0) {
		cJSON_Delete(call->result);
		if (!text[0]) {
			text = natra_error(call->cli->n);
			code = natra_code_name(natra_error_code(call->cli->n));
			about = natra_error_about(call->cli->n);
		} else if (r == -EINVAL && strchr(text, ':')) {
			code = natra_code_name(NATRA_CODE_FIELD);
			snprintf(member, sizeof(member), "%.*s",
				 (int)strcspn(text, ":"), text);
			about = member;
		}
		if (code[0])
			json_add_text(json, "code", code);
		if (about[0])
			json_add_text(json, "about", about);
		json_add_text(json, "error", text[0] ? text : strerror(-r));
	} else if (call->result) {
		cJSON_AddItemToObject(json, "result", call->result);
	}
	call->result = NULL;
	json_print_line(json);
	fflush(stdout);
}

static void serve(struct call *call, const char *line)
{
	cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
	int r = -EINVAL;

	call->request = (struct request){.json = json};
	call->target = NULL;
	call->policy = NULL;
	call->id = call->network = call->reason = call->text = NULL;
	if (cJSON_IsObject(json))
		r = run_function(call);
	else
		snprintf(call->request.error, sizeof(call->request.error),
			 "request: is not an object of JSON");
	answer(call, r);
	cJSON_Delete(json);
}

/* Says who answers, before the first request is read: the caller may need a newer
 * version. */
static void greet(void)
{
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "version", natra_version());
	json_print_line(json);
	fflush(stdout);
}

/* Serves requests until the end of stdin, or SIGINT or SIGTERM. These also end a call's
 * wait for another process; a call that does not wait comes to its end. */
int cmd_call(struct cli *cli)
{
	const struct sigaction action = {.sa_handler = stop};
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct call call = {.cli = cli};
	char *line = NULL;
	size_t size = 0;
	int r;

	opts.bpffs_path = cli->opts.value[OPT_BPFFS];
	r = open_handle(&call, &opts);
	if (r < 0)
		return failure(cli, r);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	greet();
	while (!is_stopped && getline(&line, &size, stdin) > 0)
		serve(&call, line);
	free(line);
	natra_events_close(call.events);
	return EXIT_SUCCESS;
}
