/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file text.h
 * @brief The texts of rates, sizes, times, classes and words. natra.h includes this.
 */
#ifndef NATRA_TEXT_H
#define NATRA_TEXT_H

#include <stdint.h>

#include <natra/base.h>
#include <natra/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Read a Kubernetes quantity in bit/s: "10M", "1.5G", "10Mi", "2500000",
 *        "1e6"; fractions are rounded up. Less than 1 bit/s is -ERANGE: "10m"
 *        is a hundredth of a bit/s, and most likely meant as "10M".
 * @return 0; -EINVAL not a quantity; -ERANGE outside the limits of a rate.
 */
NATRA_API int natra_parse_rate(const char *text, uint64_t *ret_bits_per_sec);

/** @brief The same in bytes, or in what else is counted, 1 to 2^63 - 1. Errors as
 *         natra_parse_rate. */
NATRA_API int natra_parse_size(const char *text, uint64_t *ret_bytes);

/**
 * @brief Read a time: a decimal number with ns, us, ms or s.
 * @return 0; -EINVAL not a time; -ERANGE zero or over an hour.
 */
NATRA_API int natra_parse_time(const char *text, uint64_t *ret_ns);

/**
 * @brief Read a class: "NAME=ITEM,ITEM,...", where an item is a CIDR block,
 *        "ingress-rate=RATE", "egress-rate=RATE" ("unlimited" for none) or "dscp=N" or
 *        "dscp=N-M". An item "none" stands for no subnets, and "dscp=none" for no
 *        DSCP. natra_policy_check judges the name and the blocks.
 * @param base       what `text` leaves out: both rates, all DSCPs, all subnets.
 *                   NULL: nothing.
 * @param ret_class  one piece of memory, which the caller frees with free().
 * @param ret_item   where in `text` the item that is wrong begins; may be NULL. Set on
 *                   failure only.
 * @return 0; -EINVAL not a class, or a bad `base`; -ERANGE a number out of range; -ENOMEM.
 */
NATRA_API int natra_parse_class(const char *text,
				const struct natra_class *base,
				struct natra_class **ret_class,
				const char **ret_item);

/** @brief Names as the command line and the CNI configuration write them:
 *         "tcx-podside", "auto", "free", "police"; NULL if out of range. Static. */
NATRA_API const char *
natra_attach_mode_name(enum natra_attach_mode attach_mode);
NATRA_API const char *natra_edt_pacing_name(enum natra_edt_pacing edt_pacing);
NATRA_API const char *natra_fast_pass_name(enum natra_fast_pass fast_pass);
NATRA_API const char *
natra_ingress_mode_name(enum natra_ingress_mode ingress_mode);
NATRA_API const char *natra_sli_name(enum natra_sli sli);

/** @brief Names of what is reported: "ingress", "" of NATRA_DIRECTION_NONE; "heavy",
 *         "dropped_rate"; "error", "warn"; NULL if out of range. Static. */
NATRA_API const char *natra_direction_name(enum natra_direction direction);
NATRA_API const char *natra_event_reason_name(enum natra_event_reason reason);
NATRA_API const char *natra_log_level_name(enum natra_log_level level);

/** @brief The reverse of the first five. @return 0; -EINVAL. */
NATRA_API int natra_parse_attach_mode(const char *text,
				      enum natra_attach_mode *ret_attach_mode);
NATRA_API int natra_parse_edt_pacing(const char *text,
				     enum natra_edt_pacing *ret_edt_pacing);
NATRA_API int natra_parse_fast_pass(const char *text,
				    enum natra_fast_pass *ret_fast_pass);
NATRA_API int
natra_parse_ingress_mode(const char *text,
			 enum natra_ingress_mode *ret_ingress_mode);
NATRA_API int natra_parse_sli(const char *text, enum natra_sli *ret_sli);

#ifdef __cplusplus
}
#endif

#endif
