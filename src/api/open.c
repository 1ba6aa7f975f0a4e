/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on the handle itself. */
#include <errno.h>
#include <string.h>

#include "api/structs.h"
#include "util/cleanup.h"

int natra_open(struct natra **ret_n, const struct natra_open_opts *opts)
{
	struct natra_open_opts o = {0};
	cleanup_free struct natra *n = NULL;

	if (!ret_n)
		return -EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	if (opts && struct_in(n, "opts", &o, FIRST_OPTS, sizeof(o), opts) < 0)
		return -EINVAL;
	n->log_fn = o.log_fn;
	n->log_arg = o.log_arg;
	n->keep_programs = o.keep_programs;
	n->cancelled_fn = o.cancelled_fn;
	n->cancelled_arg = o.cancelled_arg;
	if (o.bpffs_path) {
		n->bpffs = strdup(o.bpffs_path);
		if (!n->bpffs)
			return -ENOMEM;
	}
	*ret_n = TAKE_PTR(n);
	return 0;
}

void natra_close(struct natra *n)
{
	if (!n)
		return;
	free(n->bpffs);
	free(n);
}

const char *natra_error(const struct natra *n)
{
	return n ? n->error : "";
}

enum natra_code natra_error_code(const struct natra *n)
{
	return n ? n->code : NATRA_CODE_NONE;
}

const char *natra_error_about(const struct natra *n)
{
	return n ? n->about : "";
}

const char *natra_version(void)
{
	return NATRA_VERSION;
}
