/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/view.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "state/bank.h"
#include "state/pin_dir.h"
#include "state/slot.h"
#include "util/cleanup.h"
#include "../../bpf/natra_flows.h"

#define HEAVY_NS 60000000000ULL

struct view {
	uint64_t engine;
	uint32_t bank;
	struct bank maps;
	const char *states;
	size_t states_size;
	size_t value_size;
};

void views_close(struct views *views)
{
	for (size_t i = 0; i < views->len; i++) {
		struct view *view = &views->list[i];

		(void)munmap((void *)view->states, view->states_size);
		bank_close(&view->maps);
	}
	free(views->list);
	*views = (struct views){0};
}

static int map_states(struct natra *n, struct view *view)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	void *states;
	int r = bpf_obj_get_info_by_fd(view->maps.states_fd, &info, &len);

	if (r < 0)
		return fail_errno(n, r, "ask for the size of the states");
	view->value_size = info.value_size;
	view->states_size = (size_t)info.value_size * info.max_entries;
	states = mmap(NULL, view->states_size, PROT_READ, MAP_SHARED,
		      view->maps.states_fd, 0);
	if (states == MAP_FAILED)
		return fail_errno(n, -errno, "map the states");
	view->states = states;
	return 0;
}

static void close_fd(int *fd)
{
	cleanup_closep(fd);
	*fd = -1;
}

static int open_view(struct natra *n, const struct record_slot *slot,
		     struct view *view)
{
	char path[PIN_PATH_MAX];
	int r;

	*view = (struct view){
		.engine = slot->engine,
		.bank = slot->bank,
		.maps = BANK_INIT,
	};
	pin_dir_bank_path(n, slot->engine, slot->bank, path);
	r = bank_open_slots(n, path, &view->maps);
	if (r == 0)
		r = map_states(n, view);
	if (r < 0) {
		bank_close(&view->maps);
		return r;
	}
	/* Each bank takes two descriptors, so all banks of a node may need more than a
	 * process may open. */
	close_fd(&view->maps.states_fd);
	return 0;
}

/* Finds the bank of a slot, or opens it. Attachments of the same age share
 * banks, so the bank that was opened last is looked at first. */
static int find_view(struct natra *n, struct views *views,
		     const struct record_slot *slot,
		     const struct view **ret_view)
{
	struct view *list;
	int r;

	for (size_t i = views->len; i > 0; i--) {
		const struct view *view = &views->list[i - 1];

		if (view->engine == slot->engine && view->bank == slot->bank) {
			*ret_view = view;
			return 0;
		}
	}
	list = realloc(views->list, (views->len + 1) * sizeof(*list));
	if (!list)
		return fail_errno(n, -ENOMEM, "list the banks");
	views->list = list;
	r = open_view(n, slot, &list[views->len]);
	if (r < 0)
		return r;
	*ret_view = &list[views->len++];
	return 0;
}

static uint32_t count_flows(const struct natra_state *state)
{
	const uint32_t now = slot_flow_now();
	uint32_t count = 0;

	for (int i = 0; i < NATRA_FLOWS; i++) {
		const struct natra_flow_entry *flow = &state->flows[i];

		if (flow->tag &&
		    !natra_flow_is_idle(flow, now, natra_flow_now(HEAVY_NS)))
			count++;
	}
	return count;
}

static void sum_state(const struct natra_state *state,
		      struct view_counters *ret_counters)
{
	ret_counters->counters = slot_sum(state);
	ret_counters->heavy_flows = count_flows(state);
	ret_counters->events_reported = state->events_reported;
	ret_counters->events_suppressed = state->events_suppressed;
	ret_counters->over_ns = state->over.over_ns;
	ret_counters->over_percent = state->over.percent;
	ret_counters->connects = state->connects;
}

/* Finds the state of a slot. */
static int find_state(struct natra *n, struct views *views,
		      const struct record_slot *slot,
		      const struct natra_state **ret_state)
{
	const struct view *view = NULL;
	struct natra_config config;
	int r = slot->engine ? find_view(n, views, slot, &view) : -ENOENT;

	if (!view)
		return r;
	r = bank_read_config(n, &view->maps, slot->index, &config);
	if (r < 0)
		return r;
	if (config.owner != slot->owner)
		return -ENOENT;
	*ret_state =
		(const void *)(view->states + slot->index * view->value_size);
	return 0;
}

int views_read(struct natra *n, struct views *views,
	       const struct record_slot *slot,
	       struct view_counters *ret_counters)
{
	const struct natra_state *state = NULL;
	int r = find_state(n, views, slot, &state);

	if (state)
		sum_state(state, ret_counters);
	return r;
}

int views_read_carried(struct natra *n, struct views *views,
		       const struct record_slot *slot,
		       struct natra_carried *ret_carried)
{
	const struct natra_state *state = NULL;
	int r = find_state(n, views, slot, &state);

	if (state)
		*ret_carried = state->carried;
	return r;
}
