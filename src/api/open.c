/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on the handle itself. */
#include <errno.h>
#include <string.h>

#include "api/structs.h"
#include "state/pin.h"
#include "state/pin_dir.h"
#include "util/cleanup.h"

static int refuse_foreign(void *arg, const char *path)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra *n = arg;
	int r = pin_find_gen(n, path, &gen);

	return r == -ENOENT ? 0 : r;
}

static int set_options(struct natra *n, const struct natra_open_opts *opts)
{
	struct natra_open_opts o = {0};
	int r;

	if (opts && struct_in(n, "opts", &o, EXTENT_OPTS, opts) < 0)
		return -EINVAL;
	/* The directory that a relative path means would change with the caller's. */
	if (o.bpffs_path && o.bpffs_path[0] != '/')
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
	r = o.refuse_other_abi ? pin_dir_foreach_id(n, refuse_foreign, n) : 0;
	/* The caller gets no handle that it could ask for the text. */
	if (r < 0)
		log_line(n, NATRA_LOG_ERROR, "%s", last_error(n));
	return finish(n, r);
}

int natra_open(struct natra **ret_n, const struct natra_open_opts *opts)
{
	struct natra *n;
	int r;

	if (!ret_n)
		return -EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	r = set_options(n, opts);
	if (r < 0)
		natra_close(n);
	else
		*ret_n = n;
	return r;
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
