/* SPDX-License-Identifier: BSD-2-Clause */
/* The values in a call that is written in JSON. */
#ifndef NATRACTL_CALL_READ_H
#define NATRACTL_CALL_READ_H

#include <natra/natra.h>

#include "json.h"

/* A request, and why it was refused before the library was called. */
struct request {
	const cJSON *json;
	char error[512];
	/* What the policy points to; call_policy_free frees it. */
	const char **shaped, **unshaped;
	struct natra_class *classes;
	size_t classes_len;
	struct natra_group_info group;
	/* The same for annotations. */
	struct natra_annotation *annotations;
	const char **allowed;
};

/* These return 0, or -EINVAL with the text in request->error. A member that is not there
 * leaves the result as it is: NULL, or what the caller put there. */

/* Refuses members whose name is none of `names`, which ends with NULL. `what` is put
 * before a name. */
int call_read_known(struct request *request, const char *what,
		    const cJSON *object, const char *const *names);
int call_read_text(struct request *request, const char *name,
		   const char **ret_text);
int call_read_number(struct request *request, const char *name, uint64_t max,
		     uint64_t *ret_number);
/* The same of a value, whose name stands behind `what` in an error. */
int call_read_number_of(struct request *request, const char *what,
			const char *name, const cJSON *value, uint64_t max,
			uint64_t *ret_number);
int call_read_text_of(struct request *request, const char *what,
		      const char *name, const cJSON *value,
		      const char **ret_text);
int call_read_bool(struct request *request, const char *name, bool *ret_bool);
/* Sets *ret_object to NULL if there is none. */
int call_read_object(struct request *request, const char *name,
		     const cJSON **ret_object);
/* Sets *ret_texts to memory of cJSON's, which the caller frees. */
int call_read_texts(struct request *request, const char *what,
		    const cJSON *array, const char ***ret_texts,
		    size_t *ret_len);
/* Sets request->error, and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int call_refuse(struct request *request,
						      const char *format, ...);

#endif
