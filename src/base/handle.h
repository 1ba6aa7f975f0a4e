/* SPDX-License-Identifier: BSD-2-Clause */
/* The handle: its options, the text of the last error, and the log. */
#ifndef NATRA_BASE_HANDLE_H
#define NATRA_BASE_HANDLE_H

#include <natra/natra.h>

#define HANDLE_ERROR_MAX 512
#define HANDLE_ABOUT_MAX 128

struct natra {
	char *bpffs; /* NULL until place_find() has found it */
	natra_log_fn log_fn;
	void *log_arg;
	unsigned int log_holds;
	struct held_line *held;      /* the first one that is kept back */
	struct held_line **held_end; /* where the next one goes */
	bool keep_programs;
	bool enters_no_group; /* while natra_preload runs */
	natra_cancelled_fn cancelled_fn;
	void *cancelled_arg;
	struct netns_index *netns_index; /* set during a visit of several */
	char error[HANDLE_ERROR_MAX];
	enum natra_code code;         /* of the error */
	char about[HANDLE_ABOUT_MAX]; /* what the error is about; "": no name */
};

/*
 * Sets the error text, to which it adds what the errno -r means, and returns r.
 * The place which knows the most calls it; callers above hand r on unchanged.
 */
__attribute__((format(printf, 3, 4))) int fail_errno(struct natra *n, int r,
						     const char *format, ...);

/* Does the same without the meaning of the errno, for a line that needs no such
 * explanation. With -EINVAL it is with_field(). */
__attribute__((format(printf, 3, 4))) int refuse(struct natra *n, int r,
						 const char *format, ...);

/* Gives the error that has just been set a code, and returns r. */
int with_code(struct natra *n, enum natra_code code, int r);
/* Does the same, with the name of what the error is about. */
int with_name(struct natra *n, enum natra_code code, const char *name, int r);

/* Does it with NATRA_CODE_FIELD for r == -EINVAL: the text begins with the name of what the
 * caller gave wrong, or of several by commas, and a colon. */
int with_field(struct natra *n, int r);

/* Returns the room of the error text, HANDLE_ERROR_MAX bytes, to a function that writes
 * one only if it fails. The error has neither code nor name. */
char *error_room(struct natra *n);

/* Forgets an error that was an answer. */
void forget_error(struct natra *n);

/* Returns the error text: that of the last failure, or "". */
const char *last_error(const struct natra *n);

/* An error that was set aside. */
struct kept_error {
	struct natra *n; /* NULL: nothing was set aside */
	char text[HANDLE_ERROR_MAX];
	enum natra_code code;
	char about[HANDLE_ABOUT_MAX];
};

struct kept_error keep_error(struct natra *n);

/* Makes it the error again, if anything was set aside. */
void restore_error(struct kept_error *kept);

/* Keeps the error as it is now to the end of the scope: what is done
 * there, to undo something or to tidy up, may fail with an error of its own. */
#define KEEP_ERROR_SCOPE(n)                                                    \
	__attribute__((cleanup(restore_error),                                 \
		       unused)) struct kept_error kept_error_ = keep_error(n)

/* Begins a public function: forgets the error of the last one, and what it was about. Returns
 * whether there is a handle. */
bool begin_call(struct natra *n);

/* Returns r, the result of a public function. If it is no error, forgets one of
 * something that was tried on the way and failed. */
int finish(struct natra *n, int r);
/* The same for a walk. What ends it is the callback's, and so is the error of its last call. */
int finish_walk(struct natra *n, int r);

__attribute__((format(printf, 3, 4))) void
log_line(struct natra *n, enum natra_log_level level, const char *format, ...);

/* Keep lines back until as many calls have released them: the caller's function might open a socket,
 * and must not do so in the network namespace of a pod. */
void log_hold(struct natra *n);
void log_release(struct natra *n);

#endif
