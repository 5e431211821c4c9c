/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/linear_history.h"

#include <string.h>

#define OPS_MOST (HISTORY_THREADS * HISTORY_OPS)

/* The search at one moment: what has been put in order, and the FIFO after that. */
struct search {
	const struct history *history;
	int32_t next[HISTORY_THREADS]; /* the first of each thread that has no place */
	int32_t head, tail;
	int32_t row[HISTORY_PAGES * (1 + OPS_MOST)]; /* free: from head to tail */
	bool owned[HISTORY_PAGES];
};

static bool is_page(const struct history *history, int32_t page)
{
	return page >= 0 && page < history->num_pages;
}

static bool overlap(const struct history_op *a, const struct history_op *b)
{
	return a->start < b->end && b->start < a->end;
}

static bool names(const int32_t *pages, int32_t n, int32_t page)
{
	for (int32_t i = 0; i < n; i++) {
		if (pages[i] == page)
			return true;
	}
	return false;
}

/* How many of an op's pages, from the first, it has in its hands for a while. */
static int32_t num_in_hands(const struct history_op *op)
{
	if (op->call == HISTORY_NUM_FREE)
		return 0;
	if (op->status == QUIRE_OK)
		return op->n;
	return history_is_take(op) ? 0 : op->told;
}

/* Whether a call that overlaps this one has the page in its hands. */
static bool in_other_hands(const struct history *history, const struct history_op *op,
                           int32_t page)
{
	for (int32_t i = 0; i < OPS_MOST; i++) {
		const struct history_thread *thread = &history->threads[i / HISTORY_OPS];
		const struct history_op *other = &thread->ops[i % HISTORY_OPS];

		if (i % HISTORY_OPS < thread->num_ops && other != op &&
		    overlap(op, other) && names(other->pages, num_in_hands(other), page))
			return true;
	}
	return false;
}

static bool refusal_agrees(const struct search *search, const struct history_op *op)
{
	const struct history *history = search->history;
	int32_t first = 0, place = op->told;

	while (first < op->n && is_page(history, op->pages[first]))
		first++;
	if (first < op->n || op->status != QUIRE_NOT_OWNED)
		return op->status == QUIRE_INVALID && first < op->n && place == first;
	if (place < 0 || place >= op->n)
		return false;
	for (int32_t i = 0; i < place; i++) {
		if (!search->owned[op->pages[i]] &&
		    !in_other_hands(history, op, op->pages[i]))
			return false;
	}
	return !search->owned[op->pages[place]] ||
	       names(op->pages, place, op->pages[place]) ||
	       in_other_hands(history, op, op->pages[place]);
}

/* Append a batch whose pages are owned; otherwise change nothing. */
static bool give(struct search *search, const struct history_op *op)
{
	int32_t i = 0;

	while (i < op->n && is_page(search->history, op->pages[i]) &&
	       search->owned[op->pages[i]])
		search->owned[op->pages[i++]] = false;
	if (i < op->n) {
		while (i > 0)
			search->owned[op->pages[--i]] = true;
		return false;
	}
	memcpy(&search->row[search->tail], op->pages, (size_t)op->n * sizeof(int32_t));
	search->tail += op->n;
	return true;
}

/* The n in front, if they are the pages of the op. */
static bool take(struct search *search, const struct history_op *op)
{
	const int32_t *front = &search->row[search->head];

	if (op->n > search->tail - search->head ||
	    memcmp(front, op->pages, (size_t)op->n * sizeof(int32_t)))
		return false;
	search->head += op->n;
	for (int32_t i = 0; i < op->n; i++)
		search->owned[front[i]] = true;
	return true;
}

/* Whether the FIFO would have answered like this; if so it is changed accordingly. */
static bool apply(struct search *search, const struct history_op *op)
{
	int32_t num_free = search->tail - search->head;

	if (op->call == HISTORY_NUM_FREE)
		return op->told == num_free;
	if (op->status == QUIRE_OK)
		return history_is_take(op) ? take(search, op) : give(search, op);
	if (history_is_take(op))
		return op->n > num_free &&
		       (op->told == num_free || op->told == HISTORY_UNTOLD);
	return refusal_agrees(search, op);
}

/* Back to where it was before the op, which is the newest. */
static void undo(struct search *search, const struct history_op *op)
{
	if (op->call == HISTORY_NUM_FREE || op->status != QUIRE_OK)
		return;
	if (history_is_take(op))
		search->head -= op->n;
	else
		search->tail -= op->n;
	for (int32_t i = 0; i < op->n; i++)
		search->owned[op->pages[i]] = !history_is_take(op);
}

static bool is_end(const struct search *search)
{
	const struct history_row *after = &search->history->after;

	return search->tail - search->head == after->n &&
	       !memcmp(&search->row[search->head], after->pages,
	               (size_t)after->n * sizeof(int32_t));
}

/* The op of a thread that has no place yet, or NULL. */
static const struct history_op *next_op(const struct search *search, int thread)
{
	const struct history_thread *ops = &search->history->threads[thread];

	return search->next[thread] < ops->num_ops ? &ops->ops[search->next[thread]]
	                                           : NULL;
}

/* Whether all that has no place yet can follow. */
static bool has_rest(struct search *search)
{
	int64_t first_end = INT64_MAX;

	for (int t = 0; t < HISTORY_THREADS; t++) {
		const struct history_op *op = next_op(search, t);

		if (op && op->end < first_end)
			first_end = op->end;
	}
	if (first_end == INT64_MAX)
		return is_end(search);
	for (int t = 0; t < HISTORY_THREADS; t++) {
		const struct history_op *op = next_op(search, t);

		if (!op || op->start >= first_end || !apply(search, op))
			continue;
		search->next[t]++;
		if (has_rest(search))
			return true;
		search->next[t]--;
		undo(search, op);
	}
	return false;
}

bool history_has_order(const struct history *history)
{
	struct search search;

	search.history = history;
	search.head = 0;
	search.tail = history->before.n;
	memset(search.next, 0, sizeof(search.next));
	memset(search.owned, 1, sizeof(search.owned));
	for (int32_t i = 0; i < history->before.n; i++) {
		search.row[i] = history->before.pages[i];
		search.owned[search.row[i]] = false;
	}
	return has_rest(&search);
}

static int32_t count_pairs(const struct history *history,
                           bool (*counts)(const struct history *,
                                          const struct history_op *,
                                          const struct history_op *))
{
	int32_t pairs = 0;

	for (int32_t i = 0; i < OPS_MOST; i++) {
		for (int32_t k = 0; k < OPS_MOST; k++) {
			const struct history_thread *a =
				&history->threads[i / HISTORY_OPS];
			const struct history_thread *b =
				&history->threads[k / HISTORY_OPS];

			pairs += a < b && i % HISTORY_OPS < a->num_ops &&
			         k % HISTORY_OPS < b->num_ops &&
			         counts(history, &a->ops[i % HISTORY_OPS],
			                &b->ops[k % HISTORY_OPS]);
		}
	}
	return pairs;
}

static bool is_overlap(const struct history *history, const struct history_op *a,
                       const struct history_op *b)
{
	(void)history;
	return overlap(a, b);
}

static bool is_contest(const struct history *history, const struct history_op *a,
                       const struct history_op *b)
{
	if (a->call != HISTORY_FREE || b->call != HISTORY_FREE || !overlap(a, b))
		return false;
	for (int32_t i = 0; i < a->n; i++) {
		if (is_page(history, a->pages[i]) && names(b->pages, b->n, a->pages[i]))
			return true;
	}
	return false;
}

int32_t history_overlaps(const struct history *history)
{
	return count_pairs(history, is_overlap);
}

int32_t history_contests(const struct history *history)
{
	return count_pairs(history, is_contest);
}

static void print_pages(const int32_t *pages, int32_t n, FILE *file)
{
	for (int32_t i = 0; i < n; i++)
		fprintf(file, " %d", pages[i]);
}

static void print_op(const struct history_op *op, FILE *file)
{
	static const char *const calls[HISTORY_CALLS] = {
		"try_allocate", "allocate", "allocate_wait", "free", "num_free"};

	fprintf(file, "%s", calls[op->call]);
	if (history_is_take(op))
		fprintf(file, " %d", op->n);
	else
		print_pages(op->pages, op->call == HISTORY_FREE ? op->n : 0, file);
	fprintf(file, " -> ");
	if (op->call == HISTORY_NUM_FREE) {
		fprintf(file, "%d\n", op->told);
		return;
	}
	fprintf(file, "%s", quire_status_name(op->status));
	if (op->status == QUIRE_OK && history_is_take(op))
		print_pages(op->pages, op->n, file);
	if (op->status != QUIRE_OK && op->told != HISTORY_UNTOLD)
		fprintf(file, ", %s %d", history_is_take(op) ? "available" : "place",
		        op->told);
	fprintf(file, "\n");
}

/* The op that starts first of those after `moment`, and its thread. */
static const struct history_op *first_after(const struct history *history, int64_t moment,
                                            int *thread_out)
{
	const struct history_op *first = NULL;

	for (int t = 0; t < HISTORY_THREADS; t++) {
		for (int32_t i = 0; i < history->threads[t].num_ops; i++) {
			const struct history_op *op = &history->threads[t].ops[i];

			if (op->start <= moment || (first && op->start > first->start))
				continue;
			first = op;
			*thread_out = t;
		}
	}
	return first;
}

void history_print(const struct history *history, FILE *file)
{
	int thread = 0;
	const struct history_op *op = first_after(history, INT64_MIN, &thread);
	int64_t zero = op ? op->start : 0;

	fprintf(file, "  free before:");
	print_pages(history->before.pages, history->before.n, file);
	fprintf(file, "\n  thread  from    to  call\n");
	for (; op; op = first_after(history, op->start, &thread)) {
		fprintf(file, "  %6d  %4lld  %4lld  ", thread,
		        (long long)(op->start - zero), (long long)(op->end - zero));
		print_op(op, file);
	}
	fprintf(file, "  free after: ");
	print_pages(history->after.pages, history->after.n, file);
	fprintf(file, "\n");
}
