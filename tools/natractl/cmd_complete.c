/* SPDX-License-Identifier: BSD-2-Clause */
/* The words that the last word of a command line can become. The shells' files only pass
 * the words on. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "info.h"

/* A shell completes these itself. */
#define DIRECTORIES ":dir"
#define FILES       ":file"

struct completion {
	struct cli *cli;
	const struct command *command; /* NULL: not named yet */
	struct opts_spec spec;
	const char *word; /* what is there of the last word */
	/* the words of the command line; the last one is `word` */
	const char *const *words;
	size_t words_len;
};

/* Prints a word if the last one can become it. A name that a pod gave to something, such as
 * $(reboot), must not get into a command line. */
static void offer(const struct completion *c, const char *word)
{
	static const char harmless[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789@._/-";

	if (strncmp(word, c->word, strlen(c->word)) == 0 &&
	    strspn(word, harmless) == strlen(word))
		puts(word);
}

/* Offers each of "a|b|c". Returns false if that is no list of words. */
static bool offer_choice(const struct completion *c, const char *choice)
{
	char word[32];

	if (strspn(choice, "abcdefghijklmnopqrstuvwxyz-|") != strlen(choice))
		return false;
	for (size_t len; choice[0]; choice += len + (choice[len] == '|')) {
		len = strcspn(choice, "|");
		(void)snprintf(word, sizeof(word), "%.*s", (int)len, choice);
		offer(c, word);
	}
	return true;
}

static void offer_entries(const struct completion *c, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			offer(c, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static void offer_attachments(const struct completion *c)
{
	struct info_list list;

	if (info_list_read(c->cli->n, &list) < 0)
		return;
	for (size_t i = 0; i < list.len; i++) {
		offer(c, list.items[i].label);
		offer(c, list.items[i].id);
	}
	info_list_free(&list);
}

static int offer_group(void *arg, const struct natra_group_info *group)
{
	offer(arg, group->name);
	return 0;
}

static void offer_value(const struct completion *c, enum opt_id id)
{
	const char *metavar = opts_metavar(id);
	const struct policy_field *field = opts_field(id);

	if (id == OPT_NETNS)
		offer_entries(c, "/run/netns");
	else if (id == OPT_PLATFORM)
		(void)offer_choice(
			c, "auto|default|k3s|k3d|rke2|microk8s|gke|openshift");
	else if (id == OPT_PARENT || (field && field->unit == POLICY_GROUP))
		(void)natra_foreach_group(c->cli->n, offer_group, (void *)c);
	else if (strcmp(metavar, "DIR") == 0 || strcmp(metavar, "PATH") == 0)
		puts(DIRECTORIES);
	else if (strcmp(metavar, "FILE") == 0)
		puts(FILES);
	else
		(void)offer_choice(c, metavar);
}

static void offer_options(const struct completion *c)
{
	for (int id = 0; id < OPT_MAX; id++) {
		if (c->spec.options & OPT_BIT(id))
			offer(c, opts_name(id));
	}
}

static void offer_arguments(const struct completion *c)
{
	const char *arg = c->spec.arg ? c->spec.arg : "";

	if (strstr(arg, "POD"))
		offer_attachments(c);
	else if (strcmp(arg, "IFNAME") == 0)
		offer_entries(c, "/sys/class/net");
	else if (strcmp(arg, "COMMAND") == 0)
		for (size_t i = 0; i < commands_len; i++)
			offer(c, commands[i].spec.name);
	else if (c->command && c->command->run == cmd_group) {
		(void)offer_choice(c, "set|show|remove");
		(void)natra_foreach_group(c->cli->n, offer_group, (void *)c);
	}
}

/* Returns the option that takes a value in this word, or OPT_MAX. */
static int option_with_value(const struct completion *c, const char *word)
{
	const int id = opts_find(&c->spec, word, strlen(word));

	return id != OPT_MAX && opts_metavar(id) ? id : OPT_MAX;
}

/* Finds the command: the first word that is neither an option nor the value of one. */
static void read_command(struct completion *c)
{
	for (size_t i = 0; i + 1 < c->words_len; i++) {
		if (c->words[i][0] != '-') {
			c->command = find_command(c->words[i]);
			if (c->command) {
				c->spec = c->command->spec;
				c->spec.options = command_options(c->command);
			}
			return;
		}
		i += option_with_value(c, c->words[i]) != OPT_MAX;
	}
}

int cmd_complete(struct cli *cli)
{
	const size_t len = cli->opts.args_len;
	struct completion c = {
		.cli = cli,
		.spec = {.arg = "COMMAND",
			 .options = OPTS_GLOBAL | OPT_BIT(OPT_VERSION)},
		.word = len ? cli->opts.args[len - 1] : "",
		.words = cli->opts.args,
		.words_len = len,
	};
	int id = OPT_MAX;

	read_command(&c);
	/* bash makes three words of --name=value, or two as long as there is no value. */
	if (strcmp(c.word, "=") == 0) {
		c.word = "";
		c.words_len++;
	}
	if (c.words_len > 2 && strcmp(c.words[c.words_len - 2], "=") == 0)
		id = option_with_value(&c, c.words[c.words_len - 3]);
	else if (c.words_len > 1)
		id = option_with_value(&c, c.words[c.words_len - 2]);
	if (id != OPT_MAX)
		offer_value(&c, (enum opt_id)id);
	else if (c.word[0] == '-')
		offer_options(&c);
	else
		offer_arguments(&c);
	return EXIT_SUCCESS;
}
