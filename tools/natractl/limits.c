/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits.h"

#include <errno.h>
#include <string.h>

#include "output.h"

bool limits_given(const struct opts *opts, uint64_t options)
{
	for (int id = 0; id < OPT_MAX; id++) {
		if (options & OPT_BIT(id) && opts->value[id])
			return true;
	}
	return false;
}

/* A direction without a limit has no burst either. */
static int set_rate(const char *text, uint64_t *rate, uint64_t *burst)
{
	if (strcmp(text, "0") != 0 && strcmp(text, "unlimited") != 0)
		return natra_parse_rate(text, rate);
	*rate = 0;
	*burst = 0;
	return 0;
}

static int set_quantity(int (*parse)(const char *, uint64_t *),
			const char *text, uint64_t *field)
{
	if (strcmp(text, "default") != 0)
		return parse(text, field);
	*field = 0;
	return 0;
}

static int set_number(const struct opts *opts, enum opt_id id, uint32_t max,
		      uint32_t *field)
{
	if (strcmp(opts->value[id], "default") != 0)
		return opts_number(opts, id, max, field);
	*field = 0;
	return 0;
}

/* -EINVAL and -ERANGE are the parser's; EXIT_USAGE: the error was printed. */
static int set_limit(const struct opts *opts, enum opt_id id,
		     struct natra_policy *p)
{
	const char *text = opts->value[id];

	switch (id) {
	case OPT_INGRESS:
		return set_rate(text, &p->ingress_rate_bits_per_sec,
				&p->ingress_burst_bytes);
	case OPT_EGRESS:
		return set_rate(text, &p->egress_rate_bits_per_sec,
				&p->egress_burst_bytes);
	case OPT_INGRESS_BURST:
		return set_quantity(natra_parse_size, text,
				    &p->ingress_burst_bytes);
	case OPT_EGRESS_BURST:
		return set_quantity(natra_parse_size, text,
				    &p->egress_burst_bytes);
	case OPT_HEAVY_HITTER_THRESHOLD:
		return set_quantity(natra_parse_size, text,
				    &p->heavy_hitter_threshold_bytes);
	case OPT_HORIZON:
		return set_quantity(natra_parse_time, text, &p->horizon_ns);
	case OPT_PACE_LIMIT:
		return set_quantity(natra_parse_time, text, &p->pace_limit_ns);
	case OPT_FAST_PASS_SHARE:
		return set_number(opts, id, 100, &p->fast_pass_share_percent);
	case OPT_SKETCH_WIDTH:
		return set_number(opts, id, 65536, &p->sketch_width);
	case OPT_FAST_PASS:
		return natra_parse_fast_pass(text, &p->fast_pass);
	case OPT_MODE:
		return natra_parse_mode(text, &p->mode);
	case OPT_EDT:
		return natra_parse_edt(text, &p->edt);
	case OPT_INGRESS_MODE:
		return natra_parse_ingress_mode(text, &p->ingress_mode);
	default:
		return 0;
	}
}

static int refuse(const struct opts *opts, enum opt_id id, int r)
{
	static const struct {
		const char *metavar, *name, *examples, *range;
	} quantities[] = {
		{"RATE", "rate", "10M, 1.5G, 10Mi", "1 bit/s to 1P"},
		{"SIZE", "size", "64k, 1Mi, 125000", "1 to 2^63 - 1 bytes"},
		{"TIME", "time", "50ms, 2s", "1ns to 1h"},
	};
	const char *name = opts_name(id), *value = opts->value[id];
	const char *metavar = opts_metavar(id);

	for (size_t i = 0; i < 3; i++) {
		if (strcmp(metavar, quantities[i].metavar) != 0)
			continue;
		if (r == -ERANGE)
			return usage_error(name, value, "is outside %s",
					   quantities[i].range);
		return usage_error(name, value, "is not a %s (examples: %s)",
				   quantities[i].name, quantities[i].examples);
	}
	return usage_error(name, value, "is not one of %s", metavar);
}

/* One by one, so that the bad one is named. */
static int add_subnets(const struct cli *cli, enum opt_id id,
		       struct natra_policy *p)
{
	const struct opts *opts = &cli->opts;
	bool shaped = id == OPT_SHAPED_SUBNET;

	*(shaped ? &p->shaped_subnets : &p->unshaped_subnets) = opts->subnets;
	for (size_t len = 1; len <= opts->subnets_len; len++) {
		*(shaped ? &p->shaped_subnets_len : &p->unshaped_subnets_len) =
			len;
		if (natra_policy_check(cli->n, p) < 0)
			return usage_error(
				opts_name(id), opts->subnets[len - 1],
				"is refused: %s", natra_error(cli->n));
	}
	return 0;
}

/* The policy is checked after each option, so that the one that spoils it is
 * the one named. */
int limits_apply(const struct cli *cli, struct natra_policy *policy)
{
	const struct opts *opts = &cli->opts;

	for (int id = 0; id < OPT_MAX; id++) {
		int r;

		if (!(LIMITS_ALL & OPT_BIT(id)) || !opts->value[id])
			continue;
		if (id == OPT_SHAPED_SUBNET || id == OPT_UNSHAPED_SUBNET) {
			r = add_subnets(cli, id, policy);
			if (r)
				return r;
			continue;
		}
		r = set_limit(opts, id, policy);
		if (r > 0)
			return r;
		if (r < 0)
			return refuse(opts, id, r);
		if (natra_policy_check(cli->n, policy) < 0)
			return usage_error(opts_name(id), opts->value[id],
					   "is refused: %s",
					   natra_error(cli->n));
	}
	return 0;
}
