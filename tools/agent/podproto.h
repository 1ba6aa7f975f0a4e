/* SPDX-License-Identifier: BSD-2-Clause */
/* An event of the kubelet's pods API, v1alpha1.WatchPodsEvent, in protobuf's encoding. */
#ifndef NATRA_AGENT_PODPROTO_H
#define NATRA_AGENT_PODPROTO_H

#include <stddef.h>

#include "podevent.h"

/* podevent_free is always needed. */
void podproto_read(struct podevent *ret, const uint8_t *bytes, size_t len);

#endif
