/* SPDX-License-Identifier: BSD-2-Clause */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "../common/json.h"
#include "../common/name.h"
#include "../common/namespaces.h"
#include "../common/text.h"
#include "../install/dropins.h"
#include "../install/plugin.h"
#include "../pods/element.h"
#include "../pods/results.h"
#include "agent_probe.h"
#include "privilege.h"
#include "shell.h"

#define AGENT_PATCH                                                            \
	"kubectl -n kube-system patch daemonset natra-agent --type=json --patch"

static void look_at_kernel(struct node *node)
{
	node->features = (struct natra_features)NATRA_INIT(node->features);
	node->lacks = privilege_lacks();
	node->probe = natra_probe(node->n, &node->features);
	(void)snprintf(node->probe_error, sizeof(node->probe_error), "%s",
		       node->probe < 0 ? natra_error(node->n) : "");
}

int node_read_object(const struct node *node, const char *path,
		     cJSON **ret_object)
{
	cleanup_close int fd = dir_open_path(node->i->root_fd, path, O_RDONLY);
	cleanup_text char *text = NULL;
	cleanup_json cJSON *json = NULL;

	if (fd < 0 || dir_read_fd(fd, &text) < 0)
		return -EIO;
	json = cJSON_ParseWithOpts(text, NULL, true);
	if (!cJSON_IsObject(json))
		return -EBADMSG;
	*ret_object = json;
	json = NULL;
	return 0;
}

static int look_at_dropin(void *arg, const char *path, const cJSON *json,
			  const char *wrong)
{
	struct node *node = arg;

	if (wrong && !node->dropin_wrong) {
		node->dropin_wrong = text_copy(path);
		node->dropin_why = text_copy(wrong);
	} else if (!node->dropin && element_has_type(json, PLUGIN_NAME)) {
		node->dropin = cJSON_Duplicate(json, true);
		node->dropin_path = text_copy(path);
	} else if (!node->dropin_bandwidth &&
		   element_has_type(json, BANDWIDTH_NAME)) {
		node->dropin_bandwidth = text_copy(path);
	}
	return 0;
}

/* Returns the list that the runtime takes: the first one of its network, or behind that of
 * Multus the first other one. */
static const struct list *find_used(const struct install *i,
				    const struct lists *lists)
{
	const char *network = lists_network(i, lists);

	for (size_t n = 0; n < lists->len; n++) {
		const struct list *list = &lists->items[n];

		if (!list->is_multus && list_is_of(list, network))
			return list;
	}
	return NULL;
}

static void find_element(struct node *node)
{
	const struct list *used = node->used;
	int at = -1;

	node->type = PLUGIN_NAME;
	if (used && !list_count(used, PLUGIN_NAME, NULL) &&
	    list_count(used, BANDWIDTH_NAME, NULL) &&
	    plugin_is_natra(&node->i->bin, BANDWIDTH_NAME))
		node->type = BANDWIDTH_NAME;
	if (used && list_count(used, node->type, &at)) {
		node->element = used->is_chain
					? cJSON_GetArrayItem(used->plugins, at)
					: used->json;
		node->element_path =
			text_format("%s/%s", node->net_dir, used->file);
	} else if (node->dropin) {
		node->element = node->dropin;
		node->element_path = text_copy(node->dropin_path);
	}
}

static bool has_results(const struct node *node)
{
	cleanup_dir struct dir dir = DIR_INIT;

	return dir_open(&dir, node->i->root_fd, RESULTS_DIR) == 0;
}

bool node_has_own_element(const struct node *node)
{
	return node->element && (node->element == node->dropin ||
				 (node->used && node->used->is_ours));
}

char *node_install_with(const struct node *node, const cJSON *element)
{
	struct shell command = {0}, *shell = &command;
	const cJSON *item;

	shell_text(shell, node->install_first, strlen(node->install_first));
	cJSON_ArrayForEach(item, element)
	{
		const char *key = element_key(item->string);
		cleanup_text char *conf = NULL;
		char *value;

		if (!key)
			continue;
		value = cJSON_PrintUnformatted(item);
		conf = text_format("%s=%s", key, value);
		cJSON_free(value);
		shell_word(shell, "--conf");
		shell_word(shell, conf);
	}
	return command.text;
}

bool node_agent_installs(const struct node *node)
{
	/* The answer names the agent's parts. One with --no-install lacks this. */
	const char *said = node->agent_said ? node->agent_said : "";

	return strstr(said, "[+] install") || strstr(said, "[-] install");
}

/* The last of an option that the agent is given twice counts. */
static char *agent_option(const char *option, const char *value)
{
	cleanup_text char *text = text_format("%s=%s", option, value);
	cleanup_json cJSON *patch = cJSON_CreateArray();
	cJSON *change = cJSON_CreateObject();
	struct shell shell = {0};
	char *json;

	cJSON_AddStringToObject(change, "op", "add");
	cJSON_AddStringToObject(change, "path",
				"/spec/template/spec/containers/0/args/-");
	cJSON_AddStringToObject(change, "value", text);
	cJSON_AddItemToArray(patch, change);
	json = cJSON_PrintUnformatted(patch);
	shell_text(&shell, AGENT_PATCH, strlen(AGENT_PATCH));
	shell_word(&shell, json);
	cJSON_free(json);
	return shell.text;
}

char *node_install_option(const struct node *node, const char *install,
			  const char *option, const char *value)
{
	struct shell shell = {0};

	if (node_agent_installs(node))
		return agent_option(option, value);
	shell_text(&shell, install, strlen(install));
	shell_word(&shell, option);
	shell_word(&shell, value);
	return shell.text;
}

static int look_at_chain(struct node *node)
{
	const struct install_request *request = &node->request->install;
	int r = 0;

	node->net_dir = install_net_dir(node->i);
	node->bin_dir = install_bin_dir(node->i);
	node->net_error = node->i->net.fd < 0 ? -ENOENT : 0;
	node->bin_error = node->i->bin.fd < 0 ? -ENOENT : 0;
	/* A node without any of these uses natra without a runtime. */
	node->has_chain = !node->net_error || !node->bin_error ||
			  request->net_dir || request->bin_dir ||
			  has_results(node);
	if (!node->net_error)
		r = lists_read(node->i, &node->i->net, &node->lists);
	node->used = find_used(node->i, &node->lists);
	if (node->used && node->used->is_chain && node->used->name &&
	    !name_wrong(node->used->name))
		(void)dropins_foreach(node->i, node->used->name, look_at_dropin,
				      node);
	find_element(node);
	/* An element in a list of somebody else's stays as it is. */
	node->install = node_install_with(
		node, node_has_own_element(node) ? node->element : NULL);
	return r;
}

static void look_at_namespaces(struct node *node)
{
	cleanup_close int fd =
		dir_open_path(node->i->root_fd, NAMESPACES_FILE, O_RDONLY);
	cleanup_text char *text = NULL;
	struct namespaces_error error = {""};
	int r = fd == -ENOENT ? 0 : fd < 0 ? fd : dir_read_fd(fd, &text);

	if (r < 0)
		node->namespaces_wrong = text_copy(strerror(-r));
	else if (text && namespaces_parse(text, &node->namespaces, &error) < 0)
		node->namespaces_wrong = text_copy(error.text);
}

static void look_at_agent(struct node *node)
{
	const char *address = node->request->agent;

	/* Without an address, an agent is asked if there is one. */
	node->agent_error =
		agent_ask(address ? address : AGENT_ADDRESS, &node->agent_said);
}

/* Makes the command that installs natra where this node was looked at. It is for a shell of the
 * node, which the agent's container has below another root. */
static char *install_command(const struct install_request *request)
{
	const char *const options[][2] = {
		{"--platform", request->platform},
		{"--net-dir", request->net_dir},
		{"--bin-dir", request->bin_dir},
		{"--runtime-version", request->runtime_version},
	};
	struct shell shell = {0};

	/* `natractl install` takes no --bpffs here: it writes files outside of any bpffs. */
	shell_word(&shell, "natractl");
	shell_word(&shell, "install");
	for (size_t n = 0; n < sizeof(options) / sizeof(options[0]); n++) {
		if (!options[n][1])
			continue;
		shell_word(&shell, options[n][0]);
		shell_word(&shell, options[n][1]);
	}
	return shell.text;
}

static char *natractl_command(const struct doctor_request *request)
{
	struct shell shell = {0};

	shell_word(&shell, "natractl");
	if (request->bpffs) {
		shell_word(&shell, "--bpffs");
		shell_word(&shell, request->bpffs);
	}
	return shell.text;
}

int node_look(struct node *node, struct natra *n,
	      const struct doctor_request *request, char **ret_error)
{
	int r;

	*node = (struct node){.n = n, .request = request};
	node->bpffs = request->bpffs ? request->bpffs : "/sys/fs/bpf";
	node->natractl = natractl_command(request);
	node->install_first = install_command(&request->install);
	node->i = install_new();
	r = install_look(node->i, &request->install);
	if (r == 0) {
		look_at_namespaces(node);
		look_at_agent(node);
		look_at_kernel(node);
		r = look_at_chain(node);
	}
	if (r < 0)
		*ret_error = text_copy(install_error(node->i));
	return r;
}

void node_free(struct node *node)
{
	cJSON_Delete(node->namespaces);
	free(node->namespaces_wrong);
	free(node->agent_said);
	lists_free(&node->lists);
	cJSON_Delete(node->dropin);
	free(node->dropin_path);
	free(node->dropin_wrong);
	free(node->dropin_why);
	free(node->dropin_bandwidth);
	free(node->element_path);
	free(node->natractl);
	free(node->install);
	free(node->install_first);
	install_free(node->i);
}
