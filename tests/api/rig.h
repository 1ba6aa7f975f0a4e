/* SPDX-License-Identifier: BSD-2-Clause */
/* The rig: a network namespace and a bpffs of the test's own, with pods. */
#ifndef TEST_API_RIG_H
#define TEST_API_RIG_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <natra/natra.h>

#include "cm.h"

#define BPFFS "/tmp/natra-api-bpffs"
#define MBIT  1000000ULL

/* A pod is a namespace NAME with eth0, whose peer in the node is "h-NAME". */
struct pod {
	char name[16];
	char path[64];
	int fd;
};

/* Makes the rig, before anything else; skips the program without root. */
void rig_enter(void);
/* Defines a main that does this, and calls setup and teardown for each test. */
#define RIG_MAIN(setup, teardown)                                              \
	int main(void)                                                         \
	{                                                                      \
		rig_enter();                                                   \
		return th_run_each(setup, teardown);                           \
	}
/* Removes all pods and pins, which a case that failed may have left. */
void rig_reset(void);
/* Runs a shell command that must succeed. */
void rig_sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns all state of all pods that natra could have changed; free() it. */
char *rig_state(void);
void rig_same_state(const char *before);
/* Returns the number of files under natra's pins. */
unsigned int rig_pins(void);
/* Puts another map, with keys of 4 bytes, in the place of what is pinned there. */
void rig_replace_pin(const char *path, enum bpf_map_type type,
		     uint32_t value_size, uint32_t entries, uint32_t flags);
bool rig_has_tcx(void);
/* Loads a program for a tc hook that lets all packets pass to the next one. */
int rig_load_pass(const char *name);
/* Gives one of the process's capabilities away, for good: in a child. */
bool rig_drop_capability(unsigned int capability);
/* Opens what is pinned of an attachment; then reads, or writes, the first value of a map. */
int rig_open_pin(struct natra *n, const char *id, const char *name);
void rig_read(int fd, void *value);
void rig_write(int fd, const void *value);

struct pod pod_make(const char *name);
void pod_remove(struct pod *pod);
/* Sends this number of UDP packets out of an interface. */
void device_send(const char *device, int packets);
/* Sends this number of UDP packets into the pod. */
void pod_send(const struct pod *pod, int packets);

struct natra *rig_open(void);
/* These calls must succeed. */
struct natra_info rig_query(struct natra *n, const char *id);
void rig_detach(struct natra *n, const char *id);
/* Detaches each id, removes the pods, checks that no pins are left and closes n. */
void rig_end(struct natra *n, struct pod *pods, const char *const *ids,
	     size_t len);
struct natra_target pod_target(const struct pod *pod, const char *id);
struct natra_policy policy_of(uint64_t in_mbit, uint64_t out_mbit);
/* Checks that the handle's error is one line and contains a and b, unless
 * NULL. */
void says(const struct natra *n, const char *a, const char *b);

/*
 * KEPT(natra_x(...)) returns the result of the call. It fails if the call
 * changed the thread's namespace, signal mask, umask or working directory, or
 * left a descriptor or a thread behind.
 */
#define KEPT(call) (rig_before(), rig_after(call, #call))
void rig_before(void);
int rig_after(int r, const char *call);

/* The call returns 0, or this result, and changes nothing of these. */
#define OK(call)            GIVES(0, call)
#define GIVES(result, call) assert_int_equal(KEPT(call), result)

#endif
