/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's calls that need a kernel, in the agent that tests run (ld's
 * --wrap). An attachment is a file below the directory FAKE_STATE: its name is the
 * id, in which '/' is '+', and its text the two rates, whether its program is of this
 * build, and the limits of packets in and of connections out. A file with the name
 * leftovers+IFNAME stands for what upstream's plugin has left there: if it has an errno,
 * the name of a code ("-": none) and a text, attaching fails with them while it is there. A file waiting+ID stands for the same beside one id, with packets
 * that wait. With the file leftovers-ifb the ifb of its limit of egress is
 * there, too. The file error-NAME stands for a call that fails with the number in it and a code,
 * kill-NAME for a process that is killed there, and slow-NAME for a call of
 * attach or drain_leftovers after which jobs find the clock 15 s later. Attaching to a pod waits while
 * there is a file hold-attach, changing its limits while there is hold-configure, and both
 * while there is hold-ID. The
 * file group-shop stands for the group "shop", which has a rate of ingress. The file
 * kill-group-NAME stands for a process that is killed when it sets the group. While there is
 * element-unreadable the agent itself, unlike its jobs, can read no file as a whole,
 * and while there is element-unwritable the job that installs can write none once it has planned. Each call that
 * changes something adds a line to the file `calls`.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <natra/natra.h>

#include "../../tools/agent/install_job.h"
#include "../../tools/pods/interface.h"

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
const char *__real_natra_error(const struct natra *n);
enum natra_code __real_natra_error_code(const struct natra *n);
int __real_install_plan(struct install *i, struct install_plan **ret_plan);
int __real_dir_read_fd(int fd, char **ret_text);

static long *later_s; /* the processes of jobs share it */
static char error[256];
static enum natra_code code;

/* Needs a privilege that tests do not have; nothing is attached anyway. */
int __wrap_unshare(int flags)
{
	return 0;
}

const char *__wrap_veth_make(const char *ifname, const char *peer)
{
	return "a test makes none";
}

/* The pods' namespaces are files. */
int __wrap_interface_find(int root_fd, const struct cached *cached,
			  struct natra *n, int netns_fd,
			  struct pod_interface *ret, char *ret_why)
{
	ret_why[0] = '\0';
	(void)snprintf(ret->ifname, sizeof(ret->ifname), "%s", cached->ifname);
	return 0;
}

const char *__wrap_natra_error(const struct natra *n)
{
	return error[0] ? error : __real_natra_error(n);
}

enum natra_code __wrap_natra_error_code(const struct natra *n)
{
	return error[0] ? code : __real_natra_error_code(n);
}

struct path {
	char text[1024];
};

static struct path path_of(const char *name)
{
	struct path path;
	const char *dir = getenv("FAKE_STATE");
	size_t at;

	(void)snprintf(path.text, sizeof(path.text), "%s/",
		       dir ? dir : "/nodir");
	at = strlen(path.text);
	(void)snprintf(path.text + at, sizeof(path.text) - at, "%s", name);
	for (char *c = path.text + at; *c; c++) {
		if (*c == '/')
			*c = '+';
	}
	return path;
}

struct word {
	char text[32];
};

/* Returns the next word of a file, "" at its end. */
static struct word read_word(FILE *f)
{
	struct word word = {""};
	size_t len = 0;
	int c;

	while ((c = fgetc(f)) != EOF && c != ' ' && c != '\n') {
		if (len < sizeof(word.text) - 1)
			word.text[len++] = (char)c;
	}
	return word;
}

/* Returns the next number of a file, 0 at its end. */
static uint64_t read_number(FILE *f)
{
	return strtoull(read_word(f).text, NULL, 10);
}

/* Returns the code whose name is the next word of a file. */
static enum natra_code read_code(FILE *f)
{
	const struct word name = read_word(f);

	for (unsigned int i = 0; i < NATRA_CODE_MAX; i++) {
		if (strcmp(natra_code_name((enum natra_code)i), name.text) == 0)
			return (enum natra_code)i;
	}
	return NATRA_CODE_NONE;
}

static pid_t agent_pid;

__attribute__((constructor)) static void note_agent(void)
{
	agent_pid = getpid();
	later_s = mmap(NULL, sizeof(*later_s), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A file that is too large is an error. */
	(void)signal(SIGXFSZ, SIG_IGN);
}

int __wrap_install_plan(struct install *i, struct install_plan **ret_plan)
{
	struct rlimit limit;
	int r = __real_install_plan(i, ret_plan);

	if (access(path_of("element-unwritable").text, F_OK) == 0 &&
	    getrlimit(RLIMIT_FSIZE, &limit) == 0) {
		limit.rlim_cur = 0;
		(void)setrlimit(RLIMIT_FSIZE, &limit);
	}
	return r;
}

int __wrap_dir_read_fd(int fd, char **ret_text)
{
	*ret_text = NULL;
	return getpid() == agent_pid &&
			       access(path_of("element-unreadable").text,
				      F_OK) == 0
		       ? -EIO
		       : __real_dir_read_fd(fd, ret_text);
}

static int failing(const char *name)
{
	char file[64];
	FILE *f;
	int number;

	(void)snprintf(file, sizeof(file), "error-%s", name);
	error[0] = '\0';
	code = NATRA_CODE_NONE;
	f = fopen(path_of(file).text, "r");
	if (!f)
		return 0;
	number = (int)read_number(f);
	code = read_code(f);
	if (number)
		(void)snprintf(error, sizeof(error), "fake %s: %s", name,
			       strerror(number));
	(void)fclose(f);
	return -number;
}

/* Returns whether there is a file PREFIX-NAME. */
static bool is_there(const char *prefix, const char *name)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s-%s", prefix, name);
	return access(path_of(file).text, F_OK) == 0;
}

static void take_time(const char *name)
{
	if (is_there("slow", name))
		*later_s += 15;
}

__attribute__((format(printf, 2, 3))) static int called(const char *name,
							const char *format, ...)
{
	FILE *f = fopen(path_of("calls").text, "a");
	va_list args;

	if (f) {
		fprintf(f, "%s ", name);
		va_start(args, format);
		vfprintf(f, format, args);
		va_end(args);
		fputc('\n', f);
		(void)fclose(f);
	}
	if (is_there("kill", name))
		(void)raise(SIGKILL);
	return failing(name);
}

static void store(const char *id, const struct natra_policy *p)
{
	FILE *f = fopen(path_of(id).text, "w");

	if (!f)
		return;
	fprintf(f, "%" PRIu64 " %" PRIu64 " 1 %" PRIu64 " %" PRIu64 " %d\n",
		p->ingress_rate_bits_per_sec, p->egress_rate_bits_per_sec,
		p->ingress_packet_rate_per_sec,
		p->egress_connection_rate_per_sec, p->group[0] != '\0');
	(void)fclose(f);
}

static int load(const char *id, struct natra_info *ret)
{
	FILE *f = fopen(path_of(id).text, "r");
	struct natra_info info = NATRA_INIT(info);
	bool current;

	if (!f) {
		(void)snprintf(error, sizeof(error), "'%s' is not attached",
			       id);
		code = NATRA_CODE_NOT_ATTACHED;
		return -ENOENT;
	}
	(void)snprintf(info.id, sizeof(info.id), "%s", id);
	(void)snprintf(info.ifname, sizeof(info.ifname), "%s",
		       strrchr(id, '/') ? strrchr(id, '/') + 1 : "");
	info.policy = (struct natra_policy)NATRA_INIT(info.policy);
	info.policy.ingress_rate_bits_per_sec = read_number(f);
	info.policy.egress_rate_bits_per_sec = read_number(f);
	current = read_number(f) != 0;
	info.policy.ingress_packet_rate_per_sec = read_number(f);
	info.policy.egress_connection_rate_per_sec = read_number(f);
	if (read_number(f))
		(void)snprintf(info.policy.group, sizeof(info.policy.group),
			       "shop");
	info.program_is_current = current;
	info.other_abi = access(path_of("other-abi").text, F_OK) == 0;
	(void)fclose(f);
	*ret = info;
	return 0;
}

static struct path leftovers_of(const struct natra_target *target)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "leftovers+%s", target->ifname);
	return path_of(name);
}

static struct path waiting_of(const struct natra_target *target)
{
	char name[NATRA_ID_MAX + 16];

	(void)snprintf(name, sizeof(name), "waiting+%s", target->id);
	return path_of(name);
}

/* Fails if upstream's limits are in the way. */
static int failing_beside(const struct natra_target *target)
{
	FILE *f = fopen(leftovers_of(target).text, "r");
	int number;

	if (!f)
		return 0;
	number = (int)read_number(f);
	code = read_code(f);
	if (number && !fgets(error, sizeof(error), f))
		number = 0;
	(void)fclose(f);
	return -number;
}

/* Returns what a line of a call says of the policy. */
static struct line {
	char text[256];
} policy_text(const struct natra_policy *policy)
{
	struct line line;

	(void)snprintf(line.text, sizeof(line.text),
		       "in=%" PRIu64 " out=%" PRIu64 " burst=%" PRIu64
		       " horizon=%" PRIu64 " pace=%" PRIu64 " packets=%" PRIu64
		       ",%" PRIu64 " connections=%" PRIu64 ",%" PRIu64,
		       policy->ingress_rate_bits_per_sec,
		       policy->egress_rate_bits_per_sec,
		       policy->ingress_burst_bits, policy->horizon_ns,
		       policy->pace_limit_ns,
		       policy->ingress_packet_rate_per_sec,
		       policy->egress_packet_rate_per_sec,
		       policy->ingress_connection_rate_per_sec,
		       policy->egress_connection_rate_per_sec);
	return line;
}

int __wrap_natra_attach(struct natra *n, const struct natra_target *target,
			const struct natra_policy *policy,
			struct natra_info *ret_info)
{
	int r = called(
		"attach", "id=%s ifname=%s network=%s label=%s %s", target->id,
		target->ifname, target->network ? target->network : "",
		target->label ? target->label : "", policy_text(policy).text);

	take_time("attach");
	while (strcmp(target->ifname, "lo") != 0 &&
	       (is_there("hold", "attach") || is_there("hold", target->id)))
		(void)usleep(10000);
	if (r == 0)
		r = failing_beside(target);
	if (r == 0)
		store(target->id, policy);
	return r;
}

int __wrap_natra_preload(struct natra *n, const struct natra_target *target,
			 const struct natra_policy *policy,
			 struct natra_info *ret_info)
{
	return called("preload", "id=%s ifname=%s %s", target->id,
		      target->ifname, policy_text(policy).text);
}

int __wrap_natra_group_set(struct natra *n,
			   const struct natra_group_info *group)
{
	int r = called("group_set", "name=%s", group->name);

	if (is_there("kill-group", group->name))
		(void)raise(SIGKILL);
	return r;
}

int __wrap_natra_group_remove(struct natra *n, const char *name)
{
	int r = called("group_remove", "name=%s", name);

	return r < 0 ? r : 1;
}

int __wrap_natra_foreach_group(struct natra *n, natra_group_fn fn, void *arg)
{
	const struct natra_group_info shop = {
		.sz = sizeof(shop),
		.name = "shop",
		.ingress_rate_bits_per_sec = 5,
		.ingress_charged = {.packets = 1, .bytes = 4000},
		.free_bytes = {300},
	};

	return is_there("group", "shop") ? fn(arg, &shop) : 0;
}

int __wrap_natra_configure(struct natra *n, const char *id,
			   const struct natra_policy *policy)
{
	struct natra_info info;
	int r = called("configure", "id=%s %s", id, policy_text(policy).text);

	while (is_there("hold", "configure") || is_there("hold", id))
		(void)usleep(10000);
	if (r == 0)
		r = load(id, &info);
	if (r == 0)
		store(id, policy);
	return r;
}

int __wrap_natra_detach(struct natra *n, const struct natra_target *target)
{
	int r = called("detach", "id=%s", target->id);

	return r < 0 ? r : unlink(path_of(target->id).text) == 0;
}

int __wrap_natra_upgrade(struct natra *n, const char *id)
{
	struct natra_info info;
	int r = called("upgrade", "id=%s", id);

	if (r == 0)
		r = load(id, &info);
	if (r == 0)
		store(id, &info.policy);
	return r;
}

int __wrap_natra_probe(struct natra *n, struct natra_features *ret_features)
{
	int r = failing("probe");

	if (r == 0)
		ret_features->fq = true;
	return r;
}

int __wrap_natra_query(struct natra *n, const char *id,
		       struct natra_info *ret_info)
{
	int r = failing("query");

	return r ? r : load(id, ret_info);
}

int __wrap_natra_foreach_attachment(struct natra *n, natra_attachment_fn fn,
				    void *arg)
{
	const char *path = getenv("FAKE_STATE");
	DIR *dir = path ? opendir(path) : NULL;
	const struct dirent *entry;
	int r = 0;

	while (r == 0 && dir && (entry = readdir(dir))) {
		struct natra_info info;
		char id[NATRA_ID_MAX + 1];

		if (!strchr(entry->d_name, '+') ||
		    strncmp(entry->d_name, "leftovers", 9) == 0 ||
		    strncmp(entry->d_name, "waiting", 7) == 0)
			continue;
		(void)snprintf(id, sizeof(id), "%s", entry->d_name);
		for (char *c = id; *c; c++) {
			if (*c == '+')
				*c = '/';
		}
		if (load(id, &info) == 0)
			r = fn(arg, &info);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

int __wrap_natra_gc(struct natra *n, const char *network,
		    const char *const *keep, size_t keep_len,
		    size_t *ret_removed)
{
	*ret_removed = 0;
	return called("gc", "all");
}

int __wrap_natra_find_leftovers(struct natra *n,
				const struct natra_target *target,
				struct natra_leftovers *ret_leftovers)
{
	bool waits = access(waiting_of(target).text, F_OK) == 0;

	ret_leftovers->waiting_ns = waits ? 5000000000 : 0;
	ret_leftovers->limits_ingress =
		waits || access(leftovers_of(target).text, F_OK) == 0;
	ret_leftovers->limits_egress = ret_leftovers->limits_ingress;
	if (access(path_of("leftovers-ifb").text, F_OK) == 0)
		(void)snprintf(ret_leftovers->ifb_ifname,
			       sizeof(ret_leftovers->ifb_ifname), "bwp1");
	(void)snprintf(ret_leftovers->host_ifname,
		       sizeof(ret_leftovers->host_ifname), "veth1");
	return 0;
}

int __wrap_natra_drain_leftovers(struct natra *n,
				 const struct natra_target *target)
{
	take_time("drain_leftovers");
	return called("drain_leftovers", "id=%s", target->id);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = __real_clock_gettime(clock, ret);

	if (agent_pid && getpid() != agent_pid)
		ret->tv_sec += *later_s;
	return r;
}

int __wrap_natra_remove_leftovers(struct natra *n,
				  const struct natra_target *target)
{
	int r = called("remove_leftovers", "id=%s", target->id);

	if (r < 0)
		return r;
	(void)unlink(leftovers_of(target).text);
	(void)unlink(waiting_of(target).text);
	return 0;
}
