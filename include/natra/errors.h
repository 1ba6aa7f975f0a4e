/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file errors.h
 * @brief What a call failed with, beside its errno. natra.h includes this.
 */
#ifndef NATRA_ERRORS_H
#define NATRA_ERRORS_H

#include <natra/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct natra;

/** What a caller may want to tell apart where one errno has several reasons. The errnos
 *  beside them are those with which they come. */
enum natra_code {
	NATRA_CODE_NONE,         /**< the errno says it, or nothing failed */
	NATRA_CODE_NOT_ATTACHED, /**< ENOENT: no such id, or not on this interface */
	NATRA_CODE_NO_NETNS, /**< ENOENT: the path or name leads to none */
	NATRA_CODE_NO_GROUP, /**< ENOENT: no such group or parent */
	NATRA_CODE_NO_CLASS, /**< ENOENT: the attachment has no such class */
	/** EBUSY: another process holds a lock that natra waited for. It may work
	 *  when it is tried again. */
	NATRA_CODE_LOCKED,
	NATRA_CODE_OTHER_ID, /**< EBUSY: another id has limits on the interface */
	/** EBUSY or EOPNOTSUPP: another owner's qdisc is where natra's would be. */
	NATRA_CODE_OTHER_QDISC,
	/** EBUSY or EOPNOTSUPP: the same, and the qdisc is one that
	 *  natra_remove_leftovers removes. natra_attach can have its place then. */
	NATRA_CODE_LEFTOVERS,
	/** EINVAL: natra_configure cannot change this member; natra_attach can. */
	NATRA_CODE_FIXED,
	NATRA_CODE_UNSHAPED, /**< EBADE or EOPNOTSUPP: see natra_record_unshaped */
	/** EBADE: natra's fq is not, or not as natra set it, at the root of the
	 *  pod's interface, or of its host-side veth. */
	NATRA_CODE_POD_FQ,
	NATRA_CODE_HOST_FQ,
	/** EBADE: what was set differs from the policy of natra_check in a setting or a
	 *  list of subnets, or in nothing but classes. */
	NATRA_CODE_LIMITS_DIFFER,
	NATRA_CODE_CLASSES_DIFFER,
	NATRA_CODE_ANNOTATION, /**< EINVAL: of natra_policy_annotate */
	/** EBADE: the interface that has the limits is another one, in another netns, or
	 *  out of its place, as a process in the pod can arrange. The limits stay there. */
	NATRA_CODE_OTHER_INTERFACE,
	/** EBADE: all is there, but packets pass natra's program: see
	 *  `ingress_bypassed_percent` of natra_info. */
	NATRA_CODE_BYPASSED,
	NATRA_CODE_FIELD, /**< EINVAL: what the caller gave is not allowed, or missing */
	NATRA_CODE_MAX
};

/** @brief The error of the handle's last call: one line, valid until its next call; "" if
 *         there was none. Owned by the handle. */
NATRA_API const char *natra_error(const struct natra *n);

/** @brief The code of the handle's last error, until its next call. */
NATRA_API enum natra_code natra_error_code(const struct natra *n);

/** @brief What the handle's last error is about, until its next call: with
 *         NATRA_CODE_FIXED and NATRA_CODE_LIMITS_DIFFER the member of the policy, or
 *         "subnets" for either list, with
 *         NATRA_CODE_CLASSES_DIFFER the class at the first place in which they differ (the
 *         policy's, if it has one there), or "classes" if the policy gives no list,
 *         with NATRA_CODE_BYPASSED the direction,
 *         with NATRA_CODE_ANNOTATION the annotation,
 *         with NATRA_CODE_FIELD the argument or the struct's member ("policy.sz" if a struct
 *         has no such size), or several by commas of which one is needed; for a member of the
 *         policy's automatic group or classes, "automatic_group" or "classes",
 *         or "allowAnnotations" for `allowed`; else "". Owned by the handle. */
NATRA_API const char *natra_error_about(const struct natra *n);

/** @brief Name of a code, such as "not_attached"; "" of NATRA_CODE_NONE; NULL if out of
 *         range. Static. */
NATRA_API const char *natra_code_name(enum natra_code code);

#ifdef __cplusplus
}
#endif

#endif
