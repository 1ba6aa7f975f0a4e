/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests follow the life of an attachment through one call after the
 * other. */
#include "one_pod.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* It is long, and so are the paths below it. */
#define OTHER_BPFFS                                                                   \
	"/tmp/natra-api-bpffs-2-of-which-the-name-is-as-long-as-that-of-a-directory-" \
	"of-a-container-runtime-or-a-kubelet-may-be"

static char *before;

static int begin(void **state)
{
	(void)one_pod_begin(state);
	before = rig_state();
	return 0;
}

/* Each case must leave everything as it was. */
static int end(void **state)
{
	rig_same_state(before);
	free(before);
	return one_pod_end(state);
}

static void attach(const struct pod *of, const char *id)
{
	struct natra_target target = pod_target(of, id);
	struct natra_policy policy = policy_of(10, 20);

	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, id, &policy));
}

/* Path, name and descriptor lead to the same interface. */
TH_TEST(netns_given)
{
	struct natra_target target = pod_target(&pod, NULL);
	struct natra_policy policy = policy_of(10, 20);
	char id[NATRA_ID_MAX + 1], expected[64], again[NATRA_ID_MAX + 1];
	struct stat st;

	assert_int_equal(fstat(pod.fd, &st), 0);
	(void)snprintf(expected, sizeof(expected), "%lu-eth0",
		       (unsigned long)st.st_ino);
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_find(n, &target, id, sizeof(id)));
	assert_string_equal(id, expected);
	GIVES(-ERANGE, natra_find(n, &target, again, strlen(expected)));
	says(n, expected, NULL);
	assert_int_equal(rig_query(n, id).netns_inode, st.st_ino);

	target.netns = pod.name;
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_find(n, &target, again, sizeof(again)));
	assert_string_equal(again, id);

	target.netns = NULL;
	target.netns_fd = pod.fd;
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_find(n, &target, again, sizeof(again)));
	assert_string_equal(again, id);
	GIVES(1, natra_detach(n, &target));
	/* The descriptor is still open, because it belongs to the caller. */
	assert_int_equal(fstat(pod.fd, &st), 0);
}

/* Without a namespace in the target, that of the caller is used. */
TH_TEST(netns_own)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = policy_of(10, 20);

	target.ifname = NODE_SIDE;
	target.id = "own";
	OK(natra_attach(n, &target, &policy, NULL));
	OK(natra_check(n, "own", NULL));
	assert_string_equal(rig_query(n, "own").ifname, NODE_SIDE);
	rig_detach(n, "own");
	assert_int_equal(natra_check(n, "own", NULL), -ENOENT);
}

/* Checks that the other end of its veth is found, and stays so in an upgrade. */
static void has_host_side(const struct natra_target *target,
			  enum natra_attach_mode mode)
{
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info;

	policy.attach_mode = mode;
	OK(natra_attach(n, target, &policy, NULL));
	info = rig_query(n, "own");
	assert_string_equal(info.host_ifname, "own-host");
	OK(natra_upgrade(n, "own"));
	assert_string_equal(rig_query(n, "own").pin_path, info.pin_path);
	rig_detach(n, "own");
}

/* However the caller's own namespace is named, both ends of a veth may be in it. */
TH_TEST(netns_own_by_its_name)
{
	const enum natra_attach_mode hostside =
		rig_has_tcx() ? NATRA_ATTACH_MODE_TCX_HOSTSIDE
			      : NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	const int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct natra_target target = NATRA_INIT(target);

	assert_true(fd >= 0);
	rig_sh("ip link add own-pod up type veth peer name own-host &&"
	       "ip link set own-host up");
	target.ifname = "own-pod";
	target.id = "own";
	for (int way = 0; way < 3; way++) {
		target.netns = way == 1 ? "/proc/self/ns/net" : NULL;
		target.netns_fd = way == 2 ? fd : 0;
		has_host_side(&target, hostside);
		has_host_side(&target, NATRA_ATTACH_MODE_AUTO);
	}
	(void)close(fd);
	rig_sh("ip link del own-pod");
}

TH_TEST(query_tells_what_was_given)
{
	struct natra_target target = pod_target(&pod, "told");
	struct natra_policy policy = policy_of(10, 0);
	struct natra_info info;

	target.network = "net-a";
	target.label = "namespace/pod";
	policy.ingress_burst_bits = 123456;
	policy.heavy_hitter_threshold_bytes = 54321;
	policy.fast_pass = NATRA_FAST_PASS_STRICT;
	policy.fast_pass_share_percent = 55;
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	OK(natra_attach(n, &target, &policy, NULL));
	info = rig_query(n, "told");
	assert_memory_equal(&info.policy, &policy, sizeof(policy));
	assert_string_equal(info.id, "told");
	assert_string_equal(info.network, "net-a");
	assert_string_equal(info.label, "namespace/pod");
	assert_string_equal(info.ifname, "eth0");
	assert_true(info.mode > NATRA_ATTACH_MODE_AUTO &&
		    info.mode < NATRA_ATTACH_MODE_MAX);
	assert_true(info.reason[0] != '\0');
	assert_false(info.interface_gone);
	assert_int_equal(info.effective.horizon_ns, 2000000000);
	assert_int_equal(info.effective.pace_limit_ns, 50000000);
	assert_int_equal(info.effective.fast_pass_share_percent, 55);
	assert_true(info.ingress_prog_id != 0);
	assert_int_equal(info.egress_prog_id, 0);
	assert_int_equal(strncmp(info.pin_path, BPFFS, strlen(BPFFS)), 0);
	rig_detach(n, "told");
}

struct walk {
	char ids[8][NATRA_ID_MAX + 1];
	size_t len;
	int result;
	bool detach;
};

static int note(void *arg, const struct natra_info *info)
{
	struct walk *walk = arg;

	assert_true(walk->len < 8);
	(void)snprintf(walk->ids[walk->len++], sizeof(walk->ids[0]), "%s",
		       info->id);
	if (walk->detach)
		rig_detach(n, info->id);
	return walk->result;
}

static struct pod attach_to_new(const char *name, const char *id,
				const char *network)
{
	struct pod new = pod_make(name);
	struct natra_target target = pod_target(&new, id);
	struct natra_policy policy = policy_of(10, 0);

	target.network = network;
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	return new;
}

TH_TEST(foreach_and_gc)
{
	static const char *const keep[] = {"b", "nosuch"};
	struct walk walk = {.len = 0};
	struct pod pods[3];
	size_t removed = 77;

	attach(&pod, "d");
	pods[0] = attach_to_new("life-1", "b", "net-1");
	pods[1] = attach_to_new("life-2", "c", "net-1");
	pods[2] = attach_to_new("life-3", "a", "net-2");
	OK(natra_foreach_attachment(n, note, &walk));
	assert_int_equal(walk.len, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(walk.ids[i],
				    ((const char *[]){"a", "b", "c", "d"})[i]);
	walk = (struct walk){.result = 5};
	GIVES(5, natra_foreach_attachment(n, note, &walk));
	assert_int_equal(walk.len, 1);

	OK(natra_gc(n, NULL, NULL, 0, &removed));
	assert_int_equal(removed, 0);
	OK(natra_gc(n, "net-1", keep, 2, &removed));
	assert_int_equal(removed, 1);
	assert_int_equal(natra_check(n, "a", NULL), 0);
	assert_int_equal(natra_check(n, "b", NULL), 0);
	assert_int_equal(natra_check(n, "c", NULL), -ENOENT);
	assert_int_equal(natra_check(n, "d", NULL), 0);
	OK(natra_gc(n, "net-1", NULL, 0, NULL));
	assert_int_equal(natra_check(n, "b", NULL), -ENOENT);
	assert_int_equal(natra_check(n, "a", NULL), 0);

	walk = (struct walk){.detach = true};
	assert_int_equal(natra_foreach_attachment(n, note, &walk), 0);
	assert_int_equal(walk.len, 2);
	for (int i = 0; i < 3; i++)
		pod_remove(&pods[i]);
}

TH_TEST(strange_ids)
{
	char longest[NATRA_ID_MAX + 1];
	const char *ids[] = {
		"a.b.c", "a/b/../c",    "..",       "/", " ",
		"%s%n",  "a\nb\tc\x01", "\xff\xfe", "1", longest,
	};

	memset(longest, 'x', sizeof(longest));
	longest[NATRA_ID_MAX] = '\0';
	for (size_t i = 0; i < TH_LEN(ids); i++) {
		char id[NATRA_ID_MAX + 1];
		struct natra_target target = pod_target(&pod, ids[i]);

		attach(&pod, ids[i]);
		assert_string_equal(rig_query(n, ids[i]).id, ids[i]);
		assert_int_equal(natra_find(n, &target, id, sizeof(id)), 0);
		assert_string_equal(id, ids[i]);
		rig_detach(n, ids[i]);
		assert_int_equal(natra_check(n, ids[i], NULL), -ENOENT);
		says(n, NULL, NULL);
	}
}

static void gone_is_told(const char *id)
{
	struct natra_policy policy = policy_of(30, 40);
	struct natra_info info = rig_query(n, id);

	assert_true(info.interface_gone);
	GIVES(-ENODEV, natra_configure(n, id, &policy));
	says(n, "eth0", NULL);
	GIVES(-ENODEV, natra_check(n, id, NULL));
	says(n, "eth0", NULL);
}

TH_TEST(interface_gone)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = policy_of(10, 0);
	const enum natra_attach_mode modes[] = {
		rig_has_tcx() ? NATRA_ATTACH_MODE_TCX_PODSIDE
			      : NATRA_ATTACH_MODE_AUTO,
		NATRA_ATTACH_MODE_CLSACT_PODSIDE,
	};
	size_t removed = 0;
	struct pod mine;

	for (size_t i = 0; i < TH_LEN(modes); i++) {
		/* The interface is deleted with its namespace; then comes a
		 * detach. */
		mine = pod_make("life-g");
		target = pod_target(&mine, "gone");
		policy.attach_mode = modes[i];
		assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
		pod_remove(&mine);
		gone_is_told("gone");
		GIVES(1, natra_detach(n, &target));
		assert_int_equal(rig_pins(), 0);

		/* Only the interface is deleted; then comes a gc. */
		mine = pod_make("life-g");
		target = pod_target(&mine, "gone");
		assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
		rig_sh("ip -n life-g link del eth0");
		gone_is_told("gone");
		OK(natra_gc(n, NULL, NULL, 0, &removed));
		assert_int_equal(removed, 1);
		assert_int_equal(rig_pins(), 0);
		pod_remove(&mine);
	}
}

/* The id of an interface that was made anew is attached to the new one. */
TH_TEST(interface_made_anew)
{
	struct pod mine = pod_make("life-n");

	attach(&mine, "anew");
	pod_remove(&mine);
	mine = pod_make("life-n");
	attach(&mine, "anew");
	assert_false(rig_query(n, "anew").interface_gone);
	rig_detach(n, "anew");
	pod_remove(&mine);
}

TH_TEST(bpffs_is_mounted)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_features features = NATRA_INIT(features);
	struct natra_policy policy = policy_of(10, 0);
	struct natra_target target = pod_target(&pod, "mount");
	struct natra *other;

	opts.bpffs_path = OTHER_BPFFS;
	assert_true(mkdir(OTHER_BPFFS, 0700) == 0 || errno == EEXIST);
	assert_int_equal(natra_open(&other, &opts), 0);
	OK(natra_probe(other, &features));
	assert_false(features.bpffs);
	/* Calls that only ask, or remove, do not mount bpffs. */
	GIVES(-ENOENT, natra_check(other, "mount", NULL));
	OK(natra_gc(other, NULL, NULL, 0, NULL));
	OK(natra_detach(other, &target));
	OK(natra_probe(other, &features));
	assert_false(features.bpffs);

	OK(natra_attach(other, &target, &policy, NULL));
	OK(natra_check(other, "mount", &policy));
	OK(natra_probe(other, &features));
	assert_true(features.bpffs);
	assert_int_equal(access(rig_query(other, "mount").pin_path, F_OK), 0);
	/* The handle of the other bpffs does not see the attachment. */
	assert_int_equal(natra_check(n, "mount", NULL), -ENOENT);
	GIVES(1, natra_detach(other, &target));
	natra_close(other);
	assert_int_equal(umount(OTHER_BPFFS), 0);
	assert_int_equal(rmdir(OTHER_BPFFS), 0);
}

TH_TEST(bpffs_path_is_wrong)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_policy policy = policy_of(10, 0);
	struct natra_target target = pod_target(&pod, "wrong");
	char longer[600];
	struct natra *other;

	opts.bpffs_path = "natra-nonexistent/bpf";
	assert_int_equal(natra_open(&other, &opts), -EINVAL);
	opts.bpffs_path = "/tmp/natra-nonexistent/bpf";
	assert_int_equal(natra_open(&other, &opts), 0);
	GIVES(-ENOENT, natra_attach(other, &target, &policy, NULL));
	says(other, "/tmp/natra-nonexistent/bpf", NULL);
	natra_close(other);

	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	opts.bpffs_path = longer;
	assert_int_equal(natra_open(&other, &opts), 0);
	GIVES(-ENAMETOOLONG, natra_attach(other, &target, &policy, NULL));
	says(other, "bpffs_path", NULL);
	natra_close(other);
}

RIG_MAIN(begin, end)
