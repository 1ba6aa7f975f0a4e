/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/journal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bpf_call.h"

int journal_write(struct natra *n, struct pin_gen *gen, enum journal_step step)
{
	static const char *const names[JOURNAL_STEP_MAX] = {
		[JOURNAL_BEGUN] = "a new generation",
		[JOURNAL_FQ] = "fq",
		[JOURNAL_SLOT] = "a slot",
		[JOURNAL_PROGRAMS] = "the programs",
		[JOURNAL_COMPLETE] = "the finished attachment",
		[JOURNAL_LIMITS] = "the new limits",
		[JOURNAL_GSO] = "gso_max_segs",
	};
	const uint32_t zero = 0;
	int r;

	if (step == JOURNAL_COMPLETE)
		gen->record.complete = 1;
	r = bpf_map_update_elem(gen->record_fd, &zero, &gen->record, BPF_EXIST);
	return r < 0 ? fail_errno(n, r, "record %s", names[step]) : 0;
}

int journal_begin(struct natra *n, const struct pin_dir *dir,
		  unsigned int after, const struct record *record,
		  struct pin_gen *ret_gen)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r;

	gen.record = *record;
	gen.kind = RECORD_OWN;
	gen.number = after + 1;
	if (snprintf(gen.path, sizeof(gen.path), "%s/%u", dir->path,
		     gen.number) >= (int)sizeof(gen.path))
		return refuse(n, -ENAMETOOLONG, "'%s' is too long", dir->path);
	r = bpf_call_make_array("natra_meta", sizeof(struct record));
	if (r < 0)
		return fail_errno(n, r, "create the map of the record");
	gen.record_fd = r;
	r = journal_write(n, &gen, JOURNAL_BEGUN);
	if (r < 0)
		return r;
	r = pin_dir_make(n, gen.path);
	if (r < 0)
		return r;
	r = pin_object(n, gen.path, PIN_RECORD_NAME, gen.record_fd);
	if (r < 0) {
		(void)rmdir(gen.path);
		return r;
	}
	*ret_gen = gen;
	gen.record_fd = -1;
	return 0;
}
