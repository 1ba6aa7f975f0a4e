/* SPDX-License-Identifier: BSD-2-Clause */
#include "bandwidth.h"

#include <inttypes.h>

#define RUNTIME_PATH "runtimeConfig.bandwidth"

/*
 * The least placeholder burst. A runtime has no burst to send and sends a
 * number that stands for "no limit": 2^31 - 1 (dockershim), 2^32 - 1
 * (containerd), 2^35 - 8 and 2^35 - 9 (CRI-O). If it were taken literally, a
 * pod could send half a gigabyte before the limit holds.
 */
#define PLACEHOLDER_BITS 2147483647ULL

struct direction {
	uint64_t rate_bits_per_sec;
	uint64_t burst_bits; /* 0: unspecified */
};

struct source {
	bool present; /* it has any of the four keys */
	struct direction ingress;
	struct direction egress;
};

/* Reads a number, or a quantity such as "10M". */
static int read_quantity(const cJSON *object, const char *path, const char *key,
			 struct source *source, uint64_t *ret,
			 struct failure *failure)
{
	const cJSON *value = json_get(object, key);
	const char *text = json_text(value);

	*ret = 0;
	if (!value)
		return 0;
	source->present = true;
	if (text ? natra_parse_size(text, ret) == 0 : json_u64(value, ret) == 0)
		return 0;
	return failure_set(
		failure, CNI_BAD_CONFIG,
		"%s%s: %s is neither a whole number nor one such as 10M", path,
		key, json_show(value).text);
}

static int read_direction(const cJSON *object, const char *path,
			  const char *rate_key, const char *burst_key,
			  struct source *source, struct direction *d,
			  struct failure *failure)
{
	int r = read_quantity(object, path, rate_key, source,
			      &d->rate_bits_per_sec, failure);

	if (r == 0)
		r = read_quantity(object, path, burst_key, source,
				  &d->burst_bits, failure);
	if (r)
		return r;
	if (path[0] && d->burst_bits >= PLACEHOLDER_BITS)
		d->burst_bits = 0;
	if (d->burst_bits && !d->rate_bits_per_sec)
		return failure_set(
			failure, CNI_BAD_CONFIG,
			"if burst is set, rate must also be set: %s%s is %" PRIu64
			", %s is 0",
			path, burst_key, d->burst_bits, rate_key);
	if (d->rate_bits_per_sec > NATRA_RATE_MAX_BITS_PER_SEC)
		d->rate_bits_per_sec = NATRA_RATE_MAX_BITS_PER_SEC;
	return 0;
}

/* Reads the rates and bursts of one place. `path` ends in a dot; it is "" for
 * the configuration itself. */
static int read_source(const cJSON *object, const char *path,
		       struct source *ret, struct failure *failure)
{
	int r = read_direction(object, path, "ingressRate", "ingressBurst", ret,
			       &ret->ingress, failure);

	return r ? r
		 : read_direction(object, path, "egressRate", "egressBurst",
				  ret, &ret->egress, failure);
}

static struct direction choose(enum precedence precedence,
			       const struct direction *by_conf,
			       const struct direction *by_runtime)
{
	uint64_t conf = by_conf->rate_bits_per_sec;
	uint64_t runtime = by_runtime->rate_bits_per_sec;
	struct direction chosen = *by_runtime;
	uint64_t most_bits, burst_bits;

	if (!runtime)
		return *by_conf;
	if (!conf || precedence == PRECEDENCE_RUNTIME)
		return chosen;
	if (runtime >= conf)
		return *by_conf;
	/* A lower rate with a burst of many seconds would be a higher one. Without a burst
	 * there is what the rate carries in half a second. */
	most_bits = by_conf->burst_bits ? by_conf->burst_bits : conf / 2;
	burst_bits = chosen.burst_bits ? chosen.burst_bits : runtime / 2;
	if (burst_bits > most_bits)
		chosen.burst_bits = most_bits;
	return chosen;
}

static bool has_subnets(const cJSON *object)
{
	return json_get(object, "shapedSubnets") ||
	       json_get(object, "unshapedSubnets");
}

static bool is_cidr(struct natra *n, const char *text)
{
	struct natra_policy policy = NATRA_INIT(policy);

	policy.shaped_subnets = &text;
	policy.shaped_subnets_len = 1;
	return text && natra_policy_check(n, &policy) == 0;
}

/* Reads a list of CIDR blocks into `ret`. *ret_len stays as it is if there is
 * no such key. */
static int read_list(const cJSON *object, const char *path, const char *key,
		     struct natra *n, const char **ret, size_t *ret_len,
		     struct failure *failure)
{
	const cJSON *list = json_get(object, key), *item;
	size_t len = 0;

	if (!list)
		return 0;
	if (!cJSON_IsArray(list))
		return failure_set(failure, CNI_BAD_CONFIG,
				   "%s%s: %s is not a list of CIDR blocks",
				   path, key, json_show(list).text);
	cJSON_ArrayForEach(item, list)
	{
		if (len == NATRA_SUBNETS_MAX)
			return failure_set(failure, CNI_BAD_CONFIG,
					   "%s%s: %d are more than %d", path,
					   key, cJSON_GetArraySize(list),
					   NATRA_SUBNETS_MAX);
		if (!is_cidr(n, json_text(item)))
			return failure_set(failure, CNI_BAD_CONFIG,
					   "%s%s: %s is not a CIDR block", path,
					   key, json_show(item).text);
		ret[len++] = item->valuestring;
	}
	*ret_len = len;
	return 0;
}

/* Reads both lists of one place, of which at most one may have entries. */
static int read_subnets(const cJSON *object, const char *path,
			struct settings *s, struct natra *n,
			struct failure *failure)
{
	struct natra_policy *p = &s->policy;
	int r;

	r = read_list(object, path, "shapedSubnets", n, s->subnets,
		      &p->shaped_subnets_len, failure);
	if (r)
		return r;
	if (p->shaped_subnets_len) {
		p->shaped_subnets = s->subnets;
		if (cJSON_GetArraySize(json_get(object, "unshapedSubnets")) > 0)
			return failure_set(
				failure, CNI_BAD_CONFIG,
				"%sshapedSubnets, unshapedSubnets: only one of them can be set",
				path);
		return 0;
	}
	r = read_list(object, path, "unshapedSubnets", n, s->subnets,
		      &p->unshaped_subnets_len, failure);
	if (r == 0 && p->unshaped_subnets_len)
		p->unshaped_subnets = s->subnets;
	return r;
}

static int read_runtime(const struct asker *asker, struct source *ret,
			struct failure *failure)
{
	if (asker->rates) {
		ret->ingress.rate_bits_per_sec =
			asker->rates->ingress_rate_bits_per_sec;
		ret->egress.rate_bits_per_sec =
			asker->rates->egress_rate_bits_per_sec;
		return 0;
	}
	if (asker->bandwidth && !cJSON_IsObject(asker->bandwidth))
		return failure_set(failure, CNI_BAD_CONFIG,
				   RUNTIME_PATH ": %s is not an object",
				   json_show(asker->bandwidth).text);
	return read_source(asker->bandwidth, RUNTIME_PATH ".", ret, failure);
}

int bandwidth_read(struct settings *s, const cJSON *keys,
		   const struct asker *asker, struct natra *n,
		   struct failure *failure)
{
	struct source by_conf = {0}, by_runtime = {0};
	struct direction in, out;
	const cJSON *runtime = NULL;
	int r = read_source(keys, "", &by_conf, failure);

	/* Values that the configuration hides are not even checked, as in
	 * upstream's plugin. */
	if (r == 0 &&
	    !(by_conf.present && s->precedence == PRECEDENCE_STATIC)) {
		runtime = asker->bandwidth;
		r = read_runtime(asker, &by_runtime, failure);
	}
	if (r)
		return r;
	in = choose(s->precedence, &by_conf.ingress, &by_runtime.ingress);
	out = choose(s->precedence, &by_conf.egress, &by_runtime.egress);
	s->policy.ingress_rate_bits_per_sec = in.rate_bits_per_sec;
	s->policy.egress_rate_bits_per_sec = out.rate_bits_per_sec;
	s->policy.ingress_burst_bits = in.burst_bits;
	s->policy.egress_burst_bits = out.burst_bits;
	if (has_subnets(runtime) &&
	    (s->precedence == PRECEDENCE_RUNTIME || !has_subnets(keys)))
		return read_subnets(runtime, RUNTIME_PATH ".", s, n, failure);
	return read_subnets(keys, "", s, n, failure);
}
