/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

/* A job and its thread. */
struct worker {
	struct cmd_job job;
	pthread_t thread;
	int code;      /* how it ended */
	bool is_first; /* of those that did not end well */
};

/* Every run has to come to the same digest as the job's first. */
static int compare_digests(struct cmd_job *job, uint64_t digest, uint64_t expected)
{
	struct cmd_divergence *divergence = &job->divergence;

	if (digest == expected)
		return CMD_DONE;
	cmd_divergence_init(divergence, "run", 0, QUIRE_COMMAND_SUBMIT);
	cmd_divergence_note(divergence,
	                    "the same commands came to another digest of the run: "
	                    "%016" PRIx64 " at first, then %016" PRIx64,
	                    expected, digest);
	return CMD_FAILED;
}

/* The first that does not end well ends all. */
static void stop_all(struct worker *worker)
{
	worker->is_first = !atomic_exchange(&worker->job.shared->stop, true);
}

static void run_loops(struct worker *worker)
{
	struct cmd_job *job = &worker->job;
	const struct cmd_replay_options *options = job->shared->options;
	int code = CMD_DONE;

	for (int64_t i = 0; i < options->loops && code == CMD_DONE; i++) {
		if (atomic_load(&job->shared->stop))
			return;
		code = cmd_pass(job);
		if (code == CMD_DONE)
			code = compare_digests(job, job->last_digest,
			                       job->total.sum.digest);
	}
	worker->code = code;
	if (code != CMD_DONE)
		stop_all(worker);
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;

	cmd_tell_through(&worker->job.shared->gate);
	run_loops(worker);
	return NULL;
}

/* Start them all; where a thread cannot be had, those that run are stopped. */
static int64_t start(struct worker *workers, int64_t num)
{
	for (int64_t i = 0; i < num; i++) {
		if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) ==
		    0)
			continue;
		workers[i].code = CMD_BAD;
		stop_all(&workers[i]);
		cmd_tell(NULL, 0, "no thread for job %" PRId64 " of %" PRId64, i + 1,
		         num);
		return i;
	}
	return num;
}

/* The numbers of all jobs, and how the first that did not end well did. */
static int join(struct worker *workers, int64_t num, struct cmd_job *job_out)
{
	int code = CMD_DONE;

	for (int64_t i = 0; i < num; i++) {
		struct cmd_job *job = &workers[i].job;

		if (workers[i].is_first) {
			code = workers[i].code;
			job_out->divergence = job->divergence;
			cmd_marks_end(&job_out->abandoned);
			job_out->abandoned = job->abandoned;
			job->abandoned = (struct cmd_marks){.words = NULL};
		}
		if (job->damage.found) {
			job_out->damage = job->damage;
			job_out->damage.refusal.what = job_out->damage.text;
		}
		if (!cmd_total_join(&job_out->total, &job->total) && code == CMD_DONE) {
			cmd_tell(NULL, 0, "no memory for a report");
			code = CMD_BAD;
		}
	}
	for (int64_t i = 1; i < num && code == CMD_DONE; i++)
		code = compare_digests(job_out, workers[i].job.total.sum.digest,
		                       workers[0].job.total.sum.digest);
	return code;
}

int cmd_jobs_run(struct cmd_shared *shared, struct cmd_job *job_out)
{
	int64_t num = shared->options->jobs, started = 1;
	struct worker *workers = calloc((size_t)num, sizeof(*workers));
	int code;

	*job_out = (struct cmd_job){.shared = shared};
	if (workers == NULL) {
		cmd_tell(NULL, 0, "no memory for a replay");
		return CMD_BAD;
	}
	for (int64_t i = 0; i < num; i++) {
		workers[i].job.shared = shared;
		workers[i].job.number = i;
	}
	if (num == 1)
		run_loops(&workers[0]);
	else
		started = start(workers, num);
	for (int64_t i = 0; i < started && num > 1; i++)
		pthread_join(workers[i].thread, NULL);
	code = join(workers, num, job_out);
	for (int64_t i = 0; i < num; i++)
		cmd_job_end(&workers[i].job);
	free(workers);
	return code;
}

void cmd_job_end(struct cmd_job *job)
{
	cmd_total_end(&job->total);
	cmd_marks_end(&job->abandoned);
}
