/* SPDX-License-Identifier: BSD-2-Clause */
#include "wish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../cni/conf.h"
#include "../../cni/groups.h"
#include "../../src/policy/fields.h"
#include "../common/annotations.h"
#include "../common/template.h"
#include "element.h"

/* Annotations that begin with these are natra's own, or Calico's, of which some stand for
 * natra's. */
#define PREFIX "natra.io/"
#define CALICO "qos.projectcalico.org/"

#define ANNOTATIONS_CAPABILITY "io.kubernetes.cri.pod-annotations"

static bool is_rate(const char *name)
{
	return strcmp(name, ANNOTATION_INGRESS) == 0 ||
	       strcmp(name, ANNOTATION_EGRESS) == 0;
}

bool wish_follows(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 ||
	       strncmp(name, CALICO, strlen(CALICO)) == 0 || is_rate(name);
}

static bool is_of_start(const char *name)
{
	return !wish_follows(name);
}

static bool has_capability(const struct wish *wish, const char *name)
{
	return cJSON_IsTrue(json_get_exact(
		json_get_exact(wish->keys, "capabilities"), name));
}

static int refuse_text(const cJSON *wrong, struct failure *failure)
{
	(void)failure_set(failure, CNI_BAD_CONFIG,
			  "annotation %s: %s: is not a string", wrong->string,
			  json_show(wrong).text);
	(void)snprintf(failure->annotation, sizeof(failure->annotation), "%s",
		       wrong->string);
	return (int)failure->code;
}

/* Reads Kubernetes' annotations into the rates that a runtime makes of them. */
static int read_rates(struct wish *wish, const cJSON *present, struct natra *n,
		      struct failure *failure)
{
	struct natra_annotations all = NATRA_INIT(all);
	const cJSON *wrong = annotations_add(&all, present, is_rate);
	struct natra_class *none;
	int r = 0;

	all.allow_all = true;
	if (wrong)
		r = refuse_text(wrong, failure);
	else if (natra_policy_annotate(n, &wish->rates, &all, &none) < 0)
		r = failure_of_natra(failure, n, -EINVAL, CNI_BAD_CONFIG);
	annotations_free(&all);
	wish->asker.rates = &wish->rates;
	return r;
}

/* Reads what the runtime would pass on, as far as the element asks for it. */
static int read_asker(struct wish *wish, const struct cached *cached,
		      const cJSON *present, struct natra *n,
		      struct failure *failure)
{
	const cJSON *args = json_get_exact(cached->json, "capabilityArgs");
	const cJSON *start = NULL;
	struct natra_annotations *all = &wish->asker.annotations;
	const cJSON *wrong = NULL;
	int r = 0;

	if (has_capability(wish, "bandwidth") && present)
		r = read_rates(wish, present, n, failure);
	else if (has_capability(wish, "bandwidth"))
		wish->asker.bandwidth = json_get_exact(args, "bandwidth");
	if (r || !has_capability(wish, ANNOTATIONS_CAPABILITY))
		return r;
	r = conf_object(args, ANNOTATIONS_CAPABILITY,
			"capabilityArgs." ANNOTATIONS_CAPABILITY, &start,
			failure);
	if (r)
		return r;
	wrong = annotations_add(all, start, present ? is_of_start : NULL);
	if (!wrong)
		wrong = annotations_add(all, present, wish_follows);
	return wrong ? refuse_text(wrong, failure) : 0;
}

/* Its keys are those of natra's element, or of the one that an installation makes. */
static int begin(struct wish *wish, const struct cached *cached,
		 const struct wish_source *source, const cJSON *present,
		 struct natra *n, struct failure *failure)
{
	*wish = (struct wish){
		.keys = element_find(cached->list, "natra"),
		.rates = NATRA_INIT(wish->rates),
		.asker =
			{.pod = wish->pod,
			 .namespaces = source->namespaces,
			 /* Only ADD may let a pod start although something is wrong. */
			 .on_error = ON_ERROR_FAIL},
	};
	if (!wish->keys)
		wish->keys = wish->made = element_json(
			source->conf, element_find(cached->list, "bandwidth"));
	cached_pod(cached, wish->pod, sizeof(wish->pod));
	return read_asker(wish, cached, present, n, failure);
}

static int check(const struct wish *wish, struct natra *n,
		 struct failure *failure)
{
	if (natra_policy_check(n, &wish->settings.policy) < 0)
		return failure_set(failure, CNI_BAD_CONFIG, "%s",
				   natra_error(n));
	return 0;
}

int wish_read(struct wish *wish, const struct cached *cached,
	      const struct wish_source *source, const cJSON *annotations,
	      struct natra *n, struct log *log, struct failure *failure)
{
	int r = begin(wish, cached, source, annotations, n, failure);

	if (r == 0)
		r = wanted_read(&wish->settings, wish->keys, &wish->asker, n,
				log, failure);
	return r ? r : check(wish, n, failure);
}

int wish_read_start(struct wish *wish, const struct cached *cached,
		    const struct wish_source *source, struct natra *n,
		    struct log *log, struct failure *failure)
{
	int r = begin(wish, cached, source, NULL, n, failure);

	wish->asker.on_error = ON_ERROR_CONTINUE;
	return r ? r
		 : wanted_read(&wish->settings, wish->keys, &wish->asker, n,
			       log, failure);
}

int wish_look(struct wish *wish, const struct cached *cached,
	      const struct wish_source *source, struct natra *n,
	      struct failure *failure)
{
	struct log none = LOG_INIT;
	int r = begin(wish, cached, source, NULL, n, failure);

	if (r == 0)
		r = wanted_read(&wish->settings, wish->keys, &wish->asker, n,
				&none, failure);
	return r ? r : check(wish, n, failure);
}

int wish_read_keys(struct settings *ret, const cJSON *keys, struct natra *n,
		   struct failure *failure)
{
	const struct asker nobody = {.pod = ""};

	return wanted_read_keys(ret, keys, &nobody, n, failure);
}

const char *wish_log_file(const cJSON *keys)
{
	return settings_log(keys).file;
}

int wish_attach(struct wish *wish, struct natra *n, struct log *log,
		int (*attach)(void *arg, const struct natra_policy *policy),
		void *arg)
{
	return groups_attach(&wish->settings, n, log, attach, arg);
}

void wish_lower(struct wish *wish)
{
	settings_lower(&wish->settings, &wish->settings.policy);
}

bool wish_has_classes(const struct wish *wish)
{
	return settings_allow(&wish->settings, POLICY_CLASSES_ANNOTATION) ||
	       json_get(wish->keys, "classes");
}

bool wish_may_join(const struct cached *cached, const cJSON *conf)
{
	const cJSON *own = element_find(cached->list, "natra");
	const cJSON *group = json_get(own ? own : conf, "group");
	const char *name = json_text(json_get(group, "name"));

	return name && !template_has_annotation(name, wish_follows);
}

void wish_free(struct wish *wish)
{
	settings_free(&wish->settings);
	annotations_free(&wish->asker.annotations);
	cJSON_Delete(wish->made);
}
