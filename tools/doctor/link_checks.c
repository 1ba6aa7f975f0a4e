/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks what else limits a pod, or disturbs its limits, at both ends of its veth. */
#include <stdio.h>
#include <string.h>

#include "../common/text.h"
#include "check.h"

#define BIG_TCP 65536

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

static bool is_calicos(const struct natra_leftovers *left)
{
	return begins_with(left->ifb_ifname, "bwcali") ||
	       (left->limits_ingress && begins_with(left->host_ifname, "cali"));
}

static char *replace_command(const struct finder *f)
{
	const struct pod *pod = f->pod;
	const struct natra_policy *policy =
		pod->has_info ? &pod->info.policy : &pod->wish.settings.policy;
	cleanup_text char *attach = pod_attach_command(pod, f->node, policy);

	return text_format("%s --replace-bandwidth", attach);
}

/* Upstream's limits are no fault in a pod that has no limits of natra's. */
static bool is_doubled(const struct pod *pod)
{
	return pod_is_limited(pod) &&
	       (pod->left.limits_ingress || pod->left.limits_egress);
}

static void calico(const struct finder *f)
{
	if (is_doubled(f->pod) && is_calicos(&f->pod->left))
		found(f, "host", f->pod->left.host_ifname, "id", f->pod->id,
		      NULL);
}

static void leftovers(const struct finder *f)
{
	const struct natra_leftovers *left = &f->pod->left;
	cleanup_text char *mend = NULL;
	const char *root = left->is_htb           ? "htb"
			   : left->limits_ingress ? "tbf"
						  : "";
	char what[40];

	if (!is_doubled(f->pod) || is_calicos(left) ||
	    (left->limits_egress && !left->ifb_ifname[0]))
		return;
	(void)snprintf(what, sizeof(what), "%s%s%s", root,
		       root[0] && left->limits_egress ? " and " : "",
		       left->limits_egress ? "redirect to an ifb" : "");
	mend = replace_command(f);
	found(f, "what", what, "host", left->host_ifname, "mend", mend, NULL);
}

static void dead_redirect(const struct finder *f)
{
	const struct natra_leftovers *left = &f->pod->left;
	cleanup_text char *mend = NULL;

	if (!left->limits_egress || left->ifb_ifname[0] ||
	    !pod_is_limited(f->pod))
		return;
	mend = replace_command(f);
	found(f, "host", left->host_ifname, "mend", mend, NULL);
}

static void report_qdisc(const struct finder *f, const struct link_facts *link,
			 const char *enter)
{
	char drops[16];

	(void)snprintf(drops, sizeof(drops), "%u", link->qdisc_drops);
	found(f, "qdisc", link->qdisc, "ifname", link->ifname, "drops", drops,
	      "enter", enter, NULL);
}

static void host_qdisc(const struct finder *f)
{
	if (pod_is_limited(f->pod) && !f->pod->left.limits_ingress &&
	    !link_qdisc_is_harmless(f->pod->outside.qdisc))
		report_qdisc(f, &f->pod->outside, "");
}

static void pod_qdisc(const struct finder *f)
{
	if (pod_is_limited(f->pod) &&
	    !link_qdisc_is_harmless(f->pod->inside.qdisc))
		report_qdisc(f, &f->pod->inside, pod_enter(f->pod));
}

static uint32_t largest_packet(const struct link_facts *link)
{
	uint64_t by_segs = (uint64_t)link->gso_max_segs * link->mtu;
	uint32_t size = link->gso_max_size > link->gso_ipv4_max_size
				? link->gso_max_size
				: link->gso_ipv4_max_size;

	return by_segs < size ? (uint32_t)by_segs : size;
}

static void big_tcp(const struct finder *f)
{
	const struct link_facts *link = &f->pod->inside;
	char bytes[16];

	if (!pod_is_limited(f->pod) || largest_packet(link) <= BIG_TCP)
		return;
	(void)snprintf(bytes, sizeof(bytes), "%u", largest_packet(link));
	found(f, "ifname", link->ifname, "bytes", bytes, "enter",
	      pod_enter(f->pod), NULL);
}

/* Where egress is paced at a low rate, natra makes these packets smaller, unless
 * somebody has set their size. */
static void gso(const struct finder *f)
{
	const struct link_facts *link = &f->pod->inside;
	uint64_t rate = f->pod->info.policy.egress_rate_bits_per_sec;
	uint32_t bytes = largest_packet(link);
	char size[16], ms[24];

	if (!pod_is_limited(f->pod) || f->pod->info.other_abi || !rate ||
	    8ULL * bytes <= 2 * f->pod->info.effective.egress_burst_bits ||
	    bytes > BIG_TCP)
		return;
	(void)snprintf(size, sizeof(size), "%u", bytes);
	(void)snprintf(ms, sizeof(ms), "%llu",
		       (unsigned long long)bytes * 8000 / rate);
	found(f, "ifname", link->ifname, "bytes", size, "ms", ms, "enter",
	      pod_enter(f->pod), NULL);
}

const struct check checks_of_link[] = {
	{"calico-limits",
	 "Calico limits it on {host} as well, by the same annotations, so two limits hold",
	 "{=natractl} detach {id}", calico},
	{"leftovers",
	 "the bandwidth plugin limits it as well ({what} on {host}), so two limits hold",
	 "{=mend}", leftovers},
	{"dead-redirect",
	 "the bandwidth plugin left a redirect on {host} to an ifb that is gone, which drops all that the pod sends",
	 "{=mend}", dead_redirect},
	{"host-qdisc",
	 "the qdisc {qdisc} on its host side {ifname} holds back or drops what goes into the pod ({drops} packets so far)",
	 "tc qdisc del dev {ifname} root", host_qdisc},
	{"pod-qdisc",
	 "the qdisc {qdisc} on its {ifname} holds back, drops ({drops} packets so far) or repeats what leaves the pod",
	 "{=enter}tc qdisc del dev {ifname} root", pod_qdisc},
	{"big-tcp",
	 "BIG TCP is on: packets of up to {bytes} bytes leave through {ifname}, and each takes its turn as one",
	 "{=enter}ip link set {ifname} gso_max_size 65536", big_tcp},
	{"gso",
	 "GSO packets of up to {bytes} bytes leave through {ifname}, and one takes {ms} ms of the rate",
	 "{=enter}ip link set {ifname} gso_max_segs 2", gso},
	{0},
};
