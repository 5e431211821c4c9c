/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_TICKETS_IMPL_H
#define QUIRE_RUNTIME_TICKETS_IMPL_H
/*
 * Tickets: one fixed cell per position of the order, used again tickets_max positions
 * later.
 *
 * Who writes a cell
 *   client    draws it, under the commands' lock, once its last user has retired; the
 *             fate of a speculative step, under that lock too
 *   planner   the outcome, then `state` to PLANNED (or RETIRED: a refusal, or no step);
 *   of
 *             a speculative step RETIRED only when its fate is known
 *   executor  digest and failure, then `state` to ISSUED and RETIRED
 * `state` is stored with release and loaded with acquire, so that who sees a stage also
 * sees what was written before it.  An outcome is copied out under the commands' lock,
 * under which alone a cell changes its ticket.
 */
#include <quire/runtime/runtime.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What became of a speculative step, by a command of the control lane. */
enum quire_fate {
	QUIRE_FATE_OPEN,
	QUIRE_FATE_PROMOTE,
	QUIRE_FATE_ABANDON,
};

struct quire_ticket_cell {
	_Atomic uint64_t state;  /* ticket * 4 + stage */
	_Atomic uint64_t digest; /* written before ISSUED */
	/* Of a speculative step: position of the command that decided it, * 4 + fate.
	 * Stored with release by clients under the commands' lock, loaded with acquire by
	 * the planner: it then sees every command drawn before. */
	_Atomic uint64_t fate;
	/* When it was given, of a recorded one; stored before it.  A step that was
	 * promoted in vain may be abandoned while the planner reads: either time will
	 * do. */
	_Atomic int64_t fate_ns;
	bool is_promote_noted; /* in a recording, while it still may end otherwise; the
	                        * planner's */
	/* How it ended, where that is not what `outcome` says; both written before
	 * RETIRED. */
	_Atomic bool failed; /* with the runtime */
	_Atomic bool abandoned;
	struct quire_outcome outcome; /* written before PLANNED; stage, digest left out */
};

struct quire_tickets {
	struct quire_ticket_cell *cells;
	uint64_t mask; /* number of cells - 1, a power of two - 1 */
};

enum quire_status quire_tickets_init(struct quire_tickets *tickets, int32_t tickets_max,
                                     const struct quire_memory *memory);
void quire_tickets_end(struct quire_tickets *tickets, const struct quire_memory *memory);

static inline struct quire_ticket_cell *quire_ticket_cell(struct quire_tickets *tickets,
                                                          uint64_t ticket)
{
	return &tickets->cells[ticket & tickets->mask];
}

/* Whose cell is it now?  Under the commands' lock, under which alone that changes. */
static inline uint64_t quire_ticket_of(struct quire_tickets *tickets, uint64_t ticket)
{
	return atomic_load_explicit(&quire_ticket_cell(tickets, ticket)->state,
	                            memory_order_relaxed) /
	       4;
}

/* May the cell of a new ticket be taken?  Under the commands' lock. */
static inline bool quire_ticket_is_free(struct quire_tickets *tickets, uint64_t ticket)
{
	/* Acquire: pairs with the release in quire_ticket_advance, so that the last
	 * user's writes are over before the cell is drawn again. */
	uint64_t state = atomic_load_explicit(&quire_ticket_cell(tickets, ticket)->state,
	                                      memory_order_acquire);

	return state % 4 == QUIRE_STAGE_RETIRED;
}

/* Has its command not been decided?  Under the commands' lock. */
static inline bool quire_ticket_is_queued(struct quire_tickets *tickets, uint64_t ticket)
{
	return atomic_load_explicit(&quire_ticket_cell(tickets, ticket)->state,
	                            memory_order_relaxed) %
	               4 ==
	       QUIRE_STAGE_QUEUED;
}

/* Under the commands' lock. */
static inline void quire_ticket_draw(struct quire_tickets *tickets, uint64_t ticket)
{
	struct quire_ticket_cell *cell = quire_ticket_cell(tickets, ticket);

	atomic_store_explicit(&cell->digest, 0, memory_order_relaxed);
	atomic_store_explicit(&cell->fate, QUIRE_FATE_OPEN, memory_order_relaxed);
	atomic_store_explicit(&cell->failed, false, memory_order_relaxed);
	atomic_store_explicit(&cell->abandoned, false, memory_order_relaxed);
	atomic_store_explicit(&cell->state, ticket * 4 + QUIRE_STAGE_QUEUED,
	                      memory_order_release);
}

/* Planner and executor. */
static inline void quire_ticket_advance(struct quire_tickets *tickets, uint64_t ticket,
                                        enum quire_stage stage)
{
	atomic_store_explicit(&quire_ticket_cell(tickets, ticket)->state,
	                      ticket * 4 + stage, memory_order_release);
}

#endif
