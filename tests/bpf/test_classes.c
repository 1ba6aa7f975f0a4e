/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check in which class a packet is, by the counters of the slots, and that its
 * event says so. */
#include "cm.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "progrun.h"
#include "state/ring.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"

#define EF 46U
#define EF_CE                                                                  \
	(EF << 2 | 3) /* with the bits of ECN, which are no part of a DSCP */

/* A packet, and the version of its addresses; 0: it hides them. Its TOS goes between these
 * layers. */
struct kind {
	int version;
	const char *front, *behind;
};

static const struct kind kinds[] = {
	{4, "eth ip4", "tcp pad:1514"},
	{6, "eth ip6", "tcp pad:1514"},
	{4, "eth ip4", "echo:1:8"},
	{4, "eth ip4:o10", "tcp pad:1514"},
	{4, "eth ip4:f0x2000", "udp"},
	{4, "eth ip4:f100:o10", ""},
	{4, "eth vlan ip4", "tcp"},
	{4, "eth svlan vlan:11 ip4", "udp"},
	{6, "eth vlan ip6", "udp"},
	{6, "eth ip6", "ext:0:8 ext:43:24 ext:51:24 ext:60:16 tcp pad:1514"},
	{6, "eth ip6", "frag:1:7 udp"},
	{6, "eth ip6", "frag:1448:7"},
	{0, NULL, "eth type:0x8863"}, /* PPPoE */
};

static struct packet build(const struct kind *kind, uint8_t tos)
{
	return kind->version ? packet_of("%s:t%u %s pad:200", kind->front, tos,
					 kind->behind)
			     : packet_of("%s pad:100", kind->behind);
}

/* The addresses of packet.h are 192.0.2.1 and 2001:db8::1, and 198.51.100.1 and
 * 2001:db8::81. */
static const char *const from[] = {"192.0.2.0/24", "2001:db8::/121"};
static const char *const to[] = {"198.51.100.1/32", "2001:db8::80/121"};
static const char *const all[] = {"0.0.0.0/0", "::/0"};
static const char *const nobody[] = {"203.0.113.0/24", "192.0.2.0/32",
				     "2001:db8::2/127"};

struct lists {
	struct natra_class list[4];
	size_t len;
	const char *const *shaped, *const *unshaped;
	size_t subnets_len; /* of one of these two */
};

static void add(struct lists *lists, const char *name,
		const char *const *subnets, size_t len, uint64_t dscps)
{
	lists->list[lists->len++] = (struct natra_class){
		.sz = sizeof(struct natra_class),
		.name = name,
		.ingress_rate_bits_per_sec = 8000000,
		.dscps = dscps,
		.subnets = subnets,
		.subnets_len = len,
	};
}

static struct subnets read_lists(const struct lists *lists)
{
	struct natra_policy policy = NATRA_INIT(policy);
	struct subnets subnets = {0};

	policy.classes = lists->list;
	policy.classes_len = lists->len;
	policy.shaped_subnets = lists->shaped;
	policy.shaped_subnets_len = lists->shaped ? lists->subnets_len : 0;
	policy.unshaped_subnets = lists->unshaped;
	policy.unshaped_subnets_len = lists->unshaped ? lists->subnets_len : 0;
	assert_int_equal(subnets_read(&policy, &subnets), 0);
	return subnets;
}

static void load(struct progrun *run, enum stub_kind kind, bool peer_is_to,
		 const struct lists *lists)
{
	cleanup_subnets struct subnets subnets = read_lists(lists);
	const struct program_options options = {
		.kind = kind,
		.has_l2 = true,
	};
	struct natra_limits limits = th_limits();

	limits.rate = policy_rate(8000000, 100000000);
	th_load_peers(run, &options, &(struct th_peers){&subnets, peer_is_to},
		      &limits);
}

/* Fails unless the packet counts so in this class, at its length. */
static void counts(struct progrun *run, const struct kind *kind, uint8_t tos,
		   uint32_t class, enum natra_counter counter)
{
	const struct packet p = build(kind, tos);
	struct th_result result;

	th_look_at_class(run, class);
	th_send(run, &p, NULL, &result);
	if (result.verdict != TC_ACT_UNSPEC || result.bytes != p.len ||
	    result.counter != counter)
		fail_msg("%s: verdict %d, %u bytes, counter %d", kind->behind,
			 result.verdict, (unsigned int)result.bytes,
			 result.counter);
}

static void is_in(struct progrun *run, const struct kind *kind, uint8_t tos,
		  uint32_t class)
{
	counts(run, kind, tos, class, NATRA_COUNT_ADMITTED);
}

static void is_exempt(struct progrun *run, const struct kind *kind, uint8_t tos)
{
	counts(run, kind, tos, 0, NATRA_COUNT_UNLIMITED);
}

TH_TEST(peer_decides_and_not_the_pod)
{
	struct lists lists = {.len = 0};

	add(&lists, "nobody", nobody, 3, 0);
	add(&lists, "from", from, 2, 0);
	add(&lists, "to", to, 2, 0);
	for (int kind = 0; kind < STUB_KIND_MAX; kind++) {
		for (uint32_t peer_is_to = 0; peer_is_to < 2; peer_is_to++) {
			struct progrun run;

			load(&run, (enum stub_kind)kind, peer_is_to, &lists);
			for (size_t i = 0; i < TH_LEN(kinds); i++)
				is_in(&run, &kinds[i], 0,
				      kinds[i].version ? 2 + peer_is_to : 0);
			th_close(&run);
		}
	}
}

TH_TEST(longest_prefix_decides)
{
	struct lists lists = {.len = 0};
	struct progrun run;

	add(&lists, "from", from, 2, 0);
	add(&lists, "all4", all, 1, 0);
	add(&lists, "nobody", nobody, 3, 0);
	load(&run, STUB_RX, false, &lists);
	for (size_t i = 0; i < TH_LEN(kinds); i++)
		is_in(&run, &kinds[i], 0, kinds[i].version ? 1 : 0);
	th_close(&run);
	load(&run, STUB_TX, true, &lists);
	for (size_t i = 0; i < TH_LEN(kinds); i++)
		is_in(&run, &kinds[i], 0, kinds[i].version == 4 ? 2 : 0);
	th_close(&run);
}

/* A packet whose peer is in no subnet is in the class of its DSCP, whatever its ECN
 * bits. */
TH_TEST(subnets_decide_before_dscps)
{
	struct lists lists = {.len = 0};
	struct progrun run;

	add(&lists, "v4", from, 1, UINT64_C(1) << 0);
	add(&lists, "voice", NULL, 0, UINT64_C(1) << EF | UINT64_C(1) << 63);
	load(&run, STUB_EDT, false, &lists);
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		const int version = kinds[i].version;
		const uint32_t marked = version == 4 ? 1 : version ? 2 : 0;

		is_in(&run, &kinds[i], EF_CE, marked);
		is_in(&run, &kinds[i], 63 << 2, marked);
		is_in(&run, &kinds[i], 0, version ? 1 : 0);
		is_in(&run, &kinds[i], 1 << 2, version == 4 ? 1 : 0);
	}
	th_close(&run);
}

/* The longest prefix decides between classes and subnets, too. */
TH_TEST(unshaped_subnets_beside_classes)
{
	struct lists lists = {.unshaped = from, .subnets_len = 2};
	struct progrun run;

	add(&lists, "all", all, 2, UINT64_C(1) << EF);
	load(&run, STUB_RX, false, &lists);
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		if (kinds[i].version)
			is_exempt(&run, &kinds[i], EF_CE);
		else
			is_in(&run, &kinds[i], EF_CE, 0);
	}
	th_close(&run);
	load(&run, STUB_TX, true, &lists);
	for (size_t i = 0; i < TH_LEN(kinds); i++)
		is_in(&run, &kinds[i], 0, kinds[i].version ? 1 : 0);
	th_close(&run);
}

/* A list has one end of the packets: the peer, which decides, or the pod, which does not. */
TH_TEST(lists_of_subnets_have_the_peer)
{
	for (int i = 0; i < STUB_KIND_MAX * 8; i++) {
		const bool peer_is_to = i & 1, list_is_to = i & 2;
		const bool is_shaped = i & 4;
		const char *const *list = list_is_to ? to : from;
		const struct lists lists = {
			.shaped = is_shaped ? list : NULL,
			.unshaped = is_shaped ? NULL : list,
			.subnets_len = 2,
		};
		const bool exempt = (peer_is_to == list_is_to) != is_shaped;
		struct progrun run;

		load(&run, (enum stub_kind)(i / 8), peer_is_to, &lists);
		for (size_t k = 0; k < TH_LEN(kinds); k++) {
			if (exempt && kinds[k].version)
				is_exempt(&run, &kinds[k], 0);
			else
				is_in(&run, &kinds[k], 0, 0);
		}
		th_close(&run);
	}
}

/* The packet before the one whose end is missing has a known peer, which must not be taken
 * for its own. It has a tag because Linux 6.18 runs no test on an untagged frame whose IP
 * header is cut. */
TH_TEST(what_is_cut_in_its_addresses_is_limited)
{
	const struct kind vlan6 = {6, "eth vlan ip6", ""};
	const struct lists lists = {.unshaped = all, .subnets_len = 2};
	struct th_result result;
	struct progrun run;
	struct packet p;

	load(&run, STUB_TX, true, &lists);
	is_exempt(&run, &kinds[0], 0);
	p = build(&vlan6, 0);
	p.len = p.l3 + 30;
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_ADMITTED);
	th_close(&run);
}

/* Nothing in the state but the counters changes. */
TH_TEST(exempt_packets_are_neither_classified_nor_charged)
{
	const struct lists lists = {.unshaped = from, .subnets_len = 1};
	struct natra_state read;
	const unsigned char *value = (const unsigned char *)&read;
	struct progrun run;

	load(&run, STUB_RX, false, &lists);
	for (int i = 0; i < 300; i++)
		is_exempt(&run, &kinds[0], 0);
	read = th_read_state(&run);
	for (size_t i = 0; i < sizeof(read); i++) {
		if (value[i] && (i < offsetof(struct natra_state, stripes) ||
				 i >= offsetof(struct natra_state, sketch)))
			fail_msg("byte %zu was written", i);
	}
	th_close(&run);
}

/* The bucket is in debt for an hour, so a packet that is limited is dropped. */
TH_TEST(exempt_packets_get_no_departure_time)
{
	const struct lists lists = {.unshaped = to, .subnets_len = 1};
	struct th_result result;
	struct progrun run;
	struct packet p;

	load(&run, STUB_EDT, true, &lists);
	th_set_tat(&run, th_now() + 3600 * TH_SECOND);
	p = build(&kinds[0], 0);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_UNLIMITED);
	assert_int_equal(result.tstamp, 0);
	p = build(&kinds[1], 0);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_DROPPED_HORIZON);
	th_close(&run);
}

/* The policy limits shaped peers whatever their DSCP. Of the others those are limited that
 * are in a class, or hide their addresses. */
TH_TEST(shaped_subnets_beside_classes)
{
	struct lists lists = {.shaped = from, .subnets_len = 1};
	struct progrun run;

	add(&lists, "nobody", nobody, 3, 0);
	add(&lists, "voice", NULL, 0, UINT64_C(1) << EF);
	load(&run, STUB_EDT, false, &lists);
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		const int version = kinds[i].version;

		is_in(&run, &kinds[i], EF_CE, version == 6 ? 2 : 0);
		if (version == 6)
			is_exempt(&run, &kinds[i], 0);
		else
			is_in(&run, &kinds[i], 0, 0);
	}
	th_close(&run);
}

TH_TEST(as_many_prefixes_as_there_may_be)
{
	static char texts[NATRA_SUBNETS_MAX - 2][24];
	static const char *blocks[NATRA_SUBNETS_MAX - 2];
	struct lists lists = {.len = 0};
	struct progrun run;

	for (unsigned int i = 0; i < NATRA_SUBNETS_MAX - 2; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "10.%u.%u.0/24",
			       i / 256, i % 256);
		blocks[i] = texts[i];
	}
	add(&lists, "many", blocks, NATRA_SUBNETS_MAX - 2, 0);
	add(&lists, "from", from, 2, 0);
	load(&run, STUB_TX, false, &lists);
	is_in(&run, &kinds[0], 0, 2);
	is_in(&run, &kinds[1], 0, 2);
	th_close(&run);
}

static void change(struct progrun *run, const struct lists *before,
		   const struct lists *after)
{
	cleanup_subnets struct subnets a = read_lists(before);
	cleanup_subnets struct subnets b = read_lists(after);

	if (subnets_map_change(run->n, run->trie_fd, &a, &b) < 0)
		fail_msg("%s", natra_error(run->n));
}

/* Returns the entries of the map that programs look in. */
static unsigned int entries(const struct progrun *run)
{
	struct natra_subnet key, next;
	unsigned int count = 0;

	while (bpf_map_get_next_key(run->trie_fd, count ? &key : NULL, &next) ==
	       0) {
		key = next;
		count++;
	}
	return count;
}

TH_TEST(lists_change_while_programs_run)
{
	struct lists one = {.len = 0}, two = {.len = 0}, none = {.len = 0};
	struct progrun run;

	add(&one, "a", from, 2, UINT64_C(1) << EF);
	add(&one, "b", to, 2, 0);
	add(&two, "a", to, 2, 0);
	add(&two, "b", from, 1, UINT64_C(1) << EF);
	add(&none, "a", NULL, 0, 0);
	add(&none, "b", NULL, 0, 0);
	load(&run, STUB_TX, false, &one);
	is_in(&run, &kinds[0], 0, 1);
	assert_int_equal(entries(&run), 5);
	change(&run, &one, &two);
	is_in(&run, &kinds[0], 0, 2);
	is_in(&run, &kinds[1], 0, 0);
	is_in(&run, &kinds[1], EF_CE, 2);
	assert_int_equal(entries(&run), 4);
	change(&run, &two, &none);
	is_in(&run, &kinds[0], EF_CE, 0);
	assert_int_equal(entries(&run), 0);
	change(&run, &none, &one);
	is_in(&run, &kinds[1], EF_CE, 1);
	assert_int_equal(entries(&run), 5);
	th_close(&run);
}

/* Changes the lists to and fro in a process of its own. */
static pid_t keep_changing(struct progrun *run, const struct lists *one,
			   const struct lists *two)
{
	cleanup_subnets struct subnets a = read_lists(one);
	cleanup_subnets struct subnets b = read_lists(two);
	pid_t pid = fork();
	int r = 0;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	for (int i = 0; i < 20 && r == 0; i++) {
		r = subnets_map_change(run->n, run->trie_fd, &a, &b);
		if (r == 0)
			r = subnets_map_change(run->n, run->trie_fd, &b, &a);
	}
	_exit(r < 0);
}

/* An address that has a class before and after has one at each moment. */
TH_TEST(no_peer_loses_its_class_meanwhile)
{
	enum { BLOCKS = 400 };
	static char texts[2 * BLOCKS][24];
	static const char *blocks[2][BLOCKS + 1] = {{"10.1.0.0/16"},
						    {"10.1.1.0/24"}};
	const struct natra_subnet address = {
		.prefix_bits = NATRA_SUBNET_VERSION_BITS + 32,
		.version = 4,
		.addr = {htonl(0x0a010101)},
	};
	struct lists one = {.len = 0}, two = {.len = 0};
	int status = -1, missed = 0;
	struct progrun run;
	pid_t pid;

	for (unsigned int i = 0; i < 2 * BLOCKS; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "10.2.%u.%u/32",
			       i / 256, i % 256);
		blocks[i / BLOCKS][1 + i % BLOCKS] = texts[i];
	}
	add(&one, "a", blocks[0], BLOCKS + 1, 0);
	add(&two, "a", blocks[1], BLOCKS + 1, 0);
	load(&run, STUB_TX, false, &one);
	pid = keep_changing(&run, &one, &two);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		uint8_t number;

		if (bpf_map_lookup_elem(run.trie_fd, &address, &number) < 0)
			missed++;
	}
	assert_int_equal(status, 0);
	assert_int_equal(missed, 0);
	th_close(&run);
}

/* What a class takes, others do not pay for. */
TH_TEST(classes_have_buckets_of_their_own)
{
	struct lists lists = {.len = 0};
	struct progrun run;
	struct th_result result;
	struct packet p;

	add(&lists, "v4", all, 1, 0);
	load(&run, STUB_EDT, true, &lists);
	th_look_at_class(&run, 1);
	th_set_tat(&run, th_now() + TH_SECOND);
	p = build(&kinds[0], 0);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_PACED);
	assert_true(result.tstamp > result.after_ns);
	is_in(&run, &kinds[1], 0, 0);
	th_close(&run);
}

/* Each packet is dropped, which an event reports for its class. */
TH_TEST(events_have_the_class)
{
	static const struct {
		const struct kind *kind;
		uint8_t tos;
	} sent[] = {{&kinds[1], 0}, {&kinds[0], 0}, {&kinds[1], EF_CE}};
	struct lists lists = {.len = 0};
	struct natra_event_entry event;
	struct th_result result;
	struct ring_view view;
	struct progrun run;
	struct packet p;
	uint64_t lost = 0;
	void *map;

	add(&lists, "v4", from, 1, 0);
	add(&lists, "voice", NULL, 0, UINT64_C(1) << EF);
	load(&run, STUB_RX, false, &lists);
	map = mmap(NULL, sizeof(*view.map), PROT_READ, MAP_SHARED, run.ring_fd,
		   0);
	assert_true(map != MAP_FAILED);
	view = (struct ring_view){.map = map};
	for (uint32_t number = 0; number < TH_LEN(sent); number++) {
		th_look_at_class(&run, number);
		th_set_tat(&run, th_now() + 3600 * TH_SECOND);
		p = build(sent[number].kind, sent[number].tos);
		th_send(&run, &p, NULL, &result);
		assert_int_equal(result.counter, NATRA_COUNT_DROPPED_RATE);
		assert_int_equal(ring_read(&view, &event, &lost), 1);
		assert_int_equal(event.class_number, number);
		assert_int_equal(event.reason, NATRA_REPORT_DROPPED_RATE);
		assert_int_equal(event.owner, 1);
	}
	ring_close(&view);
	th_close(&run);
}

TH_BPF_MAIN(NULL, NULL)
