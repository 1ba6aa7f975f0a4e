/* SPDX-License-Identifier: BSD-2-Clause */
/* `natractl top` on a terminal: its keys, its signals and its clock. */
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <unistd.h>

#include "../../src/util/clock.h"
#include "top_draw.h"

#define KEY_ESC 27

struct screen {
	struct top *top;
	struct top_view view;
	uint64_t next_ns;  /* when the counters are read again */
	uint64_t flows_ns; /* when the flows were read */
	int signal_fd;
	bool is_done;
};

/* Keeps what is selected in the view and on the screen. */
static void follow_selected(struct screen *screen)
{
	const struct top_model *model = &screen->top->model;
	struct top_view *view = &screen->view;
	const size_t room = top_draw_room();
	size_t at = top_model_find(model, &view->of);

	if (at == TOP_NOWHERE)
		at = view->selected;
	if (at >= model->view_len)
		at = model->view_len ? model->view_len - 1 : 0;
	view->selected = at;
	if (at < view->first)
		view->first = at;
	if (room && at >= view->first + room)
		view->first = at - room + 1;
	if (model->view_len <= room)
		view->first = 0;
}

static void select_row(struct screen *screen, size_t at)
{
	const struct top_model *model = &screen->top->model;
	struct top_view *view = &screen->view;

	if (!model->view_len)
		return;
	if (at >= model->view_len)
		at = model->view_len - 1;
	view->selected = at;
	view->of = top_row_at(model, at)->reading.of;
	follow_selected(screen);
}

static void move_by(struct screen *screen, long by)
{
	const size_t at = screen->view.selected;

	select_row(screen, by < 0 && at < (size_t)-by ? 0 : at + (size_t)by);
}

/* Keeps the flows that were read before, for their rates. */
static int read_flows(struct screen *screen)
{
	struct top_view *view = &screen->view;
	struct top_flows *flows = &view->flows;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t len = NATRA_FLOWS_MAX;
	int r;

	memcpy(flows->before, flows->now, sizeof(flows->before));
	flows->before_len = flows->now_len;
	flows->now_len = 0;
	r = natra_top(screen->top->cli->n, view->of.id, view->of.direction,
		      flows->now, &len);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	flows->now_len = len;
	flows->interval_ns = now - screen->flows_ns;
	screen->flows_ns = now;
	return 0;
}

/* Only rows that are on the screen are asked for their flows: that costs as much
 * as their counters. */
static void count_flows(struct screen *screen)
{
	const struct top_model *model = &screen->top->model;
	const size_t room = top_draw_room();

	for (size_t i = 0; i < room; i++) {
		const size_t at = screen->view.first + i;

		if (at >= model->view_len)
			break;
		top_row_at(model, at)->flows =
			top_count_flows(screen->top, top_row_at(model, at));
	}
}

static void read_again(struct screen *screen)
{
	struct top_view *view = &screen->view;
	int r = top_read(screen->top);

	follow_selected(screen);
	if (r == 0 && view->page == TOP_PAGE_FLOWS)
		r = read_flows(screen);
	else if (r == 0)
		count_flows(screen);
	view->error[0] = '\0';
	if (r < 0) {
		const char *text = natra_error(screen->top->cli->n);

		copy_text(view->error, sizeof(view->error),
			  text[0] ? text : strerror(-r));
	}
	screen->next_ns = clock_ns(CLOCK_MONOTONIC) +
			  (uint64_t)screen->top->seconds * 1000000000;
}

static void type_filter(struct screen *screen, int key)
{
	char *filter = screen->top->model.filter;
	const size_t len = strlen(filter);

	if (key == '\n' || key == KEY_ENTER)
		screen->view.is_typing = false;
	else if (key == KEY_ESC) {
		screen->view.is_typing = false;
		filter[0] = '\0';
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (len)
			filter[len - 1] = '\0';
	} else if (key >= ' ' && key < 127 && len < TOP_FILTER_MAX) {
		filter[len] = (char)key;
		filter[len + 1] = '\0';
	}
	top_model_arrange(&screen->top->model);
	follow_selected(screen);
	count_flows(screen);
}

static void open_flows(struct screen *screen)
{
	struct top_view *view = &screen->view;

	if (!screen->top->model.view_len)
		return;
	select_row(screen, view->selected);
	/* The members of a group have flows, and it has none of its own. */
	if (!view->of.id[0])
		return;
	view->page = TOP_PAGE_FLOWS;
	view->flows.now_len = 0;
	(void)read_flows(screen);
	/* There is no rate without a reading before. */
	view->flows.before_len = 0;
}

static void sort_by(struct screen *screen, enum top_key key)
{
	screen->top->model.key = key;
	top_model_arrange(&screen->top->model);
	follow_selected(screen);
	count_flows(screen);
}

/* Returns the key by which a letter sorts, or TOP_KEY_MAX. */
static enum top_key sort_key(int key)
{
	static const char letters[TOP_KEY_MAX] = {
		[TOP_KEY_LOSS] = 'h', [TOP_KEY_RATE] = 'r',
		[TOP_KEY_CAP] = 'c',  [TOP_KEY_DROPPED] = 'd',
		[TOP_KEY_NAME] = 'n',
	};
	enum top_key found = TOP_KEY_LOSS;

	while (found < TOP_KEY_MAX && letters[found] != key)
		found++;
	return found;
}

static void move_key(struct screen *screen, int key)
{
	const long page = (long)top_draw_room();

	if (key == KEY_UP || key == 'k')
		move_by(screen, -1);
	else if (key == KEY_DOWN || key == 'j')
		move_by(screen, 1);
	else if (key == KEY_PPAGE)
		move_by(screen, -page);
	else if (key == KEY_NPAGE || key == ' ')
		move_by(screen, page);
	else if (key == KEY_HOME || key == 'g')
		select_row(screen, 0);
	else if (key == KEY_END || key == 'G')
		select_row(screen, screen->top->model.view_len);
	else
		return;
	count_flows(screen);
}

static void pods_key(struct screen *screen, int key)
{
	if (key == '\n' || key == KEY_ENTER)
		open_flows(screen);
	else if (key == '/')
		screen->view.is_typing = true;
	else if (key == KEY_ESC) {
		screen->top->model.filter[0] = '\0';
		top_model_arrange(&screen->top->model);
		follow_selected(screen);
		count_flows(screen);
	} else if (sort_key(key) != TOP_KEY_MAX)
		sort_by(screen, sort_key(key));
	else
		move_key(screen, key);
}

static void take_key(struct screen *screen, int key)
{
	struct top_view *view = &screen->view;

	if (view->is_typing)
		type_filter(screen, key);
	else if (key == 'q')
		screen->is_done = true;
	else if (key == '?')
		view->page = TOP_PAGE_HELP;
	else if (view->page == TOP_PAGE_PODS)
		pods_key(screen, key);
	else if (key == KEY_ESC || key == '\n' || key == KEY_ENTER ||
		 key == KEY_LEFT)
		view->page = TOP_PAGE_PODS;
}

static void resize(struct screen *screen)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row &&
	    size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	/* Nobody knows what the terminal has made of the old lines. */
	clearok(curscr, TRUE);
	follow_selected(screen);
	count_flows(screen);
}

static void take_signal(struct screen *screen)
{
	struct signalfd_siginfo info;

	if (read(screen->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		resize(screen);
	else
		screen->is_done = true;
}

/* Waits for a key, a signal or the next reading. Returns false if the terminal
 * is gone. */
static bool wait_for_event(struct screen *screen)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = screen->signal_fd, .events = POLLIN},
	};
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct timespec left = {
		.tv_sec =
			screen->next_ns > now
				? (time_t)((screen->next_ns - now) / 1000000000)
				: 0,
		.tv_nsec =
			screen->next_ns > now
				? (long)((screen->next_ns - now) % 1000000000)
				: 0,
	};
	int key;

	if (ppoll(fds, 2, &left, NULL) < 0)
		return errno == EINTR;
	if (fds[1].revents)
		take_signal(screen);
	if (!fds[0].revents)
		return true;
	if (!(fds[0].revents & POLLIN))
		return false;
	key = getch();
	if (key == ERR)
		return false;
	for (; key != ERR && !screen->is_done; key = getch())
		take_key(screen, key);
	return true;
}

static void loop(struct screen *screen)
{
	follow_selected(screen);
	count_flows(screen);
	screen->next_ns = clock_ns(CLOCK_MONOTONIC) + 1000000000;
	while (!screen->is_done) {
		top_draw(screen->top, &screen->view);
		if (!wait_for_event(screen))
			return;
		if (clock_ns(CLOCK_MONOTONIC) >= screen->next_ns)
			read_again(screen);
	}
}

/* All signals that end the program come in turn, so that the terminal is
 * restored. */
static int open_signals(void)
{
	static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,
				    SIGPIPE, SIGQUIT, SIGWINCH};
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&signals, taken[i]);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void set_terminal(void)
{
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	(void)curs_set(0);
	if (start_color() == OK) {
		(void)use_default_colors();
		(void)init_pair(TOP_PAIR_OVER, COLOR_RED, -1);
	}
	/* A lone Esc need not be waited for long. */
	set_escdelay(25);
}

int top_screen(struct top *top)
{
	struct screen screen = {.top = top};
	const char *terminal = secure_getenv("TERM");
	SCREEN *term = NULL;
	int status;

	setlocale(LC_CTYPE, "");
	screen.view.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	/* newterm ends the process if there is no entry. */
	if (setupterm(NULL, STDOUT_FILENO, &status) == OK) {
		(void)del_curterm(cur_term);
		term = newterm(NULL, stdout, stdin);
	}
	if (!term) {
		fputs("natractl: top: no terminfo entry for TERM='", stderr);
		print_text(stderr, terminal ? terminal : "", 0);
		fputs("', so this is one table\n", stderr);
		return -ENOTTY;
	}
	screen.signal_fd = open_signals();
	set_terminal();
	if (screen.signal_fd >= 0)
		loop(&screen);
	(void)endwin();
	delscreen(term);
	if (screen.signal_fd < 0) {
		perror("natractl: top: signalfd");
		return EXIT_FAILURE;
	}
	(void)close(screen.signal_fd);
	return EXIT_SUCCESS;
}
