/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_SIM_RUN_H
#define QUIRE_TESTS_SIM_RUN_H
/*
 * One list, run by a real runtime beside the model.
 *
 * A record stands for one command on its way: what was given, and what came of it.
 * Tables are captured three times: the model's, the host half in on_plan, and the device
 * half in the middle of the step's own work on the compute stream, after a delay where
 * the device is asynchronous.  That work also writes a word of its own into every token's
 * slot and reads every row's whole context, so what is not copied, or given away too
 * early, is found in the bytes.
 *
 * The model draws what the runtime draws, and follows what the runtime has decided.  What
 * readers are shown lags behind both by as much as the planner has not heard: it must be
 * one of the model's states, never an older one than before, and the newest one at rest.
 */
#include "model_lists.h"
#include "model_order.h"

/* What a record captures of a step that runs. */
struct sim_record {
	struct sim *sim;
	int32_t number; /* in the list */
	bool given;     /* taken, or answered for good */
	uint64_t ticket;
	struct quire_command command;
	struct quire_step step;
	int32_t delay_us; /* of the step's work on the device */
	struct quire_plan plan;
	uint64_t digest;
	bool user_wrong;
	int32_t num_done; /* calls of the step's done function */
	enum quire_status done_status;
	struct image *host;
	struct image *device;
	struct image *reads; /* what its work found in its rows' tokens */
};

/* States that a run has met: a simulation that never waits proves nothing about
 * waiting. */
struct sim_cover {
	uint64_t lists;
	uint64_t commands;
	uint64_t statuses[QUIRE_END + 1]; /* final ones */
	uint64_t refused_at_call;
	uint64_t queue_full;
	uint64_t page_waits;
	uint64_t slot_waits;
	uint64_t held_page_waits; /* for pages in the hands of a held step */
	uint64_t held_slot_waits; /* all slots are in the hands of held steps */
	uint64_t parked;          /* a command behind a step whose fate is open */
	uint64_t held_answers;
	uint64_t invalid_fates;
	uint64_t held_open; /* steps held before their fate was drawn */
	uint64_t abandoned_held;
	uint64_t abandoned_waiting_pages;
	uint64_t abandoned_waiting_slot;
	uint64_t abandoned_early; /* before the planner had come to them */
	uint64_t stash_takes;
	uint64_t first_writes;
	uint64_t pre_copies;
	uint64_t post_copies;
	uint64_t rewinds;
	uint64_t releases; /* of pages from the front */
	uint64_t keeps;
	uint64_t no_commits;
	uint64_t combined;
	uint64_t buckets;
	uint64_t forgotten; /* outcomes that were too old to read */
	uint64_t cancelled;
	uint64_t cancelled_waiting; /* while a step waited */
	uint64_t open_at_end;
	uint64_t failures;
	uint64_t failures_held; /* with held steps */
};

enum sim_wait {
	SIM_MOVES,
	SIM_WAITS_PAGES,
	SIM_WAITS_SLOT,
	SIM_PARKED,
};

/* The generation that a stream of some name began with. */
struct sim_generation {
	bool known;
	uint64_t born; /* which stream of that name */
	uint64_t base;
	uint64_t last; /* the highest one seen, and one more */
};

struct sim {
	const struct list *list;
	struct dice dice;
	struct model_order order;
	struct quire_device *device;
	bool stepped;    /* the device runs an operation when the scheduler says so */
	bool threaded;   /* ... when it likes */
	int32_t fail_in; /* operations of the device until one fails; 0: none does */
	struct quire_cache *cache;
	struct quire_runtime *runtime;
	struct sim_record *records;
	struct sim_record **by_ticket; /* [2 * num_commands + 2] */
	uint64_t drawn;                /* the newest ticket */
	int32_t shown;                 /* effects that readers have been seen with */
	int32_t shown_least;           /* ... and that they must be seen with */
	struct sim_generation generations[LIST_IDS + 1][MODEL_LABELS];
	bool unheard;     /* a fate was drawn since the planner last stood still */
	bool any_abandon; /* so counters of what was tried are not the model's */
	int32_t stash;    /* pages that abandoned steps have put back */
	bool cancelled;   /* what is not decided by now never will be */
	bool broken;      /* the device has failed: the model does not follow any more */
	enum sim_wait waiting; /* why the planner did not move at its last poll */
	int32_t in_hand;       /* pages that the step has which waits for a slot */
	bool check_each;
	struct sim_cover *cover;
	bool failed;
	bool ending; /* it is being destroyed */
	bool stuck;  /* the runtime may not be destroyed: it would wait for ever */
	struct sim_recorded *recorded; /* NULL: it is not */
	char text[16384];
};

/* How to run a list. */
struct sim_mode {
	const char *device; /* "sim": a device of the scheduler's */
	enum quire_threads threads;
	bool records;      /* ... what is then compared and replayed */
	bool delays;       /* lose time in polls of library threads, and on the device */
	bool check_each;   /* quire_runtime_check after every command */
	int32_t cancel_at; /* shut down, cancelling, before this command; -1: never */
	int32_t fail_at;   /* so many operations until one fails; -1: never; "sim" only */
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

/*
 * sim_give - give a command
 * Returns:  QUIRE_OK: it was taken, or answered for good; otherwise why it was not taken,
 *           QUIRE_AGAIN or QUIRE_HELD.
 */
enum quire_status sim_give(struct sim *sim, int32_t number, bool try_only);

/* sim_resolve - a fate that is not in the list: promote or abandon what stands in the
 * way */
void sim_resolve(struct sim *sim, enum quire_command_kind kind, uint64_t ticket);

/* sim_make_way - the queue is full behind a ticket: give what is in the list about it, or
 * promote it */
void sim_make_way(struct sim *sim, uint64_t ticket);

/* sim_lowest_open - the ticket of the lowest step whose fate is open, or 0 */
uint64_t sim_lowest_open(const struct sim *sim);

/* sim_next - the record of the command that the model follows next, or NULL */
struct sim_record *sim_next(struct sim *sim);

/* sim_follow - the runtime decided the next command: let the model do so too, and
 * compare; @outcome: NULL when it is forgotten */
void sim_follow(struct sim *sim, const struct quire_outcome *outcome);

/* sim_readable - is the outcome of a ticket still kept? */
bool sim_readable(const struct sim *sim, uint64_t ticket);

/* sim_compare_shown - every stream; @newest: it must be the model's newest state */
void sim_compare_shown(struct sim *sim, bool newest);

/* sim_compare_counts - the planner's counters, at a moment when it has heard all */
void sim_compare_counts(struct sim *sim);

/* sim_compare_end - everything is retired but what rests on an open fate: device halves,
 * bytes, counters, outcomes once more */
void sim_compare_end(struct sim *sim);

/* sim_compare_broken - the device has failed: all ends, nothing is lost */
void sim_compare_broken(struct sim *sim);

/* sim_delay - an on_poll that loses time now and then; @argument: the sim */
void sim_delay(void *argument, enum quire_role role);

/* ------------------------------------------------------------------ recorded */

/* sim_record_begin - before the first command */
void sim_record_begin(struct sim *sim);

/* sim_record_look - what tickets tell at the end, before the runtime is gone */
void sim_record_look(struct sim *sim);

/* sim_record_compare - the recording, once it is: with what was given and told, and with
 * what `quire replay` makes of it */
void sim_record_compare(struct sim *sim);

/* ------------------------------------------------------------------ callbacks */

enum quire_status sim_on_plan(void *argument, struct quire_plan *plan);
enum quire_status sim_run_step(void *argument, const struct quire_plan *plan,
                               struct quire_dstream *compute);
void sim_done(void *argument, uint64_t ticket, const struct quire_outcome *outcome);

/* sim_token_in_cache - what a slot holds; -1: K and V do not belong together */
int64_t sim_token_in_cache(const struct sim *sim, int32_t page, int32_t offset);

#endif
