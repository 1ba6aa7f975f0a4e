/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_annotate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/policy/fields.h"
#include "../common/annotations.h"
#include "../common/namespaces.h"
#include "../common/text.h"
#include "info.h"

int call_annotate(struct natra *n, struct request *request,
		  const struct natra_policy *given, cJSON **ret_result)
{
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_annotations asked = NATRA_INIT(asked);
	struct natra_class *classes = NULL;
	int r = call_read_annotations(request, &asked);

	if (given)
		policy = *given;
	if (r == 0)
		r = natra_policy_annotate(n, &policy, &asked, &classes);
	if (r == 0)
		*ret_result = policy_json(&policy);
	free(classes);
	return r;
}

/* The pod of a request, and what its namespace has. */
struct pod {
	const char *name, *path; /* of the file; NULL: there is none */
	bool needs_file;
	cJSON *file; /* it has the texts of the rule */
	struct namespace_rule rule;
	struct natra_policy limits;
	bool has_limits;
	struct natra_annotations asked;
	struct namespace_note note;
	struct natra_policy policy, rates;
	struct natra_class *classes;
};

static int read_pod(struct request *request, struct pod *pod)
{
	int r = call_read_annotations(request, &pod->asked);

	if (r == 0)
		r = call_read_text(request, "pod", &pod->name);
	if (r == 0)
		r = call_read_text(request, "namespaces", &pod->path);
	if (r == 0)
		r = call_read_bool(request, "require_namespaces",
				   &pod->needs_file);
	if (r == 0 && pod->path && pod->path[0] != '/')
		r = call_refuse(request, "namespaces: is not an absolute path");
	if (r == 0 && pod->needs_file && !pod->path)
		r = call_refuse(
			request,
			"namespaces: is missing, and require_namespaces is true");
	if (r == 0 && !strchr(pod->name, '/'))
		r = call_refuse(request, "pod: '%.100s' is not namespace/name",
				pod->name);
	return r;
}

/* Finds what the namespace has. Where bad values are left out the pod goes on without a maximum if
 * the file cannot be read, as by the plugin with "onError": "continue". */
static int find_rule(struct request *request, struct pod *pod)
{
	struct namespaces_error error = {"is not there"};
	int r;

	if (!pod->path)
		return 0;
	r = namespaces_load(pod->path, &pod->file, &error);
	if (r == 0)
		r = namespaces_find(pod->file, pod->name, &pod->rule, &error);
	if (r == 0 && (pod->file || !pod->needs_file))
		return 0;
	pod->rule = (struct namespace_rule){.name = NULL};
	if (pod->asked.skip_bad) {
		(void)snprintf(pod->note.text, sizeof(pod->note.text),
			       "%.100s: %.100s: the pod has no maximum",
			       pod->path, error.text);
		return 0;
	}
	(void)snprintf(request->error, sizeof(request->error), "%.200s: %.300s",
		       pod->path, error.text);
	return -EBADMSG;
}

/* Reads Kubernetes' rates, which a pod may always ask for. Others' names for them are not passed on:
 * they are as good as Kubernetes' own to the library. Where bad values are left out, a wrong rate
 * rids a pod of nothing that it has without annotations. */
static int annotate_rates(struct natra *n, struct pod *pod)
{
	const struct natra_annotation rates[] = {
		{ANNOTATION_INGRESS,
		 annotations_find(&pod->asked, ANNOTATION_INGRESS)},
		{ANNOTATION_EGRESS,
		 annotations_find(&pod->asked, ANNOTATION_EGRESS)}};
	struct natra_annotations asked = NATRA_INIT(asked);
	struct natra_class *none = NULL;
	int r;

	asked.annotations = rates;
	asked.annotations_len = 2;
	asked.allow_all = true;
	r = natra_policy_annotate(n, &pod->policy, &asked, &none);
	if (r == -EINVAL && pod->asked.skip_bad &&
	    policy_has_limits(&pod->policy)) {
		if (!pod->note.text[0])
			(void)snprintf(pod->note.text, sizeof(pod->note.text),
				       "%s", natra_error(n));
		asked.skip_bad = true;
		r = natra_policy_annotate(n, &pod->policy, &asked, &none);
	}
	return r;
}

static int annotate_others(struct natra *n, struct pod *pod)
{
	struct natra_annotations asked = pod->asked;
	const char **of_rule = NULL;
	int r;

	if (pod->rule.has_allowed) {
		of_rule = namespace_allowed(&pod->rule, &asked.allowed_len);
		asked.allowed = of_rule;
	}
	r = natra_policy_annotate(n, &pod->policy, &asked, &pod->classes);
	free((void *)of_rule);
	return r;
}

int call_annotate_pod(struct natra *n, struct request *request,
		      const struct natra_policy *given, cJSON **ret_result)
{
	struct pod pod = {.name = "",
			  .asked = NATRA_INIT(pod.asked),
			  .policy = NATRA_INIT(pod.policy)};
	int r = read_pod(request, &pod);

	if (given)
		pod.policy = *given;
	if (r == 0)
		r = find_rule(request, &pod);
	if (r == 0) {
		pod.has_limits =
			namespace_limits(&pod.rule, &pod.policy, &pod.limits);
		namespace_fill(&pod.rule, &pod.policy);
		r = annotate_rates(n, &pod);
	}
	pod.rates = pod.policy;
	if (r == 0)
		r = annotate_others(n, &pod);
	if (r == 0 && pod.has_limits) {
		namespace_lower(&pod.limits, pod.classes != NULL, &pod.policy,
				&pod.note);
		namespace_lower(&pod.limits, false, &pod.rates, &pod.note);
	}
	if (r == 0) {
		*ret_result = cJSON_CreateObject();
		cJSON_AddItemToObject(*ret_result, "policy",
				      policy_json(&pod.policy));
		cJSON_AddItemToObject(*ret_result, "rates",
				      policy_json(&pod.rates));
		json_add_text(*ret_result, "note", pod.note.text);
	}
	free(pod.classes);
	cJSON_Delete(pod.file);
	return r;
}
