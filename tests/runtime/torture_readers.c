/* SPDX-License-Identifier: MIT */
/*
 * torture_readers [SECONDS [SEED]]: one client that changes streams in every way there
 * is, and readers that take snapshots of them all the time.
 *
 * The client is alone, and nothing it asks for is refused.  So before it gives a command
 * it knows each state that the command will make, and writes it to the stream's log; the
 * number of the step that makes it is part of that.  Every change makes one generation
 * more, so the generation of a stream's birth, which the client looks up before it goes
 * on, makes all others known.  A snapshot then has to be the logged state of its
 * generation, to the letter.  Only page ids are the runtime's own: of one generation all
 * readers must be shown the same.
 */
#include "config.h"

#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define READERS    8
#define REQUESTS   3
#define LABELS     4
#define STREAMS    (REQUESTS * LABELS)
#define PAGE_SIZE  4
#define NUM_PAGES  1024 /* more than held steps, forks and returns need together */
#define SEQ_TOKENS 160
#define LIST_MAX   (SEQ_TOKENS / PAGE_SIZE)
#define SPAN_MAX   6
#define SEGMENTS   4
#define PAIRS      2
#define DRAFTS     3
#define LOG_MAX    (1 << 14)
#define NS_PER_S   INT64_C(1000000000)
#define HANG_NS    (60 * NS_PER_S)
#define ROUND_NS   (NS_PER_S / 3)

static const char *const labels[LABELS] = {"main", "a", "b", "c"};

/* ------------------------------------------------------------------ what is known */

struct entry {
	bool born; /* the first of a stream that was not there */
	int32_t length;
	int32_t released;
	uint64_t step;
	_Atomic uint64_t generation; /* 0: of a birth that was not looked up yet */
	_Atomic uint64_t pages;      /* a hash of the list that was shown; 0: none yet */
};

/* Of one name, over all streams that bear it one after the other. */
struct log {
	_Atomic int32_t count;
	struct entry entries[LOG_MAX];
};

struct stream {
	bool exists;
	bool changed; /* by the step or command being drawn ... */
	bool born;    /* ... which made it */
	int32_t length;
	int32_t released;
};

struct streams {
	struct stream of[REQUESTS][LABELS];
};

struct pairs {
	int32_t num;
	int32_t source[PAIRS], target[PAIRS];
};

struct action {
	int32_t num; /* segments */
	int32_t request[SEGMENTS], label[SEGMENTS], span[SEGMENTS];
	struct pairs pre, post;
	uint32_t flags;
	int32_t delay_us;
};

struct world;

struct reader {
	struct world *world;
	pthread_t thread;
	uint64_t random;
	uint64_t looks, exact, unborn;
	uint64_t generations[REQUESTS][LABELS];
};

struct world {
	struct fixture f;
	uint64_t random;
	int64_t end_ns;
	_Atomic bool over;
	_Atomic int32_t favourite; /* the stream that most steps change, for a while */
	bool full;                 /* a log is */
	struct streams now;
	uint64_t step; /* the newest that counts */
	uint64_t ticket;
	uint64_t commands;
	uint64_t poll_random[2];
	struct log logs[REQUESTS][LABELS];
	struct reader readers[READERS];
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

static int32_t below(uint64_t *state, int32_t bound)
{
	return (int32_t)(next_random(state) % (uint64_t)bound);
}

/* ------------------------------------------------------------------ losing time */

static _Thread_local uint64_t *poll_random;

static void lose_time(void *argument, enum quire_role role)
{
	struct world *world = argument;

	poll_random = &world->poll_random[role];
	if (below(poll_random, 16) == 0)
		usleep((useconds_t)below(poll_random, 60));
}

/* A clock that is asked between what the executor tells and what it tells next: there
 * too time goes by. */
static int64_t slow_now_ns(void *argument)
{
	(void)argument;
	if (poll_random != NULL && below(poll_random, 8) == 0)
		usleep((useconds_t)below(poll_random, 40));
	return now_ns();
}

static enum quire_status work(void *argument)
{
	usleep((useconds_t)(uintptr_t)argument);
	return QUIRE_OK;
}

static enum quire_status queue_work(void *argument, const struct quire_plan *plan,
                                    struct quire_dstream *compute)
{
	(void)plan;
	return quire_dstream_call(compute, work, argument);
}

/* ------------------------------------------------------------------ drawing a step */

static void draw_pairs(uint64_t *random, struct pairs *pairs)
{
	bool taken[LABELS] = {false};

	pairs->num = 0;
	if (below(random, 4) != 0)
		return;
	for (int32_t n = 1 + below(random, PAIRS); n > 0; n--) {
		int32_t source = below(random, LABELS), target = below(random, LABELS);

		if (source == target || taken[target])
			continue;
		taken[target] = true;
		pairs->source[pairs->num] = source;
		pairs->target[pairs->num++] = target;
	}
}

static void change(struct stream *stream)
{
	stream->born |= !stream->exists;
	stream->exists = stream->changed = true;
}

static bool is_in_batch(const struct action *action, int32_t request)
{
	for (int32_t i = 0; i < action->num; i++)
		if (action->request[i] == request)
			return true;
	return false;
}

static void fork_all(struct streams *streams, const struct action *action,
                     const struct pairs *pairs)
{
	for (int32_t i = 0; i < pairs->num; i++)
		for (int32_t r = 0; r < REQUESTS; r++) {
			const struct stream *source = &streams->of[r][pairs->source[i]];
			struct stream *target = &streams->of[r][pairs->target[i]];

			if (!source->exists || !is_in_batch(action, r))
				continue;
			change(target);
			target->length = source->length;
			target->released = source->released;
		}
}

static bool has_segment(const struct action *action, int32_t request, int32_t label)
{
	for (int32_t i = 0; i < action->num; i++)
		if (action->request[i] == request && action->label[i] == label)
			return true;
	return false;
}

static void add_segment(uint64_t *random, struct action *action, int32_t stream)
{
	int32_t request = stream / LABELS, label = stream % LABELS, n = action->num;

	if (has_segment(action, request, label))
		return;
	action->request[n] = request;
	action->label[n] = label;
	action->span[n] = 1 + below(random, SPAN_MAX);
	action->num++;
}

/* What the step makes of the streams; false: one would be too long. */
static bool apply(struct streams *streams, const struct action *action)
{
	fork_all(streams, action, &action->pre);
	for (int32_t i = 0; i < action->num; i++) {
		struct stream *stream =
			&streams->of[action->request[i]][action->label[i]];

		if (stream->released + stream->length + action->span[i] > SEQ_TOKENS)
			return false;
		change(stream);
		if ((action->flags & QUIRE_STEP_NO_COMMIT) == 0)
			stream->length += action->span[i];
	}
	fork_all(streams, action, &action->post);
	return true;
}

static void forget_changes(struct streams *streams)
{
	for (int32_t i = 0; i < STREAMS; i++)
		streams->of[i / LABELS][i % LABELS].changed =
			streams->of[i / LABELS][i % LABELS].born = false;
}

/* A step that is not refused behind @before, and what it makes of that.  Only a stream
 * that each step changes needs all that is kept of what was not retired yet. */
static void draw_step(struct world *world, struct action *action,
                      const struct streams *before, struct streams *after)
{
	uint64_t *random = &world->random;
	int32_t favourite = atomic_load_explicit(&world->favourite, memory_order_relaxed);

	do {
		*after = *before;
		forget_changes(after);
		*action = (struct action){.num = 0};
		if (below(random, 8) != 0)
			add_segment(random, action, favourite);
		for (int32_t n = 1 + below(random, SEGMENTS - 1); n > 0; n--)
			add_segment(random, action, below(random, STREAMS));
		draw_pairs(random, &action->pre);
		draw_pairs(random, &action->post);
		if (below(random, 6) == 0)
			action->flags |= QUIRE_STEP_NO_COMMIT;
		if (below(random, 4) == 0)
			action->flags |= QUIRE_STEP_COPY_FORKS;
		if (below(random, 4) == 0)
			action->delay_us = 1 + below(random, 100);
	} while (!apply(after, action));
}

/* ------------------------------------------------------------------ the client */

/* States that a command is about to make; @step: the number of the step that has made
 * them, or of the newest one before. */
static void write_log(struct world *world, const struct streams *after, uint64_t step)
{
	for (int32_t i = 0; i < STREAMS; i++) {
		const struct stream *stream = &after->of[i / LABELS][i % LABELS];
		struct log *log = &world->logs[i / LABELS][i % LABELS];
		int32_t n = atomic_load_explicit(&log->count, memory_order_relaxed);
		struct entry *entry = &log->entries[n];

		if (!stream->changed)
			continue;
		entry->born = stream->born;
		entry->length = stream->length;
		entry->released = stream->released;
		entry->step = step;
		/* Relaxed: only this thread writes them while they are 0. */
		if (!stream->born)
			atomic_store_explicit(
				&entry->generation,
				1 + atomic_load_explicit(&entry[-1].generation,
			                                 memory_order_relaxed),
				memory_order_relaxed);
		/* Pairs with the acquire in find_entry: the entry is seen with it. */
		atomic_store_explicit(&log->count, n + 1, memory_order_release);
		world->full |= n + 1 >= LOG_MAX - DRAFTS;
	}
	world->now = *after;
}

/* The queue has room for all drafts, so what fills it was given before the first of them,
 * and is taken whatever their fate. */
static uint64_t give(struct world *world, const struct quire_command *command)
{
	enum quire_status status;
	uint64_t ticket;

	while ((status = quire_runtime_command(world->f.runtime, command, &ticket,
	                                       NULL)) == QUIRE_HELD)
		sched_yield();
	must(status == QUIRE_OK);
	world->commands++;
	return ticket;
}

static void await(struct world *world, uint64_t ticket, enum quire_stage stage)
{
	struct quire_outcome outcome;

	must(quire_runtime_wait(world->f.runtime, ticket, stage, now_ns() + HANG_NS,
	                        &outcome) == QUIRE_OK);
	must(outcome.refusal.status == QUIRE_OK);
}

/* Nothing else can be shown of a stream that has just been made. */
static void look_births_up(struct world *world, uint64_t ticket, enum quire_stage stage)
{
	for (int32_t i = 0; i < STREAMS; i++) {
		struct log *log = &world->logs[i / LABELS][i % LABELS];
		int32_t n = atomic_load_explicit(&log->count, memory_order_relaxed);
		struct quire_snapshot snapshot;

		if (!world->now.of[i / LABELS][i % LABELS].born)
			continue;
		await(world, ticket, stage);
		snapshot = snapshot_of(&world->f, (uint64_t)(i / LABELS),
		                       labels[i % LABELS]);
		must(snapshot.length == log->entries[n - 1].length);
		must(snapshot.released == log->entries[n - 1].released);
		must(snapshot.step == log->entries[n - 1].step);
		must(n == 1 || snapshot.generation > log->entries[n - 2].generation);
		/* Pairs with the acquire in find_entry. */
		atomic_store_explicit(&log->entries[n - 1].generation,
		                      snapshot.generation, memory_order_release);
	}
	forget_changes(&world->now);
}

static void note_done(void *argument, uint64_t ticket,
                      const struct quire_outcome *outcome)
{
	(void)argument;
	(void)ticket;
	must(outcome->refusal.status == QUIRE_OK ||
	     outcome->refusal.status == QUIRE_ABANDONED);
}

static int32_t name_pairs(const struct pairs *pairs, struct quire_fork *forks)
{
	for (int32_t i = 0; i < pairs->num; i++)
		forks[i] = (struct quire_fork){labels[pairs->source[i]],
		                               labels[pairs->target[i]]};
	return pairs->num;
}

static uint64_t submit_action(struct world *world, const struct action *action,
                              uint32_t flags)
{
	struct quire_segment segments[SEGMENTS];
	struct quire_fork pre[PAIRS], post[PAIRS];
	const struct quire_step step = {
		.segments = segments,
		.num_segments = action->num,
		.pre_forks = pre,
		.num_pre_forks = name_pairs(&action->pre, pre),
		.post_forks = post,
		.num_post_forks = name_pairs(&action->post, post),
		.flags = action->flags | flags,
		.run = action->delay_us > 0 ? queue_work : NULL,
		.run_argument = (void *)(uintptr_t)action->delay_us,
		.done = note_done,
	};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};

	for (int32_t i = 0; i < action->num; i++)
		segments[i] =
			(struct quire_segment){.request = (uint64_t)action->request[i],
		                               .label = labels[action->label[i]],
		                               .span = action->span[i],
		                               .at = QUIRE_AT_ANY};
	return give(world, &command);
}

static void run_step(struct world *world)
{
	struct action action;
	struct streams after;

	draw_step(world, &action, &world->now, &after);
	write_log(world, &after, ++world->step);
	world->ticket = submit_action(world, &action, 0);
	look_births_up(world, world->ticket, QUIRE_STAGE_PLANNED);
}

/* What a held step does is not shown: it is written down when its turn has come. */
static void run_drafts(struct world *world)
{
	int32_t n = 1 + below(&world->random, DRAFTS);
	int32_t promoted = below(&world->random, n + 1);
	struct streams after[DRAFTS];
	uint64_t tickets[DRAFTS];
	struct action action;

	for (int32_t i = 0; i < n; i++) {
		draw_step(world, &action, i == 0 ? &world->now : &after[i - 1],
		          &after[i]);
		tickets[i] = submit_action(world, &action, QUIRE_STEP_SPECULATIVE);
	}
	for (int32_t i = 0; i < promoted; i++) {
		write_log(world, &after[i], ++world->step);
		must(quire_runtime_promote(world->f.runtime, tickets[i]) == QUIRE_OK);
		world->ticket = tickets[i];
		look_births_up(world, tickets[i], QUIRE_STAGE_ISSUED);
	}
	if (promoted < n)
		must(quire_runtime_abandon(world->f.runtime, tickets[promoted]) ==
		     QUIRE_OK);
}

/* The last page stays. */
static int32_t tokens_in_front(const struct stream *stream, int32_t tokens)
{
	int32_t last = (stream->length + PAGE_SIZE - 1) / PAGE_SIZE - 1;
	int32_t pages = tokens / PAGE_SIZE;

	if (last >= 0 && pages > last)
		pages = last;
	return pages * PAGE_SIZE;
}

static void change_stream(struct world *world, int32_t r, int32_t l)
{
	struct streams after = world->now;
	struct stream *stream = &after.of[r][l];
	struct quire_command command = {
		.request = (uint64_t)r,
		.label = labels[l],
		.tokens = below(&world->random, stream->length + 1),
	};
	int32_t front = tokens_in_front(stream, command.tokens);

	if (!stream->exists)
		return;
	change(stream);
	switch (below(&world->random, 4)) {
	case 0:
		command.kind = QUIRE_COMMAND_RESET;
		command.keep_pages = below(&world->random, 2);
		stream->length = stream->released = 0;
		break;
	case 1:
		command.kind = QUIRE_COMMAND_RELEASE_FRONT;
		stream->length -= front;
		stream->released += front;
		break;
	default:
		command.kind = QUIRE_COMMAND_REWIND;
		stream->length -= command.tokens;
		break;
	}
	write_log(world, &after, world->step);
	world->ticket = give(world, &command);
	forget_changes(&world->now);
}

static void open_request(struct world *world, int32_t r)
{
	struct streams after = world->now;
	const struct quire_command command = {.kind = QUIRE_COMMAND_OPEN,
	                                      .request = (uint64_t)r};

	change(&after.of[r][0]);
	write_log(world, &after, 0); /* none has */
	world->ticket = give(world, &command);
	look_births_up(world, world->ticket, QUIRE_STAGE_RETIRED);
}

static void reopen_request(struct world *world)
{
	int32_t r = below(&world->random, REQUESTS);
	const struct quire_command command = {.kind = QUIRE_COMMAND_CLOSE,
	                                      .request = (uint64_t)r};

	give(world, &command);
	memset(world->now.of[r], 0, sizeof(world->now.of[r]));
	open_request(world, r);
}

/* Another favourite, short enough for many steps. */
static void choose_favourite(struct world *world)
{
	int32_t favourite = below(&world->random, STREAMS);
	const struct stream *stream =
		&world->now.of[favourite / LABELS][favourite % LABELS];

	if (stream->released + stream->length > SEQ_TOKENS / 4)
		change_stream(world, favourite / LABELS, favourite % LABELS);
	/* Relaxed: whom readers look at most. */
	atomic_store_explicit(&world->favourite, favourite, memory_order_relaxed);
}

static void run_client(struct world *world)
{
	while (now_ns() < world->end_ns && !world->full) {
		int32_t choice = below(&world->random, 64);

		if (choice == 0)
			reopen_request(world);
		else if (choice < 3)
			choose_favourite(world);
		else if (choice < 12)
			change_stream(world, below(&world->random, REQUESTS),
			              below(&world->random, LABELS));
		else if (choice < 20)
			run_drafts(world);
		else
			run_step(world);
	}
	must(quire_runtime_drain(world->f.runtime, QUIRE_STAGE_RETIRED,
	                         now_ns() + HANG_NS, NULL) == QUIRE_OK);
}

/* ------------------------------------------------------------------ the readers */

static uint64_t hash_pages(const struct quire_snapshot *snapshot, const int32_t *pages)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	for (int64_t i = 0; i < snapshot->num_pages; i++)
		hash = (hash ^ (uint64_t)pages[i]) * 1099511628211u;
	return hash | 1;
}

static void check_list(const struct quire_snapshot *snapshot, const int32_t *pages)
{
	bool listed[NUM_PAGES] = {false};

	must(snapshot->num_pages <= LIST_MAX);
	must(snapshot->num_pages * PAGE_SIZE >= snapshot->length);
	must(snapshot->released % PAGE_SIZE == 0);
	for (int64_t i = 0; i < snapshot->num_pages; i++) {
		must(pages[i] >= 1 && pages[i] < NUM_PAGES); /* 0 is the sink */
		must(!listed[pages[i]]);
		listed[pages[i]] = true;
	}
}

/* The state of a generation; NULL: it is, or may be, that of a birth not looked up. */
static struct entry *find_entry(struct log *log, uint64_t generation)
{
	/* Pairs with the release in write_log, which came before what was shown. */
	int32_t n = atomic_load_explicit(&log->count, memory_order_acquire);
	bool unborn = false;

	while (n-- > 0) {
		struct entry *entry = &log->entries[n];
		/* Pairs with the release in look_births_up. */
		uint64_t known =
			atomic_load_explicit(&entry->generation, memory_order_acquire);

		if (known == generation)
			return entry;
		if (known != 0 && known < generation)
			break;
		unborn |= known == 0;
	}
	must(unborn); /* no state that the stream ever had */
	return NULL;
}

/* Is it a length that the stream had, up to a state, when the newest step of a kind was
 * one from @least to @most? */
static bool was_length(const struct log *log, const struct entry *entry, int64_t length,
                       uint64_t least, uint64_t most)
{
	uint64_t newer = UINT64_MAX; /* whose change is in the same step replaces it */

	for (;; entry--) {
		if (entry->step <= most && entry->step != newer &&
		    entry->length == length)
			return true;
		if (entry->step <= least)
			return false;
		newer = entry->step;
		if (entry->born || entry == log->entries)
			return length == 0; /* it was not there then */
	}
}

static void check_entry(struct entry *entry, const struct quire_snapshot *snapshot,
                        const int32_t *pages)
{
	uint64_t shown = 0, hash = hash_pages(snapshot, pages);

	must(snapshot->length == entry->length);
	must(snapshot->released == entry->released);
	must(snapshot->step == entry->step);
	/* Relaxed: the value is all there is. */
	must(atomic_compare_exchange_strong_explicit(&entry->pages, &shown, hash,
	                                             memory_order_relaxed,
	                                             memory_order_relaxed) ||
	     shown == hash);
}

static void look(struct reader *reader)
{
	struct world *world = reader->world;
	int32_t stream =
		below(&reader->random, 2) == 0
			? below(&reader->random, STREAMS)
			: atomic_load_explicit(&world->favourite, memory_order_relaxed);
	int32_t r = stream / LABELS, l = stream % LABELS;
	struct quire_runtime_stats before = stats_of(&world->f), after;
	struct quire_snapshot snapshot;
	int32_t pages[LIST_MAX];
	enum quire_status status = quire_runtime_snapshot(
		world->f.runtime, (uint64_t)r, labels[l], &snapshot, pages, LIST_MAX);
	struct entry *entry;

	reader->looks++;
	if (status != QUIRE_OK) {
		must(status == QUIRE_NO_REQUEST || (status == QUIRE_NO_LABEL && l != 0));
		return;
	}
	after = stats_of(&world->f);
	check_list(&snapshot, pages);
	must(snapshot.generation >= reader->generations[r][l]);
	reader->generations[r][l] = snapshot.generation;
	entry = find_entry(&world->logs[r][l], snapshot.generation);
	if (entry == NULL) {
		reader->unborn++;
		return;
	}
	check_entry(entry, &snapshot, pages);
	must(was_length(&world->logs[r][l], entry, snapshot.issued_length,
	                before.steps_issued, after.steps_issued));
	must(was_length(&world->logs[r][l], entry, snapshot.retired_length,
	                before.steps_retired, after.steps_retired));
	reader->exact++;
}

static void *be_reader(void *argument)
{
	struct reader *reader = argument;
	struct quire_refusal refusal;

	/* Relaxed: only ends the loop. */
	while (!atomic_load_explicit(&reader->world->over, memory_order_relaxed)) {
		int32_t choice = below(&reader->random, 1024);

		if (choice == 0)
			must(quire_runtime_check(reader->world->f.runtime, &refusal) ==
			     QUIRE_OK);
		else if (choice < 64)
			sched_yield();
		else
			look(reader);
	}
	return NULL;
}

/* ------------------------------------------------------------------ a round */

static void begin(struct world *world, uint64_t *random)
{
	memset(world, 0, sizeof(*world));
	world->random = 1 + next_random(random);
	fixture_begin(&world->f, TEST_DEVICE_LATE, NUM_PAGES, PAGE_SIZE);
	world->f.config.threads = QUIRE_THREADS_LIBRARY;
	world->f.config.sink = true;
	world->f.config.depth = 1 + below(random, 4);
	world->f.config.commands_max = 2 * DRAFTS + below(random, 12);
	world->f.config.requests_max = REQUESTS;
	world->f.config.request_labels_max = LABELS;
	world->f.config.seq_tokens_max = SEQ_TOKENS;
	world->f.config.on_poll = lose_time;
	world->f.config.on_poll_argument = world;
	world->f.config.hooks.now_ns = slow_now_ns;
	world->poll_random[0] = 1 + next_random(random);
	world->poll_random[1] = 1 + next_random(random);
	fixture_create(&world->f);
	for (int32_t r = 0; r < REQUESTS; r++)
		open_request(world, r);
	for (int32_t i = 0; i < READERS; i++) {
		world->readers[i].world = world;
		world->readers[i].random = 1 + next_random(random);
	}
}

/* Everything is retired: each stream is shown in its newest state. */
static void check_quiet(struct world *world)
{
	struct quire_refusal refusal;

	must(stats_of(&world->f).steps_retired == world->step);
	for (int32_t i = 0; i < STREAMS; i++) {
		struct log *log = &world->logs[i / LABELS][i % LABELS];
		int32_t n = atomic_load_explicit(&log->count, memory_order_relaxed);
		struct quire_snapshot snapshot;

		if (!world->now.of[i / LABELS][i % LABELS].exists)
			continue;
		snapshot = snapshot_of(&world->f, (uint64_t)(i / LABELS),
		                       labels[i % LABELS]);
		must(snapshot.generation == log->entries[n - 1].generation);
		must(snapshot.length == log->entries[n - 1].length);
		must(snapshot.issued_length == snapshot.length);
		must(snapshot.retired_length == snapshot.length);
	}
	must(quire_runtime_check(world->f.runtime, &refusal) == QUIRE_OK);
}

static void play_round(struct world *world, uint64_t *random, int64_t end_ns)
{
	begin(world, random);
	world->end_ns = now_ns() + ROUND_NS < end_ns ? now_ns() + ROUND_NS : end_ns;
	for (int32_t i = 0; i < READERS; i++)
		must(pthread_create(&world->readers[i].thread, NULL, be_reader,
		                    &world->readers[i]) == 0);
	run_client(world);
	atomic_store_explicit(&world->over, true, memory_order_relaxed);
	for (int32_t i = 0; i < READERS; i++)
		pthread_join(world->readers[i].thread, NULL);
	check_quiet(world);
	fixture_end(&world->f);
}

int main(int argc, char **argv)
{
	static struct world world;
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)now_ns();
	uint64_t random = seed | 1, commands = 0, looks = 0, exact = 0, unborn = 0;
	int64_t end_ns = now_ns() + (int64_t)(seconds * (double)NS_PER_S);
	int rounds = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (; now_ns() < end_ns; rounds++) {
		play_round(&world, &random, end_ns);
		commands += world.commands;
		for (int32_t i = 0; i < READERS; i++) {
			looks += world.readers[i].looks;
			exact += world.readers[i].exact;
			unborn += world.readers[i].unborn;
		}
	}
	printf("%d rounds, %llu commands, %llu looks: %llu at a state that is known, "
	       "%llu at one not looked up yet\n",
	       rounds, (unsigned long long)commands, (unsigned long long)looks,
	       (unsigned long long)exact, (unsigned long long)unborn);
	return EXIT_SUCCESS;
}
