/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_SIM_RUN_H
#define QUIRE_TESTS_SIM_RUN_H
/*
 * One list, run by a real runtime beside the model.
 *
 * A record stands for one command on its way: what was given, and what came of it.
 * Tables are captured three times: the model's, the host half in on_plan, and the device
 * half in the middle of the step's own work on the compute stream, after a delay where
 * the device is asynchronous.
 */
#include "model_lists.h"
#include "model_rules.h"

/* What a record captures of a step that runs. */
struct sim_record {
	struct sim *sim;
	int32_t number; /* in the list */
	uint64_t ticket;
	struct quire_command command;
	struct quire_step step;
	int32_t delay_us; /* of the step's work on the device */
	struct quire_plan plan;
	uint64_t digest;
	bool user_wrong;
	struct image *expected;
	struct image *host;
	struct image *device;
};

/* States that a run has met: a simulation that never waits proves nothing about
 * waiting. */
struct sim_cover {
	uint64_t lists;
	uint64_t commands;
	uint64_t statuses[QUIRE_END + 1];
	uint64_t refused_at_call;
	uint64_t queue_full;
	uint64_t page_waits;
	uint64_t slot_waits;
	uint64_t keeps;
	uint64_t no_commits;
	uint64_t combined;
	uint64_t buckets;
	uint64_t forgotten; /* outcomes that were too old to read */
	uint64_t cancelled;
	uint64_t cancelled_waiting; /* while a step waited */
};

struct sim {
	const struct list *list;
	struct dice dice;
	struct model model;
	struct model_answer answer;
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_runtime *runtime;
	struct sim_record *records;
	struct sim_record **by_ticket; /* [num_commands + 1] */
	uint64_t drawn;                /* tickets */
	uint64_t decided;              /* of them, as the model has followed */
	bool cancelled;                /* what is not decided by now never will be */
	bool waiting; /* the planner did not move at its last poll, with a command left */
	bool check_each;
	struct sim_cover *cover;
	bool failed;
	bool stuck; /* the runtime may not be destroyed: it would wait for ever */
	char text[16384];
};

/* How to run a list. */
struct sim_mode {
	const char *device;
	enum quire_threads threads;
	bool delays;       /* lose time in polls of library threads, and on the device */
	bool check_each;   /* quire_runtime_check after every command */
	int32_t cancel_at; /* shut down, cancelling, before this command; -1: never */
	uint64_t seed;
};

/* sim_run - run a list; true when runtime and model agree, otherwise sim->text says
 * where */
bool sim_run(struct sim *sim, const struct list *list, const struct sim_mode *mode,
             struct sim_cover *cover);

/* The two ways to drive, between creation and end. */
void sim_drive_caller(struct sim *sim, const struct sim_mode *mode);
void sim_drive_threads(struct sim *sim, const struct sim_mode *mode);

/* ------------------------------------------------------------------ for the drivers */

__attribute__((format(printf, 3, 4))) void sim_fail(struct sim *sim,
                                                    const struct sim_record *record,
                                                    const char *format, ...);

/* sim_give - give a command; false: it was not taken (the queue is full), try again */
bool sim_give(struct sim *sim, int32_t number, bool try_only);

/* sim_follow - the runtime decided the next ticket: let the model do so too, and
 * compare */
void sim_follow(struct sim *sim, const struct quire_outcome *outcome);

/* sim_compare_streams - every stream, at a moment when the runtime has decided exactly
 * what the model has */
void sim_compare_streams(struct sim *sim);

/* sim_compare_counts - the planner's counters, at a moment when the planner is at rest */
void sim_compare_counts(struct sim *sim);

/* sim_delay - an on_poll that loses time now and then; @argument: the sim */
void sim_delay(void *argument, enum quire_role role);

/* sim_compare_end - everything is retired: device halves, counters, outcomes once more */
void sim_compare_end(struct sim *sim);

/* sim_readable - is the outcome of a ticket still kept? */
bool sim_readable(const struct sim *sim, uint64_t ticket);

#endif
