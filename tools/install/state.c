/* SPDX-License-Identifier: BSD-2-Clause */
#include "state.h"

#include "../common/text.h"

struct install *install_new(void)
{
	struct install *i = memory_new(sizeof(*i));

	i->root_fd = -1;
	i->plugin_fd = -1;
	i->lock_fd = -1;
	i->net = i->bin = i->multus = i->place = (struct dir)DIR_INIT;
	return i;
}

void install_free(struct install *i)
{
	if (!i)
		return;
	install_unlock(i);
	dir_close(&i->net);
	dir_close(&i->bin);
	dir_close(&i->multus);
	text_closep(&i->root_fd);
	text_closep(&i->plugin_fd);
	runtime_free(&i->runtimes);
	settings_clear(&i->settings);
	free(i->misplaced);
	free(i->plugin_versions);
	free(i->plugin_status);
	free(i->error);
	free(i);
}

const char *install_error(const struct install *i)
{
	return i->error ? i->error : "";
}

int install_fail(struct install *i, int r, const char *format, ...)
{
	va_list args;

	/* The old text is freed at the end, since an argument may be that
	 * text. */
	char *before = i->error;

	va_start(args, format);
	i->error = text_vformat(format, args);
	va_end(args);
	free(before);
	return r;
}

const char *install_net_dir(const struct install *i)
{
	return i->net.path;
}

const char *install_bin_dir(const struct install *i)
{
	return i->bin.path;
}
