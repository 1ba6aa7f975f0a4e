/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what libnatra says to bad input; examples/refusals.rs of the Rust crate does the
 * same, and test.py compares the two. */
#include <stdio.h>
#include <string.h>

#include <natra/natra.h>

static struct natra *n;
static char long_text[301];

static void say(const char *name, int r)
{
	if (r < 0)
		printf("%s: %d: %s\n", name, -r, natra_error(n));
	else
		printf("%s: 0\n", name);
}

/* Returns a text of so many "i". */
static const char *text_of(size_t len, char c)
{
	memset(long_text, c, len);
	long_text[len] = '\0';
	return long_text;
}

static struct natra_policy rates(void)
{
	struct natra_policy policy = NATRA_INIT(policy);

	policy.ingress_rate_bits_per_sec = 1000000;
	policy.egress_rate_bits_per_sec = 1000000;
	return policy;
}

#define CHECK(name, member, value)                                             \
	do {                                                                   \
		struct natra_policy p_ = rates();                              \
		p_.member = (value);                                           \
		say(name, natra_policy_check(n, &p_));                         \
	} while (0)

static void lists(const char *name, const char *const *shaped,
		  size_t shaped_len, const char *const *unshaped,
		  size_t unshaped_len)
{
	struct natra_policy policy = rates();

	policy.shaped_subnets = shaped;
	policy.shaped_subnets_len = shaped_len;
	policy.unshaped_subnets = unshaped;
	policy.unshaped_subnets_len = unshaped_len;
	say(name, natra_policy_check(n, &policy));
}

static void policies(void)
{
	static const char *const wrong[] = {"10.0.0.0/8", "10.0.0.0/33"};
	static const char *const all[] = {"::/0"};
	struct natra_policy good = rates(), long_group = rates();

	CHECK("rate", ingress_rate_bits_per_sec, UINT64_MAX);
	CHECK("horizon", horizon_ns, 9000000001);
	memset(long_group.group, 'g', sizeof(long_group.group));
	say("group", natra_policy_check(n, &long_group));
	CHECK("mode", attach_mode, (enum natra_attach_mode)99);
	CHECK("edt", edt_pacing, (enum natra_edt_pacing)99);
	lists("subnet", wrong, 2, NULL, 0);
	lists("two lists", wrong, 1, all, 1);
	say("good", natra_policy_check(n, &good));
}

#define ATTACH(name, ...)                                                      \
	do {                                                                   \
		struct natra_target t_ = {.sz = sizeof(t_), __VA_ARGS__};      \
		struct natra_policy p_ = rates();                              \
		say(name, natra_attach(n, &t_, &p_, NULL));                    \
	} while (0)

static void targets(void)
{
	struct natra_target none = NATRA_INIT(none), eth0 = NATRA_INIT(eth0);
	struct natra_policy no_rate = NATRA_INIT(no_rate);
	char id[NATRA_ID_MAX + 1];

	eth0.ifname = "no-such-if";
	ATTACH("no ifname", .id = "x");
	say("no rate", natra_attach(n, &eth0, &no_rate, NULL));
	ATTACH("no netns", .ifname = "no-such-if", .netns = "/no/such");
	ATTACH("not a netns", .ifname = "no-such-if", .netns = "/dev/null");
	ATTACH("long id", .ifname = "no-such-if", .id = text_of(256, 'i'));
	ATTACH("long ifname", .ifname = text_of(16, 'i'));
	ATTACH("long label", .ifname = "no-such-if",
	       .label = text_of(256, 'l'));
	say("nothing to detach by", natra_detach(n, &none));
	say("nothing to find by", natra_find(n, &none, id, sizeof(id)));
}

static void ids(void)
{
	struct natra_info info = NATRA_INIT(info);
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_policy policy = rates();

	say("query", natra_query(n, "no-such", &info));
	say("query without an id", natra_query(n, "", &info));
	say("configure", natra_configure(n, "no-such", &policy));
	say("check", natra_check(n, "no-such", NULL));
	say("upgrade", natra_upgrade(n, "no-such"));
	say("stats", natra_stats(n, "no-such", &stats));
	say("long", natra_query(n, text_of(300, 'i'), &info));
}

int main(int argc, char **argv)
{
	struct natra_open_opts opts = NATRA_INIT(opts);

	opts.bpffs_path = argc > 1 ? argv[1] : "";
	if (natra_open(&n, &opts) < 0)
		return 1;
	policies();
	targets();
	ids();
	natra_close(n);
	return 0;
}
