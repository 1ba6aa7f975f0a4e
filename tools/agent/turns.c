/* SPDX-License-Identifier: BSD-2-Clause */
#include "turns.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/text.h"
#include "loop.h"

/* Results of pods that are gone stay on a node that nobody cleans. */
#define NAMES_MAX   65536
#define SLOW_MAX    16
/* Others wait for the job meanwhile. */
#define SLOW_MAX_MS 60000

/* What has begun, in memory that the processes share. */
struct turns_begun {
	size_t len;
	size_t before;             /* of these had begun when the walk did */
	size_t missed;             /* there was no time for these */
	uint64_t names[NAMES_MAX]; /* their hashes; the last one is at work */
	bool is_done;
	int r;
};

int turns_open(struct turns *t, uint64_t time_max_ms)
{
	void *map =
		mmap(NULL, sizeof(struct turns_begun), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	*t = (struct turns){
		.begun = map,
		.until_ms = clock_ms() + time_max_ms,
	};
	return 0;
}

void turns_close(struct turns *t)
{
	if (t->begun)
		(void)munmap(t->begun, sizeof(*t->begun));
	t->begun = NULL;
}

bool turn_begin(const struct turns *t, const char *name)
{
	const uint64_t hash = text_hash(name);
	struct turns_begun *begun = t->begun;

	if (t->only && t->only != hash)
		return false;
	for (size_t i = 0; i < begun->before && !t->only; i++) {
		if (begun->names[i] == hash)
			return false;
	}
	if (clock_ms() >= t->until_ms) {
		begun->missed++;
		return false;
	}
	/* Then it could not be told which one took too long. */
	if (begun->len == NAMES_MAX)
		return true;
	begun->names[begun->len++] = hash;
	(void)alarm(t->only ? TURN_MAX_S : TURN_SHARED_MAX_S);
	return true;
}

void turn_extend(void)
{
	(void)alarm(TURN_MAX_S);
}

void turn_end(void)
{
	(void)alarm(0);
}

/* Runs a walk in a process of its own. Returns 1 if it has ended, and 0 if the last one that it has
 * begun took too long. */
static int run(const struct turns *t, int (*walk)(void *arg), void *arg)
{
	const pid_t parent = getpid();
	pid_t pid, ended;
	int status;

	t->begun->is_done = false;
	t->begun->before = t->begun->len;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		/* It ends with the job, which may have been killed before this call. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		t->begun->r = walk(arg);
		t->begun->is_done = true;
		_exit(EXIT_SUCCESS);
	}
	/* Pods would wait for the locks of one that is stopped. */
	while ((ended = waitpid(pid, &status, WUNTRACED)) == pid &&
	       WIFSTOPPED(status))
		(void)kill(pid, SIGCONT);
	if (t->begun->is_done)
		return 1;
	/* Somebody has killed it, and means the job. */
	if (ended != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM)
		_exit(EXIT_FAILURE);
	return 0;
}

int turns_run(struct turns *t, int (*walk)(void *arg), void *arg, size_t *late)
{
	const uint64_t until_ms = clock_ms() + SLOW_MAX_MS;
	struct turns_begun *begun = t->begun;
	uint64_t slow[SLOW_MAX];
	size_t slow_len = 0;
	int r, result;

	begun->len = begun->missed = 0;
	while ((r = run(t, walk, arg)) == 0) {
		if (slow_len < SLOW_MAX)
			slow[slow_len++] = begun->names[begun->len - 1];
		else
			(*late)++;
	}
	if (r < 0)
		return r;
	result = begun->r;
	t->last =
		begun->missed && begun->len ? begun->names[begun->len - 1] : 0;
	for (size_t i = 0; i < slow_len && result == 0; i++) {
		t->only = slow[i];
		if (clock_ms() >= until_ms || run(t, walk, arg) != 1)
			(*late)++;
	}
	t->only = 0;
	*late += begun->missed;
	return result;
}
