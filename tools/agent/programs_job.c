/* SPDX-License-Identifier: BSD-2-Clause */
#include "jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/policy/fields.h"
#include "../pods/element.h"
#include "../pods/wish.h"
#include "veth.h"

/* The rates do not matter to a program. */
#define RATE_BITS_PER_SEC 1000000000
#define ID                "natra-agent-preload"
#define POD_IFNAME        "preload"
#define HOST_IFNAME       "preload-host"

/* Logs a line of the library. Its information is a detail here. */
static void log_library(void *arg, enum natra_log_level level, const char *line)
{
	if (level == NATRA_LOG_INFO)
		level = NATRA_LOG_DEBUG;
	log_write(arg, level, "%s", line);
}

int jobs_open(const struct jobs *jobs, struct natra **ret_n)
{
	struct natra_open_opts opts = NATRA_INIT(opts);

	opts.bpffs_path = jobs->bpffs;
	opts.log_fn = log_library;
	opts.log_arg = jobs->log;
	opts.keep_programs = true;
	return natra_open(ret_n, &opts);
}

static int failed(struct programs_report *report, int r, const char *text)
{
	(void)snprintf(report->error, sizeof(report->error), "%.*s",
		       (int)sizeof(report->error) - 1,
		       text[0] ? text : strerror(-r));
	return r;
}

/* Reads the configuration but for annotations and groups. The policy points into both. */
static int read_settings(const cJSON *keys, struct natra *n,
			 struct settings *ret, struct programs_report *report)
{
	struct failure failure = {0};

	if (wish_read_keys(ret, keys, n, &failure))
		return failed(report, -EINVAL, failure.msg);
	policy_fields_drop_alone(&ret->policy);
	return 0;
}

/* The values that pods may ask for in place of the configuration's. */
struct choice {
	enum natra_ingress_mode ingress_mode;
	enum natra_edt_pacing edt;
	enum natra_sli sli;
};

/* What pods may have beside their own limits, bits: each set makes other programs. */
enum beside {
	BESIDE_GROUP = 1,
	BESIDE_CLASSES = 2, /* that the pod asks for */
	BESIDE_MAX = 4
};

struct preload {
	struct natra *n;
	struct log *log;
	const struct settings *settings;
	const char *ifname;
	unsigned int beside; /* of enum beside */
};

/* Attaches to the interface and detaches again: what stays are the loaded programs,
 * which the next pods share. Returns an error of the library. */
static int attach_once(const struct preload *p,
		       const struct natra_policy *policy,
		       struct natra_info *ret_info)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_class class = NATRA_INIT(class);
	struct natra_policy with = *policy;

	target.id = ID;
	target.ifname = p->ifname;
	if (p->beside & BESIDE_CLASSES) {
		class.name = ID;
		class.ingress_rate_bits_per_sec =
			with.ingress_rate_bits_per_sec;
		class.egress_rate_bits_per_sec = with.egress_rate_bits_per_sec;
		with.classes = &class;
		with.classes_len = 1;
	}
	return natra_preload(p->n, &target, &with, ret_info);
}

/* Returns the configuration's policy. Its group is left out, because it does not matter
 * to a program. */
static struct natra_policy base_of(const struct preload *p)
{
	struct natra_policy policy = p->settings->policy, own = {0};

	if (p->beside & BESIDE_GROUP)
		(void)snprintf(own.group, sizeof(own.group), ID);
	policy_take_group(&policy, &own);
	return policy;
}

/* Loads what pods with this choice need. Returns an error of the library. */
static int load_for(const struct preload *p, const struct choice *choice)
{
	const bool any_rates = p->settings->precedence != PRECEDENCE_STATIC ||
			       !policy_has_rates(&p->settings->policy);
	const struct natra_policy base = base_of(p), *conf = &base;
	struct natra_policy policy = base;
	struct natra_info info = NATRA_INIT(info);
	int r;

	policy.ingress_mode = choice->ingress_mode;
	policy.edt_pacing = choice->edt;
	policy.sli = choice->sli;
	/* Rates that no pod can change come from the configuration, perhaps for
	 * one direction only. */
	if (any_rates) {
		policy.ingress_rate_bits_per_sec = RATE_BITS_PER_SEC;
		policy.egress_rate_bits_per_sec = RATE_BITS_PER_SEC;
	}
	if (strcmp(p->ifname, POD_IFNAME) != 0) {
		/* The loopback interface has no host side, on which ingress is
		 * paced and where some modes are. */
		policy.ingress_mode = NATRA_INGRESS_MODE_POLICE;
		policy.attach_mode = NATRA_ATTACH_MODE_AUTO;
		policy.edt_pacing = NATRA_EDT_PACING_AUTO;
	}
	r = attach_once(p, &policy, &info);
	if (r < 0 || !any_rates || p->beside & BESIDE_GROUP ||
	    info.edt_active == info.pace_active)
		return r;
	/* A pod without a limit in the direction that is held has a program that
	 * holds nothing. A group may limit both. */
	if (info.edt_active && !conf->egress_rate_bits_per_sec)
		policy.egress_rate_bits_per_sec = 0;
	else if (info.pace_active && !conf->ingress_rate_bits_per_sec)
		policy.ingress_rate_bits_per_sec = 0;
	else
		return 0;
	return attach_once(p, &policy, NULL);
}

/* A pod that asks for what this kernel cannot do is refused by itself, so that is no
 * failure. */
static void load_choice(const struct preload *p, const struct choice *choice)
{
	if (load_for(p, choice) < 0)
		log_write(p->log, NATRA_LOG_DEBUG,
			  "ingress-mode %s, edt-pacing %s, sli %s: %s",
			  natra_ingress_mode_name(choice->ingress_mode),
			  natra_edt_pacing_name(choice->edt),
			  natra_sli_name(choice->sli), natra_error(p->n));
}

/* Loads what annotations may ask for: each combination of these words. */
static void load_choices(const struct preload *p, const struct choice *standard)
{
	bool any_ingress = settings_allow(p->settings, "ingress-mode");
	bool any_edt = settings_allow(p->settings, "edt-pacing");
	bool any_sli = settings_allow(p->settings, "sli");

	for (int i = 0;
	     i < NATRA_INGRESS_MODE_MAX * NATRA_EDT_PACING_MAX * NATRA_SLI_MAX;
	     i++) {
		const int rest = i / NATRA_INGRESS_MODE_MAX;
		const struct choice choice = {
			(enum natra_ingress_mode)(i % NATRA_INGRESS_MODE_MAX),
			(enum natra_edt_pacing)(rest % NATRA_EDT_PACING_MAX),
			(enum natra_sli)(rest / NATRA_EDT_PACING_MAX),
		};

		if ((any_ingress ||
		     choice.ingress_mode == standard->ingress_mode) &&
		    (any_edt || choice.edt == standard->edt) &&
		    (any_sli || choice.sli == standard->sli))
			load_choice(p, &choice);
	}
}

/* Returns whether pods may have this beside their own limits. Where the configuration tells
 * peers apart, all pods have the programs of those with classes. */
static bool may_have(const struct settings *s, unsigned int beside)
{
	if (beside & BESIDE_GROUP ? !s->group.name : s->group_is_for_all)
		return false;
	return !(beside & BESIDE_CLASSES) ||
	       (!s->policy.classes_len && !s->policy.shaped_subnets_len &&
		!s->policy.unshaped_subnets_len &&
		settings_allow(s, "classes"));
}

static int load_beside(const struct preload *p, const struct choice *standard)
{
	int r = load_for(p, standard);

	if (r == 0 && p->settings->allowed_len)
		load_choices(p, standard);
	return r;
}

static int load(struct preload *p, struct programs_report *report)
{
	const struct choice standard = {p->settings->policy.ingress_mode,
					p->settings->policy.edt_pacing,
					p->settings->policy.sli};
	const char *wrong = veth_make(POD_IFNAME, HOST_IFNAME);
	int r = 0;

	p->ifname = POD_IFNAME;
	if (wrong) {
		log_write(p->log, NATRA_LOG_DEBUG,
			  "no veth can be made, so only the usual programs are"
			  " loaded: %s",
			  wrong);
		p->ifname = "lo";
	}
	for (unsigned int i = 0; i < BESIDE_MAX && r == 0; i++) {
		p->beside = i;
		if (may_have(p->settings, p->beside))
			r = load_beside(p, &standard);
		if (r < 0)
			r = failed(report, r, natra_error(p->n));
	}
	return r;
}

static int preload(const struct jobs *jobs, struct natra *n,
		   struct programs_report *report)
{
	cleanup_settings struct settings settings = {0};
	struct preload p = {.n = n, .log = jobs->log, .settings = &settings};
	cleanup_json cJSON *keys = element_json(jobs->conf, NULL);
	int r = read_settings(keys, n, &settings, report);

	if (r == 0 && unshare(CLONE_NEWNET) < 0)
		r = failed(report, -errno, "no network namespace can be made");
	if (r == 0)
		r = load(&p, report);
	return r;
}

void programs_job_run(const struct jobs *jobs, struct programs_report *report)
{
	struct natra *n = NULL;
	int r = jobs_open(jobs, &n);

	if (r < 0) {
		report->r = failed(report, r, "");
		return;
	}
	/* It removes idle programs, too, so it comes first. */
	if (natra_gc(n, NULL, NULL, 0, &report->removed) < 0)
		log_write(jobs->log, NATRA_LOG_WARN, "gc: %s", natra_error(n));
	report->r = preload(jobs, n, report);
	natra_close(n);
}
