/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches this node's pods by the kubelet's pods API, which Kubernetes has from 1.37 on: gRPC
 * over a socket that only root can open, so that no permission at the API server is needed for
 * it. This is as much of HTTP/2 as one call takes whose answer is a stream: headers of an answer
 * are not read, since a stream that the kubelet does not want to send has no message. The call is
 * made anew from time to time, and the kubelet then sends all pods, so that none is missed and a
 * kubelet that hangs is noticed.
 */
#ifndef NATRA_AGENT_KUBELET_H
#define NATRA_AGENT_KUBELET_H

#include "backoff.h"
#include "loop.h"
#include "podfeed.h"

#define KUBELET_FRAME_MAX 16384 /* HTTP/2's least */
#define KUBELET_HEAD      9

struct kubelet {
	struct loop *loop;
	struct podfeed *feed;
	const char *path; /* of its socket */
	struct source source;
	struct timer timer; /* to begin again, or to look whether it answers */
	struct backoff backoff;
	uint64_t since_ms;
	bool is_answered;
	uint8_t frame[KUBELET_HEAD + KUBELET_FRAME_MAX];
	size_t frame_len;
	size_t taken;     /* bytes of data for which it has no room again yet */
	uint8_t *message; /* what there is of it, with its head */
	size_t message_len, message_size;
};

/* The members loop to path are set by the caller. */
int kubelet_open(struct kubelet *k);
void kubelet_begin(struct kubelet *k);
/* Lets the kubelet report all pods again. */
void kubelet_again(struct kubelet *k);
void kubelet_close(struct kubelet *k);

#endif
