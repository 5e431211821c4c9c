/* SPDX-License-Identifier: MIT */
/* The Python original: documented_fifo.py in a process of its own. */
#include "config.h"

#include "tests/alloc/rivals/rival.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct python {
	pid_t pid;
	FILE *to, *from;
	char *answer; /* the last line */
	size_t answer_bytes;
};

/* false: it has ended. */
static bool read_answer(struct python *self)
{
	return getline(&self->answer, &self->answer_bytes, self->from) > 0;
}

/* Start `python3 documented_fifo.py KIND NUM_PAGES` on two pipes; 0: it could not. */
static pid_t start(const char *kind, int32_t num_pages, int in, int out)
{
	posix_spawn_file_actions_t actions;
	char pages[16];
	char *argv[] = {"python3", RIVALS_DIR "/documented_fifo.py", (char *)kind, pages,
	                NULL};
	pid_t pid;
	int status;

	snprintf(pages, sizeof(pages), "%d", (int)num_pages);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	status = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return status == 0 ? pid : 0;
}

static void destroy(void *fifo)
{
	struct python *self = fifo;

	if (self->to)
		fclose(self->to);
	if (self->from)
		fclose(self->from);
	if (self->pid)
		waitpid(self->pid, NULL, 0);
	free(self->answer);
	free(self);
}

static void *create(const char *kind, int32_t num_pages)
{
	struct python *self = rival_memory(sizeof(*self));
	int to[2], from[2];

	/* No other process keeps our end of a pipe open. */
	rival_must(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0,
	           "python: no pipe");
	self->pid = start(kind, num_pages, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	self->to = fdopen(to[1], "w");
	self->from = fdopen(from[0], "r");
	rival_must(self->to && self->from, "python: no stream");
	if (self->pid && read_answer(self))
		return self;
	destroy(self);
	return NULL;
}

static void *create_queue(int32_t num_pages)
{
	return create("queue", num_pages);
}

static void *create_deque(int32_t num_pages)
{
	return create("deque", num_pages);
}

/* Reads numbers off the last answer: how many there were, of at most `count`. */
static int parse(struct python *self, double *numbers_out, int count)
{
	char *at = self->answer, *end;
	int num;

	for (num = 0; num < count; num++) {
		numbers_out[num] = strtod(at, &end);
		if (end == at)
			break;
		at = end;
	}
	return num;
}

static bool ask(void *fifo, const char *command, double *numbers_out, int count)
{
	struct python *self = fifo;

	fprintf(self->to, "%s\n", command);
	return fflush(self->to) == 0 && read_answer(self) &&
	       parse(self, numbers_out, count) == count;
}

static bool take(void *fifo, int32_t n, int32_t *pages_out)
{
	struct python *self = fifo;
	char *at, *end;

	fprintf(self->to, "take %d\n", (int)n);
	rival_must(fflush(self->to) == 0 && read_answer(self), "python has ended");
	at = self->answer;
	for (int32_t i = 0; i < n; i++) {
		pages_out[i] = (int32_t)strtol(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	return true;
}

static bool give(void *fifo, const int32_t *pages, int32_t n)
{
	struct python *self = fifo;

	fprintf(self->to, "give");
	for (int32_t i = 0; i < n; i++)
		fprintf(self->to, " %d", (int)pages[i]);
	return ask(self, "", NULL, 0);
}

const struct rival rival_python = {
	.name = "python",
	.create = create_queue,
	.take = take,
	.give = give,
	.destroy = destroy,
	.ask = ask,
};

const struct rival rival_python_deque = {
	.name = "python_deque",
	.create = create_deque,
	.take = take,
	.give = give,
	.destroy = destroy,
	.ask = ask,
};
