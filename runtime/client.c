/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

/* What clients call: commands, waits, looks. */

/* ------------------------------------------------------------------ commands */

enum quire_status quire_runtime_try_command(struct quire_runtime *rt,
                                            const struct quire_command *command,
                                            uint64_t *ticket_out,
                                            struct quire_refusal *refusal_out)
{
	const struct quire_refusal *failure = quire_runtime_failed(rt);
	struct quire_refusal unused;
	struct quire_refusal *refusal = refusal_out != NULL ? refusal_out : &unused;

	if (failure != NULL) {
		*refusal = *failure;
		return failure->status;
	}
	QUIRE_TRY(quire_commands_put(&rt->commands, &rt->tickets, command, ticket_out,
	                             refusal));
	quire_wake_all(&rt->planner_wake);
	return QUIRE_OK;
}

enum quire_status quire_runtime_command(struct quire_runtime *rt,
                                        const struct quire_command *command,
                                        uint64_t *ticket_out,
                                        struct quire_refusal *refusal_out)
{
	for (;;) {
		uint32_t value = quire_wake_value(&rt->client_wake);
		enum quire_status status =
			quire_runtime_try_command(rt, command, ticket_out, refusal_out);

		if (status != QUIRE_AGAIN)
			return status;
		if (!quire_may_wait(rt)) {
			struct quire_refusal unused;

			return quire_refuse_what(
				refusal_out != NULL ? refusal_out : &unused,
				QUIRE_WOULD_BLOCK, "the command queue is full");
		}
		(void)quire_wake_sleep(&rt->client_wake, value, QUIRE_NO_DEADLINE);
	}
}

enum quire_status quire_runtime_open(struct quire_runtime *rt, uint64_t request,
                                     uint64_t *ticket_out)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_OPEN,
	                                      .request = request};

	return quire_runtime_command(rt, &command, ticket_out, NULL);
}

enum quire_status quire_runtime_close(struct quire_runtime *rt, uint64_t request,
                                      uint64_t *ticket_out)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_CLOSE,
	                                      .request = request};

	return quire_runtime_command(rt, &command, ticket_out, NULL);
}

enum quire_status quire_runtime_submit(struct quire_runtime *rt,
                                       const struct quire_step *step,
                                       uint64_t *ticket_out)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT, .step = step};

	return quire_runtime_command(rt, &command, ticket_out, NULL);
}

enum quire_status quire_runtime_reset(struct quire_runtime *rt, uint64_t request,
                                      const char *label, bool keep_pages,
                                      uint64_t *ticket_out)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_RESET,
	                                      .request = request,
	                                      .label = label,
	                                      .keep_pages = keep_pages};

	return quire_runtime_command(rt, &command, ticket_out, NULL);
}

enum quire_status quire_runtime_rewind(struct quire_runtime *rt, uint64_t request,
                                       const char *label, int32_t tokens,
                                       uint64_t *ticket_out)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_REWIND,
	                                      .request = request,
	                                      .label = label,
	                                      .tokens = tokens};

	return quire_runtime_command(rt, &command, ticket_out, NULL);
}

enum quire_status quire_runtime_release_front(struct quire_runtime *rt, uint64_t request,
                                              const char *label, int32_t tokens,
                                              uint64_t *ticket_out)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_RELEASE_FRONT,
	                                      .request = request,
	                                      .label = label,
	                                      .tokens = tokens};

	return quire_runtime_command(rt, &command, ticket_out, NULL);
}

enum quire_status quire_runtime_promote(struct quire_runtime *rt, uint64_t ticket)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_PROMOTE,
	                                      .target = ticket};

	return quire_runtime_command(rt, &command, NULL, NULL);
}

enum quire_status quire_runtime_abandon(struct quire_runtime *rt, uint64_t ticket)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_ABANDON,
	                                      .target = ticket};

	return quire_runtime_command(rt, &command, NULL, NULL);
}

/* ------------------------------------------------------------------ wait */

void quire_outcome_read(struct quire_runtime *rt, uint64_t ticket,
                        struct quire_outcome *outcome_out)
{
	struct quire_ticket_cell *cell = quire_ticket_cell(&rt->tickets, ticket);
	/* Pairs with the release in quire_ticket_advance. */
	enum quire_stage stage =
		atomic_load_explicit(&cell->state, memory_order_acquire) % 4;

	*outcome_out = (struct quire_outcome){.stage = stage, .refusal.what = ""};
	if (stage < QUIRE_STAGE_PLANNED)
		return;
	*outcome_out = cell->outcome;
	outcome_out->stage = stage;
	outcome_out->digest = 0;
	if (stage >= QUIRE_STAGE_ISSUED)
		outcome_out->digest =
			atomic_load_explicit(&cell->digest, memory_order_relaxed);
	if (atomic_load_explicit(&cell->abandoned, memory_order_relaxed))
		*outcome_out = (struct quire_outcome){
			.stage = stage,
			.base = cell->outcome.base,
			.refusal = {.status = QUIRE_ABANDONED, .what = "", .index = -1},
		};
	/* Pairs with the releases in complete and end_speculative: the failure was
	 * written before. */
	if (atomic_load_explicit(&cell->failed, memory_order_acquire))
		outcome_out->refusal = rt->failure.refusal;
}

void quire_end_step(struct quire_runtime *rt, uint64_t ticket, quire_done_function done,
                    void *done_argument)
{
	struct quire_outcome outcome;

	/* Before anybody who waits for RETIRED: it may free the argument. */
	if (done != NULL) {
		quire_outcome_read(rt, ticket, &outcome);
		outcome.stage = QUIRE_STAGE_RETIRED;
		done(done_argument, ticket, &outcome);
	}
	quire_ticket_advance(&rt->tickets, ticket, QUIRE_STAGE_RETIRED);
	quire_wake_all(&rt->client_wake);
}

/* Under the commands' lock a cell keeps its ticket: copy what became of it. */
static enum quire_status copy_outcome(struct quire_runtime *rt, uint64_t ticket,
                                      struct quire_outcome *outcome_out)
{
	enum quire_status status = QUIRE_INVALID;

	pthread_mutex_lock(&rt->commands.lock);
	if (quire_ticket_of(&rt->tickets, ticket) == ticket) {
		quire_outcome_read(rt, ticket, outcome_out);
		status = QUIRE_OK;
	}
	pthread_mutex_unlock(&rt->commands.lock);
	return status;
}

enum quire_status quire_runtime_wait(struct quire_runtime *rt, uint64_t ticket,
                                     enum quire_stage stage, int64_t deadline_ns,
                                     struct quire_outcome *outcome_out)
{
	struct quire_ticket_cell *cell = quire_ticket_cell(&rt->tickets, ticket);
	struct quire_outcome unused;

	for (;;) {
		uint32_t value = quire_wake_value(&rt->client_wake);
		/* Pairs with the release in quire_ticket_draw and
		 * quire_ticket_advance. */
		uint64_t state = atomic_load_explicit(&cell->state, memory_order_acquire);

		if (ticket == 0 || state / 4 != ticket || stage > QUIRE_STAGE_RETIRED)
			return QUIRE_INVALID;
		if (state % 4 >= stage)
			return copy_outcome(rt, ticket,
			                    outcome_out != NULL ? outcome_out : &unused);
		if (deadline_ns <= quire_runtime_now(rt))
			return QUIRE_TIMEOUT;
		if (!quire_may_wait(rt))
			return QUIRE_WOULD_BLOCK;
		(void)quire_runtime_sleep(rt, &rt->client_wake, value, deadline_ns);
	}
}

enum quire_status quire_runtime_wait_all(struct quire_runtime *rt,
                                         const uint64_t *tickets, int64_t n,
                                         enum quire_stage stage, int64_t deadline_ns)
{
	if (n < 0)
		return QUIRE_INVALID;
	for (int64_t i = 0; i < n; i++)
		QUIRE_TRY(quire_runtime_wait(rt, tickets[i], stage, deadline_ns, NULL));
	return QUIRE_OK;
}

/* A ticket that cannot be read any more had retired by then; the control lane's commands
 * have none. */
enum quire_status quire_runtime_drain(struct quire_runtime *rt, enum quire_stage stage,
                                      int64_t deadline_ns,
                                      struct quire_refusal *refusal_out)
{
	struct quire_refusal unused;
	uint64_t open, newest = quire_commands_newest(&rt->commands, &open);
	uint64_t kept = rt->tickets.mask + 1;

	/* With the runtime they have ended too, or will. */
	if (open != 0 && quire_runtime_failed(rt) == NULL) {
		quire_refuse_what(refusal_out == NULL ? &unused : refusal_out, QUIRE_HELD,
		                  "");
		if (refusal_out != NULL)
			refusal_out->ticket = open;
		return QUIRE_HELD;
	}
	for (uint64_t t = newest > kept ? newest - kept + 1 : 1; t <= newest; t++) {
		enum quire_status status =
			quire_runtime_wait(rt, t, stage, deadline_ns, NULL);

		if (status != QUIRE_OK && status != QUIRE_INVALID)
			return quire_refuse_what(
				refusal_out == NULL ? &unused : refusal_out, status, "");
	}
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ look */

enum quire_status quire_runtime_snapshot(struct quire_runtime *rt, uint64_t request,
                                         const char *label,
                                         struct quire_snapshot *snapshot_out,
                                         int32_t *pages_out, int64_t pages_max)
{
	return quire_registry_snapshot(
		&rt->registry, request, quire_labels_find(&rt->commands.labels, label),
		&rt->numbers.issued_step, &rt->numbers.retired_step, snapshot_out,
		pages_out, pages_max);
}

void quire_runtime_stats(struct quire_runtime *rt, struct quire_runtime_stats *stats_out)
{
	const struct quire_planner *planner = &rt->planner;
	/* Acquire: pairs with the releases in the executor. */
	uint64_t issued =
		atomic_load_explicit(&rt->numbers.issued_step, memory_order_acquire);
	uint64_t retired =
		atomic_load_explicit(&rt->numbers.retired_step, memory_order_acquire);
	int64_t owned = (int64_t)quire_counted(&planner->owned);
	int64_t free =
		quire_pool_num_free(rt->pool) + (int64_t)quire_counted(&planner->stashed);
	int64_t retiring = rt->num_pages - owned - free;

	*stats_out = (struct quire_runtime_stats){
		.commands = quire_counted(&planner->commands),
		.refused = quire_counted(&planner->refusals),
		.steps_planned = quire_counted(&planner->steps),
		.steps_issued = issued,
		.steps_retired = retired,
		.steps_held = quire_counted(&planner->steps_held),
		.steps_promoted = quire_counted(&planner->promoted),
		.steps_abandoned = quire_counted(&planner->abandoned),
		.copies = quire_counted(&planner->copies),
		.first_writes = quire_counted(&planner->first_writes),
		.tokens = quire_counted(&planner->tokens),
		.pages_taken = quire_counted(&planner->pages_taken),
		.pages_given = atomic_load_explicit(&rt->numbers.pages_given,
	                                            memory_order_acquire),
		.pages_free = free,
		.pages_retiring =
			retiring < 0 ? 0 : retiring, /* the two were not read at once */
		.pages_owned = owned,
		.pages_peak = (int64_t)quire_counted(&planner->pages_peak),
		.requests_open = (int64_t)quire_counted(&planner->requests_open),
		.planner_busy_ns = (int64_t)quire_counted(&planner->busy_ns),
		.plan_median_ns = quire_histogram_quantile(&planner->plan_time, 500),
		.plan_p99_ns = quire_histogram_quantile(&planner->plan_time, 990),
		.page_wait_ns = (int64_t)quire_counted(&planner->page_wait_ns),
		.slot_wait_ns = (int64_t)quire_counted(&planner->slot_wait_ns),
		.executor_wait_ns = (int64_t)quire_counted(&rt->executor.wait_ns),
		.executor_run_ns = (int64_t)quire_counted(&rt->executor.run_ns),
		.executor_stalled_ns = quire_executor_stalled(rt),
	};
}

/* The planner walks, unless this is the thread that drives it. */
static enum quire_status ask_planner(struct quire_runtime *rt,
                                     struct quire_refusal *refusal)
{
	struct quire_check *check = &rt->check;
	enum quire_status status;

	pthread_mutex_lock(&check->lock);
	/* Pairs with the acquire in answer_check. */
	atomic_store_explicit(&check->state, QUIRE_CHECK_ASKED, memory_order_release);
	quire_wake_all(&rt->planner_wake);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->client_wake);

		/* Pairs with the release in answer_check. */
		if (atomic_load_explicit(&check->state, memory_order_acquire) ==
		    QUIRE_CHECK_DONE)
			break;
		(void)quire_wake_sleep(&rt->client_wake, value, QUIRE_NO_DEADLINE);
	}
	status = check->status;
	*refusal = check->refusal;
	atomic_store_explicit(&check->state, QUIRE_CHECK_IDLE, memory_order_relaxed);
	pthread_mutex_unlock(&check->lock);
	return status;
}

enum quire_status quire_runtime_check(struct quire_runtime *rt,
                                      struct quire_refusal *refusal_out)
{
	struct quire_refusal unused;
	struct quire_refusal *refusal = refusal_out != NULL ? refusal_out : &unused;

	if (quire_drives_planner(rt) && !rt->planner.inside)
		return quire_check_all(rt, refusal);
	if (!quire_may_wait(rt))
		return quire_refuse_what(refusal, QUIRE_WOULD_BLOCK,
		                         "a self-check waits for the planner");
	return ask_planner(rt, refusal);
}
