/* SPDX-License-Identifier: BSD-2-Clause */
/* Records an interface of a network namespace as one without its limits, as the plugin
 * does with onError=continue: without a rate where the library has refused those that it was given.
 * usage: unshaped BPFFS NETNS ID LABEL EGRESS_RATE_BITS_PER_SEC */
#include <stdio.h>
#include <stdlib.h>

#include <natra/natra.h>

int main(int argc, char **argv)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_target target = NATRA_INIT(target);
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra *n;
	int r;

	if (argc != 6)
		return 2;
	opts.bpffs_path = argv[1];
	r = natra_open(&n, &opts);
	if (r < 0)
		return 1;
	target.netns = argv[2];
	target.id = argv[3];
	target.label = argv[4];
	target.ifname = "eth0";
	policy.egress_rate_bits_per_sec = strtoull(argv[5], NULL, 10);
	r = natra_record_unshaped(n, &target, &policy, "made for a test");
	if (r < 0)
		fprintf(stderr, "%s\n", natra_error(n));
	natra_close(n);
	return r < 0;
}
