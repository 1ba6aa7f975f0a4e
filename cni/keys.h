/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's own keys of the network configuration. The plugin reads them and the
 * installer writes them. README.md and natra-cni(8) have the same table. */
#pragma once

/* Lists each key with the function of settings.c that reads it. */
#define CONF_KEYS(X)                                                           \
	X(attachMode, read_attach_mode)                                        \
	X(edtPacing, read_edt_pacing)                                          \
	X(fastPass, read_fast_pass)                                            \
	X(fastPassShare, read_fast_pass_share)                                 \
	X(ingressMode, read_ingress_mode)                                      \
	X(heavyHitterThreshold, read_threshold)                                \
	X(sketchWidth, read_sketch_width)                                      \
	X(horizon, read_horizon)                                               \
	X(paceLimit, read_pace_limit)                                          \
	X(precedence, read_precedence)                                         \
	X(onError, read_on_error)                                              \
	X(replaceBandwidth, read_replace_bandwidth)                            \
	X(allowAnnotations, read_allow_annotations)                            \
	X(logFile, check_log_file)                                             \
	X(logLevel, check_log_level)

/* Lists the keys that upstream's bandwidth plugin has, too; see bandwidth.c. */
#define LIMIT_KEYS(X)                                                          \
	X(ingressRate)                                                         \
	X(ingressBurst)                                                        \
	X(egressRate)                                                          \
	X(egressBurst)                                                         \
	X(shapedSubnets)                                                       \
	X(unshapedSubnets)
