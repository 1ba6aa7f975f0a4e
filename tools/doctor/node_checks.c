/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the kernel, this process and what else runs on the node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/namespaces.h"
#include "../common/text.h"
#include "check.h"
#include "privilege.h"
#include "shell.h"

static void privileges(const struct finder *f)
{
	cleanup_text char *names = privilege_names(f->node->lacks);

	if (f->node->lacks)
		found(f, "names", names, NULL);
}

static void kernel(const struct finder *f)
{
	const struct natra_features *k = &f->node->features;

	if (f->node->probe == 0 && !k->kernel_ok)
		found(f, "kernel", k->kernel, "reason", k->reason, NULL);
}

static void probe(const struct finder *f)
{
	if (f->node->probe < 0 && !f->node->lacks)
		found(f, "error", f->node->probe_error, NULL);
}

static void bpf(const struct finder *f)
{
	const struct natra_features *k = &f->node->features;

	if (f->node->probe == 0 && k->kernel_ok && !f->node->lacks && !k->bpf)
		found(f, "reason", k->reason, NULL);
}

static void hooks(const struct finder *f)
{
	const struct natra_features *k = &f->node->features;

	if (f->node->probe == 0 && !f->node->lacks && k->bpf && !k->tcx &&
	    !k->clsact)
		found(f, "kernel", k->kernel, NULL);
}

static void bpffs(const struct finder *f)
{
	if (f->node->probe == 0 && !f->node->lacks && !f->node->features.bpffs)
		found(f, "path", f->node->bpffs, NULL);
}

static void cilium(const struct finder *f)
{
	/* Cilium removes this map when its bandwidth manager is switched off. */
	cleanup_text char *path =
		text_format("%s/tc/globals/cilium_throttle", f->node->bpffs);

	if (access(path, F_OK) == 0)
		found(f, "path", path, NULL);
}

static void agent_silent(const struct finder *f)
{
	const char *address = f->node->request->agent;

	if (address && f->node->agent_error < 0)
		found(f, "address", address, "error",
		      strerror(-f->node->agent_error), NULL);
}

/* Finds the parts that are not ready. The API server is none that makes the node unready. */
static void unready(const struct finder *f, bool is_api)
{
	static const char mark[] = "[-] ";
	cleanup_text char *said =
		text_copy(f->node->agent_said ? f->node->agent_said : "");
	char *line, *rest;

	for (line = strtok_r(said, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, mark, sizeof(mark) - 1) != 0)
			continue;
		line += sizeof(mark) - 1;
		if ((strncmp(line, "api", 3) == 0) == is_api)
			(is_api ? found_note : found)(f, "part", line, NULL);
	}
}

static void agent_unready(const struct finder *f)
{
	unready(f, false);
}

static void agent_api(const struct finder *f)
{
	unready(f, true);
}

static void namespaces_file(const struct finder *f)
{
	if (f->node->namespaces_wrong)
		found(f, "path", NAMESPACES_FILE, "error",
		      f->node->namespaces_wrong, NULL);
}

/* Whatever pod was asked for, its own result may be the one. */
static void unreadable_result(const struct finder *f)
{
	for (size_t i = 0; i < f->pods->unreadable_len; i++) {
		const struct unreadable *one = &f->pods->unreadable[i];
		const bool is_known = one->namespace[0] && one->name[0];
		const char *const mends[2][7] = {
			{"head", "-c", "400", one->path},
			{"kubectl", "-n", one->namespace, "delete", "pod",
			 one->name},
		};
		cleanup_text char *mend = shell_command(mends[is_known]);

		found(f, "path", one->path, "of", is_known ? " of " : "",
		      "namespace", one->namespace, "slash", is_known ? "/" : "",
		      "pod", one->name, "mend", mend, NULL);
	}
}

/* The name of the agent's pod. */
#define AGENT_OF_NODE                                                          \
	"$(kubectl -n kube-system get pods -o name"                            \
	" -l app.kubernetes.io/name=natra"                                     \
	" --field-selector spec.nodeName=$(uname -n))"

const struct check checks_of_node[] = {
	{"privileges",
	 "this process lacks {names}, so the kernel and the pods cannot be looked at",
	 "sudo {=natractl} doctor", privileges},
	{"kernel", "Linux {kernel} does not have what natra needs: {reason}",
	 "uname -r && cat /etc/os-release", kernel},
	{"probe", "the kernel cannot be asked what it can do: {error}",
	 "{=natractl} -v probe", probe},
	{"bpf", "BPF programs cannot be loaded: {reason}",
	 "cat /sys/kernel/security/lockdown && {=natractl} -v probe", bpf},
	{"hooks",
	 "Linux {kernel} has neither TCX nor clsact, where natra's programs are attached",
	 "modprobe -a sch_ingress cls_bpf", hooks},
	{"bpffs",
	 "{path}, where natra keeps its state, is not a bpffs: earlier limits are lost",
	 "mount -t bpf bpf {path}", bpffs},
	{"cilium-limits",
	 "Cilium's bandwidth manager is on ({path}): it limits pods by the same annotation, so two limits hold; its chart has the value bandwidthManager.enabled, too",
	 CILIUM_SET("enable-bandwidth-manager", "false"), cilium},
	{"unreadable-result",
	 "the cached result {path}{of}{namespace}{slash}{pod} is torn or cannot be read: natra-agent neither limits that pod nor follows its edits",
	 "{=mend}", unreadable_result},
	{"namespaces-file",
	 "{path}: {error}: pods of the namespaces that it has start as onError says, and edits wait",
	 "kubectl -n kube-system delete " AGENT_OF_NODE, namespaces_file},
	{"agent-silent", "natra-agent does not answer at {address}: {error}",
	 "kubectl -n kube-system describe " AGENT_OF_NODE, agent_silent},
	{"agent-unready", "natra-agent is not ready: {part}",
	 "kubectl -n kube-system logs --tail=20 " AGENT_OF_NODE, agent_unready},
	{"agent-api",
	 "natra-agent does not watch the API server, so edits of annotations wait: {part}",
	 "kubectl -n kube-system logs --tail=20 " AGENT_OF_NODE, agent_api},
	{0},
};
