/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces the library's calls that need a kernel in the plugin that
 * test_cni_command.py runs (by ld's --wrap). Each call writes a line to the
 * file FAKE_CALLS and returns the value of the variable FAKE_<name>, or 0.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <natra/natra.h>

const char *__real_natra_error(const struct natra *n);
enum natra_code __real_natra_error_code(const struct natra *n);

static char error[256];

const char *__wrap_natra_error(const struct natra *n)
{
	return error[0] ? error : __real_natra_error(n);
}

static const char *asked(const char *name)
{
	char variable[64];

	(void)snprintf(variable, sizeof(variable), "FAKE_%s", name);
	return getenv(variable);
}

/* FAKE_code is the name of the code. */
enum natra_code __wrap_natra_error_code(const struct natra *n)
{
	enum natra_code code = NATRA_CODE_NONE;

	if (!error[0] || !asked("code"))
		return __real_natra_error_code(n);
	while (strcmp(natra_code_name(code), asked("code")) != 0)
		code++;
	return code;
}

__attribute__((format(printf, 2, 3))) static int called(const char *name,
							const char *format, ...)
{
	const char *path = getenv("FAKE_CALLS"), *result = asked(name);
	FILE *f = path ? fopen(path, "a") : NULL;
	va_list args;
	int r = result ? (int)strtol(result, NULL, 10) : 0;

	if (!f)
		abort();
	(void)fprintf(f, "%s", name);
	va_start(args, format);
	(void)vfprintf(f, format, args);
	va_end(args);
	(void)fprintf(f, "\n");
	(void)fclose(f);
	error[0] = '\0';
	if (r < 0)
		(void)snprintf(error, sizeof(error), "%s fails", name);
	return r;
}

static const char *or_none(const char *text)
{
	return text ? text : "-";
}

static void fill(struct natra_info *info)
{
	*info = (struct natra_info){
		.sz = sizeof(*info),
		.mode = NATRA_ATTACH_MODE_TCX_PODSIDE,
		.unshaped = asked("unshaped") != NULL,
		.policy = {.egress_rate_bits_per_sec =
				   asked("limited") != NULL},
		.reason = "made up",
	};
}

int __wrap_natra_attach(struct natra *n, const struct natra_target *t,
			const struct natra_policy *p,
			struct natra_info *ret_info)
{
	fill(ret_info);
	return called("attach",
		      " id=%s ifname=%s netns=%s network=%s label=%s "
		      "in=%llu/%llu out=%llu/%llu shaped=%zu unshaped=%zu",
		      or_none(t->id), t->ifname, or_none(t->netns), t->network,
		      t->label,
		      (unsigned long long)p->ingress_rate_bits_per_sec,
		      (unsigned long long)p->ingress_burst_bits,
		      (unsigned long long)p->egress_rate_bits_per_sec,
		      (unsigned long long)p->egress_burst_bits,
		      p->shaped_subnets_len, p->unshaped_subnets_len);
}

int __wrap_natra_detach(struct natra *n, const struct natra_target *t)
{
	/* A detach with a netns has a name of its own, so that a test can make
	 * it fail alone. */
	if (t->netns)
		return called("detach_there", " id=%s netns=%s", or_none(t->id),
			      t->netns);
	return called("detach", " id=%s", or_none(t->id));
}

int __wrap_natra_check(struct natra *n, const char *id,
		       const struct natra_policy *policy)
{
	return called("check", " id=%s policy=%s", id, policy ? "yes" : "no");
}

int __wrap_natra_query(struct natra *n, const char *id,
		       struct natra_info *ret_info)
{
	fill(ret_info);
	return called("query", " id=%s", id);
}

int __wrap_natra_gc(struct natra *n, const char *network,
		    const char *const *keep, size_t keep_len,
		    size_t *ret_removed)
{
	char ids[1024] = "";

	for (size_t i = 0; i < keep_len; i++) {
		size_t len = strlen(ids);

		(void)snprintf(ids + len, sizeof(ids) - len, " %s", keep[i]);
	}
	*ret_removed = 2;
	return called("gc", " network=%s keep=%zu%s", network, keep_len, ids);
}

int __wrap_natra_status(struct natra *n)
{
	return called("status", "%s", "");
}

int __wrap_natra_record_unshaped(struct natra *n, const struct natra_target *t,
				 const struct natra_policy *p,
				 const char *reason)
{
	return called("record_unshaped", " id=%s in=%llu reason=%s", t->id,
		      (unsigned long long)p->ingress_rate_bits_per_sec, reason);
}

int __wrap_natra_find_leftovers(struct natra *n, const struct natra_target *t,
				struct natra_leftovers *ret_leftovers)
{
	*ret_leftovers = (struct natra_leftovers){.sz = sizeof(*ret_leftovers)};
	ret_leftovers->limits_egress = asked("redirect") != NULL;
	ret_leftovers->limits_ingress = asked("tbf") != NULL;
	if (asked("tbf") || asked("redirect")) {
		(void)snprintf(ret_leftovers->host_ifname,
			       sizeof(ret_leftovers->host_ifname), "veth7");
	}
	return called("find_leftovers", " ifname=%s", t->ifname);
}

int __wrap_natra_remove_leftovers(struct natra *n, const struct natra_target *t)
{
	return called("remove_leftovers", " ifname=%s netns=%s", t->ifname,
		      or_none(t->netns));
}

/* The group "blue" is there for the first FAKE_looks calls. */
int __wrap_natra_foreach_group(struct natra *n, natra_group_fn fn, void *arg)
{
	static int looks;
	const char *most = asked("looks");
	const struct natra_group_info blue = {
		.sz = sizeof(blue),
		.name = "blue",
		.ingress_rate_bits_per_sec = 5,
	};
	int r = called("foreach_group", "%s", "");

	return r == 0 && most && looks++ < (int)strtol(most, NULL, 10)
		       ? fn(arg, &blue)
		       : r;
}
