/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers the calls of a process that can fail, and makes one of them fail, or
 * kills the process before it. For each run, serve.c passes:
 *
 *   mode   count, fail, kill, or the name of a kernel below, which this kernel
 *          then pretends to be
 *   at     the number of the call, from 1
 *   error  the errno with which it fails
 *   log    a descriptor for lines: "call NUMBER NAME" for each call, "hit
 *          NUMBER NAME" for the chosen one, "made prog|map|link ID" for each
 *          BPF object created, and "open FD NAME" if a descriptor would
 *          survive an exec
 *
 * The code of a large program is replaced by two instructions: its function
 * does not matter here, and the verifier takes 70 ms for it, a thousand times.
 * A pretended kernel gets the whole program, because it refuses some for what
 * they contain.
 *
 * In mode kill only the calls that change the kernel's state are numbered: a
 * SIGKILL before any other call leaves the same state as one before the next of
 * these.
 */
#include "serve.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

enum mode { COUNT, FAIL, KILL, PRETEND };

#define NO_TCX     1U
#define NO_TSTAMP  2U  /* bpf_skb_set_tstamp */
#define NO_ATOMICS 4U  /* compare-and-swap and the like */
#define NO_COARSE  8U  /* bpf_ktime_get_coarse_ns */
#define NO_COOKIE  16U /* SO_NETNS_COOKIE */

static const struct kernel {
	const char *name;
	unsigned int lacks;
	const char *release; /* what uname reports; NULL: the real one */
} kernels[] = {
	{"notcx", NO_TCX, NULL},
	{"notstamp", NO_TSTAMP, NULL},
	{"rhel9", 0, "5.14.0-427.el9.x86_64"},
	{"5.15", NO_TCX | NO_TSTAMP, "5.15.0-25-generic"},
	{"5.10", NO_TCX | NO_TSTAMP | NO_ATOMICS | NO_COARSE | NO_COOKIE,
	 "5.10.0-32-amd64"},
};

#define READS   0
#define CHANGES 1

static struct {
	enum mode mode;
	struct kernel kernel; /* in mode PRETEND */
	unsigned long at;
	int error;
	int log_fd;
	uint64_t inherited; /* descriptors that were open before the run */
	/* The address ranges of libnatra's code, and of the program's if
	 * INJECT_PROGRAM is set. */
	uintptr_t natra_begin, natra_end, program_begin, program_end;
} inject = {.log_fd = -1};
static unsigned long counted;

/* Finds the function that this file hides: libc's, or a sanitizer's. */
#define REAL(name)                                                             \
	(__extension__({                                                       \
		static __typeof__(&(name)) found;                              \
		if (!found)                                                    \
			found = (__typeof__(&(name)))real(#name);              \
		found;                                                         \
	}))

static void *real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		_exit(99);
	return found;
}

static void log_line(const char *what, unsigned long number, const char *name)
{
	int saved = errno;
	char line[512];
	int len =
		snprintf(line, sizeof(line), "%s %lu %s\n", what, number, name);

	if (inject.log_fd >= 0 && write(inject.log_fd, line, (size_t)len) < 0)
		_exit(99);
	errno = saved;
}

static int find_natra(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t *begin = &inject.natra_begin, *end = &inject.natra_end;

	(void)size;
	(void)arg;
	if (!info->dlpi_name[0] && getenv("INJECT_PROGRAM")) {
		begin = &inject.program_begin;
		end = &inject.program_end;
	} else if (!strstr(info->dlpi_name, "libnatra.so")) {
		return 0;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			*begin = info->dlpi_addr + p->p_vaddr;
			*end = *begin + p->p_memsz;
		}
	}
	return 0;
}

#define FDS_MAX 64
#define FDS_GAP 8

/* Returns a bit for each descriptor that is open and survives an exec. */
static uint64_t inherited(void)
{
	int (*get)(int fd, int cmd, ...) = REAL(fcntl64);
	uint64_t found = 0;

	/* The kernel gives the lowest free descriptor, so gaps are short. */
	for (int fd = 0, gap = 0; fd < FDS_MAX && gap < FDS_GAP; fd++) {
		int flags = get(fd, F_GETFD);

		gap = flags < 0 ? gap + 1 : 0;
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			found |= 1ULL << fd;
	}
	return found;
}

__attribute__((constructor)) static void start(void)
{
	(void)dl_iterate_phdr(find_natra, NULL);
}

void inject_begin(const char *mode, const char *at, const char *error,
		  int log_fd)
{
	static const char *const modes[] = {"count", "fail", "kill"};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(mode, modes[i]) == 0)
			inject.mode = (enum mode)i;
	}
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		if (strcmp(mode, kernels[i].name) == 0) {
			inject.mode = PRETEND;
			inject.kernel = kernels[i];
		}
	}
	inject.at = strtoul(at, NULL, 10);
	inject.error = (int)strtol(error, NULL, 10);
	inject.inherited = inherited();
	inject.log_fd = log_fd;
}

static void look_at_descriptors(const char *name)
{
	uint64_t more = inherited() & ~inject.inherited;
	char path[32], what[384];
	int fd, len;

	if (!more)
		return;
	fd = __builtin_ctzll(more);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = (int)readlink(path, what, 256);
	(void)snprintf(what + (len > 0 ? len : 0), 128, ",%s", name);
	log_line("open", (unsigned long)fd, what);
}

/* Returns true, with errno set, if this call is to fail. */
static bool fails(const char *name, int changes)
{
	unsigned long number;

	if (inject.log_fd < 0 || (inject.mode == KILL && !changes))
		return false;
	number = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
	log_line("call", number, name);
	/* Each run has the same descriptors open, so only the one that
	 * counts looks at them. */
	if (inject.mode == COUNT)
		look_at_descriptors(name);
	if (number != inject.at)
		return false;
	log_line("hit", number, name);
	if (inject.mode == KILL)
		(void)kill(getpid(), SIGKILL);
	errno = inject.error;
	return inject.mode == FAIL;
}

static void log_made(const char *what, int fd)
{
	/* The id is the second word of the info of programs, maps and links. */
	uint32_t info[64] = {0};
	union bpf_attr attr = {0};

	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)info;
	if (REAL(syscall)(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr,
			  sizeof(attr)) == 0)
		log_line("made", info[1], what);
}

static const char *const bpf_names[] = {
	[BPF_MAP_CREATE] = "bpf:MAP_CREATE",
	[BPF_MAP_LOOKUP_ELEM] = "bpf:MAP_LOOKUP_ELEM",
	[BPF_MAP_UPDATE_ELEM] = "bpf:MAP_UPDATE_ELEM",
	[BPF_PROG_LOAD] = "bpf:PROG_LOAD",
	[BPF_OBJ_PIN] = "bpf:OBJ_PIN",
	[BPF_OBJ_GET] = "bpf:OBJ_GET",
	[BPF_PROG_GET_FD_BY_ID] = "bpf:PROG_GET_FD_BY_ID",
	[BPF_OBJ_GET_INFO_BY_FD] = "bpf:OBJ_GET_INFO_BY_FD",
	[BPF_PROG_QUERY] = "bpf:PROG_QUERY",
	[BPF_BTF_LOAD] = "bpf:BTF_LOAD",
	[BPF_MAP_FREEZE] = "bpf:MAP_FREEZE",
	[BPF_LINK_CREATE] = "bpf:LINK_CREATE",
	[BPF_LINK_DETACH] = "bpf:LINK_DETACH",
};

static bool is_tcx(long cmd, const union bpf_attr *attr)
{
	return (cmd == BPF_PROG_QUERY &&
		(attr->query.attach_type == BPF_TCX_INGRESS ||
		 attr->query.attach_type == BPF_TCX_EGRESS)) ||
	       (cmd == BPF_LINK_CREATE &&
		(attr->link_create.attach_type == BPF_TCX_INGRESS ||
		 attr->link_create.attach_type == BPF_TCX_EGRESS));
}

/* Returns whether the pretended kernel lacks this instruction. */
static bool is_unknown(const struct bpf_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_STX &&
	       BPF_MODE(insn->code) == BPF_ATOMIC && insn->imm != BPF_ADD &&
	       (inject.kernel.lacks & NO_ATOMICS);
}

static bool calls_unknown(const struct bpf_insn *insn)
{
	unsigned int lacks = inject.kernel.lacks;

	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == 0 &&
	       ((insn->imm == BPF_FUNC_skb_set_tstamp && (lacks & NO_TSTAMP)) ||
		(insn->imm == BPF_FUNC_ktime_get_coarse_ns &&
		 (lacks & NO_COARSE)));
}

#define NO_HELPER 0x10000 /* far above the number of any helper */

/* Loads a program whose calls of helpers that the pretended kernel lacks are, for that
 * time, calls of helpers that no kernel has. The verifier refuses them unless they are
 * in code that is never reached, as an older kernel does. */
static long load_without_helpers(union bpf_attr *attr, long size)
{
	struct bpf_insn *insns = (void *)(uintptr_t)attr->insns;
	const size_t bytes = attr->insn_cnt * sizeof(*insns);
	struct bpf_insn *copy = REAL(malloc)(bytes);
	long r;
	int saved;

	if (!copy)
		_exit(99);
	memcpy(copy, insns, bytes);
	for (uint32_t i = 0; i < attr->insn_cnt; i++) {
		if (calls_unknown(&copy[i]))
			copy[i].imm += NO_HELPER;
	}
	attr->insns = (uintptr_t)copy;
	r = REAL(syscall)(SYS_bpf, BPF_PROG_LOAD, attr, size);
	saved = errno;
	attr->insns = (uintptr_t)insns;
	free(copy);
	errno = saved;
	return r;
}

/* Returns whether bpf(2) of the pretended kernel fails with -EINVAL. */
static bool is_refused(long cmd, const union bpf_attr *attr)
{
	const struct bpf_insn *insns = (const void *)(uintptr_t)attr->insns;

	if ((inject.kernel.lacks & NO_TCX) && is_tcx(cmd, attr))
		return true;
	for (uint32_t i = 0; cmd == BPF_PROG_LOAD && i < attr->insn_cnt; i++) {
		if (is_unknown(&insns[i]))
			return true;
	}
	return false;
}

#define SMALL_PROGRAM 64 /* libbpf's probes of features are smaller */

static const struct bpf_insn pass[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = -1}, /* TC_ACT_UNSPEC */
	{.code = BPF_JMP | BPF_EXIT},
};

static void shorten(union bpf_attr *attr)
{
	if (attr->insn_cnt < SMALL_PROGRAM)
		return;
	attr->insns = (uintptr_t)pass;
	attr->insn_cnt = sizeof(pass) / sizeof(pass[0]);
	attr->func_info_cnt = 0;
	attr->line_info_cnt = 0;
}

static long call_bpf(long cmd, union bpf_attr *attr, long size)
{
	const long names_len = sizeof(bpf_names) / sizeof(bpf_names[0]);
	const char *name = cmd < names_len ? bpf_names[cmd] : NULL;
	bool changes = cmd == BPF_OBJ_PIN || cmd == BPF_LINK_CREATE ||
		       cmd == BPF_LINK_DETACH || cmd == BPF_MAP_UPDATE_ELEM ||
		       cmd == BPF_MAP_CREATE || cmd == BPF_PROG_LOAD;
	long r;

	if (inject.mode == PRETEND && is_refused(cmd, attr)) {
		errno = EINVAL;
		return -1;
	}
	if (fails(name ? name : "bpf", changes))
		return -1;
	if (cmd == BPF_PROG_LOAD && inject.mode != PRETEND)
		shorten(attr);
	r = cmd == BPF_PROG_LOAD && inject.mode == PRETEND
		    ? load_without_helpers(attr, size)
		    : REAL(syscall)(SYS_bpf, cmd, attr, size);
	if (r >= 0 && inject.log_fd >= 0) {
		if (cmd == BPF_MAP_CREATE)
			log_made("map", (int)r);
		else if (cmd == BPF_PROG_LOAD)
			log_made("prog", (int)r);
		else if (cmd == BPF_LINK_CREATE)
			log_made("link", (int)r);
	}
	return r;
}

long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_bpf)
		return call_bpf(a[0], (union bpf_attr *)a[1], a[2]);
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Functions with fixed arguments that fail with -1 and errno. */
#define WRAP(name, changes, params, args)                                      \
	int name params                                                        \
	{                                                                      \
		return fails(#name, changes) ? -1 : REAL(name) args;           \
	}
#define WRAP_SIZE(name, changes, params, args)                                 \
	ssize_t name params                                                    \
	{                                                                      \
		return fails(#name, changes) ? -1 : REAL(name) args;           \
	}

WRAP(mkdir, CHANGES, (const char *path, mode_t mode), (path, mode))
WRAP(rmdir, CHANGES, (const char *path), (path))
WRAP(unlinkat, CHANGES, (int fd, const char *name, int flags),
     (fd, name, flags))
WRAP(mount, CHANGES,
     (const char *from, const char *to, const char *type, unsigned long flags,
      const void *data),
     (from, to, type, flags, data))
WRAP(stat64, READS, (const char *path, struct stat64 *st), (path, st))
WRAP(fstat64, READS, (int fd, struct stat64 *st), (fd, st))
WRAP(statfs64, READS, (const char *path, struct statfs64 *st), (path, st))
WRAP(flock, READS, (int fd, int operation), (fd, operation))
WRAP(setns, READS, (int fd, int type), (fd, type))
WRAP(unshare, READS, (int flags), (flags))
WRAP(socket, READS, (int domain, int type, int protocol),
     (domain, type, protocol))
WRAP(bind, READS, (int fd, __CONST_SOCKADDR_ARG addr, socklen_t len),
     (fd, addr, len))
WRAP(getsockname, READS, (int fd, __SOCKADDR_ARG addr, socklen_t *len),
     (fd, addr, len))
WRAP_SIZE(send, CHANGES, (int fd, const void *buf, size_t len, int flags),
	  (fd, buf, len, flags))
WRAP_SIZE(getrandom, READS, (void *buf, size_t len, unsigned int flags),
	  (buf, len, flags))

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (inject.mode == PRETEND && (inject.kernel.lacks & NO_COOKIE) &&
	    level == SOL_SOCKET && name == SO_NETNS_COOKIE) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return fails("getsockopt", READS)
		       ? -1
		       : REAL(getsockopt)(fd, level, name, value, len);
}

int uname(struct utsname *name)
{
	int r = REAL(uname)(name);

	if (r == 0 && inject.kernel.release)
		(void)snprintf(name->release, sizeof(name->release), "%s",
			       inject.kernel.release);
	return r;
}

static const char *const requests[] = {
	[RTM_NEWQDISC] = "sendmsg:NEWQDISC",
	[RTM_DELQDISC] = "sendmsg:DELQDISC",
	[RTM_GETQDISC] = "sendmsg:GETQDISC",
};

/* libnl calls sendmsg only for requests to rtnetlink. */
static const char *request_name(const struct msghdr *msg)
{
	const struct nlmsghdr *hdr = msg->msg_iov[0].iov_base;
	const char *name =
		hdr->nlmsg_type < sizeof(requests) / sizeof(requests[0])
			? requests[hdr->nlmsg_type]
			: NULL;

	return name ? name : "sendmsg";
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fails(request_name(msg), CHANGES)
		       ? -1
		       : REAL(sendmsg)(fd, msg, flags);
}

/* libnl peeks at the length of each message first; these calls do not count. */
ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return !(flags & MSG_PEEK) && fails("recvmsg", READS)
		       ? -1
		       : REAL(recvmsg)(fd, msg, flags);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fails("open", READS) ? -1 : REAL(open64)(path, flags, mode);
}

int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return fails("fcntl", READS) ? -1 : REAL(fcntl64)(fd, cmd, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return fails("ioctl", READS) ? -1 : REAL(ioctl)(fd, request, arg);
}

DIR *opendir(const char *path)
{
	return fails("opendir", READS) ? NULL : REAL(opendir)(path);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*fn)(void *), void *arg)
{
	return fails("pthread_create", READS)
		       ? errno
		       : REAL(pthread_create)(thread, attr, fn, arg);
}

/* Only allocations by natra's own code fail, not those of other libraries. */
static bool memory_fails(const char *name, const void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	bool ours = (at >= inject.natra_begin && at < inject.natra_end) ||
		    (at >= inject.program_begin && at < inject.program_end);

	return ours && fails(name, READS);
}

void *malloc(size_t size)
{
	return memory_fails("malloc", __builtin_return_address(0))
		       ? NULL
		       : REAL(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
	return memory_fails("calloc", __builtin_return_address(0))
		       ? NULL
		       : REAL(calloc)(count, size);
}

void *realloc(void *old, size_t size)
{
	return memory_fails("realloc", __builtin_return_address(0))
		       ? NULL
		       : REAL(realloc)(old, size);
}
