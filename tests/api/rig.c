/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SKIP      77
#define STATE_MAX 65536

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

void rig_enter(void)
{
	if (geteuid() != 0) {
		puts("skip: not root");
		exit(SKIP);
	}
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
	    mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) < 0)
		die("unshare");
	if ((mkdir("/run/netns", 0755) < 0 && errno != EEXIST) ||
	    mount("tmpfs", "/run/netns", "tmpfs", 0, NULL) < 0)
		die("/run/netns");
	if ((mkdir(BPFFS, 0700) < 0 && errno != EEXIST) ||
	    mount("bpf", BPFFS, "bpf", 0, "mode=0700") < 0)
		die(BPFFS);
	rig_sh("ip link set lo up");
}

void rig_sh(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

void rig_reset(void)
{
	rig_sh("for n in $(ls /run/netns); do"
	       "  ip netns del $n; ip link del h-$n 2>/dev/null;"
	       "done;"
	       "rm -rf " BPFFS "/natra");
}

char *rig_state(void)
{
	/* bpftool shows TCX and clsact programs, tc all qdiscs but clsact. */
	static const char command[] =
		/* The directory of the ABI stays, empty. */
		"find " BPFFS "/natra -mindepth 1 ! -name 'abi[0-9]*'"
		"  2>/dev/null | sort;"
		"show() { $1 bpftool net show; $1 tc qdisc show; };"
		"{ show ''; for n in /run/netns/*; do"
		"  [ -e \"$n\" ] && show \"nsenter --net=$n\"; done; } |"
		"grep -v 'qdisc clsact'";
	char *text = calloc(1, STATE_MAX);
	FILE *f = popen(command, "r");

	assert_non_null(text);
	assert_non_null(f);
	assert_true(fread(text, 1, STATE_MAX - 1, f) < STATE_MAX - 1);
	(void)pclose(f);
	/* The node has this qdisc in any case: without it the commands
	 * failed. */
	assert_non_null(strstr(text, "qdisc noqueue"));
	return text;
}

void rig_same_state(const char *before)
{
	char *now = rig_state();

	/* TCX programs are freed a moment after their link's pin. */
	for (int i = 0; i < 100 && strcmp(before, now) != 0; i++) {
		free(now);
		(void)usleep(20000);
		now = rig_state();
	}
	assert_string_equal(now, before);
	free(now);
}

unsigned int rig_pins(void)
{
	char text[32] = "";
	FILE *f =
		popen("find " BPFFS "/natra -type f 2>/dev/null | wc -l", "r");

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	(void)pclose(f);
	return (unsigned int)strtoul(text, NULL, 10);
}

void rig_replace_pin(const char *path, enum bpf_map_type type,
		     uint32_t value_size, uint32_t entries, uint32_t flags)
{
	const struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.map_flags = flags,
	};
	int fd = bpf_map_create(type, "foreign", sizeof(uint32_t), value_size,
				entries, &opts);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(bpf_obj_pin(fd, path), 0);
	(void)close(fd);
}

bool rig_has_tcx(void)
{
	struct natra_features f = NATRA_INIT(f);
	struct natra *n = rig_open();

	assert_int_equal(natra_probe(n, &f), 0);
	natra_close(n);
	return f.tcx;
}

int rig_load_pass(const char *name)
{
	static const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = -1},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, name, "GPL", pass, 2,
			       NULL);

	assert_true(fd >= 0);
	return fd;
}

bool rig_drop_capability(unsigned int capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	data[capability / 32].effective &= ~(1U << capability % 32);
	return syscall(SYS_capset, &header, data) == 0;
}

struct pod pod_make(const char *name)
{
	static int number;
	struct pod pod;

	number++;
	(void)snprintf(pod.name, sizeof(pod.name), "%s", name);
	(void)snprintf(pod.path, sizeof(pod.path), "/run/netns/%s", name);
	rig_sh("ip netns add %s &&"
	       "ip link add h-%s type veth peer name eth0 netns %s &&"
	       "ip addr add 10.78.%d.1/24 dev h-%s && ip link set h-%s up &&"
	       "ip -n %s addr add 10.78.%d.2/24 dev eth0 &&"
	       "ip -n %s link set eth0 up",
	       name, name, name, number, name, name, name, number, name);
	pod.fd = open(pod.path, O_RDONLY | O_CLOEXEC);
	assert_true(pod.fd >= 0);
	return pod;
}

void pod_remove(struct pod *pod)
{
	(void)close(pod->fd);
	pod->fd = -1;
	rig_sh("ip link del h-%s 2>/dev/null; ip netns del %s", pod->name,
	       pod->name);
}

void device_send(const char *device, int packets)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int one = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				    (socklen_t)strlen(device)),
			 0);
	/* Broadcast: nobody has to be asked for an address first. */
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)), 0);
	to.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	for (int i = 0; i < packets; i++)
		assert_int_equal(sendto(fd, "x", 1, 0, (void *)&to, sizeof(to)),
				 1);
	(void)close(fd);
}

void pod_send(const struct pod *pod, int packets)
{
	char device[32];

	(void)snprintf(device, sizeof(device), "h-%s", pod->name);
	device_send(device, packets);
}

struct natra *rig_open(void)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *n = NULL;

	opts.bpffs_path = BPFFS;
	assert_int_equal(natra_open(&n, &opts), 0);
	return n;
}

struct natra_info rig_query(struct natra *n, const char *id)
{
	struct natra_info info = NATRA_INIT(info);

	if (KEPT(natra_query(n, id, &info)) < 0)
		fail_msg("%s", natra_error(n));
	return info;
}

int rig_open_pin(struct natra *n, const char *id, const char *name)
{
	struct natra_info info = NATRA_INIT(info);
	char path[600];
	int fd;

	assert_int_equal(natra_query(n, id, &info), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", info.pin_path, name);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	return fd;
}

void rig_read(int fd, void *value)
{
	const uint32_t zero = 0;

	assert_int_equal(bpf_map_lookup_elem(fd, &zero, value), 0);
}

void rig_write(int fd, const void *value)
{
	const uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(fd, &zero, value, BPF_EXIST), 0);
}

void rig_detach(struct natra *n, const char *id)
{
	struct natra_target target = NATRA_INIT(target);

	target.id = id;
	if (KEPT(natra_detach(n, &target)) < 0)
		fail_msg("%s", natra_error(n));
}

void rig_end(struct natra *n, struct pod *pods, const char *const *ids,
	     size_t len)
{
	for (size_t i = 0; i < len; i++) {
		rig_detach(n, ids[i]);
		pod_remove(&pods[i]);
	}
	assert_int_equal(rig_pins(), 0);
	natra_close(n);
}

struct natra_target pod_target(const struct pod *pod, const char *id)
{
	struct natra_target target = NATRA_INIT(target);

	target.id = id;
	target.ifname = "eth0";
	target.netns = pod->path;
	return target;
}

struct natra_policy policy_of(uint64_t in_mbit, uint64_t out_mbit)
{
	struct natra_policy policy = NATRA_INIT(policy);

	policy.ingress_rate_bits_per_sec = in_mbit * MBIT;
	policy.egress_rate_bits_per_sec = out_mbit * MBIT;
	return policy;
}

void says(const struct natra *n, const char *a, const char *b)
{
	const char *text = natra_error(n);

	assert_true(text[0] != '\0');
	for (const char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ')
			fail_msg("control character in '%s'", text);
	}
	if (a && !strstr(text, a))
		fail_msg("'%s' lacks '%s'", text, a);
	if (b && !strstr(text, b))
		fail_msg("'%s' lacks '%s'", text, b);
}

struct self {
	ino_t netns;
	sigset_t signals;
	mode_t mask;
	char cwd[256];
	int fds;
	int threads;
};

static struct self before;

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

static struct self look(void)
{
	struct self self;
	struct stat st;

	memset(&self, 0, sizeof(self));
	assert_int_equal(stat("/proc/thread-self/ns/net", &st), 0);
	self.netns = st.st_ino;
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &self.signals), 0);
	self.mask = umask(0);
	(void)umask(self.mask);
	assert_non_null(getcwd(self.cwd, sizeof(self.cwd)));
	self.fds = entries("/proc/self/fd");
	self.threads = entries("/proc/self/task");
	return self;
}

void rig_before(void)
{
	before = look();
}

int rig_after(int r, const char *call)
{
	struct self now = look();

	/* A joined thread is listed for a moment longer: one of an earlier call
	 * may have been counted before this call. */
	for (int i = 0; i < 5000 && now.threads > before.threads; i++) {
		(void)usleep(1000);
		now = look();
	}
	if (now.netns != before.netns || now.mask != before.mask ||
	    strcmp(now.cwd, before.cwd) != 0 || now.fds != before.fds ||
	    now.threads > before.threads ||
	    memcmp(&now.signals, &before.signals, sizeof(now.signals)) != 0)
		fail_msg(
			"%s: signal mask or netns %lu -> %lu, umask %o -> %o, cwd %s -> %s, "
			"%d -> %d descriptors, %d -> %d threads",
			call, (unsigned long)before.netns,
			(unsigned long)now.netns, before.mask, now.mask,
			before.cwd, now.cwd, before.fds, now.fds,
			before.threads, now.threads);
	return r;
}
