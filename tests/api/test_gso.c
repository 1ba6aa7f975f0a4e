/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests look at gso_max_segs of a pod whose namespace natra cannot always find: only a
 * descriptor of the caller holds it. tests/faults kills calls that change it. */
#include "one_pod.h"

#include <stdio.h>
#include <unistd.h>

#define SKIP      77
#define UNTOUCHED 65535 /* the kernel's GSO_MAX_SEGS */
#define SLOW      (MBIT / 10)
#define SLOW_SEGS 8 /* 12500 bytes of 1514 */
#define FAST      (10000 * MBIT)

static struct natra_policy egress_of(uint64_t bits_per_sec)
{
	struct natra_policy policy = policy_of(10, 20);

	policy.egress_rate_bits_per_sec = bits_per_sec;
	/* Elsewhere fq would decide the size. */
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	return policy;
}

static struct natra_target by_fd(void)
{
	struct natra_target target = NATRA_INIT(target);

	target.id = ID;
	target.ifname = "eth0";
	target.netns_fd = pod.fd;
	return target;
}

static void attach(uint64_t bits_per_sec)
{
	const struct natra_policy policy = egress_of(bits_per_sec);
	const struct natra_target target = by_fd();

	if (KEPT(natra_attach(n, &target, &policy, NULL)) < 0)
		fail_msg("%s", natra_error(n));
}

static void configure(uint64_t bits_per_sec)
{
	const struct natra_policy policy = egress_of(bits_per_sec);

	if (KEPT(natra_configure(n, ID, &policy)) < 0)
		fail_msg("%s", natra_error(n));
}

static void detach(void)
{
	const struct natra_target target = by_fd();

	assert_int_equal(KEPT(natra_detach(n, &target)), 1);
}

static void has_segs(unsigned int segs)
{
	rig_sh("nsenter --net=/proc/%d/fd/%d ip -d link show eth0 |"
	       " grep -w 'gso_max_segs %u' >/dev/null",
	       getpid(), pod.fd, segs);
}

static void sets_segs(unsigned int segs)
{
	rig_sh("nsenter --net=/proc/%d/fd/%d"
	       " ip link set eth0 gso_max_segs %u",
	       getpid(), pod.fd, segs);
}

static void hide(void)
{
	rig_sh("mount -t tmpfs tmpfs /run/netns");
}

static void show(void)
{
	rig_sh("umount /run/netns");
}

static int begin(void **state)
{
	int r = one_pod_begin(state);

	hide();
	return r;
}

static int end(void **state)
{
	show();
	return one_pod_end(state);
}

TH_TEST(an_attach_changes_it_where_its_descriptor_is)
{
	attach(SLOW);
	has_segs(SLOW_SEGS);
	attach(FAST);
	has_segs(UNTOUCHED);
	attach(2 * SLOW);
	has_segs(2 * SLOW_SEGS);
	detach();
	has_segs(UNTOUCHED);
}

/* Nothing but an id leads to the namespace. */
TH_TEST(what_a_change_could_not_find_is_done_later)
{
	size_t removed = 7;

	attach(SLOW);
	configure(FAST);
	has_segs(SLOW_SEGS);
	attach(FAST);
	has_segs(UNTOUCHED);

	attach(SLOW);
	configure(FAST);
	configure(3 * SLOW);
	configure(2 * SLOW);
	has_segs(SLOW_SEGS);
	attach(2 * SLOW);
	has_segs(2 * SLOW_SEGS);

	configure(FAST);
	show();
	OK(natra_gc(n, NULL, NULL, 0, &removed));
	hide();
	assert_int_equal(removed, 0);
	has_segs(UNTOUCHED);

	attach(SLOW);
	configure(FAST);
	detach();
	has_segs(UNTOUCHED);
}

/* The record has the value of a killed process and the one before it. */
TH_TEST(what_a_killed_change_has_done_is_known)
{
	struct natra_policy policy = egress_of(2 * SLOW);
	const struct natra_target target = by_fd();

	attach(SLOW);
	configure(3 * SLOW);
	sets_segs(3 * SLOW_SEGS);
	attach(2 * SLOW);
	has_segs(2 * SLOW_SEGS);

	configure(3 * SLOW);
	sets_segs(3 * SLOW_SEGS);
	policy.sli = NATRA_SLI_ON;
	OK(natra_attach(n, &target, &policy, NULL));
	has_segs(2 * SLOW_SEGS);
	detach();
	has_segs(UNTOUCHED);
}

/* Programs of another kind replace those that are there. */
TH_TEST(what_a_change_could_not_find_is_done_by_new_programs)
{
	struct natra_policy policy = egress_of(FAST);
	const struct natra_target target = by_fd();

	policy.sli = NATRA_SLI_ON;
	attach(SLOW);
	configure(FAST);
	has_segs(SLOW_SEGS);
	OK(natra_attach(n, &target, &policy, NULL));
	has_segs(UNTOUCHED);
}

TH_TEST(the_value_of_another_program_stays)
{
	attach(SLOW);
	configure(FAST);
	sets_segs(99);
	attach(2 * SLOW);
	has_segs(99);
	/* A value that natra had there before, and took back, is another program's by now. */
	sets_segs(SLOW_SEGS);
	attach(FAST);
	has_segs(SLOW_SEGS);
	detach();
	has_segs(SLOW_SEGS);
}

int main(void)
{
	rig_enter();
	if (!rig_has_tcx()) {
		/* There natra finds out nothing without the namespace. */
		puts("skip: no TCX");
		return SKIP;
	}
	return th_run_each(begin, end);
}
