/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/linear_rings.h"

#include <stdatomic.h>
#include <string.h>

#define SLOTS 256 /* more than all pages and skipped slots of a history */

_Static_assert(SLOTS > RING_PAGES * HISTORY_THREADS * HISTORY_OPS, "slots suffice");

static void answer(struct history_op *op, bool done)
{
	op->status = done ? QUIRE_OK : QUIRE_NO_PAGES;
	op->told = HISTORY_UNTOLD;
}

static struct {
	atomic_uint head, tail;
	atomic_uint sequence[SLOTS];
	atomic_int page[SLOTS];
} sequences;

static bool sequences_take(int32_t n, int32_t *pages_out)
{
	unsigned head = atomic_load(&sequences.head);

	do {
		for (int32_t i = 0; i < n; i++) {
			unsigned place = head + (unsigned)i;

			if (atomic_load(&sequences.sequence[place % SLOTS]) != place + 1)
				return false;
			pages_out[i] = atomic_load(&sequences.page[place % SLOTS]);
		}
		trial_stall();
	} while (!atomic_compare_exchange_strong(&sequences.head, &head,
	                                         head + (unsigned)n));
	return true;
}

static void sequences_give(const int32_t *pages, int32_t n)
{
	unsigned tail = atomic_fetch_add(&sequences.tail, (unsigned)n);

	trial_stall();
	for (int32_t i = 0; i < n; i++) {
		unsigned place = tail + (unsigned)i;

		atomic_store(&sequences.page[place % SLOTS], pages[i]);
		atomic_store(&sequences.sequence[place % SLOTS], place + 1);
	}
}

static void sequences_run(struct history_op *op)
{
	bool done = true;

	if (op->call == HISTORY_NUM_FREE) {
		op->told = (int32_t)(atomic_load(&sequences.tail) -
		                     atomic_load(&sequences.head));
		return;
	}
	if (op->call == HISTORY_FREE)
		sequences_give(op->pages, op->n);
	else
		done = sequences_take(op->n, op->pages);
	answer(op, done);
}

static int32_t sequences_list(int32_t *pages_out)
{
	unsigned head = atomic_load(&sequences.head);
	int32_t n = (int32_t)(atomic_load(&sequences.tail) - head);

	for (int32_t i = 0; i < n; i++)
		pages_out[i] = atomic_load(&sequences.page[(head + (unsigned)i) % SLOTS]);
	return n;
}

const struct trial_queue ring_of_sequences = {"a ring of sequence numbers", sequences_run,
                                              sequences_list};

/*
 * A slot holds ticket << 32 | page + 1, or 0 for the page when a taker came first: then
 * giver and taker draw their next tickets.
 */
static struct {
	atomic_int count;
	atomic_uint head, tail;
	_Atomic uint64_t slot[SLOTS];
} counted;

static void counted_put(int32_t page)
{
	for (;;) {
		uint64_t ticket = atomic_fetch_add(&counted.tail, 1);
		_Atomic uint64_t *slot = &counted.slot[ticket % SLOTS];
		uint64_t seen = atomic_load(slot);

		trial_stall();
		if (seen != ticket << 32 &&
		    atomic_compare_exchange_strong(slot, &seen,
		                                   ticket << 32 | (uint64_t)(page + 1)))
			return;
	}
}

/* There is one: the counter says so. */
static int32_t counted_get(void)
{
	for (;;) {
		uint64_t ticket = atomic_fetch_add(&counted.head, 1);
		_Atomic uint64_t *slot = &counted.slot[ticket % SLOTS];
		uint64_t seen = atomic_load(slot);

		trial_stall();
		while (seen >> 32 != ticket || (seen & UINT32_MAX) == 0) {
			if (atomic_compare_exchange_strong(slot, &seen, ticket << 32))
				break;
		}
		if (seen >> 32 == ticket && (seen & UINT32_MAX))
			return (int32_t)(seen & UINT32_MAX) - 1;
	}
}

static bool counted_take(int32_t n, int32_t *pages_out)
{
	int count = atomic_load(&counted.count);

	do {
		if (count < n)
			return false;
	} while (!atomic_compare_exchange_strong(&counted.count, &count, count - n));
	for (int32_t i = 0; i < n; i++)
		pages_out[i] = counted_get();
	return true;
}

static void counted_give(const int32_t *pages, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		counted_put(pages[i]);
	atomic_fetch_add(&counted.count, n);
}

static void counted_run(struct history_op *op)
{
	bool done = true;

	if (op->call == HISTORY_NUM_FREE) {
		op->told = atomic_load(&counted.count);
		return;
	}
	if (op->call == HISTORY_FREE)
		counted_give(op->pages, op->n);
	else
		done = counted_take(op->n, op->pages);
	answer(op, done);
}

static int32_t counted_list(int32_t *pages_out)
{
	int32_t n = 0;

	for (uint64_t ticket = atomic_load(&counted.head);
	     ticket != atomic_load(&counted.tail); ticket++) {
		uint64_t seen = atomic_load(&counted.slot[ticket % SLOTS]);

		if (seen >> 32 == ticket && (seen & UINT32_MAX))
			pages_out[n++] = (int32_t)(seen & UINT32_MAX) - 1;
	}
	return n;
}

const struct trial_queue ring_and_counter = {"a ring and a counter", counted_run,
                                             counted_list};

void rings_reset(void)
{
	memset(&sequences, 0, sizeof(sequences));
	memset(&counted, 0, sizeof(counted));
	counted.head = counted.tail = 1; /* slots are zeroed: ticket 0 is used */
	for (int32_t p = 0; p < RING_PAGES; p++) {
		sequences_give(&p, 1);
		counted_give(&p, 1);
	}
}
