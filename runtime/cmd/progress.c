/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <inttypes.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* Time between two looks of the line. */
#define SHOW_NS (NS_PER_S / 10)

/* There is one terminal: its line. */
static struct {
	const char *what; /* NULL: not wanted */
	int64_t next_ns;
	bool shown;
} line;

/* A fault of any thread takes the line away. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void cmd_progress_start(const char *what, const struct cmd_common *common)
{
	bool wanted = !common->quiet && !common->json && isatty(STDERR_FILENO);

	pthread_mutex_lock(&lock);
	line.what = wanted ? what : NULL;
	line.next_ns = now_ns() + SHOW_NS;
	pthread_mutex_unlock(&lock);
}

/* Is it wanted, and time for another look?  Under the lock. */
static bool is_due(void)
{
	int64_t now;

	if (line.what == NULL)
		return false;
	now = now_ns();
	if (now < line.next_ns)
		return false;
	line.next_ns = now + SHOW_NS;
	line.shown = true;
	return true;
}

static void show(int64_t done, int64_t of)
{
	if (!is_due())
		return;
	if (of > 0)
		fprintf(stderr, "\r%s %3" PRId64 " %%\033[K", line.what, done * 100 / of);
	else
		fprintf(stderr, "\r%s %" PRId64 "\033[K", line.what, done);
}

void cmd_progress_show(int64_t done, int64_t of)
{
	pthread_mutex_lock(&lock);
	show(done, of);
	pthread_mutex_unlock(&lock);
}

void cmd_progress_show_text(const char *text)
{
	pthread_mutex_lock(&lock);
	if (is_due())
		fprintf(stderr, "\r%s: %s\033[K", line.what, text);
	pthread_mutex_unlock(&lock);
}

void cmd_progress_end(void)
{
	pthread_mutex_lock(&lock);
	if (line.shown)
		fputs("\r\033[K", stderr);
	line.shown = false;
	line.what = NULL;
	pthread_mutex_unlock(&lock);
}
