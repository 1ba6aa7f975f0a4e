/* SPDX-License-Identifier: BSD-2-Clause */
#include "results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../common/dir.h"
#include "../common/text.h"

/* A file that changed longer ago is not being written any more. */
#define RECENT_S 2

static int digit_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Decodes base64. Returns NULL if the text is none. */
static char *decode(const char *text)
{
	char *out = memory_new(strlen(text) + 1);
	unsigned int bits = 0, have = 0;
	size_t len = 0;

	for (; *text && *text != '='; text++) {
		int digit = digit_of(*text);

		if (digit < 0) {
			free(out);
			return NULL;
		}
		bits = (bits << 6 | (unsigned int)digit) & 0xffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[len++] = (char)(bits >> have);
		}
	}
	return out;
}

cJSON *results_list(const cJSON *result)
{
	const cJSON *conf = cJSON_GetObjectItemCaseSensitive(result, "config");
	cleanup_text char *list = NULL;

	if (cJSON_IsString(conf))
		list = decode(conf->valuestring);
	return list ? cJSON_Parse(list) : NULL;
}

/* Returns whether somebody may be writing the file. After a loss of power thousands of files
 * are torn, for which nobody waits. */
static bool is_recent(const struct dir *results, const char *file)
{
	struct timespec now;
	struct stat st;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return fstatat(results->fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       llabs((long long)(now.tv_sec - st.st_mtim.tv_sec)) <= RECENT_S;
}

/* libcni writes a file in place: one that has no end yet is read again a moment later. */
static int read_result(const struct dir *results, const char *file,
		       char **ret_text)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	int r = dir_read(results, file, ret_text);
	size_t len = r < 0 ? 0 : strlen(*ret_text);

	if (r < 0 || (len && (*ret_text)[len - 1] == '}') ||
	    !is_recent(results, file))
		return r;
	(void)nanosleep(&moment, NULL);
	text_freep(ret_text);
	*ret_text = NULL;
	return dir_read(results, file, ret_text);
}

/* A file that cannot be read is one whose text is not known. */
static bool is_wanted(const struct dir *results, const char *file,
		      results_wants_fn wants, const void *arg)
{
	cleanup_text char *head = NULL;

	return !wants || dir_read_head(results, file, &head) < 0 ||
	       wants(arg, head);
}

/* Reads the files whose names have this text. */
static int foreach_in(int root_fd, const char *dir, const char *part,
		      results_wants_fn wants, results_fn fn, void *arg)
{
	cleanup_dir struct dir results = DIR_INIT;
	const struct dirent *entry;
	DIR *entries;
	int r = dir_open(&results, root_fd, dir);

	if (r < 0)
		return r;
	entries = dir_list(&results);
	if (!entries)
		return -errno;
	while (r == 0 && (entry = readdir(entries))) {
		cleanup_text char *text = NULL, *path = NULL;

		if (entry->d_name[0] == '.' || !strstr(entry->d_name, part) ||
		    !is_wanted(&results, entry->d_name, wants, arg))
			continue;
		path = text_format("%s/%s", dir, entry->d_name);
		/* A file that was removed meanwhile is no result any more. */
		if (read_result(&results, entry->d_name, &text) != -ENOENT)
			r = fn(arg, path, text);
	}
	(void)closedir(entries);
	return r;
}

static int foreach_both(int root_fd, const char *part, results_wants_fn wants,
			results_fn fn, void *arg)
{
	/* Multus' is the default of its cniDir. */
	int r = foreach_in(root_fd, "/var/lib/cni/multus/results", part, wants,
			   fn, arg);

	return r && r != -ENOENT
		       ? r
		       : foreach_in(root_fd, RESULTS_DIR, part, wants, fn, arg);
}

int results_foreach_of(int root_fd, const char *container_id, results_fn fn,
		       void *arg)
{
	return foreach_both(root_fd, container_id, NULL, fn, arg);
}

int results_foreach_wanted(int root_fd, results_wants_fn wants, results_fn fn,
			   void *arg)
{
	return foreach_both(root_fd, "", wants, fn, arg);
}

int results_foreach(int root_fd, results_fn fn, void *arg)
{
	return results_foreach_of(root_fd, "", fn, arg);
}
