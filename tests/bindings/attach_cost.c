/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures an attach and a detach by the library, as BenchmarkAttach of the Go package does.
 *
 * usage: attach_cost NETNS COUNT     prints the nanoseconds of each pair, and those of them
 *                                    in which it had a CPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <natra/natra.h>

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_info info = NATRA_INIT(info);
	struct natra *n = NULL;
	int r;

	if (argc != 3)
		return 2;
	opts.keep_programs = true;
	r = natra_open(&n, &opts);
	target.id = "cost";
	target.ifname = "eth0";
	target.netns = argv[1];
	policy.ingress_rate_bits_per_sec = 10000000;
	policy.egress_rate_bits_per_sec = 10000000;
	policy.edt_pacing = NATRA_EDT_PACING_OFF;
	for (long i = strtol(argv[2], NULL, 10); i > 0 && r >= 0; i--) {
		const double begin = now_ns(CLOCK_MONOTONIC);
		const double cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);

		r = natra_attach(n, &target, &policy, &info);
		if (r == 0)
			r = natra_detach(n, &target);
		printf("%.0f %.0f\n", now_ns(CLOCK_MONOTONIC) - begin,
		       now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	}
	if (r < 0)
		fprintf(stderr, "%s\n", natra_error(n));
	natra_close(n);
	return r < 0;
}
