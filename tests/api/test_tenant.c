/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check what a pod with CAP_NET_ADMIN does to the hooks of its own interface, and what a
 * caller sees that has few capabilities itself. */
#include "one_pod.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OTHER_ID "other"

static int attach(enum natra_attach_mode mode)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);

	policy.attach_mode = mode;
	return natra_attach(n, &target, &policy, NULL);
}

/* The kernel then takes no filters by the interface. */
static void share_blocks(void)
{
	rig_sh("tc -n " POD " qdisc del dev eth0 clsact 2>/dev/null || :");
	rig_sh("tc -n " POD
	       " qdisc add dev eth0 ingress_block 22 egress_block 23 clsact");
}

TH_TEST(shared_blocks_are_no_end)
{
	struct natra_target target = pod_target(&pod, ID);

	OK(attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE));
	share_blocks();
	GIVES(-EBADE, natra_check(n, ID, NULL));
	GIVES(-EOPNOTSUPP, attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE));
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_QDISC);
	OK(attach(NATRA_ATTACH_MODE_AUTO));
	OK(natra_check(n, ID, NULL));
	share_blocks();
	GIVES(1, natra_detach(n, &target));
	/* The same before a first attach, of which nothing is left. */
	GIVES(-EOPNOTSUPP, attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE));
	GIVES(0, natra_detach(n, &target));
	OK(attach(NATRA_ATTACH_MODE_CLSACT_HOSTSIDE));
	rig_detach(n, ID);
}

static uint32_t newest_program(void)
{
	int fd = rig_load_pass("newest");
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	(void)close(fd);
	return info.id;
}

/* A filter of natra's has the number of its program in its handle, which a pod can guess. */
TH_TEST(taken_handles_are_no_end)
{
	rig_sh("tc -n " POD " qdisc add dev eth0 clsact");
	rig_sh("for i in $(seq 500); do for p in 1 2; do"
	       " echo filter add dev eth0 ingress prio $p handle $((0x1000 + %u + i))"
	       " protocol all bpf bytecode \\\"1,6 0 0 0\\\" da; done; done |"
	       " tc -n " POD " -b -",
	       newest_program());
	GIVES(-EOPNOTSUPP, attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE));
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_QDISC);
	OK(attach(NATRA_ATTACH_MODE_AUTO));
	OK(natra_check(n, ID, NULL));
	rig_detach(n, ID);
}

static int count_ours(void *arg, const struct natra_neighbour *entry)
{
	unsigned int *ours = arg;

	*ours += entry->is_ours;
	return 0;
}

/* The kernel cannot list a filter of 4096 instructions, nor any behind it. */
TH_TEST(filter_that_cannot_be_listed_hides_nothing)
{
	struct natra_target other = pod_target(&pod, OTHER_ID);
	struct natra_policy policy = policy_of(10, 20);
	unsigned int ours = 0;

	OK(attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE));
	rig_sh("nsenter --net=%s python3 -c '\n"
	       "import socket, struct\n"
	       "def attr(kind, data):\n"
	       "    return struct.pack(\"HH\", 4 + len(data), kind) + data + bytes(-len(data) %% 4)\n"
	       "ops = attr(4, struct.pack(\"H\", 4096)) + attr(5, struct.pack(\"HBBI\", 6, 0, 0, 0) * 4096)\n"
	       "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n"
	       "for parent in 0xfffffff2, 0xfffffff3:\n"
	       "    body = struct.pack(\"BBHiIII\", 0, 0, 0, socket.if_nametoindex(\"eth0\"), 1, parent,\n"
	       "                       1 << 16 | socket.htons(3)) + attr(1, b\"bpf\\0\") + attr(2, ops)\n"
	       "    s.send(struct.pack(\"IHHII\", 16 + len(body), 44, 0x605, 1, 0) + body)\n"
	       "    error = struct.unpack(\"i\", s.recv(65536)[16:20])[0]\n"
	       "    assert error == 0, error\n"
	       "'",
	       pod.path);
	OK(natra_check(n, ID, NULL));
	OK(natra_foreach_neighbour(n, ID, count_ours, &ours));
	assert_int_equal(ours, 3);
	GIVES(-EBUSY, natra_attach(n, &other, &policy, NULL));
	assert_int_equal(natra_error_code(n), NATRA_CODE_OTHER_ID);
	OK(attach(NATRA_ATTACH_MODE_CLSACT_PODSIDE));
	rig_detach(n, ID);
	/* The qdisc is natra's, but the filters are not. */
	rig_sh("tc -n " POD " qdisc show dev eth0 | grep -q 'qdisc clsact'");
}

/* In its own namespace a caller needs no CAP_SYS_ADMIN, without which it is not told what programs are
 * called. */
TH_TEST(limits_of_another_id_are_found_without_privilege)
{
	struct natra_target target = pod_target(&pod, ID);
	struct natra_target other = pod_target(&pod, OTHER_ID);
	struct natra_policy policy = policy_of(10, 20);
	int status = 0;
	pid_t pid;

	target.netns = other.netns = NULL;
	target.ifname = other.ifname = NODE_SIDE;
	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	OK(natra_attach(n, &target, &policy, NULL));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (!rig_drop_capability(CAP_SYS_ADMIN))
			_exit(1);
		_exit(-natra_attach(n, &other, &policy, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EBUSY);
	rig_detach(n, ID);
}

static ino_t own_netns(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/thread-self/ns/net", &st), 0);
	return st.st_ino;
}

struct seen_lines {
	ino_t netns;
	unsigned int all, elsewhere;
};

static void see_line(void *arg, enum natra_log_level level, const char *line)
{
	struct seen_lines *seen = arg;

	(void)level;
	(void)line;
	seen->all++;
	seen->elsewhere += own_netns() != seen->netns;
}

/* Whoever logs by a socket would have it in the pod. */
TH_TEST(lines_are_logged_in_the_callers_namespace)
{
	struct seen_lines seen = {.netns = own_netns()};
	struct natra_target target = pod_target(&pod, ID);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *logging = NULL;

	rig_sh("tc -n " POD " qdisc add dev eth0 clsact &&"
	       " for i in $(seq 200); do echo filter add dev eth0 ingress protocol ip"
	       " prio 9 u32 match u32 $i 0xffffffff at 16; done | tc -n " POD
	       " -b -");
	opts.bpffs_path = BPFFS;
	opts.log_fn = see_line;
	opts.log_arg = &seen;
	OK(natra_open(&logging, &opts));
	policy.attach_mode = NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	if (natra_attach(logging, &target, &policy, NULL) < 0)
		fail_msg("%s", natra_error(logging));
	assert_in_range(seen.all, 2, 10000);
	assert_int_equal(seen.elsewhere, 0);
	rig_detach(logging, ID);
	natra_close(logging);
}

POD_MAIN()
