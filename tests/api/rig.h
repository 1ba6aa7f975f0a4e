/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace and a bpffs of the test's own, with pods. */
#ifndef TEST_API_RIG_H
#define TEST_API_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <natra/natra.h>

#define BPFFS "/tmp/natra-api-bpffs"
#define MBIT  1000000ULL

/* A namespace NAME with eth0, whose peer is "h-NAME" in the node. */
struct pod {
	char name[16];
	char path[64];
	int fd;
};

/* First: skips the program if it is not run by root. */
void rig_enter(void);
/* Removes all pods and pins: what a case that failed has left. */
void rig_reset(void);
/* A shell command that must succeed. */
void rig_sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* All that natra could have changed, of all pods; the caller's to free. */
char *rig_state(void);
void rig_same_state(const char *before);
/* Number of files under natra's pins. */
unsigned int rig_pins(void);
bool rig_has_tcx(void);

struct pod pod_make(const char *name);
void pod_remove(struct pod *pod);
/* So many UDP packets into the pod. */
void pod_send(const struct pod *pod, int packets);

struct natra *rig_open(void);
/* These calls must succeed. */
struct natra_info rig_query(struct natra *n, const char *id);
void rig_detach(struct natra *n, const char *id);
struct natra_target pod_target(const struct pod *pod, const char *id);
struct natra_policy policy_of(uint64_t in_mbit, uint64_t out_mbit);
/* The handle's error is one line and contains these (NULL: no matter). */
void says(const struct natra *n, const char *a, const char *b);

/*
 * KEPT(natra_x(...)) is its result; fails if the call changed the thread's
 * namespace, signal mask, umask or working directory, or left a descriptor or
 * a thread behind.
 */
#define KEPT(call) (rig_before(), rig_after(call, #call))
void rig_before(void);
int rig_after(int r, const char *call);

#endif
