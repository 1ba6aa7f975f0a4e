/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables that own memory or a descriptor, and free or close it at the end of
 * their scope. */
#ifndef NATRA_UTIL_CLEANUP_H
#define NATRA_UTIL_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_freep(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_dirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static inline void cleanup_filep(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

#define cleanup_free  __attribute__((cleanup(cleanup_freep)))
#define cleanup_close __attribute__((cleanup(cleanup_closep)))
#define cleanup_dir   __attribute__((cleanup(cleanup_dirp)))
#define cleanup_file  __attribute__((cleanup(cleanup_filep)))

/* Each of these evaluates to an owned value, and clears the variable that owned it. */
#define TAKE_PTR(p)                                                            \
	__extension__({                                                        \
		__typeof__(p) take_ = (p);                                     \
		(p) = NULL;                                                    \
		take_;                                                         \
	})

#define TAKE_FD(fd)                                                            \
	__extension__({                                                        \
		int take_ = (fd);                                              \
		(fd) = -1;                                                     \
		take_;                                                         \
	})

#endif
