/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks natra's attachment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../../src/policy/fields.h"
#include "../../src/policy/mode.h"
#include "../common/hold.h"
#include "../common/text.h"
#include "check.h"
#include "shell.h"

static bool is_foreign(const struct pod *pod)
{
	return pod->has_info && pod->info.other_abi;
}

static void foreign(const struct finder *f)
{
	char abi[16];

	if (!is_foreign(f->pod))
		return;
	(void)snprintf(abi, sizeof(abi), "%u", f->pod->info.abi);
	found(f, "abi", abi, "id", f->pod->id, "version", natra_version(),
	      NULL);
}

static void unseen(const struct finder *f)
{
	const struct pod *pod = f->pod;

	/* A pod that libcni still knows may have ended. */
	if (f->node->lacks || !pod->netns_error || pod->info.interface_gone ||
	    (pod->netns_error == -ENOENT && !pod->has_info))
		return;
	found(f, "netns", pod->netns ? pod->netns : "no path is known", "error",
	      strerror(-pod->netns_error), NULL);
}

static char *attach_again(const struct finder *f)
{
	return pod_attach_command(f->pod, f->node, &f->pod->info.policy);
}

/* Returns the command that limits a pod that runs without its limits. Its record has none where
 * what it asks for was refused; then a new pod is to get them, if one is known to come. */
static char *shape_command(const struct finder *f)
{
	const struct pod *pod = f->pod;
	const char *slash = strchr(pod->name, '/');
	struct shell shell = {0};

	/* The classes of a record are not in its policy, which has their number alone. */
	if (pod->info.policy.classes_len ||
	    policy_has_limits(&pod->info.policy))
		return attach_again(f);
	if (pod->has_result && pod->wish_code == 0 &&
	    policy_has_limits(&pod->wish.settings.policy))
		return pod_attach_command(pod, f->node,
					  &pod->wish.settings.policy);
	if (slash) {
		cleanup_text char *namespace = text_format(
			"%.*s", (int)(slash - pod->name), pod->name);
		const char *const words[] = {"kubectl", "-n",  namespace,
					     "delete",  "pod", slash + 1,
					     NULL};

		return shell_command(words);
	}
	shell_text(&shell, f->node->natractl, strlen(f->node->natractl));
	shell_word(&shell, "show");
	shell_word(&shell, pod->id);
	return shell.text;
}

static void unshaped(const struct finder *f)
{
	cleanup_text char *mend = NULL;

	if (!f->pod->has_info || !f->pod->info.unshaped ||
	    f->pod->info.interface_gone)
		return;
	mend = shape_command(f);
	found(f, "reason", f->pod->info.reason, "mend", mend, NULL);
}

static void gone(const struct finder *f)
{
	if (f->pod->has_info && f->pod->info.interface_gone)
		found(f, "ifname", f->pod->info.ifname, NULL);
}

/* What differs from what was set. */
enum difference {
	DIFFERENCE_FQ,
	DIFFERENCE_INTERFACE,
	DIFFERENCE_BYPASSED,
	DIFFERENCE_OTHER,
};

static enum difference difference_of(enum natra_code code)
{
	switch (code) {
	case NATRA_CODE_POD_FQ:
	case NATRA_CODE_HOST_FQ:
		return DIFFERENCE_FQ;
	case NATRA_CODE_OTHER_INTERFACE:
		return DIFFERENCE_INTERFACE;
	case NATRA_CODE_BYPASSED:
		return DIFFERENCE_BYPASSED;
	default:
		return DIFFERENCE_OTHER;
	}
}

/* On the pod's side natra is behind what takes packets from the host side, and a group, too, if
 * nothing paces for it. Where it is there already, it has lost its place on the hook, which
 * attaching anew gives back. */
static char *attach_where_it_holds(const struct finder *f)
{
	const struct natra_info *info = &f->pod->info;
	struct natra_policy policy = info->policy;
	cleanup_text char *attach = NULL;
	struct shell id = {0};
	char *mend;

	if (mode_is_hostside(info->mode))
		policy.attach_mode = f->node->features.tcx
					     ? NATRA_ATTACH_MODE_TCX_PODSIDE
					     : NATRA_ATTACH_MODE_CLSACT_PODSIDE;
	if (policy.group[0])
		policy.ingress_mode = NATRA_INGRESS_MODE_POLICE;
	attach = pod_attach_command(f->pod, f->node, &policy);
	shell_quoted(&id, f->pod->id);
	mend = text_format("%s detach %s && %s", f->node->natractl, id.text,
			   attach);
	free(id.text);
	return mend;
}

/* Reports what differs, if it is of this kind. */
static void report_difference(const struct finder *f, enum difference kind)
{
	const struct natra_info *info = &f->pod->info;
	cleanup_text char *attach = NULL, *why = NULL;
	enum natra_code code;
	bool is_host;
	int r = pod_is_limited(f->pod)
			? natra_check(f->node->n, f->pod->id, NULL)
			: 0;

	if (r != -EBADE && r != -EUCLEAN)
		return;
	code = natra_error_code(f->node->n);
	is_host = code == NATRA_CODE_HOST_FQ;
	if (difference_of(code) != kind)
		return;
	/* The text lasts until the next call. */
	why = text_copy(natra_error(f->node->n));
	attach = kind == DIFFERENCE_BYPASSED ? attach_where_it_holds(f)
					     : attach_again(f);
	found(f, "why", why, "attach", attach, "mode",
	      natra_attach_mode_name(info->mode), "enter",
	      is_host ? "" : pod_enter(f->pod), "ifname",
	      is_host ? info->host_ifname : f->pod->inside.ifname, NULL);
}

static void differs(const struct finder *f)
{
	report_difference(f, DIFFERENCE_OTHER);
}

static void fq_replaced(const struct finder *f)
{
	report_difference(f, DIFFERENCE_FQ);
}

static void bypassed(const struct finder *f)
{
	report_difference(f, DIFFERENCE_BYPASSED);
}

/* Another interface is in the place of the one that is limited; or there are no limits yet,
 * and it is not the one that the runtime made, so that natra-agent leaves it alone. */
static void other_interface(const struct finder *f)
{
	const struct pod *pod = f->pod;

	report_difference(f, DIFFERENCE_INTERFACE);
	if (pod->why[0])
		found(f, "why", pod->why, "enter", pod_enter(pod), NULL);
}

static void older_build(const struct finder *f)
{
	if (pod_is_limited(f->pod) && !is_foreign(f->pod) &&
	    !f->pod->info.program_is_current)
		found(f, "id", f->pod->id, NULL);
}

static int report_neighbour(void *arg, const struct natra_neighbour *e)
{
	const struct finder *f = arg;
	bool is_host = strcmp(e->ifname, f->pod->info.ifname) != 0;
	cleanup_text char *attach = NULL, *mend = NULL;
	const char *side = e->hook_is_ingress ? "ingress" : "egress";
	struct shell ifname = {0}, id = {0};
	char program[64];

	if (!e->is_before_ours)
		return 0;
	if (e->prog_id)
		(void)snprintf(program, sizeof(program), "program %u '%s'",
			       e->prog_id, e->prog_name);
	else
		(void)snprintf(program, sizeof(program), "filter '%s'",
			       e->prog_name);
	attach = attach_again(f);
	shell_quoted(&ifname, is_host ? e->ifname : f->pod->inside.ifname);
	shell_quoted(&id, f->pod->id);
	mend = e->priority ? text_format("%stc filter show dev %s %s pref %u",
					 is_host ? "" : pod_enter(f->pod),
					 ifname.text, side, e->priority)
			   : text_format("%s detach %s && %s",
					 f->node->natractl, id.text, attach);
	free(ifname.text);
	free(id.text);
	found(f, "program", program, "hook", e->hook, "side", side, "ifname",
	      e->ifname, "mend", mend, NULL);
	return 0;
}

/* Reports one, since a pod can have any number. */
static int report_behind(void *arg, const struct natra_neighbour *e)
{
	const struct finder *f = arg;

	if (e->is_ours || e->is_before_ours || e->is_on_host ||
	    e->hook_is_ingress || strcmp(e->hook, "clsact") != 0)
		return 0;
	found(f, "filter", e->prog_name, "ifname", f->pod->inside.ifname,
	      "enter", pod_enter(f->pod), NULL);
	return 1;
}

/* Where egress is judged on the host side, what filters in the pod do comes before that. */
static void pod_filter(const struct finder *f)
{
	if (pod_is_limited(f->pod) && !mode_is_hostside(f->pod->info.mode))
		(void)natra_foreach_neighbour(f->node->n, f->pod->id,
					      report_behind, (void *)f);
}

static void does_not_hold(const struct finder *f)
{
	struct hold hold = {.info = &f->pod->info};
	cleanup_text char *attach = NULL;
	struct hold_loss loss;

	if (!pod_is_limited(f->pod))
		return;
	hold_read_group(&hold, f->node->n);
	if (natra_foreach_neighbour(f->node->n, f->pod->id, hold_note, &hold) <
		    0 ||
	    !hold_lost(&hold, &loss))
		return;
	attach = attach_where_it_holds(f);
	found(f, "key", loss.key, "value", loss.value, "lost", loss.lost,
	      "owner", hold.owner, "program", hold.program, "holds", loss.holds,
	      "attach", attach, NULL);
}

static void in_front(const struct finder *f)
{
	if (pod_is_limited(f->pod))
		(void)natra_foreach_neighbour(f->node->n, f->pod->id,
					      report_neighbour, (void *)f);
}

/* Ingress is judged in the pod alone. The command moves the limits of a member of a group to
 * the host side of the veth, and gives another pod its program there. Without a host side
 * it shows who has the sockets. */
static void packet_socket(const struct finder *f)
{
	const struct natra_info *info = &f->pod->info;
	struct natra_policy policy = info->policy;
	cleanup_text char *mend = NULL;
	char count[16];

	if (!pod_is_limited(f->pod) || !f->pod->inside.packet_sockets ||
	    !policy.ingress_rate_bits_per_sec || info->host_prog_id ||
	    mode_is_hostside(info->mode))
		return;
	if (policy.group[0])
		policy.attach_mode =
			info->mode == NATRA_ATTACH_MODE_TCX_PODSIDE
				? NATRA_ATTACH_MODE_TCX_HOSTSIDE
				: NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	mend = f->pod->left.host_ifname[0]
		       ? pod_attach_command(f->pod, f->node, &policy)
		       : text_format("%sss --packet --processes",
				     pod_enter(f->pod));
	(void)snprintf(count, sizeof(count), "%u",
		       f->pod->inside.packet_sockets);
	found(f, "count", count, "ifname", f->pod->inside.ifname, "mode",
	      natra_attach_mode_name(info->mode), "mend", mend, NULL);
}

static uint64_t limited_bytes(const struct natra_direction_stats *s)
{
	return s->mice.bytes + s->admitted.bytes + s->paced.bytes +
	       s->marked.bytes + s->dropped_rate.bytes +
	       s->dropped_horizon.bytes;
}

static void report_exempt(const struct finder *f, const char *direction,
			  uint64_t rate, const struct natra_direction_stats *s)
{
	uint64_t all = limited_bytes(s) + s->unlimited.bytes;
	const struct natra_policy *policy = &f->pod->info.policy;
	char percent[8];

	if (!rate || s->unlimited.bytes <= all / 2)
		return;
	(void)snprintf(
		percent, sizeof(percent), "%u",
		(unsigned int)((double)s->unlimited.bytes * 100 / (double)all));
	found_note(f, "percent", percent, "direction", direction, "list",
		   policy->shaped_subnets_len ? "not in shapedSubnets"
					      : "in unshapedSubnets",
		   "id", f->pod->id, NULL);
}

static void exempt(const struct finder *f)
{
	const struct natra_policy *policy = &f->pod->info.policy;
	struct natra_stats stats = NATRA_INIT(stats);

	/* Such a list is there on purpose, so this is reported only for a pod that was
	 * asked for. The same counter has what passed while a direction had no rate. */
	if (!f->node->request->pod || !pod_is_limited(f->pod) ||
	    (!policy->shaped_subnets_len && !policy->unshaped_subnets_len) ||
	    natra_stats(f->node->n, f->pod->id, &stats) < 0)
		return;
	report_exempt(f, "ingress", policy->ingress_rate_bits_per_sec,
		      &stats.ingress);
	report_exempt(f, "egress", policy->egress_rate_bits_per_sec,
		      &stats.egress);
}

/* Small flows that were over the limit in this time are so again, in all likelihood. */
#define OVER_AGE_S 600

/* `of` is "", or says which class's or group's limit it is. */
static void report_over(const struct finder *f, const char *direction,
			const char *of, uint64_t over_ns, uint64_t percent)
{
	char factor[32];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!over_ns ||
	    over_ns / 1000000000 + OVER_AGE_S < (uint64_t)now.tv_sec)
		return;
	(void)snprintf(factor, sizeof(factor), "%.1f", (double)percent / 100);
	found(f, "direction", direction, "of", of, "factor", factor, "id",
	      f->pod->id, NULL);
}

static void report_slot(const struct finder *f, const char *of,
			const struct natra_stats *stats)
{
	report_over(f, "ingress", of, stats->ingress.over_limit_time_ns,
		    stats->ingress.over_limit_percent);
	report_over(f, "egress", of, stats->egress.over_limit_time_ns,
		    stats->egress.over_limit_percent);
}

static int report_class(void *arg, const struct natra_class *class,
			const struct natra_stats *stats)
{
	cleanup_text char *of = text_format(" of class '%s'", class->name);

	report_slot(arg, of, stats);
	return 0;
}

static int report_group(void *arg, const struct natra_group_info *group)
{
	const struct finder *f = arg;
	const struct natra_policy *policy = &f->pod->info.policy;
	cleanup_text char *of = NULL;

	if (strcmp(policy->group, group->name) != 0 ||
	    policy->group_is_automatic != group->automatic)
		return 0;
	of = text_format(" of group '%s'", group->name);
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++)
		report_over(f,
			    i == NATRA_DIRECTION_EGRESS ? "egress" : "ingress",
			    of, group->over_limit_time_ns[i],
			    group->over_limit_percent[i]);
	return 0;
}

static void over_limit(const struct finder *f)
{
	const struct natra_info *info = &f->pod->info;
	struct natra_stats stats = NATRA_INIT(stats);

	if (!pod_is_limited(f->pod) || is_foreign(f->pod) ||
	    info->effective.fast_pass != NATRA_FAST_PASS_FREE)
		return;
	if (natra_stats(f->node->n, f->pod->id, &stats) == 0)
		report_slot(f, "", &stats);
	if (info->policy.classes_len)
		(void)natra_foreach_class_stats(f->node->n, f->pod->id,
						report_class, (void *)f);
	if (info->policy.group[0])
		(void)natra_foreach_group(f->node->n, report_group, (void *)f);
}

static void not_paced(const struct finder *f)
{
	const struct natra_info *info = &f->pod->info;
	cleanup_text char *attach = NULL;

	/* If the kernel cannot pace, nothing on the node can be mended. */
	if (!pod_is_limited(f->pod) || is_foreign(f->pod) ||
	    !f->node->features.auto_edt ||
	    info->policy.edt_pacing != NATRA_EDT_PACING_AUTO ||
	    info->edt_active || !info->policy.egress_rate_bits_per_sec ||
	    mode_is_hostside(info->mode))
		return;
	attach = attach_again(f);
	found(f, "id", f->pod->id, "qdisc", f->pod->inside.qdisc, "ifname",
	      f->pod->inside.ifname, "reason", info->reason, "enter",
	      pod_enter(f->pod), "attach", attach, NULL);
}

const struct check checks_of_limits[] = {
	{"other-abi",
	 "natra of ABI {abi} attached it, whose limits natractl {version} cannot read",
	 "{=natractl} check {id} # with the natractl of that version", foreign},
	{"netns",
	 "its network namespace ({netns}) cannot be opened: {error}; so what is at its interface was not looked at",
	 "lsns --type net --output NS,PID,COMMAND,NSFS", unseen},
	{"unshaped", "it runs without its limits: {reason}", "{=mend}",
	 unshaped},
	{"gone", "interface '{ifname}' does not exist any more",
	 "{=natractl} gc", gone},
	{"differs", "its limits are not what was set: {why}", "{=attach}",
	 differs},
	{"other-interface",
	 "{why}: processes of the pod may have replaced it, and until that is undone no change of its limits takes effect",
	 "{=enter}ip -details link", other_interface},
	{"fq-replaced",
	 "{why}, so what natra delays is not held back as it should be",
	 "{=enter}tc qdisc del dev {ifname} root; {=attach}", fq_replaced},
	{"older-build", "it runs the programs of another build of natra",
	 "{=natractl} upgrade {id}", older_build},
	{"bypassed", "{why}, so the limit does not hold in mode {mode}",
	 "{=attach}", bypassed},
	{"does-not-hold",
	 "{key}: {value} does not limit {lost} beside {owner} ('{program}'), which {holds}",
	 "{=attach}", does_not_hold},
	{"in-front",
	 "{program} on the {hook} {side} of '{ifname}' runs before natra: what it accepts or redirects is not limited",
	 "{=mend}", in_front},
	{"pod-filter",
	 "the filter '{filter}' behind natra's on the egress of its {ifname} may repeat, change or drop what natra has let go",
	 "{=enter}tc filter show dev {ifname} egress", pod_filter},
	{"packet-socket",
	 "packet sockets in the pod ({count}) receive all that arrives at '{ifname}' before its limit, which is behind them in mode {mode} and not on the host side as well",
	 "{=mend}", packet_socket},
	{"unnamed-interface", "{what}, where no limit holds",
	 "{=enter}ip -details link show {ifname}", unnamed_interface},
	{"exempt",
	 "{percent} % of the bytes {direction} were of peers {list}, which are not limited",
	 "{=natractl} show {id}", exempt},
	{"over-limit",
	 "small flows are not charged, and with them {factor} times the limit{of} passed {direction} in a second of the last ten minutes",
	 "{=natractl} set {id} --fast-pass strict", over_limit},
	{"not-paced",
	 "egress is dropped and not paced, because '{ifname}' has the qdisc {qdisc} ({reason})",
	 "{=enter}tc qdisc del dev {ifname} root; {=natractl} detach {id}; {=attach}",
	 not_paced},
	{0},
};
