/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/weak_memory.h"

#include "tests/alloc/random.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define PLACES_MOST 80
#define STORES_MOST 250 /* of a place */
#define STEPS_MOST  50000
#define SLEEP_MOST  300 /* steps */
#define STACK_BYTES ((size_t)64 << 10)

/*
 * Stores are ordered by their times.  A read-modify-write comes one after the store that
 * it read; others leave room for stores that are still to come between.
 */
#define TIME_STRIDE 1024
#define TIME_ROOM   4

struct view {
	uint32_t least[PLACES_MOST]; /* times */
};

struct store {
	uint32_t time;
	uint64_t value;
	struct view view;
};

struct place {
	uint32_t size;
	uint32_t late_percent; /* loads that return an old store, if there is one */
	uint32_t num_stores;
	struct store store[STORES_MOST]; /* in modification order */
};

struct thread {
	struct view seen;
	struct view acquired; /* what an acquire fence adds to it */
	struct view released; /* what a relaxed store carries */
	ucontext_t context;
	void (*body)(void);
	uint32_t wakes; /* it does not run before this step, if another may */
	bool done;
};

static struct place places[PLACES_MOST];
static uint32_t num_places;
static volatile char *place_is_at[PLACES_MOST];

/* The last one runs before the others. */
static struct thread threads[WEAK_THREADS + 1];
static struct thread *const first_thread = &threads[WEAK_THREADS];
static char stacks[WEAK_THREADS + 1][STACK_BYTES];
static struct thread *running; /* NULL: none */
static ucontext_t scheduler;
static const char *failure;

static uint64_t seed;
static uint32_t num_steps, switch_percent, sleep_percent;
uint64_t weak_num_late;

uint32_t weak_random(uint32_t n)
{
	return (uint32_t)(random_next(&seed) % n);
}

static bool chance(uint32_t percent)
{
	return weak_random(100) < percent;
}

/* ---------------------------------------------------------------- threads */

/* Histories differ in how they run, so that each kind of race has one that suits it. */
void weak_begin(uint64_t new_seed)
{
	static const uint32_t switches[] = {2, 5, 12, 30};
	static const uint32_t sleeps[] = {0, 20, 60};

	seed = new_seed;
	num_places = 0;
	num_steps = 0;
	failure = NULL;
	switch_percent = switches[weak_random(4)];
	sleep_percent = sleeps[weak_random(3)];
}

void weak_watch(volatile void *at, uint32_t size, uint32_t n)
{
	static const uint32_t lates[] = {0, 50, 50, 90};

	if (num_places + n > PLACES_MOST)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		struct place *place = &places[num_places];

		place_is_at[num_places++] = (volatile char *)at + i * size;
		place->size = size;
		place->late_percent = lates[weak_random(4)];
		place->num_stores = 1;
		memset(&place->store[0], 0, sizeof(place->store[0]));
		memcpy(&place->store[0].value, (char *)at + i * size, size);
	}
}

uint32_t weak_me(void)
{
	return (uint32_t)(running - threads);
}

void weak_fail(const char *why)
{
	failure = why;
	swapcontext(&running->context, &scheduler);
	abort(); /* nobody runs on */
}

void weak_pause(uint32_t steps_most)
{
	if (++num_steps > STEPS_MOST)
		weak_fail("it finds no end");
	running->wakes = num_steps + weak_random(steps_most + 1);
	swapcontext(&running->context, &scheduler);
}

static void start(void)
{
	running->body();
	running->done = true;
}

static void prepare(struct thread *thread, void (*body)(void))
{
	memset(thread, 0, sizeof(*thread));
	thread->seen = first_thread->seen;
	thread->body = body;
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = stacks[thread - threads];
	thread->context.uc_stack.ss_size = STACK_BYTES;
	thread->context.uc_link = &scheduler;
	makecontext(&thread->context, start, 0);
}

/* One that is awake, or the first to wake, or NULL. */
static struct thread *next_thread(void)
{
	struct thread *awake[WEAK_THREADS + 1], *next = NULL;
	uint32_t n = 0;

	for (struct thread *thread = threads; thread <= first_thread; thread++) {
		if (thread->done)
			continue;
		if (thread->wakes <= num_steps)
			awake[n++] = thread;
		if (!next || thread->wakes < next->wakes)
			next = thread;
	}
	if (n)
		return awake[weak_random(n)];
	if (next)
		num_steps = next->wakes;
	return next;
}

static void run_all(void)
{
	while (!failure && (running = next_thread()))
		swapcontext(&scheduler, &running->context);
	running = NULL;
}

const char *weak_run(void (*first)(void), void (*others)(void))
{
	for (uint32_t i = 0; i < WEAK_THREADS; i++)
		threads[i].done = true;
	memset(&first_thread->seen, 0, sizeof(first_thread->seen));
	prepare(first_thread, first);
	run_all();
	for (uint32_t i = 0; i < WEAK_THREADS; i++)
		prepare(&threads[i], others);
	run_all();
	return failure;
}

/* ----------------------------------------------------------------- stores */

static void step(void)
{
	num_steps++;
	if (chance(switch_percent))
		weak_pause(chance(sleep_percent) ? SLEEP_MOST : 0);
}

static struct place *place_at(const volatile void *at)
{
	for (uint32_t i = 0; i < num_places; i++)
		if (place_is_at[i] == at)
			return &places[i];
	weak_fail("an access outside of what there is");
}

static uint32_t *least_of(struct view *view, const struct place *place)
{
	return &view->least[place - places];
}

static void join(struct view *into, const struct view *view)
{
	for (uint32_t i = 0; i < num_places; i++)
		if (into->least[i] < view->least[i])
			into->least[i] = view->least[i];
}

static struct store *last_store(struct place *place)
{
	return &place->store[place->num_stores - 1];
}

static bool has_room_behind(struct place *place, const struct store *store)
{
	return store == last_store(place) || store[1].time - store->time >= TIME_ROOM;
}

/* One of the stores that the thread may still see. */
static struct store *pick(struct place *place)
{
	struct store *last = last_store(place), *oldest = last;

	while (oldest > place->store &&
	       oldest[-1].time >= *least_of(&running->seen, place))
		oldest--;
	if (oldest == last || !chance(place->late_percent))
		return last;
	weak_num_late++;
	return oldest + (chance(70) ? 0 : weak_random((uint32_t)(last - oldest)));
}

/* The same, and another store may come right behind it. */
static struct store *pick_with_room(struct place *place)
{
	struct store *store = pick(place);

	return has_room_behind(place, store) ? store : last_store(place);
}

static void see(struct place *place, const struct store *store, memory_order order)
{
	uint32_t *least = least_of(&running->seen, place);

	if (*least < store->time)
		*least = store->time;
	join(&running->acquired, &store->view);
	if (order != memory_order_relaxed && order != memory_order_release)
		join(&running->seen, &store->view);
}

/*
 * A new store behind another, at a time of its own.  It moves the stores that come later,
 * so a pointer to one is good until then only.
 */
static struct store *add(struct place *place, struct store *behind, uint32_t time,
                         uint64_t value, memory_order order)
{
	struct store *end = last_store(place) + 1, *store = behind + 1;

	if (place->num_stores++ == STORES_MOST)
		weak_fail("more stores than a history has room for");
	if (store == end)
		memcpy((void *)place_is_at[place - places], &value, place->size);
	memmove(store + 1, store, (size_t)(end - store) * sizeof(*store));
	*least_of(&running->seen, place) = time;
	store->time = time;
	store->value = value;
	store->view = order == memory_order_relaxed || order == memory_order_acquire
	                      ? running->released
	                      : running->seen;
	*least_of(&store->view, place) = time;
	return store;
}

/* The store of a read-modify-write that reads `old`. */
static void replace(struct place *place, struct store *old, uint64_t value,
                    memory_order order)
{
	see(place, old, order);
	join(&add(place, old, old->time + 1, value, order)->view, &old->view);
}

/* ------------------------------------------------------------- operations */

uint64_t weak_load(const volatile void *at, memory_order order)
{
	struct place *place;
	struct store *store;

	step();
	place = place_at(at);
	store = pick(place);
	see(place, store, order);
	return store->value;
}

void weak_store(volatile void *at, uint32_t size, uint64_t value, memory_order order)
{
	struct place *place;
	struct store *behind;
	uint32_t room = 2 * TIME_STRIDE;

	if (!running) {
		memcpy((void *)at, &value, size);
		return;
	}
	step();
	place = place_at(at);
	behind = pick_with_room(place);
	if (behind != last_store(place))
		room = behind[1].time - behind->time;
	add(place, behind, behind->time + room / 2, value, order);
}

uint64_t weak_exchange(volatile void *at, uint64_t value, memory_order order)
{
	struct place *place;
	struct store *old;
	uint64_t found;

	step();
	place = place_at(at);
	old = pick_with_room(place);
	found = old->value;
	replace(place, old, value, order);
	return found;
}

bool weak_cas(volatile void *at, uint64_t *expected, uint64_t value, memory_order success,
              memory_order failure_order)
{
	struct place *place;
	struct store *old;

	step();
	place = place_at(at);
	old = pick(place);
	if (old->value == *expected && !has_room_behind(place, old))
		old = last_store(place);
	if (old->value != *expected) {
		see(place, old, failure_order);
		*expected = old->value;
		return false;
	}
	replace(place, old, value, success);
	return true;
}

bool weak_cas_2(uint64_t *at, const uint64_t compare[2], const uint64_t set[2],
                uint64_t *found_out)
{
	struct place *half;
	struct view view;
	uint32_t time;

	step();
	half = place_at(at);
	if (last_store(&half[0])->value != compare[0] ||
	    last_store(&half[1])->value != compare[1]) {
		for (int i = 0; found_out && i < 2; i++)
			found_out[i] = weak_load(&at[i], memory_order_relaxed);
		return false;
	}
	time = last_store(half)->time + 1;
	for (int i = 0; i < 2; i++)
		replace(&half[i], last_store(&half[i]), set[i], memory_order_relaxed);
	view = last_store(half)->view;
	*least_of(&view, &half[1]) = time;
	for (int i = 0; i < 2; i++)
		last_store(&half[i])->view = view;
	return true;
}

void weak_fence(memory_order order)
{
	if (order == memory_order_acquire)
		join(&running->seen, &running->acquired);
	else
		running->released = running->seen;
}

void weak_touch(const volatile void *at)
{
	struct place *place = place_at(at);
	struct store *last = last_store(place);

	if (*least_of(&running->seen, place) < last->time)
		weak_fail("what an owner wrote does not happen before the next owns it");
	add(place, last, last->time + 1, 0, memory_order_relaxed);
}
