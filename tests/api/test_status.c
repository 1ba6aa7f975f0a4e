/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check that natra_status names what makes attaching impossible, and
 * changes nothing. */
#include "rig.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define TH_LEN(array) (sizeof(array) / sizeof((array)[0]))

static struct natra *open_at(const char *bpffs)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *n;

	opts.bpffs_path = bpffs;
	assert_int_equal(natra_open(&n, &opts), 0);
	return n;
}

TH_TEST(a_node_that_works_is_ready)
{
	struct natra *n = rig_open();
	char *before = rig_state();

	OK(natra_status(n));
	rig_same_state(before);
	free(before);
	natra_close(n);
	assert_int_equal(natra_status(NULL), -EINVAL);
}

TH_TEST(bpffs_is_not_needed_yet_but_its_place_is)
{
	char empty[] = "/tmp/natra-api-XXXXXX";
	const struct {
		const char *path;
		int result;
	} cases[] = {
		{mkdtemp(empty), 0},
		{"/tmp", -ENOTEMPTY},
		{"/nosuch/bpf", -ENOENT},
		{"/etc/passwd", -ENOTDIR},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct natra *n = open_at(cases[i].path);

		GIVES(cases[i].result, natra_status(n));
		if (cases[i].result < 0)
			says(n, cases[i].path, NULL);
		natra_close(n);
	}
	assert_int_equal(access("/tmp/natra", F_OK), -1);
	assert_int_equal(rmdir(empty), 0);
}

/* A mount would hide what is in a directory that was named by mistake. */
TH_TEST(full_directory_is_not_mounted_over)
{
	struct natra *n = open_at("/tmp");
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = policy_of(10, 20);

	target.ifname = "lo";
	GIVES(-ENOTEMPTY, natra_attach(n, &target, &policy, NULL));
	says(n, "'/tmp'", "hide");
	assert_int_equal(access(BPFFS, F_OK), 0);
	natra_close(n);
}

/* Runs in a child, because a capability that was given away does not come
 * back. */
static int status_without(unsigned int capability, char *ret_error)
{
	int pipe_fd[2], status = 0;
	ssize_t len;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct natra *n = open_at(BPFFS);
		const char *error;
		int r;

		if (!rig_drop_capability(capability))
			_exit(1);
		r = natra_status(n);
		error = natra_error(n);
		if (write(pipe_fd[1], error, strlen(error)) < 0)
			_exit(1);
		_exit(-r);
	}
	(void)close(pipe_fd[1]);
	len = read(pipe_fd[0], ret_error, 255);
	ret_error[len > 0 ? len : 0] = '\0';
	(void)close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : 1;
}

TH_TEST(a_missing_capability_is_named)
{
	char error[256];

	assert_int_equal(status_without(CAP_NET_ADMIN, error), -EPERM);
	assert_non_null(strstr(error, "CAP_NET_ADMIN"));
	assert_int_equal(status_without(CAP_SYS_ADMIN, error), -EPERM);
	assert_non_null(strstr(error, "CAP_SYS_ADMIN"));
	/* natra does not need this capability. */
	assert_int_equal(status_without(CAP_SYS_RAWIO, error), 0);
}

/* Each supported kernel has these features. tests/vm and tests/faults cover
 * kernels that lack some. */
TH_TEST(the_parts_of_the_kernel_are_told)
{
	struct natra_features all = NATRA_INIT(all);
	struct natra *n = rig_open();

	OK(natra_probe(n, &all));
	assert_true(all.kernel_ok);
	assert_true(all.coarse_clock && all.atomics && all.netns_cookie &&
		    all.set_tstamp);
	assert_int_equal(all.auto_edt, all.fq);
	assert_string_equal(natra_error(n), "");
	natra_close(n);
}

RIG_MAIN(NULL, NULL)
