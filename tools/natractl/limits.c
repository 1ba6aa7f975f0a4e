/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "output.h"

/* These are read by class_list_apply and automatic_apply. */
#define NOT_FIELDS (OPT_BIT(OPT_CLASS) | OPT_BIT(OPT_GROUP_LIMITS))

bool limits_given(const struct opts *opts, uint64_t options)
{
	for (int id = 0; id < OPT_MAX; id++) {
		if (options & OPT_BIT(id) && opts->value[id])
			return true;
	}
	return false;
}

static uint64_t field_options(bool live_only)
{
	uint64_t options = 0;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (!live_only || !policy_fields[i].is_fixed)
			options |= OPT_BIT(OPT_POLICY + i);
	}
	return options;
}

static uint64_t list_options(void)
{
	return OPT_BIT(OPT_SHAPED_SUBNET) | OPT_BIT(OPT_UNSHAPED_SUBNET) |
	       OPT_BIT(OPT_CLASS);
}

uint64_t limits_options(void)
{
	return field_options(false) | list_options() |
	       OPT_BIT(OPT_GROUP_LIMITS);
}

uint64_t limits_live_options(void)
{
	return field_options(true) | list_options() | OPT_BIT(OPT_GROUP_LIMITS);
}

uint64_t limits_rate_options(void)
{
	uint64_t options = 0;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (policy_field_is_direction(&policy_fields[i]))
			options |= OPT_BIT(OPT_POLICY + i);
	}
	return options;
}

/* Removes a limit, and what cannot be without it. */
static void remove_limit(const struct policy_field *limit,
			 struct natra_policy *p)
{
	policy_field_set(limit, p, 0);
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->of == limit->offset &&
		    !policy_field_counts(field, p))
			policy_field_set(field, p, 0);
	}
}

/* Returns what the parser does: -EINVAL or -ERANGE; or EXIT_USAGE after printing
 * the error. */
static int set_limit(const struct opts *opts, enum opt_id id,
		     struct natra_policy *p)
{
	const struct policy_field *field = opts_field(id);
	const char *text = opts->value[id];
	bool is_direction = policy_field_is_direction(field);

	if (policy_field_word(field, 0))
		return policy_field_parse(field, p, text);
	if (is_direction &&
	    (strcmp(text, "0") == 0 || strcmp(text, "unlimited") == 0)) {
		remove_limit(field, p);
		return 0;
	}
	if (field->unit == POLICY_COUNT && strcmp(text, "unlimited") == 0) {
		remove_limit(field, p);
		return 0;
	}
	if (!is_direction && strcmp(text, "default") == 0) {
		policy_field_set(field, p, 0);
		return 0;
	}
	return policy_field_parse(field, p, text);
}

/* Lets the attachment join a group, or leave its group with what it was in it. */
static int set_group(const struct cli *cli, enum opt_id id,
		     struct natra_policy *p)
{
	const char *name = cli->opts.value[id];
	int r = opts_check_text(opts_name(id), name, NATRA_GROUP_NAME_MAX);

	if (r)
		return r;
	if (strcmp(name, "none") == 0) {
		remove_limit(opts_field(id), p);
		return 0;
	}
	(void)snprintf(p->group, sizeof(p->group), "%s", name);
	p->group_is_automatic = 0;
	return 0;
}

static int refuse_value(const struct opts *opts, enum opt_id id, int r)
{
	static const struct {
		const char *name, *examples, *range;
	} quantities[] = {
		[POLICY_RATE] = {"rate", "10M, 1.5G, 10Mi", "1 bit/s to 1P"},
		[POLICY_BURST] = {"number of bits", "8M, 1Mi, 125000",
				  "1 to 2^63 - 1 bits"},
		[POLICY_SIZE] = {"size", "64k, 1Mi, 125000",
				 "1 to 2^63 - 1 bytes"},
		[POLICY_COUNT] = {"number", "500, 10k", "1 to 10^9"},
		[POLICY_TIME] = {"time", "50ms, 2s", "1ns to 9s"},
		[POLICY_PERCENT] = {"percentage", "50, 80", "1 to 1000"},
		[POLICY_NUMBER] = {"number", "1, 10", "1 to 64"},
	};
	const char *name = opts_name(id), *value = opts->value[id];
	const struct policy_field *field = opts_field(id);
	enum policy_unit unit = field->unit;

	if (unit >= sizeof(quantities) / sizeof(quantities[0]))
		return usage_error(name, value, "is not one of %s",
				   opts_metavar(id));
	if (r == -ERANGE)
		return usage_error(name, value, "is outside %s",
				   quantities[unit].range);
	return usage_error(name, value, "is not a %s (examples: %s)",
			   quantities[unit].name, quantities[unit].examples);
}

static int check_subnets(const struct cli *cli, bool shaped, size_t len)
{
	struct natra_policy some = NATRA_INIT(some);

	some.shaped_subnets = some.unshaped_subnets = cli->opts.subnets;
	some.shaped_subnets_len = shaped ? len : 0;
	some.unshaped_subnets_len = shaped ? 0 : len;
	return natra_policy_check(cli->n, &some);
}

/* Gives the policy the subnets, and no others. They are checked one by one if they are
 * refused, so that the error names the wrong one. */
static int set_subnets(const struct cli *cli, enum opt_id id,
		       struct natra_policy *p)
{
	const struct opts *opts = &cli->opts;
	const bool shaped = id == OPT_SHAPED_SUBNET;
	int r = check_subnets(cli, shaped, opts->subnets_len);

	for (size_t len = 1; r < 0 && len <= opts->subnets_len; len++) {
		r = check_subnets(cli, shaped, len);
		if (r < 0)
			return refused(cli, r, opts_name(id),
				       opts->subnets[len - 1]);
		r = -EINVAL;
	}
	p->shaped_subnets = shaped ? opts->subnets : NULL;
	p->shaped_subnets_len = shaped ? opts->subnets_len : 0;
	p->unshaped_subnets = shaped ? NULL : opts->subnets;
	p->unshaped_subnets_len = shaped ? 0 : opts->subnets_len;
	return 0;
}

/* A floor that is given takes the place of the one before, which may be more than a rate
 * that is given as well. */
static void forget_floor(const struct opts *opts, struct natra_policy *policy)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (opts->value[OPT_POLICY + i] &&
		    field->offset == offsetof(struct natra_policy,
					      group_floor_bits_per_sec))
			policy_field_set(field, policy, 0);
	}
}

/* Puts one limit into the policy. Returns 0, or EXIT_USAGE after printing the error. */
static int apply_one(const struct cli *cli, enum opt_id id,
		     struct natra_policy *policy)
{
	int r;

	if (id == OPT_SHAPED_SUBNET || id == OPT_UNSHAPED_SUBNET)
		return set_subnets(cli, id, policy);
	if (opts_field(id)->unit == POLICY_GROUP)
		return set_group(cli, id, policy);
	r = set_limit(&cli->opts, id, policy);
	return r < 0 ? refuse_value(&cli->opts, id, r) : 0;
}

static bool is_given(const struct opts *opts, int id)
{
	return limits_options() & ~NOT_FIELDS & OPT_BIT(id) && opts->value[id];
}

int limits_check(const struct cli *cli)
{
	struct natra_policy scratch = NATRA_INIT(scratch);
	int r = 0;

	for (int id = 0; id < OPT_MAX && !r; id++) {
		if (is_given(&cli->opts, id))
			r = apply_one(cli, (enum opt_id)id, &scratch);
	}
	return r;
}

/* The policy is checked after each option, so that the error names the wrong
 * one. */
int limits_apply(const struct cli *cli, struct natra_policy *policy)
{
	const struct opts *opts = &cli->opts;

	forget_floor(opts, policy);
	for (int id = 0; id < OPT_MAX; id++) {
		int r;

		if (!is_given(opts, id))
			continue;
		r = apply_one(cli, (enum opt_id)id, policy);
		if (r)
			return r;
		r = natra_policy_check(cli->n, policy);
		if (r < 0)
			return refused(cli, r, opts_name(id), opts->value[id]);
	}
	return 0;
}
