/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures what a packet costs, by BPF_PROG_TEST_RUN with a TCP packet of 1514
 * bytes, and what the worst one costs that a stranger can send: the time above that of an empty program, as a multiple of the time above it
 * that the reference program (reference.bpf.c) takes for a packet with the same fate.
 * Times alone, or their ratio to the empty program, would measure the machine: the
 * same program has taken twice the time an hour later, and the empty one takes 10 ns
 * on one CPU and 46 on another, while natra takes 42 and 49 more than it.
 *
 * Each block of a program is run right after one of the empty program and one of
 * the reference, so that noise hits all three, and the median of the rounds' ratios
 * must not be over the target. If one is, all are measured again, up to twice: on
 * a busy machine other processes take the caches. Where the CPU lets the kernel count instructions,
 * those above the empty program are shown beside the time.
 *
 * With --least the least of the rounds stands for their median: with many short rounds
 * it is the same within a nanosecond or two, whatever else the machine does.
 *
 * With --beside N, each of natra's programs is run by N other processes meanwhile, which
 * shows what CPUs pay for the words that they share: counters, buckets and groups.
 *
 * usage: per_packet [--repeat N] [--rounds N] [--least] [--beside N]
 */
#include "cm.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "per_packet_maps.h"
#include "progrun.h"
#include "reference.h"
#include "reference.skel.h"
#include "util/cleanup.h"

/*
 * The targets are multiples of the reference's time. On an EPYC natra takes
 * 0.8, 1.1, 1.75 and 1.5. Reading the clock takes a quarter of the reference's
 * time there, and natra reads the exact clock only for packets near the rate:
 * if the clock cost nothing, the first two would be 1.0 and 1.3. On a newer Xeon it takes 0.8,
 * 1.3, 2.4 and 2.0: the reference has no atomic instructions, which cost more there. Another CPU may
 * take half as much again. The worst takes 7 to 11, 13 to 14 on the Xeon, and took 17 by a call for each header.
 */
#define MOUSE_TARGET   1.5
#define HEAVY_TARGET   2.0
#define PACED_TARGET   3.6
#define DROPPED_TARGET 3.0
#define WORST_TARGET   16.0

#define ROUNDS_MAX 99
#define TRIES      3
/* A cell of the sketch is full after 699050 packets and then no longer written,
 * so a chunk is shorter than that. */
#define CHUNK      500000

/* The reference program passes, delays or drops a packet. */
enum fate { PASSED, PACED, DROPPED, FATES };

static const char *const fate_names[FATES] = {
	[PASSED] = "reference",
	[PACED] = "reference paced",
	[DROPPED] = "reference dropped",
};

/* What the packet's source is. The values are those of enum subnets_kind, as far as that
 * goes. */
enum peer {
	SHAPED = SUBNETS_SHAPED,
	EXEMPT = SUBNETS_UNSHAPED,
	IN_CLASS,
};

struct subject {
	const char *name;
	enum stub_kind kind;
	enum natra_counter counter; /* the one that counts its packets */
	enum fate fate;             /* the fate of the reference's packets */
	double target;              /* 0 if it is only printed */
	uint32_t peer;              /* enum peer; 0: peers are alike */
	bool gso;
	bool measures_connects;
	uint32_t groups; /* how many levels judge its packets */
	bool crafted;    /* the packet that takes longest to read */
	bool gates;
	struct progrun run;
	double ns[ROUNDS_MAX];
	double ratio[ROUNDS_MAX];
	double instructions[ROUNDS_MAX]; /* above the empty program */
};

static struct subject subjects[] = {
#define SUBJECT(name_, kind_, counter_, fate_, target_, peer_, gso_)           \
	{                                                                      \
		.name = name_, .kind = STUB_##kind_,                           \
		.counter = NATRA_COUNT_##counter_, .fate = fate_,              \
		.target = target_, .peer = peer_, .gso = gso_                  \
	}
	SUBJECT("rx mouse", RX, MICE, PASSED, MOUSE_TARGET, 0, false),
	SUBJECT("rx heavy", RX, ADMITTED, PASSED, HEAVY_TARGET, 0, false),
	SUBJECT("rx dropped", RX, DROPPED_RATE, DROPPED, DROPPED_TARGET, 0,
		false),
	SUBJECT("rx gso", RX, MICE, PASSED, MOUSE_TARGET, 0, true),
	SUBJECT("tx mouse", TX, MICE, PASSED, MOUSE_TARGET, 0, false),
	SUBJECT("tx heavy", TX, ADMITTED, PASSED, HEAVY_TARGET, 0, false),
	SUBJECT("tx dropped", TX, DROPPED_RATE, DROPPED, DROPPED_TARGET, 0,
		false),
	SUBJECT("edt mouse", EDT, MICE, PASSED, MOUSE_TARGET, 0, false),
	SUBJECT("edt heavy", EDT, ADMITTED, PASSED, HEAVY_TARGET, 0, false),
	SUBJECT("edt paced", EDT, PACED, PACED, PACED_TARGET, 0, false),
	SUBJECT("edt dropped", EDT, DROPPED_HORIZON, DROPPED, DROPPED_TARGET, 0,
		false),
	/* These rows have no target because the reference has no subnets. */
	SUBJECT("rx shaped", RX, MICE, PASSED, 0, SHAPED, false),
	SUBJECT("rx exempt", RX, UNLIMITED, PASSED, 0, EXEMPT, false),
	SUBJECT("rx class", RX, MICE, PASSED, 0, IN_CLASS, false),
	/* The same with connections measured, which this packet is none of. */
	{.name = "rx mouse sli",
	 .kind = STUB_RX,
	 .counter = NATRA_COUNT_MICE,
	 .fate = PASSED,
	 .measures_connects = true},
	{.name = "tx mouse sli",
	 .kind = STUB_TX,
	 .counter = NATRA_COUNT_MICE,
	 .fate = PASSED,
	 .measures_connects = true},
	/* The same for a member of a group, and of one that has a parent. */
	{.name = "rx mouse group",
	 .kind = STUB_RX,
	 .counter = NATRA_COUNT_MICE,
	 .fate = PASSED,
	 .groups = 1},
	{.name = "rx heavy group",
	 .kind = STUB_RX,
	 .counter = NATRA_COUNT_ADMITTED,
	 .fate = PASSED,
	 .groups = 1},
	{.name = "rx heavy parent",
	 .kind = STUB_RX,
	 .counter = NATRA_COUNT_ADMITTED,
	 .fate = PASSED,
	 .groups = 2},
/* All that a stranger can make the programs do with one packet, and the same
	 * without each of its parts. */
#define WORST(name_, target_, crafted_, gates_, sli, groups_)                  \
	{                                                                      \
		.name = name_, .kind = STUB_RX,                                \
		.counter = NATRA_COUNT_ADMITTED, .fate = PASSED,               \
		.target = target_, .measures_connects = sli,                   \
		.groups = groups_, .crafted = crafted_, .gates = gates_        \
	}
	WORST("rx worst", WORST_TARGET, true, true, true, 2),
	WORST("rx worst plain", 0, false, true, true, 2),
	WORST("rx worst ungated", 0, true, false, true, 2),
	WORST("rx worst no sli", 0, true, true, false, 2),
	WORST("rx worst alone", 0, true, true, true, 0),
	WORST("rx crafted", 0, true, false, false, 0),
};

static double empty_ns[ROUNDS_MAX * TH_LEN(subjects)];
static double reference_ns[FATES][ROUNDS_MAX * TH_LEN(subjects)];
static double reference_instructions[FATES][ROUNDS_MAX * TH_LEN(subjects)];
static size_t reference_blocks[FATES];
static unsigned int repeat = 1000000;
static unsigned int rounds = 9;
static bool least;
static unsigned int beside;
static struct packet packet, crafted;
static int empty_fd;
static struct reference *reference;
static int instructions_fd = -1;

/* The cost of a packet in one program is the average over a block. */
struct cost {
	double ns;
	double instructions; /* 0 if the CPU cannot count them */
};

static void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Returns the least with --least. Sorts the values. */
static double median(double *values, size_t len)
{
	qsort(values, len, sizeof(*values), compare);
	return values[least ? 0 : len / 2];
}

/* An emulated CPU has other ratios than any real one. */
static bool is_emulated(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, "QEMU") != NULL;
	(void)fclose(f);
	return found;
}

static void load_empty(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = TC_ACT_UNSPEC},
		{.code = BPF_JMP | BPF_EXIT},
	};

	empty_fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "th_empty", "GPL",
				 insns, TH_LEN(insns), NULL);
	if (empty_fd < 0)
		die("empty program", -empty_fd);
}

/* Counts the instructions that this thread executes in the kernel, if the CPU
 * can count them. */
static void open_instructions(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_user = 1,
		.exclude_hv = 1,
	};

	instructions_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
				       PERF_FLAG_FD_CLOEXEC);
	if (instructions_fd < 0)
		printf("instructions are not counted: perf_event_open: %s\n",
		       strerror(errno));
}

static uint64_t read_instructions(void)
{
	uint64_t count = 0;

	if (instructions_fd >= 0 &&
	    read(instructions_fd, &count, sizeof(count)) != sizeof(count))
		die("reading the count of instructions", errno);
	return count;
}

static void load_reference(void)
{
	reference = reference__open_and_load();
	if (!reference)
		die("reference program", errno);
}

/* Sets the reference's limit so that all packets of the next block have this
 * fate. */
static void set_fate(enum fate fate)
{
	const struct reference_key key = {.egress = 1};
	const struct reference_limit limit = {
		/* For PACED and DROPPED the rate is so low that the clock does
		 * not catch up with the departure times during a block. */
		.bytes_per_second = fate == PASSED ? UINT64_MAX : 12500000,
		.last_ns = fate == PASSED ? 0 : th_now() + TH_SECOND,
		.horizon_ns = fate == DROPPED ? TH_SECOND / 2 : UINT64_MAX,
	};
	int r = bpf_map__update_elem(reference->maps.limits, &key, sizeof(key),
				     &limit, sizeof(limit), BPF_ANY);

	if (r < 0)
		die("limit of the reference program", -r);
}

static void load(struct subject *s)
{
	struct subnets subnets = {0};
	const struct th_peers peers = {&subnets, s->kind == STUB_EDT};
	const struct program_options options = {
		.kind = s->kind,
		.has_l2 = true,
		.measures_connects = s->measures_connects,
		.has_groups = s->groups > 0,
		.groups_fd = s->groups ? make_groups(s->groups) : 0,
	};
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	if (s->counter == NATRA_COUNT_MICE) {
		/* Most mice are under the lower threshold. */
		limits.enter_units = UINT32_MAX;
		limits.leave_units = UINT32_MAX;
	} else {
		limits.enter_units = 1;
		limits.leave_units = 1;
	}
	if (s->counter == NATRA_COUNT_DROPPED_HORIZON)
		limits.max_delay_ns = TH_SECOND / 2;
	else if (s->counter == NATRA_COUNT_PACED)
		limits.max_delay_ns = INT64_MAX;
	else if (s->counter == NATRA_COUNT_ADMITTED)
		/* The rate is 100 Gbit/s, whose default burst a chunk fits
		 * in. */
		limits.rate = policy_rate(100000000000, 6250000000);
	limits.ramp_mult = UINT64_MAX / limits.rate.burst_ns;
	if (s->groups && options.groups_fd < 0)
		die("map of groups", -options.groups_fd);
	if (s->gates) {
		limits.has_gates = true;
		limits.packets = policy_rate(8000000000, 8000000000);
		limits.connections = limits.packets;
	}
	if (s->groups)
		limits.member = policy_part(1, 1000000000);
	policy_join(&limits.member, 1, false);
	if (s->peer)
		fill_subnets(&subnets);
	if (s->peer == IN_CLASS)
		fill_classes(&subnets);
	else
		subnets.kind = (enum subnets_kind)s->peer;
	if (th_start(&s->run, &options, &peers, &limits) < 0) {
		fprintf(stderr, "%s: %s\n", s->name, natra_error(s->run.n));
		exit(1);
	}
	th_look_at_class(&s->run, (uint32_t)subnets.classes_len);
}

static const struct packet *packet_for(const struct subject *s)
{
	return s->crafted ? &crafted : &packet;
}

/* Measures the time here, because the kernel reports it in whole ns. */
static struct cost measure(int prog_fd, const struct packet *p, bool gso,
			   unsigned int packets)
{
	struct __sk_buff context = {
		.gso_segs = 3, .gso_size = 500, .wire_len = 1514};
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts),
		.data_in = p->data,
		.data_size_in = (uint32_t)p->len,
		.ctx_in = gso ? &context : NULL,
		.ctx_size_in = gso ? sizeof(context) : 0,
		.repeat = (int)packets,
	};
	uint64_t instructions = read_instructions();
	uint64_t begin = th_now();
	int r = bpf_prog_test_run_opts(prog_fd, &opts);
	uint64_t end = th_now();

	if (r < 0)
		die("test run", -r);
	return (struct cost){
		.ns = (double)(end - begin) / packets,
		.instructions =
			(double)(read_instructions() - instructions) / packets,
	};
}

/* Returns a TAT so far behind or ahead of the clock that it stays so during a
 * chunk. */
static uint64_t tat_of(const struct subject *s)
{
	return s->fate == PASSED ? th_now() - TH_SECOND / 2
				 : th_now() + TH_SECOND;
}

static struct cost measure_in_chunks(struct subject *s)
{
	/* A block is no longer than those of short packets, or it would be
	 * interrupted more often than that of the reference. */
	const unsigned int packets =
		s->crafted || s->gates ? repeat / 8 + 1 : repeat;
	struct cost sum = {0}, cost;

	for (unsigned int done = 0; done < packets;) {
		unsigned int chunk =
			packets - done < CHUNK ? packets - done : CHUNK;

		th_clear_sketch(&s->run);
		th_set_tat(&s->run, tat_of(s));
		cost = measure(s->run.stub.prog_fd, packet_for(s), s->gso,
			       chunk);
		sum.ns += cost.ns * chunk;
		sum.instructions += cost.instructions * chunk;
		done += chunk;
	}
	sum.ns /= packets;
	sum.instructions /= packets;
	return sum;
}

/* Starts a process that runs the program until it is killed. */
static pid_t start_beside(const struct subject *s)
{
	const pid_t pid = fork();

	if (pid < 0)
		die("fork", errno);
	if (pid == 0) {
		for (;;)
			(void)measure(s->run.stub.prog_fd, packet_for(s),
				      s->gso, 10000);
	}
	return pid;
}

static struct cost measure_beside(struct subject *s)
{
	pid_t pids[16];
	struct cost cost;

	for (unsigned int i = 0; i < beside; i++)
		pids[i] = start_beside(s);
	cost = measure_in_chunks(s);
	for (unsigned int i = 0; i < beside; i++) {
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
	return cost;
}

/* Runs the empty program, the reference and the subject, one after the
 * other. */
static void measure_round(struct subject *s, unsigned int round)
{
	size_t block = reference_blocks[s->fate]++;
	struct cost empty = measure(empty_fd, &packet, false, repeat);
	struct cost ours, theirs;

	set_fate(s->fate);
	theirs = measure(bpf_program__fd(reference->progs.reference), &packet,
			 false, repeat);
	ours = measure_beside(s);
	empty_ns[round * TH_LEN(subjects) + (size_t)(s - subjects)] = empty.ns;
	reference_ns[s->fate][block] = theirs.ns;
	reference_instructions[s->fate][block] =
		theirs.instructions - empty.instructions;
	s->ns[round] = ours.ns;
	s->ratio[round] = (ours.ns - empty.ns) / (theirs.ns - empty.ns);
	s->instructions[round] = ours.instructions - empty.instructions;
}

/* Returns whether all packets took the path that the row names. */
static bool all_in_one_counter(struct subject *s)
{
	struct natra_counters c;
	uint64_t sum = 0;

	th_counters(&s->run, &c);
	for (int i = 0; i < NATRA_COUNT_MAX; i++)
		sum += c.count[i].packets;
	/* One packet a round may be admitted before the others have to wait. */
	return c.count[s->counter].packets > 0 &&
	       sum - c.count[s->counter].packets <= TRIES * rounds;
}

/* Prints the time in all, the time above the empty program, and the
 * instructions above it. */
static void print_row(const char *name, double ns, double above_ns,
		      double instructions)
{
	printf("%-17s %6.1f ns  %6.1f above", name, ns, above_ns);
	if (instructions_fd >= 0)
		printf("  %5.0f instructions", instructions);
}

/* Returns the time above the empty program by that of the reference. The least of the
 * rounds' ratios would be that of the round with the most noise. */
static double ratio_of(struct subject *s, double ns, double empty)
{
	double reference_least;

	if (!least)
		return median(s->ratio, rounds);
	reference_least =
		median(reference_ns[s->fate], reference_blocks[s->fate]);
	return (ns - empty) / (reference_least - empty);
}

static int judge_subject(struct subject *s, double empty)
{
	double ns = median(s->ns, rounds);
	double ratio = ratio_of(s, ns, empty);
	bool over = s->target > 0 && ratio > s->target;

	print_row(s->name, ns, ns - empty, median(s->instructions, rounds));
	printf("  %4.2f of '%s'", ratio, fate_names[s->fate]);
	if (s->target > 0)
		printf(", at most %.2f", s->target);
	printf("%s\n", over ? "  OVER THE TARGET" : "");
	if (all_in_one_counter(s))
		return over;
	printf("%s: packets went elsewhere\n", s->name);
	return 1;
}

static int judge(void)
{
	double empty = median(empty_ns, (size_t)rounds * TH_LEN(subjects));
	int r = 0;

	printf("TCP over IPv4, 1514 bytes; %s of %u rounds of %u packets\n",
	       least ? "the least" : "medians", rounds, repeat);
	printf("%-17s %6.1f ns\n", "empty", empty);
	for (int i = 0; i < FATES; i++) {
		double ns = median(reference_ns[i], reference_blocks[i]);

		print_row(
			fate_names[i], ns, ns - empty,
			median(reference_instructions[i], reference_blocks[i]));
		printf("\n");
	}
	for (size_t i = 0; i < TH_LEN(subjects); i++)
		r |= judge_subject(&subjects[i], empty);
	return r;
}

static unsigned int number(const char *text, unsigned int max)
{
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	if (!value || *end || value > max) {
		fprintf(stderr, "'%s': not a number from 1 to %u\n",
			text ? text : "", max);
		exit(2);
	}
	return (unsigned int)value;
}

static void measure_all(void)
{
	memset(reference_blocks, 0, sizeof(reference_blocks));
	for (unsigned int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < TH_LEN(subjects); i++)
			measure_round(&subjects[i], round);
	}
}

int main(int argc, char **argv)
{
	int r;

	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "--least") == 0) {
			least = true;
			i--;
		} else if (strcmp(argv[i], "--repeat") == 0) {
			repeat = number(argv[i + 1], 100000000);
		} else if (strcmp(argv[i], "--rounds") == 0) {
			rounds = number(argv[i + 1], ROUNDS_MAX);
		} else if (strcmp(argv[i], "--beside") == 0) {
			beside = number(argv[i + 1], 16);
		} else {
			fprintf(stderr,
				"usage: %s [--repeat N] [--rounds N] [--least] [--beside N]\n",
				argv[0]);
			return 2;
		}
	}
	th_require_bpf();
	if (is_emulated()) {
		printf("the CPU is emulated: its figures tell nothing\n");
		return TH_SKIP;
	}
	packet_make_tcp4(&packet, 1000, 0, 1514);
	make_crafted(&crafted);
	load_empty();
	load_reference();
	open_instructions();
	for (size_t i = 0; i < TH_LEN(subjects); i++)
		load(&subjects[i]);
	measure_all();
	r = judge();
	for (int i = 1; r && i < TRIES; i++) {
		/* tests/check/tally counts these lines. */
		printf("again: per-packet\n");
		measure_all();
		r = judge();
	}
	return r;
}
