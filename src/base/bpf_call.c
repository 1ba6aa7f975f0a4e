/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/bpf_call.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/str.h"

/* The verifier gives up with EAGAIN when a signal is pending. */
#define TRIES 5

static int bpf_call(enum bpf_cmd cmd, union bpf_attr *attr)
{
	long fd;

	for (int i = 0;; i++) {
		fd = syscall(SYS_bpf, cmd, attr, sizeof(*attr));
		if (fd >= 0 || errno != EAGAIN || i == TRIES)
			break;
	}
	/* The kernel opens it with O_CLOEXEC. */
	return fd < 0 ? -errno : (int)fd;
}

int bpf_call_make_array(const char *name, uint32_t value_size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = value_size;
	attr.max_entries = 1;
	(void)str_copy(attr.map_name, sizeof(attr.map_name), name);
	return bpf_call(BPF_MAP_CREATE, &attr);
}

int bpf_call_load_tc(const char *name, const struct bpf_insn *insns, size_t len)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)len;
	attr.license = (uintptr_t) "Dual BSD/GPL";
	(void)str_copy(attr.prog_name, sizeof(attr.prog_name), name);
	return bpf_call(BPF_PROG_LOAD, &attr);
}
