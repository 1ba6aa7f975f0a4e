/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks what was ordered for a pod: its annotations, and what the runtime made of
 * them when it made the pod. */
#include <string.h>

#include "../../src/policy/fields.h"
#include "../pods/element.h"
#include "../common/annotations.h"
#include "../common/interfaces.h"
#include "../common/json.h"
#include "../common/text.h"
#include "check.h"
#include "shell.h"

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"
#define OWN         "natra.io/"

/* Returns NULL also for what is not an object: wish_look has refused that. */
static const cJSON *args_of(const struct pod *pod, const char *name)
{
	const cJSON *args = NULL;

	if (pod->has_result)
		args = json_get_exact(
			json_get_exact(pod->cached.json, "capabilityArgs"),
			name);
	return cJSON_IsObject(args) ? args : NULL;
}

/* Returns natra's element in the list that the pod was made with. */
static const cJSON *own_element(const struct finder *f)
{
	const cJSON *list = f->pod->has_result ? f->pod->cached.list : NULL;
	const cJSON *element = element_find(list, "natra");

	return element ? element : element_find(list, f->node->type);
}

static bool wants_limits(const struct pod *pod)
{
	return pod->has_result && pod->wish_code == 0 &&
	       policy_has_limits(&pod->wish.settings.policy);
}

/* Reports what is wrong with an annotation, and the word behind its name that mends it: "=10M" or
 * "-". libcni keeps the annotations of the pod's start alone, so where its limits hold by now the
 * mend may be done, and would take back what has been set since. */
static void report_annotation(const struct finder *f, const char *key,
			      const char *value, const char *why,
			      const char *behind, bool is_limited)
{
	const struct cached *c = &f->pod->cached;
	cleanup_text char *change = text_format("%s%s", key, behind);
	const char *const annotate[] = {
		"kubectl",   "-n",          c->pod_namespace,
		"annotate",  "--overwrite", "pod",
		c->pod_name, change,        NULL};
	const char *const describe[] = {"kubectl",  "-n",  c->pod_namespace,
					"describe", "pod", c->pod_name,
					NULL};
	cleanup_text char *mend =
		shell_command(is_limited ? describe : annotate);

	(is_limited ? found_note : found)(
		f, "when", is_limited ? "when it was made: " : "", "key", key,
		"value", value, "why", why, "mend", mend, NULL);
}

/* Reports what only another pod mends, with the pod's name for kubectl. */
static void report(const struct finder *f, const char *why)
{
	const struct cached *c = &f->pod->cached;

	found(f, "namespace", c->pod_namespace, "pod", c->pod_name, "why", why,
	      NULL);
}

static void wrong_rate(const struct finder *f)
{
	static const char *const names[] = {ANNOTATION_INGRESS,
					    ANNOTATION_EGRESS};
	const cJSON *annotations = args_of(f->pod, ANNOTATIONS);
	const struct natra_policy *now = &f->pod->info.policy;

	for (size_t i = 0; i < 2; i++) {
		struct natra_annotation one = {
			.name = names[i],
			.value = json_text(
				json_get_exact(annotations, names[i])),
		};
		struct natra_annotations asked = NATRA_INIT(asked);
		struct natra_policy policy = NATRA_INIT(policy);
		struct natra_class *none;
		bool is_limited = pod_is_limited(f->pod) &&
				  (i ? now->egress_rate_bits_per_sec
				     : now->ingress_rate_bits_per_sec);

		asked.annotations = &one;
		asked.annotations_len = 1;
		asked.allow_all = true;
		if (natra_policy_annotate(f->node->n, &policy, &asked, &none) <
		    0)
			report_annotation(f, names[i], one.value, "", "=10M",
					  is_limited);
	}
}

static void wrong_annotation(const struct finder *f)
{
	const struct failure *failure = &f->pod->wish_failure;

	if (f->pod->wish_code && failure->annotation[0])
		report_annotation(f, failure->annotation, "", failure->msg, "-",
				  pod_is_limited(f->pod));
}

static void wrong_order(const struct finder *f)
{
	const struct failure *failure = &f->pod->wish_failure;

	if (f->pod->wish_code && !failure->annotation[0])
		report(f, failure->msg);
}

/* Returns the name of an annotation that natra knows in a configuration, or NULL. Those of
 * rates are the runtime's. */
static const char *own_name(const char *annotation)
{
	const char *name =
		strchr(annotation, '/') ? policy_annotation(annotation) : NULL;

	return name && strncmp(name, OWN, strlen(OWN)) == 0 ? name + strlen(OWN)
							    : NULL;
}

/* Returns whether the configuration that natra has now allows an annotation. */
static bool is_allowed_now(const struct node *node, const char *annotation)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_get(node->element, "allowAnnotations"))
	{
		const char *name = json_text(item);

		if (name &&
		    policy_annotation(name) == policy_annotation(annotation))
			return true;
	}
	return false;
}

static char *recreate_command(const struct pod *pod)
{
	const char *const words[] = {
		"kubectl", "-n",  pod->cached.pod_namespace,
		"delete",  "pod", pod->cached.pod_name,
		NULL};

	return shell_command(words);
}

/* Returns the command that adds an annotation to those that are allowed. A list of the pod's
 * namespace stands in for that of the configuration, and the agent's file has it. */
static char *allow_command(const struct node *node, const char *annotation,
			   bool is_of_namespace)
{
	const cJSON *old = json_get(node->element, "allowAnnotations");
	cleanup_json cJSON *list = cJSON_IsArray(old)
					   ? cJSON_Duplicate(old, true)
					   : cJSON_CreateArray();
	cleanup_text char *conf = NULL;
	struct shell shell = {0};
	char *text;

	if (is_of_namespace)
		return text_copy(
			"kubectl -n kube-system edit configmap natra-namespaces");
	if (!node_has_own_element(node)) {
		shell_word(&shell, "sudoedit");
		shell_word(&shell, node->element_path ? node->element_path
						      : node->net_dir);
		return shell.text;
	}
	cJSON_AddItemToArray(list, cJSON_CreateString(annotation));
	text = cJSON_PrintUnformatted(list);
	conf = text_format("allowAnnotations=%s", text);
	cJSON_free(text);
	/* If a key is given twice, the last value counts. */
	return node_install_option(node, node->install, "--conf", conf);
}

static void not_allowed(const struct finder *f)
{
	const struct settings *settings = &f->pod->wish.settings;
	const struct namespace_rule *rule = &settings->rule;
	cleanup_text char *of = NULL;
	const cJSON *item;

	if (!f->pod->has_result || f->pod->wish_code)
		return;
	if (rule->has_allowed)
		of = text_format(
			" of '%s' in natra-agent's file of --namespaces",
			rule->name);
	cJSON_ArrayForEach(item, args_of(f->pod, ANNOTATIONS))
	{
		const char *name = own_name(item->string);
		cleanup_text char *allow = NULL;
		bool is_old;

		if (!name || settings_allow(settings, name))
			continue;
		/* A pod keeps the configuration of the list that it was made with. */
		is_old = !rule->has_allowed && is_allowed_now(f->node, name);
		allow = is_old ? recreate_command(f->pod)
			       : allow_command(f->node, name,
					       rule->has_allowed);
		found(f, "key", item->string, "of", of ? of : "", "when",
		      is_old ? "did not list it when it was made"
			     : "does not list it",
		      "chart",
		      !is_old && !rule->has_allowed &&
				      node_agent_installs(f->node)
			      ? "; the agent's chart has the value conf.allowAnnotations, too"
			      : "",
		      "allow", allow, NULL);
	}
}

static void unknown(const struct finder *f)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, args_of(f->pod, ANNOTATIONS))
	{
		if (strncmp(item->string, OWN, strlen(OWN)) == 0 &&
		    !own_name(item->string))
			report_annotation(f, item->string, "", "", "-",
					  pod_is_limited(f->pod));
	}
}

static void no_rate(const struct finder *f)
{
	const struct pod *pod = f->pod;

	/* Most pods have no limits, so this is reported only for a pod that was asked
	 * for. */
	if (f->node->request->pod && pod->has_result && pod->wish_code == 0 &&
	    !policy_has_limits(&pod->wish.settings.policy) &&
	    !args_of(pod, "bandwidth") && !pod->has_info)
		found_note(f, "namespace", pod->cached.pod_namespace, "pod",
			   pod->cached.pod_name, NULL);
}

static void no_capability(const struct finder *f)
{
	const cJSON *element = own_element(f);
	const cJSON *all = json_get_exact(element, "capabilities");

	if (element && args_of(f->pod, "bandwidth") && !wants_limits(f->pod) &&
	    !cJSON_IsTrue(json_get_exact(all, "bandwidth")) &&
	    !pod_is_limited(f->pod))
		report(f, "");
}

static bool is_missed(const struct finder *f)
{
	return wants_limits(f->pod) && !f->pod->has_info && f->pod->is_there &&
	       !f->pod->why[0] && !f->node->lacks && f->node->features.bpffs;
}

/* A node that changes from the bandwidth plugin to natra has many of these. */
static void before_natra(const struct finder *f)
{
	const struct pod *pod = f->pod;
	const bool has_others =
		pod->left.limits_ingress || pod->left.limits_egress;
	cleanup_text char *attach = NULL, *mend = NULL;

	if (!is_missed(f) || own_element(f))
		return;
	attach = pod_attach_command(pod, f->node, &pod->wish.settings.policy);
	mend = text_format("%s%s", attach,
			   has_others ? " --replace-bandwidth" : "");
	found(f, "network", pod->cached.network, "limits",
	      has_others ? "only the bandwidth plugin limits it"
			 : "it has no limits",
	      "mend", mend, NULL);
}

static void not_attached(const struct finder *f)
{
	cleanup_text char *attach = NULL;

	if (!is_missed(f) || !own_element(f))
		return;
	attach = pod_attach_command(f->pod, f->node,
				    &f->pod->wish.settings.policy);
	found(f, "attach", attach, NULL);
}

static void second_interface(const struct finder *f)
{
	const struct pod *pod = f->pod;
	cleanup_text char *names = NULL;

	if (!pod->has_result || !pod_is_limited(pod))
		return;
	names = interfaces_beside(json_get_exact(pod->cached.json, "result"),
				  pod->cached.ifname);
	if (names)
		found(f, "names", names, "ifname", pod->cached.ifname, "id",
		      pod->id, NULL);
}

static char *rate_text(uint64_t bits_per_sec)
{
	return bits_per_sec
		       ? text_format("%llu", (unsigned long long)bits_per_sec)
		       : text_copy("unlimited");
}

static void changed(const struct finder *f)
{
	const struct natra_policy *have = &f->pod->info.policy;
	const struct natra_policy *want = &f->pod->wish.settings.policy;
	cleanup_text char *in = rate_text(want->ingress_rate_bits_per_sec);
	cleanup_text char *out = rate_text(want->egress_rate_bits_per_sec);
	cleanup_text char *in_now = NULL, *out_now = NULL;

	/* An edited annotation has the same effect, so this is reported only for a pod
	 * that was asked for. */
	if (!f->node->request->pod || !pod_is_limited(f->pod) ||
	    !wants_limits(f->pod) ||
	    (have->ingress_rate_bits_per_sec ==
		     want->ingress_rate_bits_per_sec &&
	     have->egress_rate_bits_per_sec == want->egress_rate_bits_per_sec))
		return;
	in_now = rate_text(have->ingress_rate_bits_per_sec);
	out_now = rate_text(have->egress_rate_bits_per_sec);
	found_note(f, "in", in, "out", out, "in_now", in_now, "out_now",
		   out_now, "id", f->pod->id, NULL);
}

#define RECREATE "kubectl -n {namespace} delete pod {pod}"

const struct check checks_of_order[] = {
	{"wrong-rate",
	 "{when}annotation {key}: '{value}' is not a rate from 1k to 1P",
	 "{=mend}", wrong_rate},
	{"wrong-annotation", "{when}{why}", "{=mend}", wrong_annotation},
	{"wrong-order",
	 "the configuration that it was made with is wrong: {why}", RECREATE,
	 wrong_order},
	{"not-allowed",
	 "annotation {key} is ignored, because allowAnnotations{of} {when}{chart}",
	 "{=allow}", not_allowed},
	{"unknown-annotation", "{when}natra does not know annotation {key}",
	 "{=mend}", unknown},
	{"no-rate",
	 "it had no annotation kubernetes.io/ingress-bandwidth or egress-bandwidth when it was made",
	 "kubectl -n {namespace} annotate --overwrite pod {pod} kubernetes.io/egress-bandwidth=10M",
	 no_rate},
	{"made-without-capability",
	 "it was made when natra's element lacked the capability bandwidth, so its annotations had no effect",
	 RECREATE, no_capability},
	{"made-before",
	 "it was made when the list of network '{network}' did not call natra, and {limits}",
	 "{=mend}", before_natra},
	{"not-attached",
	 "natra was called for it, but it has no limits (any more)",
	 "{=attach}", not_attached},
	{"second-interface",
	 "its limits hold at {ifname}, and not at {names}, which its list made, too",
	 "{=natractl} show {id}", second_interface},
	{"changed",
	 "its limits were changed since it was made: ingress {in_now} instead of {in}, egress {out_now} instead of {out} bit/s",
	 "{=natractl} set {id} --ingress-rate {in} --egress-rate {out}",
	 changed},
	{0},
};
