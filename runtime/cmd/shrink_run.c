/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* What stands for the candidate in the command. */
#define PLACE "{}"

/* Files of the private folder that are open while it is removed. */
#define TREE_FILES 8

extern char **environ;

/*
 * What asks for an end is blocked and looked for where this waits, so that nothing is
 * left behind; what was ignored stays ignored.
 */
struct shrink_signals {
	sigset_t watched; /* these, and the end of a child */
	sigset_t before;  /* the mask, for the program and for afterwards */
};

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static int refuse_memory(void)
{
	cmd_tell(NULL, 0, "no memory to run a program");
	return CMD_BAD;
}

static bool block_signals(struct shrink_run *run)
{
	struct sigaction action;

	run->signals = calloc(1, sizeof(*run->signals));
	if (run->signals == NULL)
		return false;
	signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit status away */
	sigemptyset(&run->signals->watched);
	sigaddset(&run->signals->watched, SIGCHLD);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (sigaction(endings[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(&run->signals->watched, endings[i]);
	}
	sigprocmask(SIG_BLOCK, &run->signals->watched, &run->signals->before);
	return true;
}

/* ------------------------------------------------------------------ the command */

/* An argument with the path in each of its places; NULL: no memory. */
static char *put_path(const char *argument, const char *path)
{
	size_t size = strlen(argument) + 1;
	const char *place;
	char *text, *end;

	for (place = argument; (place = strstr(place, PLACE)) != NULL;
	     place += strlen(PLACE))
		size += strlen(path);
	text = malloc(size);
	if (text == NULL)
		return NULL;
	end = text;
	while ((place = strstr(argument, PLACE)) != NULL) {
		end = mempcpy(end, argument, (size_t)(place - argument));
		end = stpcpy(end, path);
		argument = place + strlen(PLACE);
	}
	strcpy(end, argument);
	return text;
}

static bool make_arguments(struct shrink_run *run)
{
	bool has_place = false;
	size_t num = 0;

	while (run->command[num] != NULL)
		num++;
	run->arguments = calloc(num + 2, sizeof(*run->arguments));
	if (run->arguments == NULL)
		return false;
	for (size_t i = 0; i < num; i++) {
		has_place |= strstr(run->command[i], PLACE) != NULL;
		run->arguments[i] = put_path(run->command[i], run->path);
		if (run->arguments[i] == NULL)
			return false;
	}
	if (!has_place)
		run->arguments[num] = strdup(run->path);
	return has_place || run->arguments[num] != NULL;
}

int shrink_run_begin(struct shrink_run *run)
{
	const char *where = getenv("TMPDIR");
	char *folder;

	if (where == NULL || where[0] == '\0')
		where = P_tmpdir;
	if (!block_signals(run) || asprintf(&folder, "%s/quire-shrink.XXXXXX", where) < 0)
		return refuse_memory();
	if (mkdtemp(folder) == NULL) {
		cmd_tell(folder, 0, "a folder for candidates cannot be made: %m");
		free(folder);
		return CMD_BAD;
	}
	run->folder = folder;
	if (asprintf(&run->path, "%s/candidate.plan", folder) < 0) {
		run->path = NULL;
		return refuse_memory();
	}
	return make_arguments(run) ? CMD_DONE : refuse_memory();
}

static int remove_entry(const char *path, const struct stat *about, int kind,
                        struct FTW *walk)
{
	(void)about;
	(void)kind;
	(void)walk;
	(void)remove(path);
	return 0;
}

void shrink_run_end(struct shrink_run *run)
{
	if (run->folder != NULL)
		nftw(run->folder, remove_entry, TREE_FILES, FTW_DEPTH | FTW_PHYS);
	for (size_t i = 0; run->arguments != NULL && run->arguments[i] != NULL; i++)
		free(run->arguments[i]);
	free(run->arguments);
	free(run->path);
	free(run->folder);
	if (run->signals != NULL) {
		const struct timespec now = {.tv_sec = 0};

		/* What was watched for has been answered. */
		while (sigtimedwait(&run->signals->watched, NULL, &now) > 0)
			;
		sigprocmask(SIG_SETMASK, &run->signals->before, NULL);
	}
	free(run->signals);
}

/* ------------------------------------------------------------------ one run */

/* The candidate as a new file: the program may have done anything to the old one. */
static bool write_candidate(const struct shrink_run *run, const char *bytes, size_t size)
{
	bool written = true;
	int fd;

	unlink(run->path);
	fd = open(run->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	while (size > 0 && written) {
		ssize_t put = write(fd, bytes, size);

		written = put > 0 || (put < 0 && errno == EINTR);
		bytes += put > 0 ? put : 0;
		size -= put > 0 ? (size_t)put : 0;
	}
	return close(fd) == 0 && written;
}

/* Start the program in a process group of its own, so that all of it can be ended.
 * Answers an errno. */
static int start(const struct shrink_run *run, pid_t *pid_out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int error = posix_spawn_file_actions_init(&files);

	if (error != 0)
		return error;
	error = posix_spawnattr_init(&attributes);
	if (error != 0) {
		posix_spawn_file_actions_destroy(&files);
		return error;
	}
	sigemptyset(&defaults); /* the command ignores these, the program need not */
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setsigmask(&attributes, &run->signals->before);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
	                                              POSIX_SPAWN_SETSIGMASK |
	                                              POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
	                                         O_RDONLY, 0);
	for (int fd = STDOUT_FILENO; error == 0 && fd <= STDERR_FILENO; fd++)
		error = posix_spawn_file_actions_addopen(&files, fd, "/dev/null",
		                                         O_WRONLY, 0);
	if (error == 0)
		error = posix_spawnp(pid_out, run->arguments[0], &files, &attributes,
		                     run->arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Is the program there no more?  It stays to be waited for. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* Wait for its end; false: the time is over, or somebody wants an end of it all. */
static bool wait_for(struct shrink_run *run, pid_t pid)
{
	int64_t deadline = now_ns() + run->timeout_s * NS_PER_S;

	while (!has_ended(pid)) {
		int64_t left = deadline - now_ns();
		struct timespec time = {.tv_sec = left / NS_PER_S,
		                        .tv_nsec = left % NS_PER_S};
		int got;

		if (left <= 0)
			return false;
		got = sigtimedwait(&run->signals->watched, NULL, &time);
		if (got > 0 && got != SIGCHLD) {
			run->is_interrupted = true;
			return false;
		}
	}
	return true;
}

/* How a run ended.  What it left running ends with it. */
static enum shrink_end finish(struct shrink_run *run, pid_t pid, int *value_out)
{
	bool ended = wait_for(run, pid);
	int status = 0;

	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*value_out = 0;
	if (!ended)
		return SHRINK_END_HANG;
	if (WIFSIGNALED(status)) {
		*value_out = WTERMSIG(status);
		return SHRINK_END_SIGNAL;
	}
	*value_out = WEXITSTATUS(status);
	return SHRINK_END_EXIT;
}

/* Did somebody ask for an end between two runs? */
static bool is_interrupted(struct shrink_run *run)
{
	const struct timespec now = {.tv_sec = 0};
	int got;

	while ((got = sigtimedwait(&run->signals->watched, NULL, &now)) > 0)
		run->is_interrupted |= got != SIGCHLD;
	return run->is_interrupted;
}

static void show(const struct shrink_run *run)
{
	struct shrink_counts counts;
	char text[128];

	shrink_count(&run->shrink->model, &run->shrink->best, &counts);
	snprintf(text, sizeof(text), "%" PRId64 " commands left, %" PRId64 " runs",
	         counts.commands, run->shrink->runs);
	cmd_progress_show_text(text);
}

enum shrink_answer shrink_run_test(void *argument, const char *bytes, size_t size)
{
	struct shrink_run *run = argument;
	enum shrink_end end;
	int value, error;
	pid_t pid;

	show(run);
	if (is_interrupted(run))
		return SHRINK_STOP;
	if (!write_candidate(run, bytes, size)) {
		cmd_tell(run->path, 0, "a candidate cannot be written: %m");
		run->code = CMD_BAD;
		return SHRINK_STOP;
	}
	error = start(run, &pid);
	if (error != 0) {
		errno = error;
		cmd_tell(run->arguments[0], 0, "cannot be run: %m");
		run->code = CMD_BAD;
		return SHRINK_STOP;
	}
	end = finish(run, pid, &value);
	if (run->is_interrupted)
		return SHRINK_STOP;
	if (end == SHRINK_END_EXIT && value == 0)
		return SHRINK_PASSES;
	if (run->end == SHRINK_END_NONE) {
		run->end = end;
		run->value = value;
	}
	return end == run->end && value == run->value ? SHRINK_FAILS : SHRINK_PASSES;
}

void shrink_run_describe(const struct shrink_run *run, char *text, size_t size)
{
	switch (run->end) {
	case SHRINK_END_NONE:
		snprintf(text, size, "none");
		return;
	case SHRINK_END_EXIT:
		snprintf(text, size, "exit status %d", run->value);
		return;
	case SHRINK_END_SIGNAL:
		snprintf(text, size, "signal %d (%s)", run->value, strsignal(run->value));
		return;
	case SHRINK_END_HANG:
		snprintf(text, size, "no end within %" PRId64 " s", run->timeout_s);
		return;
	}
}
