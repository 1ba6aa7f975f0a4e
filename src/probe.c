/* SPDX-License-Identifier: BSD-2-Clause */
/* What this kernel offers. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "hook.h"
#include "libbpf_log.h"
#include "netns.h"
#include "qdisc_fq.h"
#include "structs.h"
#include "util/str.h"

#define MIN_MAJOR 5
#define MIN_MINOR 18

#define LOOPBACK_IFINDEX 1

static bool kernel_ok(const struct utsname *name)
{
	unsigned long major, minor;
	char *end;

	major = strtoul(name->release, &end, 10);
	if (*end != '.')
		return false;
	minor = strtoul(end + 1, NULL, 10);
	return major > MIN_MAJOR || (major == MIN_MAJOR && minor >= MIN_MINOR);
}

int kernel_is_supported(struct natra *n)
{
	struct utsname name;

	(void)uname(&name);
	if (kernel_ok(&name))
		return 0;
	return natra_refuse(n, -EOPNOTSUPP,
			    "Linux %s is too old, natra needs %d.%d",
			    name.release, MIN_MAJOR, MIN_MINOR);
}

struct trial {
	struct natra *n;
	bool fq;
	bool clsact;
};

static int try_clsact(struct natra *n)
{
	struct bpf_tc_hook hook = {
		.sz = sizeof(hook),
		.ifindex = LOOPBACK_IFINDEX,
		.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS,
	};
	LIBBPF_LOG_SCOPE(n);

	return bpf_tc_hook_create(&hook);
}

/* In a namespace of its own: nothing is left behind. */
static int try_qdiscs(void *arg)
{
	struct trial *trial = arg;
	cleanup_netlink struct netlink nl = {0};
	int r;

	r = netlink_open(trial->n, &nl);
	if (r < 0)
		return r;
	r = qdisc_fq_add(trial->n, &nl, LOOPBACK_IFINDEX);
	if (r < 0 && r != -EOPNOTSUPP)
		return r;
	trial->fq = r == 0;
	trial->clsact = try_clsact(trial->n) == 0;
	return 0;
}

static void choose(struct natra_features *f)
{
	f->auto_mode =
		f->tcx ? NATRA_MODE_TCX_PODSIDE : NATRA_MODE_CLSACT_PODSIDE;
	f->auto_edt = f->fq;
	if (!f->kernel_ok || !f->bpf || (!f->tcx && !f->clsact))
		f->auto_mode = NATRA_MODE_AUTO;
	(void)snprintf(f->reason, sizeof(f->reason), "%s; %s; %s",
		       f->kernel_ok ? "kernel is recent enough"
				    : "kernel is older than 5.18",
		       f->tcx      ? "TCX is there"
		       : f->clsact ? "no TCX, clsact is there"
				   : "neither TCX nor clsact",
		       f->fq ? "fq can pace" : "no fq: mark and drop");
}

int natra_probe(struct natra *n, struct natra_features *ret_features)
{
	struct natra_features f = {0};
	struct trial trial = {.n = n};
	struct utsname name;
	int r;

	if (!n)
		return -EINVAL;
	(void)uname(&name);
	(void)str_copy(f.kernel, sizeof(f.kernel), name.release);
	f.kernel_ok = kernel_ok(&name);
	r = pin_bpffs_mounted(n);
	if (r < 0)
		return r;
	f.bpffs = r;
	{
		LIBBPF_LOG_SCOPE(n);
		f.bpf = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SCHED_CLS,
						   NULL) == 1;
	}
	r = hook_tcx_supported(n);
	if (r == -EPERM && !f.bpf)
		return r;
	f.tcx = r == 1;
	r = netns_run(n, NETNS_NEW, try_qdiscs, &trial);
	if (r < 0)
		return r;
	f.fq = trial.fq;
	f.clsact = trial.clsact;
	choose(&f);
	return struct_out(n, "ret_features", ret_features, &f, sizeof(f));
}
