/* SPDX-License-Identifier: BSD-2-Clause */
#include "platform.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../common/dir.h"
#include "../common/text.h"
#include "install.h"

#define K3S_NET        "/var/lib/rancher/k3s/agent/etc/cni/net.d"
#define MICROK8S       "/var/snap/microk8s/current"
#define K3S_CONTAINERD "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
#define RKE2           "/var/lib/rancher/rke2/agent"
#define CONTAINERD     "/etc/containerd/config.toml"
#define OPENSHIFT_NET  "/run/multus/cni/net.d"
#define DEFAULT_NET    "/etc/cni/net.d"
#define DEFAULT_BIN    "/opt/cni/bin"

/* The platforms in the order in which they are looked for: k3d is k3s in a
 * container that has the plugins beside the program, and OpenShift also has the
 * default directories. The list of OpenShift's default network is in a file system in
 * memory; /etc/cni/multus/net.d there has networks that pods ask for by name. */
static const struct platform platforms[] = {
	{"k3s", K3S_NET, "/var/lib/rancher/k3s/data/cni", NULL, K3S_CONTAINERD,
	 K3S_NET},
	{"k3d", K3S_NET, "/bin", NULL, K3S_CONTAINERD, "/bin/k3s"},
	{"rke2", DEFAULT_NET, DEFAULT_BIN, NULL,
	 RKE2 "/etc/containerd/config.toml", RKE2},
	{"microk8s", MICROK8S "/args/cni-network", MICROK8S "/opt/cni/bin",
	 NULL, MICROK8S "/args/containerd.toml", MICROK8S},
	{"gke", DEFAULT_NET, "/home/kubernetes/bin", NULL, CONTAINERD,
	 "/home/kubernetes/bin"},
	{"openshift", OPENSHIFT_NET, "/var/lib/cni/bin",
	 "/etc/kubernetes/cni/net.d", CONTAINERD, OPENSHIFT_NET},
	{"default", DEFAULT_NET, DEFAULT_BIN, NULL, CONTAINERD, NULL},
};

#define PLATFORMS_LEN (sizeof(platforms) / sizeof(platforms[0]))

const char *install_platform(size_t index)
{
	return index < PLATFORMS_LEN ? platforms[index].name : NULL;
}

const struct platform *platform_find(const char *name)
{
	for (size_t i = 0; i < PLATFORMS_LEN; i++) {
		if (strcmp(platforms[i].name, name) == 0)
			return &platforms[i];
	}
	return NULL;
}

static bool is_there(int root_fd, const char *path)
{
	cleanup_close int fd = dir_open_path(root_fd, path, O_PATH);

	return fd >= 0;
}

const struct platform *platform_in_use(int root_fd)
{
	const struct platform *p = platforms;

	while (p->sign &&
	       !(is_there(root_fd, p->sign) && is_there(root_fd, p->net_dir) &&
		 is_there(root_fd, p->bin_dir)))
		p++;
	return p;
}
