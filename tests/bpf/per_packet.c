/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet costs: each program next to an empty one, by
 * BPF_PROG_TEST_RUN with a TCP packet of 1514 bytes. Each figure is taken right
 * after one of the empty program, so that noise hits both; the median of the
 * ratios must not be over the target.
 *
 * usage: per_packet [--repeat N] [--rounds N]
 */
#include "cm.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progrun.h"
#include "util/cleanup.h"

#define TARGET     3.5
#define ROUNDS_MAX 99
/* A cell would be full after 699050 packets, and is then no longer written. */
#define CHUNK      500000

struct subject {
	const char *name;
	enum program_kind kind;
	enum natra_counter counter; /* where its packets must go */
	enum natra_subnets subnets; /* with the packet's source in it */
	bool has_target, gso;
	struct progrun run;
	double ns[ROUNDS_MAX];
	double ratio[ROUNDS_MAX];
};

static struct subject subjects[] = {
#define SUBJECT(name_, kind_, counter_, has_target_, subnets_, gso_)           \
	{                                                                      \
		.name = name_, .kind = kind_, .counter = counter_,             \
		.subnets = subnets_, .has_target = has_target_, .gso = gso_    \
	}
	SUBJECT("rx mouse", PROGRAM_RX, NATRA_COUNT_MICE, true, 0, false),
	SUBJECT("rx heavy", PROGRAM_RX, NATRA_COUNT_ADMITTED, true, 0, false),
	SUBJECT("rx gso", PROGRAM_RX, NATRA_COUNT_MICE, true, 0, true),
	SUBJECT("tx mouse", PROGRAM_TX, NATRA_COUNT_MICE, true, 0, false),
	SUBJECT("tx heavy", PROGRAM_TX, NATRA_COUNT_ADMITTED, true, 0, false),
	SUBJECT("edt mouse", PROGRAM_EDT, NATRA_COUNT_MICE, true, 0, false),
	SUBJECT("edt heavy", PROGRAM_EDT, NATRA_COUNT_ADMITTED, true, 0, false),
	/* For information: with a stamp on each packet, and with subnets. */
	SUBJECT("edt paced", PROGRAM_EDT, NATRA_COUNT_PACED, false, 0, false),
	SUBJECT("rx shaped", PROGRAM_RX, NATRA_COUNT_MICE, false,
		NATRA_SUBNETS_SHAPED, false),
	SUBJECT("rx exempt", PROGRAM_RX, NATRA_COUNT_UNLIMITED, false,
		NATRA_SUBNETS_UNSHAPED, false),
};

static double empty_ns[ROUNDS_MAX * TH_LEN(subjects)];
static unsigned int repeat = 1000000;
static unsigned int rounds = 9;
static struct packet packet;
static int empty_fd;

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

static double median(double *values, size_t len)
{
	qsort(values, len, sizeof(*values), compare);
	return values[len / 2];
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

/* A thousand blocks, as many as there are about. */
static void fill_subnets(struct subnets *subnets)
{
	static struct natra_subnet list[1000];
	char text[32];

	for (unsigned int i = 0; i < TH_LEN(list); i++) {
		(void)snprintf(text, sizeof(text), "192.%u.%u.0/24", i / 256,
			       i % 256);
		(void)subnet_parse(text, &list[i]);
	}
	subnets->list = list;
	subnets->len = TH_LEN(list);
}

static void load(struct subject *s)
{
	struct subnets subnets = {.kind = s->subnets};
	const struct program_options options = {
		.kind = s->kind,
		.has_l2 = true,
		.sketch_width = NATRA_SKETCH_WIDTH_DEFAULT,
		.subnets = &subnets,
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
	if (s->counter == NATRA_COUNT_PACED)
		limits.delay_limit_ns = UINT64_MAX;
	else
		/* 100 Gbit/s with the default burst, which a chunk fits in. */
		limits.rate = policy_rate(100000000000, 6250000000);
	if (s->subnets)
		fill_subnets(&subnets);
	if (th_start(&s->run, &options, &limits) < 0) {
		fprintf(stderr, "%s: %s\n", s->name, natra_error(s->run.n));
		exit(1);
	}
}

/* Time of one packet in ns, on our clock: the kernel tells whole ns. */
static double measure(int prog_fd, bool gso, unsigned int packets)
{
	struct __sk_buff context = {
		.gso_segs = 3, .gso_size = 500, .wire_len = 1514};
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts),
		.data_in = packet.data,
		.data_size_in = (uint32_t)packet.len,
		.ctx_in = gso ? &context : NULL,
		.ctx_size_in = gso ? sizeof(context) : 0,
		.repeat = (int)packets,
	};
	uint64_t begin = th_now();
	int r = bpf_prog_test_run_opts(prog_fd, &opts);

	if (r < 0)
		die("test run", -r);
	return (double)(th_now() - begin) / packets;
}

static double measure_in_chunks(struct subject *s)
{
	double sum = 0;

	for (unsigned int done = 0; done < repeat;) {
		unsigned int chunk =
			repeat - done < CHUNK ? repeat - done : CHUNK;

		if (s) {
			th_clear_sketch(&s->run);
			th_set_tat(&s->run, s->counter == NATRA_COUNT_PACED
						    ? th_now() + TH_SECOND
						    : th_now() - TH_SECOND / 2);
		}
		sum += chunk * measure(s ? s->run.program.prog_fd : empty_fd,
				       s && s->gso, chunk);
		done += chunk;
	}
	return sum / repeat;
}

/* Whether it measured what it says. */
static bool all_in_one_counter(struct subject *s)
{
	struct natra_counters c;
	uint64_t sum = 0;

	if (slot_counters(s->run.n, &s->run.slot, &c) < 0)
		return false;
	for (int i = 0; i < NATRA_COUNT_MAX; i++)
		sum += c.count[i].packets;
	/* The first packets of all may be admitted before one has to wait. */
	return c.count[s->counter].packets > 0 &&
	       sum - c.count[s->counter].packets <= rounds;
}

static int judge(void)
{
	double empty = median(empty_ns, (size_t)rounds * TH_LEN(subjects));
	int r = 0;

	printf("TCP over IPv4, 1514 bytes; medians of %u rounds of %u packets\n",
	       rounds, repeat);
	printf("%-10s %6.1f ns\n", "empty", empty);
	for (size_t i = 0; i < TH_LEN(subjects); i++) {
		struct subject *s = &subjects[i];
		double ratio = median(s->ratio, rounds);
		bool over = s->has_target && ratio > TARGET;

		printf("%-10s %6.1f ns  ratio %4.2f%s\n", s->name,
		       median(s->ns, rounds), ratio,
		       over            ? "  OVER THE TARGET"
		       : s->has_target ? ""
				       : "  (no target)");
		if (!all_in_one_counter(s)) {
			printf("%s: packets went elsewhere\n", s->name);
			r = 1;
		}
		r = r || over;
	}
	printf("target: at most %.1f\n", TARGET);
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

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "--repeat") == 0) {
			repeat = number(argv[i + 1], 100000000);
		} else if (strcmp(argv[i], "--rounds") == 0) {
			rounds = number(argv[i + 1], ROUNDS_MAX);
		} else {
			fprintf(stderr, "usage: %s [--repeat N] [--rounds N]\n",
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
	load_empty();
	for (size_t i = 0; i < TH_LEN(subjects); i++)
		load(&subjects[i]);
	for (unsigned int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < TH_LEN(subjects); i++) {
			struct subject *s = &subjects[i];
			double empty = measure_in_chunks(NULL);

			empty_ns[round * TH_LEN(subjects) + i] = empty;
			s->ns[round] = measure_in_chunks(s);
			s->ratio[round] = s->ns[round] / empty;
		}
	}
	return judge();
}
