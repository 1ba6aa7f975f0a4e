/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a pinned record of any size and ABI, which another build, another
 * program or chance wrote: there is no crash, and only a valid record is
 * accepted. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "state/pin.h"
#include "api/internal.h"

/* Uses a record in every way that does not ask the kernel. */
static void use(const struct pin_gen *gen)
{
	struct natra_info info;

	info_of(gen, &info);
	require(strnlen(info.id, sizeof(info.id)) < sizeof(info.id));
	require(strnlen(info.label, sizeof(info.label)) < sizeof(info.label));
	require(natra_attach_mode_name(info.mode) != NULL);
	require(strnlen(info.ifname, sizeof(info.ifname)) <
		sizeof(info.ifname));
	require(strnlen(info.host_ifname, sizeof(info.host_ifname)) <
		sizeof(info.host_ifname));
	require(natra_attach_mode_name(info.policy.attach_mode) != NULL);
	require(natra_edt_pacing_name(info.policy.edt_pacing) != NULL);
	require(info.other_abi || info.effective.pace_limit_ns != 0);
	for (int i = 0; i < LEG_MAX; i++)
		(void)policy_limits(&info.policy, (enum leg)i,
				    record_is_paced(&gen->record, (enum leg)i));
	(void)record_has_hook(&gen->record, true, RECORD_HOOK_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pin_gen gen = PIN_GEN_INIT;
	struct record untouched;
	/* The value is in its own memory, so that ASan sees a read past the
	 * end. */
	void *value = malloc(size ? size : 1);

	if (!value)
		return 0;
	if (size)
		memcpy(value, data, size);
	memset(&gen.record, 0x5a, sizeof(gen.record));
	untouched = gen.record;
	gen.kind = record_read(value, size, &gen.record);
	free(value);
	if (gen.kind == RECORD_NONE)
		require(memcmp(&gen.record, &untouched, sizeof(untouched)) ==
			0);
	else
		use(&gen);
	/* In a foreign record no slot is believed. */
	require(gen.kind != RECORD_FOREIGN || gen.record.slot[0].engine == 0);
	return 0;
}
