/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the enums as the command line and the CNI configuration write
 * them. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <natra/natra.h>

static const char *const mode_names[NATRA_ATTACH_MODE_MAX] = {
	[NATRA_ATTACH_MODE_AUTO] = "auto",
	[NATRA_ATTACH_MODE_TCX_PODSIDE] = "tcx-podside",
	[NATRA_ATTACH_MODE_CLSACT_PODSIDE] = "clsact-podside",
	[NATRA_ATTACH_MODE_TCX_HOSTSIDE] = "tcx-hostside",
	[NATRA_ATTACH_MODE_CLSACT_HOSTSIDE] = "clsact-hostside",
};

static const char *const edt_names[NATRA_EDT_PACING_MAX] = {
	[NATRA_EDT_PACING_AUTO] = "auto",
	[NATRA_EDT_PACING_ON] = "on",
	[NATRA_EDT_PACING_OFF] = "off",
};

static const char *const fast_pass_names[NATRA_FAST_PASS_MAX] = {
	[NATRA_FAST_PASS_FREE] = "free",
	[NATRA_FAST_PASS_STRICT] = "strict",
	[NATRA_FAST_PASS_OFF] = "off",
};

static const char *const ingress_mode_names[NATRA_INGRESS_MODE_MAX] = {
	[NATRA_INGRESS_MODE_POLICE] = "police",
	[NATRA_INGRESS_MODE_PACE] = "pace",
};

static const char *const sli_names[NATRA_SLI_MAX] = {
	[NATRA_SLI_OFF] = "off",
	[NATRA_SLI_ON] = "on",
};

static const char *const event_names[NATRA_EVENT_MAX] = {
	[NATRA_EVENT_HEAVY] = "heavy",
	[NATRA_EVENT_DROPPED_RATE] = "dropped_rate",
	[NATRA_EVENT_DROPPED_HORIZON] = "dropped_horizon",
	[NATRA_EVENT_MICE_OVER_SHARE] = "mice_over_share",
	[NATRA_EVENT_OVER_LIMIT] = "over_limit",
};

static const char *const direction_names[NATRA_DIRECTION_MAX] = {
	[NATRA_DIRECTION_INGRESS] = "ingress",
	[NATRA_DIRECTION_EGRESS] = "egress",
};

static const char *const log_level_names[NATRA_LOG_MAX] = {
	[NATRA_LOG_ERROR] = "error",
	[NATRA_LOG_WARN] = "warn",
	[NATRA_LOG_INFO] = "info",
	[NATRA_LOG_DEBUG] = "debug",
};

static const char *const code_names[NATRA_CODE_MAX] = {
	[NATRA_CODE_NONE] = "",
	[NATRA_CODE_NOT_ATTACHED] = "not_attached",
	[NATRA_CODE_NO_NETNS] = "no_netns",
	[NATRA_CODE_NO_GROUP] = "no_group",
	[NATRA_CODE_NO_CLASS] = "no_class",
	[NATRA_CODE_LOCKED] = "locked",
	[NATRA_CODE_OTHER_ID] = "other_id",
	[NATRA_CODE_OTHER_QDISC] = "other_qdisc",
	[NATRA_CODE_LEFTOVERS] = "leftovers",
	[NATRA_CODE_FIXED] = "fixed",
	[NATRA_CODE_UNSHAPED] = "unshaped",
	[NATRA_CODE_POD_FQ] = "pod_fq",
	[NATRA_CODE_HOST_FQ] = "host_fq",
	[NATRA_CODE_LIMITS_DIFFER] = "limits_differ",
	[NATRA_CODE_CLASSES_DIFFER] = "classes_differ",
	[NATRA_CODE_ANNOTATION] = "annotation",
	[NATRA_CODE_OTHER_INTERFACE] = "other_interface",
	[NATRA_CODE_BYPASSED] = "bypassed",
	[NATRA_CODE_FIELD] = "field",
};

static const char *name_of(const char *const *names, unsigned int len,
			   unsigned int value)
{
	return value < len ? names[value] : NULL;
}

static int value_of(const char *const *names, unsigned int len,
		    const char *text)
{
	for (unsigned int i = 0; text && i < len; i++) {
		if (strcmp(names[i], text) == 0)
			return (int)i;
	}
	return -EINVAL;
}

const char *natra_attach_mode_name(enum natra_attach_mode attach_mode)
{
	return name_of(mode_names, NATRA_ATTACH_MODE_MAX, attach_mode);
}

const char *natra_edt_pacing_name(enum natra_edt_pacing edt_pacing)
{
	return name_of(edt_names, NATRA_EDT_PACING_MAX, edt_pacing);
}

const char *natra_fast_pass_name(enum natra_fast_pass fast_pass)
{
	return name_of(fast_pass_names, NATRA_FAST_PASS_MAX, fast_pass);
}

const char *natra_ingress_mode_name(enum natra_ingress_mode ingress_mode)
{
	return name_of(ingress_mode_names, NATRA_INGRESS_MODE_MAX,
		       ingress_mode);
}

const char *natra_sli_name(enum natra_sli sli)
{
	return name_of(sli_names, NATRA_SLI_MAX, sli);
}

const char *natra_event_reason_name(enum natra_event_reason reason)
{
	return name_of(event_names, NATRA_EVENT_MAX, reason);
}

const char *natra_direction_name(enum natra_direction direction)
{
	return direction == NATRA_DIRECTION_NONE
		       ? ""
		       : name_of(direction_names, NATRA_DIRECTION_MAX,
				 direction);
}

const char *natra_log_level_name(enum natra_log_level level)
{
	return name_of(log_level_names, NATRA_LOG_MAX, level);
}

const char *natra_code_name(enum natra_code code)
{
	return name_of(code_names, NATRA_CODE_MAX, code);
}

int natra_parse_attach_mode(const char *text,
			    enum natra_attach_mode *ret_attach_mode)
{
	int r = value_of(mode_names, NATRA_ATTACH_MODE_MAX, text);

	if (r < 0 || !ret_attach_mode)
		return -EINVAL;
	*ret_attach_mode = (enum natra_attach_mode)r;
	return 0;
}

int natra_parse_edt_pacing(const char *text,
			   enum natra_edt_pacing *ret_edt_pacing)
{
	int r = value_of(edt_names, NATRA_EDT_PACING_MAX, text);

	if (r < 0 || !ret_edt_pacing)
		return -EINVAL;
	*ret_edt_pacing = (enum natra_edt_pacing)r;
	return 0;
}

int natra_parse_fast_pass(const char *text, enum natra_fast_pass *ret_fast_pass)
{
	int r = value_of(fast_pass_names, NATRA_FAST_PASS_MAX, text);

	if (r < 0 || !ret_fast_pass)
		return -EINVAL;
	*ret_fast_pass = (enum natra_fast_pass)r;
	return 0;
}

int natra_parse_ingress_mode(const char *text,
			     enum natra_ingress_mode *ret_ingress_mode)
{
	int r = value_of(ingress_mode_names, NATRA_INGRESS_MODE_MAX, text);

	if (r < 0 || !ret_ingress_mode)
		return -EINVAL;
	*ret_ingress_mode = (enum natra_ingress_mode)r;
	return 0;
}

int natra_parse_sli(const char *text, enum natra_sli *ret_sli)
{
	int r = value_of(sli_names, NATRA_SLI_MAX, text);

	if (r < 0 || !ret_sli)
		return -EINVAL;
	*ret_sli = (enum natra_sli)r;
	return 0;
}
