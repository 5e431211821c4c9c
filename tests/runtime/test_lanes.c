/* SPDX-License-Identifier: MIT */
/* The two lanes: which speculative step rests on which, and whose fate is open, hangs on
 * the order of the commands alone; and nobody waits for ever behind a held step. */
#include "config.h"

#include "runtime/commands_impl.h"
#include "runtime/memory_impl.h"
#include "runtime/runtime_impl.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdbool.h>

#define SEED         20261202
#define COMMANDS_MAX 4
#define TICKETS_MAX  8
#define LISTS        12 /* of each size */
#define LENGTH       150
#define POSITIONS    2000 /* of one list: the tries to get on included */

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13; /* Marsaglia's xorshift64 */
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 8) % n;
}

/* ------------------------------------------------------------------ the model */

/* What is known of every position, from the order of the commands alone. */
struct position {
	bool step;
	bool speculative;
	bool wrong;    /* a step that is refused whatever its base */
	uint64_t base; /* 0: none */
	enum quire_fate fate;
	uint64_t fate_position;
};

struct model {
	struct position at[POSITIONS];
	uint64_t count;
	uint64_t last_other;
};

static struct model model;

static bool is_unresolved(uint64_t ticket)
{
	return model.at[ticket].speculative && model.at[ticket].fate == QUIRE_FATE_OPEN;
}

static uint64_t newest_unresolved(void)
{
	uint64_t t = model.count;

	while (t > 0 && !is_unresolved(t))
		t--;
	return t;
}

static uint64_t oldest_unresolved(void)
{
	for (uint64_t t = 1; t <= model.count; t++)
		if (is_unresolved(t))
			return t;
	return 0;
}

/* It and all that rest on it, promoted or not. */
static void end_from(uint64_t ticket)
{
	model.at[ticket].fate = QUIRE_FATE_ABANDON;
	model.at[ticket].fate_position = model.count;
	for (uint64_t t = ticket + 1; t <= model.count; t++)
		if (model.at[t].speculative && model.at[t].base == ticket &&
		    model.at[t].fate != QUIRE_FATE_ABANDON)
			end_from(t);
}

/* An abandon may still end it: its fate, or that of one below, is open. */
static bool may_end(uint64_t ticket)
{
	if (!model.at[ticket].speculative || model.at[ticket].fate == QUIRE_FATE_ABANDON)
		return false;
	return is_unresolved(ticket) ||
	       (model.at[ticket].base != 0 && may_end(model.at[ticket].base));
}

static int32_t num_open(void)
{
	int32_t n = 0;

	for (uint64_t t = 1; t <= model.count; t++)
		n += may_end(t);
	return n;
}

static void draw_ordinary(bool speculative, bool wrong)
{
	uint64_t newest = newest_unresolved(), position = ++model.count;

	model.at[position] = (struct position){
		.step = true, .speculative = speculative, .wrong = wrong};
	if (!speculative)
		model.last_other = position;
	else if (newest > model.last_other)
		model.at[position].base = newest;
}

static enum quire_status draw_fate(bool promote, uint64_t target)
{
	bool sound = target <= model.count && is_unresolved(target);

	model.count++;
	if (!sound)
		return QUIRE_INVALID;
	if (!promote) {
		end_from(target);
		return QUIRE_OK;
	}
	model.at[target].fate = QUIRE_FATE_PROMOTE;
	model.at[target].fate_position = model.count;
	return QUIRE_OK;
}

static void draw_shutdown(void)
{
	uint64_t t;

	model.count++;
	while ((t = oldest_unresolved()) != 0)
		end_from(t);
}

/* ---------------------------------------------------- who drives, and what is asked */

/* Both are driven alike: lanes alone, with a planner in a few lines, and a runtime. */
struct side {
	enum quire_status (*give)(const struct quire_command *command,
	                          uint64_t *ticket_out, struct quire_refusal *refusal);
	bool (*move)(void); /* one move of the planner; false: it rests */
	struct quire_commands *(*commands)(void);
};

struct sizes {
	int32_t commands;
	int32_t tickets;
	int32_t speculative;
};

static uint64_t steps_done[POSITIONS]; /* by ticket: how often told */
static struct quire_outcome outcomes[POSITIONS];

static void note_done(void *argument, uint64_t ticket,
                      const struct quire_outcome *outcome)
{
	(void)argument;
	ck_assert_uint_lt(ticket, POSITIONS);
	steps_done[ticket]++;
	outcomes[ticket] = *outcome;
}

static enum quire_status give_step(const struct side *side, bool speculative, bool wrong,
                                   uint64_t *ticket, struct quire_refusal *refusal)
{
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = wrong ? 1000000 : QUIRE_AT_ANY};
	const struct quire_step step = {
		.segments = &segment,
		.num_segments = 1,
		.flags = speculative ? QUIRE_STEP_SPECULATIVE : 0,
		.done = note_done,
	};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};

	return side->give(&command, ticket, refusal);
}

/* Promote or abandon: at once, whatever is full. */
static void give_fate(const struct side *side, bool promote, uint64_t target)
{
	const struct quire_command command = {.kind = promote ? QUIRE_COMMAND_PROMOTE
	                                                      : QUIRE_COMMAND_ABANDON,
	                                      .target = target};
	struct quire_refusal refusal;
	uint64_t ticket = 0;
	enum quire_status status = side->give(&command, &ticket, &refusal);

	ck_assert_int_eq(status, draw_fate(promote, target));
	ck_assert_uint_eq(ticket, model.count);
	if (status == QUIRE_INVALID)
		ck_assert_uint_eq(refusal.ticket, target);
}

static void rest(const struct side *side)
{
	while (side->move())
		continue;
}

/* A step that must come in: when the planner rests there is room, or a step in the way,
 * which is named, and whose fate gets the queue on; after so many fates there is room. */
static void give_step_for_sure(const struct side *side, const struct sizes *sizes,
                               bool speculative, bool wrong)
{
	struct quire_refusal refusal;
	uint64_t ticket;

	for (int tries = 0; tries <= sizes->speculative + 1; tries++) {
		enum quire_status status =
			give_step(side, speculative, wrong, &ticket, &refusal);

		if (status == QUIRE_AGAIN) {
			rest(side);
			status = give_step(side, speculative, wrong, &ticket, &refusal);
		}
		if (status == QUIRE_OK) {
			draw_ordinary(speculative, wrong);
			ck_assert_uint_eq(ticket, model.count);
			return;
		}
		if (status == QUIRE_LIMIT) {
			ck_assert(speculative);
			ck_assert_int_eq(num_open(), sizes->speculative);
			return;
		}
		ck_assert_int_eq(status, QUIRE_HELD);
		ck_assert(is_unresolved(refusal.ticket));
		give_fate(side, random_below(2) == 0, refusal.ticket);
		rest(side);
	}
	ck_abort_msg("the fates of all steps that were in the way did not help");
}

static void check_lanes(const struct side *side)
{
	uint64_t open, newest = quire_commands_newest(side->commands(), &open);

	ck_assert_uint_eq(newest, model.count);
	ck_assert_uint_eq(open, oldest_unresolved());
}

static void check_moves(const struct side *side)
{
	for (uint64_t moves = random_below(5); moves > 0; moves--)
		side->move();
}

static void drive(const struct side *side, const struct sizes *sizes)
{
	for (int i = 0; i < LENGTH; i++) {
		uint64_t kind = random_below(10);
		uint64_t target = random_below(2) == 0 ? newest_unresolved()
		                                       : random_below(model.count + 3);

		if (random_below(3) == 0)
			check_moves(side);
		if (kind < 5)
			give_step_for_sure(side, sizes, true, random_below(4) == 0);
		else if (kind == 5)
			give_step_for_sure(side, sizes, false, random_below(4) == 0);
		else
			give_fate(side, kind < 8, target);
		check_lanes(side);
	}
}

/* ------------------------------------------------------------------ the lanes alone */

/* A planner that decides and holds, nothing else; wrong steps are refused. */
static struct alone {
	struct quire_commands commands;
	struct quire_tickets tickets;
	uint64_t held[POSITIONS];
	int num_held;
	uint64_t refused[POSITIONS];
	int num_refused;
} alone;

static struct quire_commands *alone_commands(void)
{
	return &alone.commands;
}

/* What the cell says, whose place is still this ticket's. */
static enum quire_fate alone_fate(uint64_t ticket)
{
	uint64_t fate = atomic_load(&quire_ticket_cell(&alone.tickets, ticket)->fate);

	ck_assert_uint_eq(quire_ticket_of(&alone.tickets, ticket), ticket);
	ck_assert_uint_eq(fate % 4, model.at[ticket].fate);
	ck_assert_uint_eq(fate / 4, model.at[ticket].fate_position);
	return fate % 4;
}

static enum quire_status alone_give(const struct quire_command *command,
                                    uint64_t *ticket_out, struct quire_refusal *refusal)
{
	struct alone *a = &alone;

	return quire_commands_put(&a->commands, &a->tickets, command, ticket_out,
	                          refusal);
}

static bool alone_end(uint64_t ticket)
{
	quire_ticket_advance(&alone.tickets, ticket, QUIRE_STAGE_RETIRED);
	return true;
}

static bool alone_holds(uint64_t ticket)
{
	for (int i = 0; i < alone.num_held; i++)
		if (alone.held[i] == ticket)
			return true;
	return false;
}

static bool alone_hear(void)
{
	struct alone *a = &alone;

	if (a->num_held > 0 && alone_fate(a->held[a->num_held - 1]) == QUIRE_FATE_ABANDON)
		return alone_end(a->held[--a->num_held]);
	if (a->num_held > 0 && alone_fate(a->held[0]) == QUIRE_FATE_PROMOTE) {
		alone_end(a->held[0]);
		memmove(a->held, a->held + 1, (size_t)--a->num_held * sizeof(a->held[0]));
		return true;
	}
	for (int i = 0; i < a->num_refused; i++)
		if (alone_fate(a->refused[i]) == QUIRE_FATE_ABANDON ||
		    (alone_fate(a->refused[i]) == QUIRE_FATE_PROMOTE &&
		     !alone_holds(model.at[a->refused[i]].base))) {
			alone_end(a->refused[i]);
			a->refused[i] = a->refused[--a->num_refused];
			return true;
		}
	return false;
}

static bool alone_decide(void)
{
	struct alone *a = &alone;
	struct quire_command_cell *cell = quire_commands_front(&a->commands);
	uint64_t ticket;

	if (cell == NULL || (cell->base == 0 && a->num_held > 0))
		return false;
	ticket = cell->ticket;
	ck_assert_uint_eq(cell->base, model.at[ticket].base);
	ck_assert_int_eq((cell->flags & QUIRE_STEP_SPECULATIVE) != 0,
	                 model.at[ticket].speculative);
	quire_commands_pop(&a->commands);
	if (!model.at[ticket].speculative || alone_fate(ticket) == QUIRE_FATE_ABANDON)
		return alone_end(ticket);
	quire_ticket_advance(&a->tickets, ticket, QUIRE_STAGE_PLANNED);
	if (model.at[ticket].wrong)
		a->refused[a->num_refused++] = ticket;
	else
		a->held[a->num_held++] = ticket;
	return true;
}

static bool alone_move(void)
{
	bool moved = alone_hear() || alone_decide();

	atomic_store(&alone.commands.held, alone.num_held == 0 ? 0 : alone.held[0]);
	return moved;
}

static void check_shutdown_alone(const struct side *side, bool cancel)
{
	const struct quire_command fate = {.kind = QUIRE_COMMAND_PROMOTE, .target = 1};
	struct quire_refusal refusal;
	uint64_t ticket;

	draw_shutdown();
	ck_assert_int_eq(quire_commands_close(&alone.commands, &alone.tickets, cancel),
	                 QUIRE_OK);
	check_lanes(side);
	ck_assert_int_eq(quire_commands_close(&alone.commands, &alone.tickets, cancel),
	                 QUIRE_CLOSED);
	ck_assert_int_eq(side->give(&fate, &ticket, &refusal), QUIRE_CLOSED);
	ck_assert_int_eq(give_step(side, true, false, &ticket, &refusal), QUIRE_CLOSED);
	check_lanes(side);
	rest(side);
	ck_assert_int_eq(alone.num_held, 0);
	ck_assert_int_eq(alone.num_refused, 0);
	ck_assert_ptr_null(quire_commands_front(&alone.commands));
}

START_TEST(bases_and_fates_follow_from_the_order_and_no_size_of_lane_gets_stuck)
{
	const struct side side = {alone_give, alone_move, alone_commands};
	const struct sizes sizes = {.commands = 1 + _i % COMMANDS_MAX,
	                            .tickets = 1 + _i / COMMANDS_MAX,
	                            .speculative = 1 + _i % 5};
	struct quire_runtime_config config = {
		.commands_max = sizes.commands,
		.rows_max = 1,
		.tables_max = 1,
		.speculative_max = sizes.speculative,
	};

	quire_memory_resolve(&config.hooks.memory);
	random_state = SEED + (uint64_t)_i;
	for (int list = 0; list < LISTS; list++) {
		memset(&alone, 0, sizeof(alone));
		memset(&model, 0, sizeof(model));
		ck_assert_int_eq(quire_commands_init(&alone.commands, &config), QUIRE_OK);
		ck_assert_int_eq(quire_tickets_init(&alone.tickets, sizes.tickets,
		                                    &config.hooks.memory),
		                 QUIRE_OK);
		drive(&side, &sizes);
		check_shutdown_alone(&side, list % 2 == 0);
		quire_tickets_end(&alone.tickets, &config.hooks.memory);
		quire_commands_end(&alone.commands, &config.hooks.memory);
	}
}
END_TEST

/* ------------------------------------------------------------------ a runtime */

static struct fixture whole;

static struct quire_commands *whole_commands(void)
{
	return &whole.runtime->commands;
}

/* The waiting form: on the thread that polls it answers HELD, or that it would wait. */
static enum quire_status whole_give(const struct quire_command *command,
                                    uint64_t *ticket_out, struct quire_refusal *refusal)
{
	enum quire_status status =
		quire_runtime_command(whole.runtime, command, ticket_out, refusal);

	return status == QUIRE_WOULD_BLOCK ? QUIRE_AGAIN : status;
}

static bool whole_move(void)
{
	return quire_planner_poll(whole.runtime) || quire_executor_poll(whole.runtime);
}

/* What a step must have come to, its fate known. */
static enum quire_status status_of(uint64_t ticket)
{
	const struct position *position = &model.at[ticket];

	if (position->speculative &&
	    (position->fate == QUIRE_FATE_ABANDON ||
	     (position->base != 0 && status_of(position->base) != QUIRE_OK)))
		return QUIRE_ABANDONED;
	return position->wrong ? QUIRE_STALE : QUIRE_OK;
}

/* Every step was told its end, once, and the stream has a token of each that ran. */
static void check_outcomes(void)
{
	int64_t tokens = 0;

	for (uint64_t t = 1; t <= model.count; t++) {
		ck_assert_uint_eq(steps_done[t], model.at[t].step);
		if (!model.at[t].step)
			continue;
		ck_assert_int_eq(outcomes[t].stage, QUIRE_STAGE_RETIRED);
		ck_assert_int_eq(outcomes[t].refusal.status, status_of(t));
		ck_assert_uint_eq(outcomes[t].base, model.at[t].base);
		tokens += status_of(t) == QUIRE_OK;
	}
	ck_assert_int_eq(snapshot_of(&whole, 1, "main").length, tokens);
}

START_TEST(a_runtime_takes_bases_and_fates_from_the_order_and_never_gets_stuck)
{
	const struct side side = {whole_give, whole_move, whole_commands};
	const struct sizes sizes = {.commands = 1 + _i % COMMANDS_MAX,
	                            .tickets = 1 + _i / COMMANDS_MAX,
	                            .speculative = 1 + _i % 5};

	random_state = SEED + (uint64_t)_i;
	for (int list = 0; list < LISTS / 2; list++) {
		memset(&model, 0, sizeof(model));
		memset(steps_done, 0, sizeof(steps_done));
		fixture_begin(&whole, "cpu:inline", 256, 4);
		whole.config.depth = 1 + list % 4;
		whole.config.commands_max = sizes.commands;
		whole.config.tickets_max = sizes.tickets;
		whole.config.speculative_max = sizes.speculative;
		fixture_create(&whole);
		ck_assert_int_eq(open_now(&whole, 1), QUIRE_OK);
		model.count = model.last_other = 1;
		drive(&side, &sizes);
		draw_shutdown();
		ck_assert_int_eq(quire_runtime_shutdown(whole.runtime, false), QUIRE_OK);
		settle(&whole);
		check_outcomes();
		fixture_end(&whole);
	}
}
END_TEST

/* Each fate is asked for again in the same list: what was decided is decided. */
START_TEST(a_fate_is_given_once_and_only_to_a_speculative_step)
{
	const struct side side = {whole_give, whole_move, whole_commands};
	uint64_t ticket;
	struct quire_refusal refusal;

	memset(&model, 0, sizeof(model));
	fixture_start(&whole, 16, 4);
	ck_assert_int_eq(open_now(&whole, 1), QUIRE_OK);
	model.count = model.last_other = 1;
	ck_assert_int_eq(give_step(&side, false, false, &ticket, &refusal), QUIRE_OK);
	draw_ordinary(false, false);
	for (int promote = 0; promote <= 1; promote++) {
		give_fate(&side, promote, 0);
		give_fate(&side, promote, 1);          /* no step */
		give_fate(&side, promote, 2);          /* no speculative one */
		give_fate(&side, promote, UINT64_MAX); /* never drawn */
		ck_assert_int_eq(give_step(&side, true, false, &ticket, &refusal),
		                 QUIRE_OK);
		draw_ordinary(true, false);
		give_fate(&side, promote, ticket);
		give_fate(&side, promote, ticket);
		give_fate(&side, !promote, ticket);
	}
	fixture_end(&whole);
}
END_TEST

struct client {
	uint64_t request;
	enum quire_status status;
	struct quire_refusal refusal;
};

/* Release, after a client's answer; acquire, before it is looked at. */
static _Atomic int answered;

static void *open_and_wait(void *argument)
{
	struct client *client = argument;
	const struct quire_command command = {.kind = QUIRE_COMMAND_OPEN,
	                                      .request = client->request};

	client->status =
		quire_runtime_command(whole.runtime, &command, NULL, &client->refusal);
	atomic_fetch_add_explicit(&answered, 1, memory_order_release);
	return NULL;
}

/* Both wait for the one place, which a step has that is not planned yet; when it is held
 * one of them gets in, and the other would wait for good. */
START_TEST(who_waits_for_room_is_told_when_a_step_comes_to_be_held)
{
	const struct side side = {whole_give, whole_move, whole_commands};
	struct client clients[2] = {{.request = 2}, {.request = 3}};
	struct quire_refusal refusal;
	pthread_t threads[2];
	uint64_t ticket;
	int held;

	fixture_begin(&whole, "cpu:inline", 16, 4);
	whole.config.commands_max = 1;
	fixture_create(&whole);
	ck_assert_int_eq(open_now(&whole, 1), QUIRE_OK);
	ck_assert_int_eq(give_step(&side, true, false, &ticket, &refusal), QUIRE_OK);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, open_and_wait, &clients[i]), 0);
	while (atomic_load_explicit(&answered, memory_order_acquire) < 2)
		settle(&whole);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	held = clients[0].status == QUIRE_HELD ? 0 : 1;
	ck_assert_int_eq(clients[held].status, QUIRE_HELD);
	ck_assert_uint_eq(clients[held].refusal.ticket, ticket);
	ck_assert_int_eq(clients[1 - held].status, QUIRE_OK);
	ck_assert_int_eq(quire_runtime_promote(whole.runtime, ticket), QUIRE_OK);
	settle(&whole);
	ck_assert_int_eq(stats_of(&whole).requests_open, 2);
	fixture_end(&whole);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lanes");
	TCase *tcase = tcase_create("lanes");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(
		tcase,
		bases_and_fates_follow_from_the_order_and_no_size_of_lane_gets_stuck, 0,
		COMMANDS_MAX * TICKETS_MAX);
	tcase_add_loop_test(
		tcase,
		a_runtime_takes_bases_and_fates_from_the_order_and_never_gets_stuck, 0,
		COMMANDS_MAX * TICKETS_MAX);
	tcase_add_test(tcase, a_fate_is_given_once_and_only_to_a_speculative_step);
	tcase_add_test(tcase, who_waits_for_room_is_told_when_a_step_comes_to_be_held);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
