/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: link_time
 *
 * For each line on stdin, and once at the beginning, prints two numbers: the ns
 * that all processes have spent in bpf(BPF_LINK_CREATE) since this program
 * began, and the number of these calls.
 */
#include <errno.h>
#include <stdio.h>

#include "link_time.skel.h"

int main(void)
{
	struct link_time *watch = link_time__open_and_load();
	int c = '\n', err = watch ? link_time__attach(watch) : -errno;

	if (err)
		(void)fprintf(stderr, "cannot trace system calls: %d\n", err);
	for (; !err && c != EOF; c = getchar()) {
		if (c != '\n')
			continue;
		(void)printf("%llu %llu\n", watch->bss->spent_ns,
			     watch->bss->calls);
		(void)fflush(stdout);
	}
	link_time__destroy(watch);
	return err ? 1 : 0;
}
