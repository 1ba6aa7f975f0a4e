/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums the time that all processes spend in bpf(BPF_LINK_CREATE). */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <asm/unistd.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

__u64 spent_ns, calls;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, __u64);
} begun_ns SEC(".maps");

SEC("raw_tp/sys_enter")
int enter(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs *regs = (const void *)ctx->args[0];
	__u64 thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	unsigned long command = 0;

	if (ctx->args[1] != __NR_bpf)
		return 0;
#ifdef __TARGET_ARCH_arm64
	/* The system call's own value of the register is in none that programs know. */
	command = PT_REGS_PARM1_CORE_SYSCALL(regs);
#else
	bpf_probe_read_kernel(&command, sizeof(command),
			      &PT_REGS_PARM1_SYSCALL(regs));
#endif
	if ((int)command == BPF_LINK_CREATE)
		bpf_map_update_elem(&begun_ns, &thread, &now, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_exit")
int leave(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid();
	const __u64 *begin = bpf_map_lookup_elem(&begun_ns, &thread);

	(void)ctx;
	if (!begin)
		return 0;
	__sync_fetch_and_add(&spent_ns, bpf_ktime_get_ns() - *begin);
	__sync_fetch_and_add(&calls, 1);
	bpf_map_delete_elem(&begun_ns, &thread);
	return 0;
}

char _license[] SEC("license") = "GPL";
