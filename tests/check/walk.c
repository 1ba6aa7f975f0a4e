/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the functions that a program enters, for `walk`, which preloads this. The
 * program is compiled with -finstrument-functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static FILE *open_output(void)
{
	const char *path = getenv("NATRA_WALK");

	return path ? fopen(path, "ae") : NULL;
}

/* Writes the file that the function was loaded from, and its address there. */
void __cyg_profile_func_enter(void *function, void *site)
{
	static FILE *output;
	Dl_info info;

	(void)site;
	if (!output)
		output = open_output();
	if (output && dladdr(function, &info))
		(void)fprintf(output, "%s %#tx\n", info.dli_fname,
			      (char *)function - (char *)info.dli_fbase);
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}
