/* SPDX-License-Identifier: MIT */
/* Tickets: cells that are used again, and what a client may learn of a ticket and how
 * long. */
#include "config.h"

#include "runtime/memory_impl.h"
#include "runtime/tickets_impl.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#define PAGES     64
#define PAGE_SIZE 4

/* Cells, in memory from malloc. */
static void begin(struct quire_tickets *tickets, int32_t tickets_max)
{
	struct quire_memory memory = {0};

	quire_memory_resolve(&memory);
	ck_assert_int_eq(quire_tickets_init(tickets, tickets_max, &memory), QUIRE_OK);
}

static void end(struct quire_tickets *tickets)
{
	struct quire_memory memory = {0};

	quire_memory_resolve(&memory);
	quire_tickets_end(tickets, &memory);
}

static uint64_t state_of(struct quire_tickets *tickets, uint64_t ticket)
{
	return atomic_load(&quire_ticket_cell(tickets, ticket)->state);
}

/* ------------------------------------------------------------------ cells */

START_TEST(every_cell_is_free_at_first_and_no_ticket_is_in_it)
{
	for (int32_t tickets_max = 1; tickets_max <= 9; tickets_max++) {
		struct quire_tickets tickets;

		begin(&tickets, tickets_max);
		ck_assert_uint_ge(tickets.mask + 1, (uint64_t)tickets_max);
		for (uint64_t ticket = 1; ticket <= 2 * (tickets.mask + 1); ticket++) {
			ck_assert(quire_ticket_is_free(&tickets, ticket));
			ck_assert_uint_ne(state_of(&tickets, ticket) / 4, ticket);
		}
		end(&tickets);
	}
}
END_TEST

START_TEST(a_cell_is_drawn_again_only_once_its_ticket_has_retired)
{
	struct quire_tickets tickets;
	uint64_t cells;

	begin(&tickets, 4);
	cells = tickets.mask + 1;
	for (uint64_t ticket = 1; ticket <= 5 * cells; ticket++) {
		ck_assert(quire_ticket_is_free(&tickets, ticket));
		quire_ticket_draw(&tickets, ticket);
		for (int stage = QUIRE_STAGE_QUEUED; stage < QUIRE_STAGE_RETIRED;
		     stage++) {
			quire_ticket_advance(&tickets, ticket, (enum quire_stage)stage);
			ck_assert_uint_eq(state_of(&tickets, ticket) / 4, ticket);
			ck_assert_uint_eq(state_of(&tickets, ticket) % 4,
			                  (uint64_t)stage);
			ck_assert(!quire_ticket_is_free(&tickets, ticket + cells));
			ck_assert(quire_ticket_is_free(&tickets, ticket + 1));
		}
		quire_ticket_advance(&tickets, ticket, QUIRE_STAGE_RETIRED);
	}
	end(&tickets);
}
END_TEST

START_TEST(a_new_ticket_inherits_nothing_from_the_last_one_in_its_cell)
{
	struct quire_tickets tickets;
	struct quire_ticket_cell *cell;

	begin(&tickets, 1);
	cell = quire_ticket_cell(&tickets, 1);
	quire_ticket_draw(&tickets, 1);
	atomic_store(&cell->digest, 77);
	atomic_store(&cell->failed, true);
	atomic_store(&cell->abandoned, true);
	atomic_store(&cell->fate, 5 * 4 + QUIRE_FATE_ABANDON);
	quire_ticket_advance(&tickets, 1, QUIRE_STAGE_RETIRED);
	quire_ticket_draw(&tickets, 2);
	ck_assert_ptr_eq(quire_ticket_cell(&tickets, 2), cell);
	ck_assert_uint_eq(atomic_load(&cell->digest), 0);
	ck_assert(!atomic_load(&cell->failed));
	ck_assert(!atomic_load(&cell->abandoned));
	ck_assert_uint_eq(atomic_load(&cell->fate), QUIRE_FATE_OPEN);
	end(&tickets);
}
END_TEST

/* ---------------------------------------------------------- what a client learns */

static enum quire_status stage_now(struct fixture *f, uint64_t ticket,
                                   enum quire_stage stage)
{
	return quire_runtime_wait(f->runtime, ticket, stage, 0, NULL);
}

static uint64_t open_later(struct fixture *f, uint64_t request)
{
	uint64_t ticket;

	ck_assert_int_eq(quire_runtime_open(f->runtime, request, &ticket), QUIRE_OK);
	return ticket;
}

START_TEST(a_step_goes_through_its_stages_one_by_one)
{
	struct quire_segment segment = {.request = 1, .span = 3, .at = 0};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct quire_outcome outcome;
	struct fixture f;
	uint64_t ticket;

	fixture_start(&f, PAGES, PAGE_SIZE);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ticket = submit(&f, &step);
	ck_assert_int_eq(stage_now(&f, ticket, QUIRE_STAGE_QUEUED), QUIRE_OK);
	ck_assert_int_eq(stage_now(&f, ticket, QUIRE_STAGE_PLANNED), QUIRE_TIMEOUT);
	while (quire_planner_poll(f.runtime))
		;
	ck_assert_int_eq(stage_now(&f, ticket, QUIRE_STAGE_PLANNED), QUIRE_OK);
	ck_assert_int_eq(stage_now(&f, ticket, QUIRE_STAGE_ISSUED), QUIRE_TIMEOUT);
	ck_assert_int_eq(stage_now(&f, ticket, QUIRE_STAGE_RETIRED), QUIRE_TIMEOUT);
	while (stage_now(&f, ticket, QUIRE_STAGE_ISSUED) == QUIRE_TIMEOUT)
		ck_assert(quire_executor_poll(f.runtime));
	ck_assert_int_eq(stage_now(&f, ticket, QUIRE_STAGE_RETIRED), QUIRE_TIMEOUT);
	settle(&f);
	ck_assert_int_eq(
		quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_PLANNED, 0, &outcome),
		QUIRE_OK);
	/* The newest stage, not the one asked for. */
	ck_assert_int_eq(outcome.stage, QUIRE_STAGE_RETIRED);
	ck_assert_uint_eq(outcome.step, 1);
	ck_assert_int_eq(outcome.pages_taken, 1);
	fixture_end(&f);
}
END_TEST

START_TEST(no_outcome_is_told_before_it_is_decided)
{
	struct quire_outcome outcome;
	struct fixture f;
	uint64_t ticket;

	fixture_start(&f, PAGES, PAGE_SIZE);
	ck_assert_int_eq(quire_runtime_close(f.runtime, 99, &ticket), QUIRE_OK);
	ck_assert_int_eq(
		quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_QUEUED, 0, &outcome),
		QUIRE_OK);
	ck_assert_int_eq(outcome.stage, QUIRE_STAGE_QUEUED);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
	ck_assert_uint_eq(outcome.step, 0);
	ck_assert_int_eq(outcome_of(&f, ticket).refusal.status, QUIRE_NO_REQUEST);
	fixture_end(&f);
}
END_TEST

START_TEST(the_last_tickets_stay_readable_and_older_ones_are_refused)
{
	struct quire_outcome unused;
	struct fixture f;
	uint64_t newest = 0;

	fixture_begin(&f, "cpu:inline", PAGES, PAGE_SIZE);
	f.config.tickets_max = 8;
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_wait(f.runtime, 0, QUIRE_STAGE_QUEUED, 0, &unused),
	                 QUIRE_INVALID);
	for (uint64_t i = 1; i <= 50; i++) {
		ck_assert_int_eq(stage_now(&f, i, QUIRE_STAGE_QUEUED), QUIRE_INVALID);
		newest = open_later(&f, i % 3);
		ck_assert_uint_eq(newest, i);
		settle(&f);
		for (uint64_t age = 0; age < 8 && age < newest; age++)
			ck_assert_int_eq(stage_now(&f, newest - age, QUIRE_STAGE_RETIRED),
			                 QUIRE_OK);
	}
	ck_assert_int_eq(stage_now(&f, newest - 16, QUIRE_STAGE_QUEUED), QUIRE_INVALID);
	ck_assert_int_eq(stage_now(&f, UINT64_MAX, QUIRE_STAGE_QUEUED), QUIRE_INVALID);
	fixture_end(&f);
}
END_TEST

START_TEST(a_command_without_a_free_cell_is_put_off_and_draws_nothing)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_OPEN, .request = 5};
	struct quire_refusal refusal;
	struct fixture f;
	uint64_t ticket = 123;

	fixture_begin(&f, "cpu:inline", PAGES, PAGE_SIZE);
	f.config.tickets_max = 2;
	fixture_create(&f);
	ck_assert_uint_eq(open_later(&f, 1), 1);
	ck_assert_uint_eq(open_later(&f, 2), 2);
	ck_assert_int_eq(
		quire_runtime_try_command(f.runtime, &command, &ticket, &refusal),
		QUIRE_AGAIN);
	ck_assert_int_eq(refusal.status, QUIRE_AGAIN);
	/* The thread that drives the runtime would wait for itself. */
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, &refusal),
	                 QUIRE_WOULD_BLOCK);
	ck_assert_uint_eq(ticket, 123);
	ck_assert(
		quire_planner_poll(f.runtime)); /* decides ticket 1, whose cell 3 needs */
	ck_assert_int_eq(
		quire_runtime_try_command(f.runtime, &command, &ticket, &refusal),
		QUIRE_OK);
	ck_assert_uint_eq(ticket, 3);
	settle(&f);
	fixture_end(&f);
}
END_TEST

struct waiter {
	struct fixture *f;
	uint64_t ticket;
	enum quire_status status;
	struct quire_outcome outcome;
};

static void *wait_long(void *argument)
{
	struct waiter *waiter = argument;

	waiter->status = quire_runtime_wait(waiter->f->runtime, waiter->ticket,
	                                    QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
	                                    &waiter->outcome);
	return NULL;
}

START_TEST(many_threads_may_wait_for_tickets_of_a_runtime_that_another_drives)
{
	struct waiter waiters[8];
	pthread_t threads[8];
	struct fixture f;

	fixture_start(&f, PAGES, PAGE_SIZE);
	for (int i = 0; i < 8; i++) {
		waiters[i] = (struct waiter){.f = &f,
		                             .ticket = open_later(&f, (uint64_t)i % 4)};
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, wait_long, &waiters[i]), 0);
	}
	settle(&f);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(waiters[i].status, QUIRE_OK);
		ck_assert_int_eq(waiters[i].outcome.stage, QUIRE_STAGE_RETIRED);
	}
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tickets");
	TCase *tcase = tcase_create("tickets");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, every_cell_is_free_at_first_and_no_ticket_is_in_it);
	tcase_add_test(tcase, a_cell_is_drawn_again_only_once_its_ticket_has_retired);
	tcase_add_test(tcase,
	               a_new_ticket_inherits_nothing_from_the_last_one_in_its_cell);
	tcase_add_test(tcase, a_step_goes_through_its_stages_one_by_one);
	tcase_add_test(tcase, no_outcome_is_told_before_it_is_decided);
	tcase_add_test(tcase, the_last_tickets_stay_readable_and_older_ones_are_refused);
	tcase_add_test(tcase, a_command_without_a_free_cell_is_put_off_and_draws_nothing);
	tcase_add_test(
		tcase,
		many_threads_may_wait_for_tickets_of_a_runtime_that_another_drives);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
