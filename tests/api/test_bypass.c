/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check what is told of packets that pass natra's programs. Who looks takes no lock, and
 * the attachment may be another one before the look is over. */
#include "one_pod.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#define NEXT          "of-the-next"
/* Within this time nobody looks again. */
#define LOOK_AGAIN_US 1100000

/* Before the thread of this number starts, which a look sends into the pod's namespace, another
 * attachment takes the place of the pod's. */
static struct {
	struct natra
		*by; /* keeps programs, or the slots would be of another bank */
	struct pod next;
	int thread; /* 0: none */
	int result;
} swap;

static int swap_attachments(void)
{
	const struct natra_target before = pod_target(&pod, ID),
				  target = pod_target(&swap.next, NEXT);
	const struct natra_policy policy = policy_of(10000, 10000);
	int r = natra_detach(swap.by, &before);

	return r == 1 ? natra_attach(swap.by, &target, &policy, NULL) : -1;
}

/* Takes the place of libc's function, also for the library. */
int pthread_create(pthread_t *newthread, const pthread_attr_t *attr,
		   void *(*start_routine)(void *), void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
		      void *);

	*(void **)&create = dlsym(RTLD_NEXT, __func__);
	if (swap.thread && --swap.thread == 0)
		swap.result = swap_attachments();
	return create(newthread, attr, start_routine, arg);
}

static void open_swap(void)
{
	struct natra_open_opts opts = NATRA_INIT(opts);

	opts.bpffs_path = BPFFS;
	opts.keep_programs = true;
	assert_int_equal(natra_open(&swap.by, &opts), 0);
	swap.next = pod_make("next");
}

/* Looks at the pod's attachment, after traffic. Returns whether the other one has taken its place at
 * the start of that thread, if there are so many. */
static bool look_and_swap(int thread)
{
	const struct natra_policy policy = policy_of(10000, 10000);
	struct natra_info info = NATRA_INIT(info);
	bool swapped;

	assert_int_equal(attach_pod(&policy), 0);
	/* More than the megabyte under which nothing is told. */
	pod_send(&pod, 60000);
	(void)usleep(LOOK_AGAIN_US);
	swap.thread = thread;
	swap.result = -1;
	(void)natra_query(n, ID, &info);
	swapped = swap.thread == 0;
	swap.thread = 0;
	return swapped;
}

TH_TEST(a_look_is_not_kept_for_the_next_one)
{
	struct natra_info info;
	int thread = 1;

	open_swap();
	for (; look_and_swap(thread); thread++) {
		assert_int_equal(swap.result, 0);
		info = rig_query(n, NEXT);
		assert_int_equal(info.ingress_bypassed_percent, 0);
		assert_int_equal(info.egress_bypassed_percent, 0);
		OK(natra_check(n, NEXT, NULL));
		rig_detach(n, NEXT);
	}
	assert_true(thread > 1);
	natra_close(swap.by);
	pod_remove(&swap.next);
}

POD_MAIN()
