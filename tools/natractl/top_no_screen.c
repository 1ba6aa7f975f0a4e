/* SPDX-License-Identifier: BSD-2-Clause */
/* This stands for top_screen.c where natractl is built without ncurses. */
#include <errno.h>

#include "top.h"

int top_screen(struct top *top)
{
	(void)top;
	fputs("natractl: top: this build has no ncurses, so it prints one table\n",
	      stderr);
	return -ENOTTY;
}
