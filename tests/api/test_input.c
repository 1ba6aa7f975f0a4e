/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check what the library refuses: each error is one line that names
 * the field and the value, and neither the state nor the results change. */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIVE "input-live"
#define FIFO "/run/netns/fifo"

static struct pod pod;
static struct natra *n;
static char *before;

static void setup(void)
{
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target;

	pod = pod_make("input");
	n = rig_open();
	target = pod_target(&pod, LIVE);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	before = rig_state();
}

static void teardown(void)
{
	struct natra_target target = pod_target(&pod, LIVE);

	rig_same_state(before);
	free(before);
	assert_int_equal(natra_detach(n, &target), 1);
	natra_close(n);
	pod_remove(&pod);
}

/* Every case must end with the state with which it began. */
static int same_state(void **state)
{
	(void)state;
	rig_same_state(before);
	return 0;
}

#define FIELD(name, value, text)                                               \
	{                                                                      \
#name, offsetof(struct natra_policy, name),                    \
			sizeof(((struct natra_policy *)0)->name), value, text  \
	}

static const struct {
	const char *name;
	size_t offset;
	size_t size;
	uint64_t value;
	const char *text;
} bad_fields[] = {
	FIELD(ingress_rate_bits_per_sec, UINT64_MAX, "18446744073709551615"),
	FIELD(edt_pacing, NATRA_EDT_PACING_MAX, "3"),
};

static void set_field(struct natra_policy *policy, size_t offset, size_t size,
		      uint64_t value)
{
	uint32_t small = (uint32_t)value;

	if (size == sizeof(value))
		memcpy((char *)policy + offset, &value, sizeof(value));
	else
		memcpy((char *)policy + offset, &small, sizeof(small));
}

/* The error is about that field, also for a program. */
static void is_about(const char *field)
{
	assert_int_equal(natra_error_code(n), NATRA_CODE_FIELD);
	assert_string_equal(natra_error_about(n), field);
}

static void refuse_policy(const struct natra_policy *policy, const char *name,
			  const char *text)
{
	struct natra_target target = pod_target(&pod, "input-other");

	GIVES(-EINVAL, natra_policy_check(n, policy));
	says(n, name, text);
	is_about(name);
	GIVES(-EINVAL, natra_attach(n, &target, policy, NULL));
	says(n, name, text);
	is_about(name);
	target.id = LIVE;
	GIVES(-EINVAL, natra_attach(n, &target, policy, NULL));
	says(n, name, text);
	is_about(name);
	GIVES(-EINVAL, natra_configure(n, LIVE, policy));
	says(n, name, text);
	is_about(name);
	GIVES(-EINVAL, natra_check(n, LIVE, policy));
	says(n, name, text);
	is_about(name);
}

/* unit-policy has the other fields, and the values that are good. */
TH_TEST(policy_fields)
{
	struct natra_policy policy;

	for (size_t i = 0; i < TH_LEN(bad_fields); i++) {
		policy = policy_of(10, 10);
		set_field(&policy, bad_fields[i].offset, bad_fields[i].size,
			  bad_fields[i].value);
		refuse_policy(&policy, bad_fields[i].name, bad_fields[i].text);
	}
}

/* A policy and its automatic group have members of the same names. */
TH_TEST(automatic_group)
{
	struct natra_group_info group = NATRA_INIT(group);
	struct natra_policy policy = policy_of(10, 10);

	group.ingress_rate_bits_per_sec = 1000000;
	policy.automatic_group = &group;
	(void)snprintf(policy.group, sizeof(policy.group), "a\n");
	refuse_policy(&policy, "group", NULL);
	(void)snprintf(policy.group, sizeof(policy.group), "a");
	group.ingress_rate_bits_per_sec = 2 * NATRA_RATE_MAX_BITS_PER_SEC;
	refuse_policy(&policy, "automatic_group",
		      "ingress_rate_bits_per_sec: 2000000000000000");
	group.sz = 1;
	refuse_policy(&policy, "automatic_group.sz", "1");
}

static void refuse_target(const struct natra_target *target, int r,
			  const char *name, const char *text)
{
	struct natra_policy policy = policy_of(10, 10);

	GIVES(r, natra_attach(n, target, &policy, NULL));
	says(n, name, text);
	if (r == -EINVAL)
		is_about(name);
}

TH_TEST(target_texts)
{
	struct natra_target target = pod_target(&pod, "input-other");
	char longer[400], found[NATRA_ID_MAX + 1];

	memset(longer, 'x', sizeof(longer));
	longer[NATRA_ID_MAX + 1] = '\0';
	target.id = longer;
	refuse_target(&target, -EINVAL, "id", "255");
	GIVES(-EINVAL, natra_detach(n, &target));
	says(n, "id", "255");
	/* It is not read. */
	OK(natra_find(n, &target, found, sizeof(found)));
	assert_string_equal(found, LIVE);
	target = pod_target(&pod, "input-other");
	target.network = longer;
	refuse_target(&target, -EINVAL, "network", "255");
	target = pod_target(&pod, "input-other");
	target.label = longer;
	refuse_target(&target, -EINVAL, "label", "255");

	target = pod_target(&pod, "input-other");
	target.ifname = NULL;
	refuse_target(&target, -EINVAL, "ifname", NULL);
	target.ifname = "";
	refuse_target(&target, -EINVAL, "ifname", NULL);
	target.ifname = "sixteen-bytes-xx";
	refuse_target(&target, -EINVAL, "ifname", NULL);
	target.ifname = "nosuch0";
	refuse_target(&target, -ENODEV, "nosuch0", NULL);
	target.ifname = "a\nb\x1b[1m";
	refuse_target(&target, -ENODEV, NULL, NULL);
	target.ifname = "../eth0";
	refuse_target(&target, -ENODEV, "../eth0", NULL);
}

TH_TEST(target_netns)
{
	struct natra_target target = pod_target(&pod, "input-other");
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int mnt_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	static const struct {
		const char *netns;
		int r;
	} bad[] = {
		{"/nonexistent/ns", -ENOENT},
		{"nosuch", -ENOENT},
		{"/etc/passwd", -EINVAL},
		{"/proc/self/ns/mnt", -EINVAL},
		{"/etc", -EINVAL},
		{FIFO, -EINVAL},
		{"", -EINVAL},
		{"a\nb", -ENOENT},
	};
	char longer[400];

	assert_int_equal(mkfifo(FIFO, 0600), 0);
	for (size_t i = 0; i < TH_LEN(bad); i++) {
		target.netns = bad[i].netns;
		refuse_target(&target, bad[i].r, "netns",
			      strchr(bad[i].netns, '\n') ? NULL : bad[i].netns);
	}
	assert_int_equal(unlink(FIFO), 0);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	target.netns = longer;
	refuse_target(&target, -EINVAL, "netns", NULL);

	target.netns = pod.path;
	target.netns_fd = pod.fd;
	refuse_target(&target, -EINVAL, "netns_fd", pod.path);
	target.netns = NULL;
	target.netns_fd = -1;
	refuse_target(&target, -EINVAL, "netns_fd", "-1");
	target.netns_fd = 9999;
	refuse_target(&target, -EBADF, "netns_fd", "9999");
	target.netns_fd = null_fd;
	refuse_target(&target, -EINVAL, "netns_fd", NULL);
	target.netns_fd = mnt_fd;
	refuse_target(&target, -EINVAL, "netns_fd", NULL);
	assert_int_equal(close(null_fd), 0);
	assert_int_equal(close(mnt_fd), 0);
}

/* A namespace that is gone has no attachment, but what is no namespace is a mistake. With an id
 * it is not needed. */
TH_TEST(target_netns_of_a_detach)
{
	struct natra_target target = pod_target(&pod, NULL);
	static const char *const bad[] = {
		"/etc/passwd",
		"/proc/self/ns/mnt",
		"/proc/self/status",
		"",
	};
	char longer[400];

	for (size_t i = 0; i < TH_LEN(bad); i++) {
		target.netns = bad[i];
		GIVES(-EINVAL, natra_detach(n, &target));
		says(n, "netns", bad[i]);
	}
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	target.netns = longer;
	GIVES(-EINVAL, natra_detach(n, &target));
	says(n, "netns", NULL);
	target.id = "input-other";
	OK(natra_detach(n, &target));
}

TH_TEST(no_rate)
{
	struct natra_target target = pod_target(&pod, "input-other");
	struct natra_policy policy = policy_of(0, 0);

	GIVES(-EINVAL, natra_attach(n, &target, &policy, NULL));
	says(n, "ingress_rate_bits_per_sec", "egress_rate_bits_per_sec");
	is_about("ingress_rate_bits_per_sec, egress_rate_bits_per_sec, group");
}

static int never(void *arg, const struct natra_info *info)
{
	(void)info;
	(void)arg;
	fail_msg("called");
	return 0;
}

TH_TEST(null_handle)
{
	struct natra_target target = pod_target(&pod, LIVE);
	struct natra_policy policy = policy_of(10, 10);
	struct natra_features features = NATRA_INIT(features);
	struct natra_info info = NATRA_INIT(info);
	struct natra_stats stats = NATRA_INIT(stats);
	char id[NATRA_ID_MAX + 1];
	size_t len = 0;

	natra_close(NULL);
	assert_string_equal(natra_error(NULL), "");
	assert_int_equal(natra_open(NULL, NULL), -EINVAL);
	assert_int_equal(natra_probe(NULL, &features), -EINVAL);
	assert_int_equal(natra_policy_check(NULL, &policy), -EINVAL);
	assert_int_equal(natra_attach(NULL, &target, &policy, NULL), -EINVAL);
	assert_int_equal(natra_configure(NULL, LIVE, &policy), -EINVAL);
	assert_int_equal(natra_detach(NULL, &target), -EINVAL);
	assert_int_equal(natra_check(NULL, LIVE, NULL), -EINVAL);
	assert_int_equal(natra_query(NULL, LIVE, &info), -EINVAL);
	assert_int_equal(natra_find(NULL, &target, id, sizeof(id)), -EINVAL);
	assert_int_equal(natra_stats(NULL, LIVE, &stats), -EINVAL);
	assert_int_equal(
		natra_top(NULL, LIVE, NATRA_DIRECTION_EGRESS, NULL, &len),
		-EINVAL);
	assert_int_equal(natra_foreach_neighbour(NULL, LIVE, NULL, NULL),
			 -EINVAL);
	assert_int_equal(natra_foreach_attachment(NULL, never, NULL), -EINVAL);
	assert_int_equal(natra_gc(NULL, NULL, NULL, 0, NULL), -EINVAL);
}

TH_TEST(null_arguments)
{
	struct natra_target target = pod_target(&pod, LIVE);
	struct natra_policy policy = policy_of(10, 10);
	const char *const keep[] = {NULL, LIVE};
	size_t len = 1;

	GIVES(-EINVAL, natra_probe(n, NULL));
	GIVES(-EINVAL, natra_policy_check(n, NULL));
	says(n, "policy", NULL);
	GIVES(-EINVAL, natra_attach(n, NULL, &policy, NULL));
	says(n, "target", NULL);
	GIVES(-EINVAL, natra_attach(n, &target, NULL, NULL));
	says(n, "policy", NULL);
	GIVES(-EINVAL, natra_configure(n, NULL, &policy));
	GIVES(-EINVAL, natra_configure(n, LIVE, NULL));
	GIVES(-EINVAL, natra_detach(n, NULL));
	says(n, "target", NULL);
	target.id = NULL;
	target.ifname = NULL;
	GIVES(-EINVAL, natra_detach(n, &target));
	says(n, "ifname", NULL);
	is_about("id, ifname");
	GIVES(-EINVAL, natra_check(n, NULL, NULL));
	is_about("id");
	GIVES(-EINVAL, natra_query(n, NULL, NULL));
	GIVES(-EINVAL, natra_query(n, LIVE, NULL));
	GIVES(-EINVAL, natra_find(n, &target, NULL, NATRA_ID_MAX + 1));
	GIVES(-EINVAL, natra_stats(n, NULL, NULL));
	GIVES(-EINVAL, natra_stats(n, LIVE, NULL));
	GIVES(-EINVAL, natra_top(n, LIVE, NATRA_DIRECTION_EGRESS, NULL, &len));
	assert_int_equal(len, 1);
	GIVES(-EINVAL, natra_top(n, LIVE, NATRA_DIRECTION_EGRESS, NULL, NULL));
	GIVES(-EINVAL, natra_foreach_neighbour(n, LIVE, NULL, NULL));
	GIVES(-EINVAL, natra_foreach_attachment(n, NULL, NULL));
	GIVES(-EINVAL, natra_gc(n, "net", NULL, 1, NULL));
	GIVES(-EINVAL, natra_gc(n, "", keep, 2, NULL));
	says(n, "keep", NULL);
	is_about("keep");
}

/* The error of an earlier call must not be reported for another call. */
TH_TEST(errors_are_of_the_last_call)
{
	struct natra_policy policy = policy_of(10, 10);

	policy.fast_pass_share_percent = 1007;
	assert_int_equal(natra_policy_check(n, &policy), -EINVAL);
	says(n, "fast_pass_share_percent", "1007");
	assert_int_equal(natra_configure(n, NULL, &policy), -EINVAL);
	assert_null(strstr(natra_error(n), "fast_pass"));
}

#define UNTOUCHED(object)                                                      \
	do {                                                                   \
		for (size_t b = sizeof(size_t); b < sizeof(object); b++)       \
			assert_int_equal(((unsigned char *)&(object))[b],      \
					 0x5a);                                \
	} while (0)

TH_TEST(results_untouched)
{
	struct natra_target target = pod_target(&pod, NULL);
	struct natra_info info;
	struct natra_stats stats;
	struct natra_flow flow;
	char id[NATRA_ID_MAX + 1];
	size_t len = 1, removed = 77;
	uint64_t number = 4711;
	enum natra_attach_mode mode = NATRA_ATTACH_MODE_TCX_HOSTSIDE;

	memset(&info, 0x5a, sizeof(info));
	info.sz = sizeof(info);
	GIVES(-ENOENT, natra_query(n, "nosuch", &info));
	says(n, "nosuch", NULL);
	UNTOUCHED(info);
	memset(&stats, 0x5a, sizeof(stats));
	stats.sz = sizeof(stats);
	GIVES(-ENOENT, natra_stats(n, "nosuch", &stats));
	says(n, "nosuch", NULL);
	UNTOUCHED(stats);
	memset(&flow, 0x5a, sizeof(flow));
	GIVES(-ENOENT,
	      natra_top(n, "nosuch", NATRA_DIRECTION_EGRESS, &flow, &len));
	assert_int_equal(len, 1);
	UNTOUCHED(flow);
	GIVES(-EINVAL, natra_top(n, LIVE, NATRA_DIRECTION_MAX, &flow, &len));
	assert_int_equal(len, 1);
	memset(id, 0x5a, sizeof(id));
	target.ifname = "lo";
	GIVES(-ENOENT, natra_find(n, &target, id, sizeof(id)));
	says(n, "lo", NULL);
	UNTOUCHED(id);
	assert_int_equal(id[0], 0x5a);
	target.ifname = "nosuch0";
	GIVES(-ENODEV, natra_find(n, &target, id, sizeof(id)));
	assert_int_equal(id[0], 0x5a);
	{
		const char *keep[] = {"x"};

		GIVES(-EINVAL, natra_gc(n, NULL, keep, 1, &removed));
		assert_int_equal(removed, 77);
	}
	assert_int_equal(natra_parse_rate("x", &number), -EINVAL);
	assert_int_equal(natra_parse_rate("0", &number), -ERANGE);
	assert_int_equal(natra_parse_size("x", &number), -EINVAL);
	assert_int_equal(natra_parse_time("5", &number), -EINVAL);
	assert_int_equal(number, 4711);
	assert_int_equal(natra_parse_attach_mode("x", &mode), -EINVAL);
	assert_int_equal(mode, NATRA_ATTACH_MODE_TCX_HOSTSIDE);
}

int main(void)
{
	int failed;

	rig_enter();
	setup();
	failed = th_run_each(NULL, same_state);
	teardown();
	return failed;
}
