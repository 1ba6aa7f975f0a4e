/* SPDX-License-Identifier: BSD-2-Clause */
#include "install_ask.h"

#include <stdint.h>
#include <string.h>

#include "../common/name.h"
#include "output.h"

static int ask_mode(const char *text, enum install_mode *ret_mode)
{
	if (!text || install_mode_parse(text, ret_mode))
		return 0;
	return usage_error(opts_name(OPT_INSTALL_MODE), text,
			   "is not auto, dropin, list or bandwidth");
}

static int ask_platform(const char *text, const char **ret_platform)
{
	const char *name;

	if (!text || strcmp(text, "auto") == 0)
		return 0;
	for (size_t n = 0; (name = install_platform(n)); n++) {
		if (strcmp(text, name) == 0) {
			*ret_platform = name;
			return 0;
		}
	}
	return usage_error(
		opts_name(OPT_PLATFORM), text,
		"is not auto, default, k3s, k3d, rke2, microk8s, gke or openshift");
}

static int ask_dir(const struct cli *cli, enum opt_id id, const char **ret_dir)
{
	const char *text = cli->opts.value[id];

	if (text && text[0] != '/')
		return usage_error(opts_name(id), text,
				   "is not an absolute path");
	*ret_dir = text;
	return 0;
}

static int ask_network(const char *text, const char **ret_network)
{
	const char *wrong = text ? name_wrong(text) : NULL;

	if (wrong)
		return usage_error(opts_name(OPT_NETWORK), text, "%s", wrong);
	*ret_network = text;
	return opts_check_text(opts_name(OPT_NETWORK), text, 255);
}

static int ask_runtime(const char *text, const char **ret_version)
{
	if (text && !install_check_runtime_version(text))
		return usage_error(
			opts_name(OPT_RUNTIME_VERSION), text,
			"is not a version of containerd, CRI-O or Docker such as containerd://2.1.0");
	*ret_version = text;
	return 0;
}

static int ask_conf(const struct cli *cli, cJSON *conf)
{
	for (size_t n = 0; n < cli->opts.conf_len; n++) {
		const char *wrong = install_conf_add(conf, cli->opts.conf[n]);

		if (wrong)
			return usage_error(opts_name(OPT_CONF),
					   cli->opts.conf[n], "%s", wrong);
	}
	return 0;
}

int install_ask(const struct cli *cli, struct install_request *ret_request,
		cJSON **ret_conf)
{
	const char *const *value = cli->opts.value;
	struct install_request request = {.plugin = value[OPT_PLUGIN]};
	cJSON *conf;
	int r;

	r = ask_mode(value[OPT_INSTALL_MODE], &request.mode);
	if (r == 0)
		r = ask_platform(value[OPT_PLATFORM], &request.platform);
	if (r == 0)
		r = ask_dir(cli, OPT_NET_DIR, &request.net_dir);
	if (r == 0)
		r = ask_dir(cli, OPT_BIN_DIR, &request.bin_dir);
	if (r == 0)
		r = ask_dir(cli, OPT_ROOT, &request.root);
	if (r == 0)
		r = ask_network(value[OPT_NETWORK], &request.network);
	if (r == 0)
		r = ask_runtime(value[OPT_RUNTIME_VERSION],
				&request.runtime_version);
	if (r == 0)
		r = opts_check_text(opts_name(OPT_PLUGIN), request.plugin,
				    UINT16_MAX);
	if (r)
		return r;
	conf = cJSON_CreateObject();
	r = ask_conf(cli, conf);
	if (r) {
		cJSON_Delete(conf);
		return r;
	}
	request.conf = conf;
	*ret_conf = conf;
	*ret_request = request;
	return 0;
}
