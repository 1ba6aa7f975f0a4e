/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that report what this kernel can do. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/structs.h"
#include "base/bpf_call.h"
#include "base/libbpf_log.h"
#include "kernel/feature.h"
#include "kernel/hook.h"
#include "kernel/netns.h"
#include "kernel/qdisc_fq.h"
#include "state/place.h"
#include "util/str.h"

#define LOOPBACK_IFINDEX 1

struct trial {
	struct natra *n;
	bool fq;
	bool clsact;
};

/* Runs in a namespace of its own, so that nothing is left behind. */
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
	trial->clsact = hook_clsact_make(trial->n, &nl, LOOPBACK_IFINDEX) == 0;
	return 0;
}

static const char *pacing(const struct natra_features *f)
{
	return f->fq ? "fq can pace" : "no fq: mark and drop";
}

/* Chooses what AUTO would do, and says why. The error text of the handle must
 * be empty, or name what the kernel lacks. */
static void choose(struct natra *n, struct natra_features *f)
{
	f->auto_mode = f->tcx ? NATRA_ATTACH_MODE_TCX_PODSIDE
			      : NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	f->auto_edt = f->fq;
	if (!f->kernel_ok || !f->bpf || (!f->tcx && !f->clsact))
		f->auto_mode = NATRA_ATTACH_MODE_AUTO;
	(void)snprintf(f->reason, sizeof(f->reason), "%.170s; %s; %s",
		       f->kernel_ok ? "the kernel has what natra needs"
				    : last_error(n),
		       f->tcx      ? "TCX is there"
		       : f->clsact ? "no TCX, clsact is there"
				   : "neither TCX nor clsact",
		       pacing(f));
}

static void try_kernel(struct natra *n, struct natra_features *f)
{
	f->coarse_clock = feature_is_there(FEATURE_COARSE_CLOCK) == 1;
	f->atomics = feature_is_there(FEATURE_ATOMICS) == 1;
	f->netns_cookie = feature_is_there(FEATURE_NETNS_COOKIE) == 1;
	f->set_tstamp = feature_is_there(FEATURE_SET_TSTAMP) == 1;
	f->kernel_ok = feature_require_all(n) == 0;
}

int natra_probe(struct natra *n, struct natra_features *ret_features)
{
	struct natra_features f = {.abi = NATRA_PIN_ABI};
	struct trial trial = {.n = n};
	struct utsname name;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	(void)uname(&name);
	(void)str_copy(f.kernel, sizeof(f.kernel), name.release);
	r = place_is_mounted(n);
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
	try_kernel(n, &f);
	choose(n, &f);
	return finish(n, struct_out(n, "ret_features", ret_features,
				    EXTENT_FEATURES, &f));
}

static int check_capability(struct natra *n, const uint32_t *effective,
			    unsigned int capability, const char *name)
{
	if (effective[capability / 32] & 1U << capability % 32)
		return 0;
	return refuse(n, -EPERM, "this process lacks %s", name);
}

static int check_capabilities(struct natra *n)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	uint32_t effective[_LINUX_CAPABILITY_U32S_3];
	int r;

	/* glibc has no function for it. */
	if (syscall(SYS_capget, &header, data) < 0)
		return fail_errno(n, -errno, "ask for the capabilities");
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		effective[i] = data[i].effective;
	/* CAP_SYS_ADMIN includes CAP_BPF. */
	r = check_capability(n, effective, CAP_NET_ADMIN, "CAP_NET_ADMIN");
	if (r == 0)
		r = check_capability(n, effective, CAP_SYS_ADMIN,
				     "CAP_SYS_ADMIN");
	return r;
}

/* Checks that bpffs is mounted, or that there is an empty directory where natra_attach
 * can mount it. */
static int check_bpffs(struct natra *n)
{
	int r = place_is_mounted(n);

	if (r != 0)
		return r < 0 ? r : 0;
	r = place_check(n);
	/* It is not empty if somebody else has just mounted it. */
	return r == -ENOTEMPTY && place_is_mounted(n) == 1 ? 0 : r;
}

/* Tries bpf(2), which a kernel without BPF, the user namespace of a container
 * and seccomp refuse, whatever the capabilities say. */
static int check_bpf(struct natra *n)
{
	int fd = bpf_call_make_array("natra_status", sizeof(uint32_t));

	if (fd == -ENOSYS)
		return refuse(n, -EOPNOTSUPP, "this kernel has no BPF");
	if (fd < 0)
		return fail_errno(n, fd, "create a BPF map");
	(void)close(fd);
	return 0;
}

int natra_status(struct natra *n)
{
	int r;

	if (!begin_call(n))
		return -EINVAL;
	r = check_capabilities(n);
	if (r == 0)
		r = check_bpffs(n);
	if (r == 0)
		r = check_bpf(n);
	return r < 0 ? r : finish(n, feature_require_all(n));
}
