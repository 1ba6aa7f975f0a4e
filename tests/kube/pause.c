/* SPDX-License-Identifier: BSD-2-Clause */
/* Does nothing in a pod until SIGTERM, as process 1 there. */
#include <signal.h>
#include <unistd.h>

static void end(int number)
{
	(void)number;
	_exit(0);
}

int main(void)
{
	/* The kernel ignores a signal to process 1 that has no handler. */
	signal(SIGTERM, end);
	signal(SIGINT, end);
	/* Nobody has to wait for children that have ended then. */
	signal(SIGCHLD, SIG_IGN);
	for (;;)
		pause();
}
