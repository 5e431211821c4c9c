/* SPDX-License-Identifier: MIT */
/*
 * torture_runtime [SECONDS [SEED]]: clients that know every outcome beforehand, readers
 * that look at everything all the time, delays everywhere.
 *
 * Each client owns requests and a share of the pool, and the shares add up to the pool:
 * so none of its steps may be refused, whatever the others do, though all of them often
 * wait for pages that are on their way back.  Every token has a value of its own, which
 * is read back.
 */
#include "config.h"

#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS     3
#define READERS     3
#define REQUESTS    3 /* of a client */
#define LABELS      2
#define STREAMS     (REQUESTS * LABELS)
#define PAGE_SIZE   4
#define SHARE       18 /* pages of a client */
#define NUM_PAGES   (1 + CLIENTS * SHARE)
#define SPAN_MAX    9
#define IN_FLIGHT   16        /* steps of a client whose rows are kept */
#define TICKETS_MAX (1 << 16) /* more than a round draws: no outcome is forgotten */
#define ROW         (FIXTURE_HEADS * FIXTURE_DIM)
#define NS_PER_S    INT64_C(1000000000)
#define HANG_NS     (60 * NS_PER_S)
#define ROUND_NS    (NS_PER_S / 3)
#define NOBODY      999 /* a request that never is open */

static const char *const labels[LABELS] = {"main", "b"};

/* Rows of one step, and the ticket whose retirement makes them free. */
struct staging {
	uint64_t ticket;
	float k[REQUESTS * SPAN_MAX * ROW];
	float v[REQUESTS * SPAN_MAX * ROW];
};

struct stream {
	int32_t length;
	int32_t pages; /* listed, spare ones included */
	int32_t salt;  /* of this content: what its tokens' values begin with */
};

struct world;

struct client {
	struct world *world;
	pthread_t thread;
	uint64_t random;
	int32_t number;
	int32_t salt;
	uint64_t steps;
	struct stream streams[STREAMS];
	struct staging staging[IN_FLIGHT];
	float out[SHARE * PAGE_SIZE * 2 * ROW];
};

struct reader {
	struct world *world;
	pthread_t thread;
	uint64_t random;
	uint64_t looks;
	uint64_t generations[CLIENTS][STREAMS];
	struct quire_runtime_stats stats;
};

struct world {
	struct fixture f;
	int64_t end_ns;
	_Atomic bool over;
	_Atomic uint64_t newest; /* some ticket drawn lately */
	_Atomic uint64_t refused_in_callback;
	uint64_t poll_random[2];
	struct client clients[CLIENTS];
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

static uint64_t request_of(const struct client *client, int32_t stream)
{
	return (uint64_t)(client->number * REQUESTS + stream / LABELS);
}

static int32_t pages_for(int32_t tokens)
{
	return (tokens + PAGE_SIZE - 1) / PAGE_SIZE;
}

/* ------------------------------------------------------------------ callbacks */

static void lose_time(void *argument, enum quire_role role)
{
	struct world *world = argument;
	uint64_t *state = &world->poll_random[role];

	if (below(state, 16) == 0)
		usleep((useconds_t)below(state, 60));
}

/* What would wait is refused; what need not wait is not. */
static void call_in_callback(struct world *world, uint64_t ticket)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_RESET,
	                                      .request = NOBODY};
	struct quire_runtime *rt = world->f.runtime;
	struct quire_refusal refusal;
	uint64_t other;
	enum quire_status status;

	must(quire_runtime_wait(rt, ticket, QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
	                        NULL) == QUIRE_WOULD_BLOCK);
	must(quire_runtime_wait(rt, ticket, QUIRE_STAGE_QUEUED, 0, NULL) == QUIRE_OK);
	must(quire_runtime_check(rt, &refusal) == QUIRE_WOULD_BLOCK);
	status = quire_runtime_command(rt, &command, &other, &refusal);
	must(status == QUIRE_OK || status == QUIRE_WOULD_BLOCK ||
	     status == QUIRE_CLOSED); /* the round is over, but for this step */
	if (status == QUIRE_WOULD_BLOCK)
		atomic_fetch_add_explicit(&world->refused_in_callback, 1,
		                          memory_order_relaxed);
}

static enum quire_status on_plan(void *argument, struct quire_plan *plan)
{
	struct world *world = argument;

	memset(plan->user, (int)plan->step, (size_t)plan->user_bytes);
	if (plan->step % 8 == 0)
		call_in_callback(world, plan->ticket);
	return QUIRE_OK;
}

static enum quire_status run(void *argument, const struct quire_plan *plan,
                             struct quire_dstream *compute)
{
	(void)compute;
	must(*(const unsigned char *)plan->user == (unsigned char)plan->step);
	call_in_callback(argument, plan->ticket);
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ clients */

static void give(struct client *client, const struct quire_command *command,
                 uint64_t *ticket)
{
	struct world *world = client->world;
	struct quire_refusal refusal;
	enum quire_status status;

	do {
		status = below(&client->random, 2) == 0
		                 ? quire_runtime_command(world->f.runtime, command,
		                                         ticket, &refusal)
		                 : quire_runtime_try_command(world->f.runtime, command,
		                                             ticket, &refusal);
	} while (status == QUIRE_AGAIN);
	must(status == QUIRE_OK);
	/* Relaxed: a number to ask for, no more. */
	atomic_store_explicit(&world->newest, *ticket, memory_order_relaxed);
}

static enum quire_status await(struct client *client, uint64_t ticket,
                               enum quire_stage stage)
{
	struct quire_outcome outcome;

	must(quire_runtime_wait(client->world->f.runtime, ticket, stage,
	                        now_ns() + HANG_NS, &outcome) == QUIRE_OK);
	return outcome.refusal.status;
}

static float value_of(const struct stream *stream, int32_t token, int32_t dim)
{
	return (float)(stream->salt * 512 + token * ROW + dim);
}

static void fill_rows(const struct stream *stream, int32_t span, float *k, float *v)
{
	for (int32_t t = 0; t < span; t++)
		for (int32_t d = 0; d < ROW; d++) {
			k[t * ROW + d] = value_of(stream, stream->length + t, d);
			v[t * ROW + d] = -value_of(stream, stream->length + t, d);
		}
}

static int32_t pages_in_use(const struct client *client)
{
	int32_t pages = 0;

	for (int32_t s = 0; s < STREAMS; s++)
		pages += client->streams[s].pages;
	return pages;
}

/* The rows are nobody's any more, and were written unless the step was put off. */
static void await_rows(struct client *client, const struct staging *staging)
{
	enum quire_status status;

	if (staging->ticket == 0)
		return;
	status = await(client, staging->ticket, QUIRE_STAGE_RETIRED);
	must(status == QUIRE_OK || status == QUIRE_AGAIN);
}

/* Tokens for some streams of one label, as far as the client's share goes. */
static int32_t choose_segments(struct client *client, int32_t label,
                               struct quire_segment *segments, int32_t *streams)
{
	int32_t room = SHARE - pages_in_use(client), n = 0;

	for (int32_t r = 0; r < REQUESTS; r++) {
		int32_t s = r * LABELS + label;
		const struct stream *stream = &client->streams[s];
		int32_t span = 1 + below(&client->random, SPAN_MAX);
		int32_t need = pages_for(stream->length + span) - stream->pages;

		need = need < 0 ? 0 : need;
		if (below(&client->random, 2) == 0 || need > room)
			continue;
		room -= need;
		streams[n] = s;
		segments[n++] = (struct quire_segment){.request = request_of(client, s),
		                                       .label = labels[label],
		                                       .span = span,
		                                       .at = stream->length};
	}
	return n;
}

static void write_step(struct client *client)
{
	struct staging *staging = &client->staging[client->steps++ % IN_FLIGHT];
	struct quire_segment segments[REQUESTS];
	int32_t streams[REQUESTS], tokens = 0;
	int32_t n = choose_segments(client, below(&client->random, LABELS), segments,
	                            streams);
	const struct quire_work work = {
		.kind = QUIRE_WORK_WRITE,
		.write = {.dtype = QUIRE_F32, .k = staging->k, .v = staging->v}};
	const struct quire_step step = {
		.segments = segments,
		.num_segments = n,
		.flags = below(&client->random, 8) == 0 ? QUIRE_STEP_NO_WAIT : 0,
		.work = &work,
		.num_work = 1};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};

	if (n == 0)
		return;
	await_rows(client, staging);
	for (int32_t i = 0; i < n; i++) {
		fill_rows(&client->streams[streams[i]], segments[i].span,
		          staging->k + tokens * ROW, staging->v + tokens * ROW);
		tokens += segments[i].span;
	}
	give(client, &command, &staging->ticket);
	/* Only then may it be refused: if pages were on their way back. */
	if (step.flags != 0) {
		enum quire_status status =
			await(client, staging->ticket, QUIRE_STAGE_PLANNED);

		must(status == QUIRE_OK || status == QUIRE_AGAIN);
		if (status == QUIRE_AGAIN)
			return;
	}
	for (int32_t i = 0; i < n; i++) {
		struct stream *stream = &client->streams[streams[i]];

		stream->length += segments[i].span;
		if (stream->pages < pages_for(stream->length))
			stream->pages = pages_for(stream->length);
	}
}

static void read_step(struct client *client)
{
	int32_t s = below(&client->random, STREAMS);
	const struct stream *stream = &client->streams[s];
	const struct quire_segment segment = {.request = request_of(client, s),
	                                      .label = labels[s % LABELS],
	                                      .at = stream->length};
	const struct quire_work work = {
		.kind = QUIRE_WORK_READ,
		.read = {.count = stream->length, .out = client->out}};
	const struct quire_step step = {
		.segments = &segment, .num_segments = 1, .work = &work, .num_work = 1};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};
	uint64_t ticket;

	if (stream->length == 0)
		return;
	give(client, &command, &ticket);
	must(await(client, ticket, QUIRE_STAGE_RETIRED) == QUIRE_OK);
	for (int32_t t = 0; t < stream->length; t++)
		for (int32_t d = 0; d < ROW; d++) {
			must(client->out[2 * t * ROW + d] == value_of(stream, t, d));
			must(client->out[(2 * t + 1) * ROW + d] ==
			     -value_of(stream, t, d));
		}
}

static void callback_step(struct client *client)
{
	const struct quire_segment segment = {.request = request_of(client, 0),
	                                      .at = client->streams[0].length};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = run,
	                                .run_argument = client->world};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};
	uint64_t ticket;

	give(client, &command, &ticket);
	if (below(&client->random, 4) == 0)
		must(await(client, ticket, QUIRE_STAGE_ISSUED) == QUIRE_OK);
}

static void new_content(struct client *client, int32_t s, bool keep)
{
	struct stream *stream = &client->streams[s];

	stream->length = 0;
	stream->pages = keep ? stream->pages : 0;
	stream->salt = client->salt++ % 8192;
}

static void reset_one(struct client *client)
{
	int32_t s = below(&client->random, STREAMS);
	const struct quire_command command = {.kind = QUIRE_COMMAND_RESET,
	                                      .request = request_of(client, s),
	                                      .label = labels[s % LABELS],
	                                      .keep_pages = below(&client->random, 2)};
	uint64_t ticket;

	if (client->streams[s].length == 0)
		return; /* its label may not be there yet */
	give(client, &command, &ticket);
	new_content(client, s, command.keep_pages != 0);
}

static void reopen_one(struct client *client)
{
	int32_t s = below(&client->random, REQUESTS) * LABELS;
	struct quire_command command = {.kind = QUIRE_COMMAND_CLOSE,
	                                .request = request_of(client, s)};
	uint64_t closed, opened;

	give(client, &command, &closed);
	command.kind = QUIRE_COMMAND_OPEN;
	give(client, &command, &opened);
	for (int32_t l = 0; l < LABELS; l++)
		new_content(client, s + l, false);
	must(await(client, closed, QUIRE_STAGE_PLANNED) == QUIRE_OK);
	must(await(client, opened, QUIRE_STAGE_PLANNED) == QUIRE_OK);
}

static void *be_client(void *argument)
{
	struct client *client = argument;

	while (now_ns() < client->world->end_ns) {
		int32_t choice = below(&client->random, 32);

		if (choice == 0)
			reopen_one(client);
		else if (choice < 4)
			reset_one(client);
		else if (choice < 6)
			callback_step(client);
		else if (choice < 9)
			read_step(client);
		else
			write_step(client);
	}
	for (int32_t i = 0; i < IN_FLIGHT; i++)
		await_rows(client, &client->staging[i]);
	return NULL;
}

/* ------------------------------------------------------------------ readers */

static void check_list(const struct quire_snapshot *snapshot, const int32_t *pages)
{
	bool listed[NUM_PAGES] = {false};

	must(snapshot->length >= 0 &&
	     snapshot->length <= snapshot->num_pages * PAGE_SIZE);
	must(snapshot->num_pages <= SHARE && snapshot->released == 0);
	for (int64_t i = 0; i < snapshot->num_pages; i++) {
		must(pages[i] >= 1 && pages[i] < NUM_PAGES); /* 0 is the sink */
		must(!listed[pages[i]]);
		listed[pages[i]] = true;
	}
}

static void look_at_a_stream(struct reader *reader)
{
	int32_t c = below(&reader->random, CLIENTS), s = below(&reader->random, STREAMS);
	uint64_t *newest = &reader->generations[c][s];
	struct quire_snapshot snapshot;
	int32_t pages[SHARE];
	enum quire_status status = quire_runtime_snapshot(
		reader->world->f.runtime, request_of(&reader->world->clients[c], s),
		labels[s % LABELS], &snapshot, pages, SHARE);

	if (status != QUIRE_OK) {
		must(status == QUIRE_NO_REQUEST ||
		     (status == QUIRE_NO_LABEL && s % LABELS != 0));
		return;
	}
	must(snapshot.generation >=
	     *newest); /* never back, not even over close and open */
	*newest = snapshot.generation;
	check_list(&snapshot, pages);
}

static void look_at_the_stats(struct reader *reader)
{
	struct quire_runtime_stats *old = &reader->stats, stats;

	quire_runtime_stats(reader->world->f.runtime, &stats);
	must(stats.steps_issued <= stats.steps_planned);
	must(stats.steps_retired <= stats.steps_planned);
	must(stats.pages_owned >= 1 && stats.pages_owned <= NUM_PAGES);
	must(stats.pages_free >= 0 && stats.pages_free < NUM_PAGES);
	must(stats.pages_peak < NUM_PAGES);
	must(stats.commands >= old->commands && stats.refused >= old->refused);
	must(stats.steps_issued >= old->steps_issued &&
	     stats.steps_retired >= old->steps_retired);
	must(stats.pages_taken >= old->pages_taken &&
	     stats.pages_given >= old->pages_given);
	*old = stats;
}

static void look_at_a_ticket(struct reader *reader)
{
	enum quire_stage stage = (enum quire_stage)below(&reader->random, 4);
	/* Relaxed: see give. */
	uint64_t newest =
		atomic_load_explicit(&reader->world->newest, memory_order_relaxed);
	uint64_t ticket = newest + 2 - (uint64_t)below(&reader->random, 8);
	int64_t deadline = below(&reader->random, 2) == 0 ? 0 : now_ns() + 200000;
	struct quire_outcome outcome;
	enum quire_status status = quire_runtime_wait(reader->world->f.runtime, ticket,
	                                              stage, deadline, &outcome);

	must(status == QUIRE_OK || status == QUIRE_TIMEOUT || status == QUIRE_INVALID);
	if (status != QUIRE_OK)
		return;
	must(outcome.stage >= stage);
	must(outcome.refusal.status == QUIRE_OK ||
	     outcome.refusal.status == QUIRE_AGAIN ||
	     (outcome.refusal.status == QUIRE_NO_REQUEST &&
	      outcome.refusal.request == NOBODY));
}

static void *be_reader(void *argument)
{
	struct reader *reader = argument;
	struct quire_refusal refusal;

	/* Relaxed: only ends the loop. */
	while (!atomic_load_explicit(&reader->world->over, memory_order_relaxed)) {
		int32_t choice = below(&reader->random, 64);

		if (choice == 0)
			must(quire_runtime_check(reader->world->f.runtime, &refusal) ==
			     QUIRE_OK);
		else if (choice < 16)
			look_at_a_ticket(reader);
		else if (choice < 24)
			look_at_the_stats(reader);
		else
			look_at_a_stream(reader);
		if (choice == 63)
			usleep((useconds_t)below(&reader->random, 100));
		reader->looks++;
	}
	return NULL;
}

/* ------------------------------------------------------------------ a round */

static void begin(struct world *world, uint64_t *random)
{
	memset(world, 0, sizeof(*world));
	fixture_begin(&world->f, "cpu", NUM_PAGES, PAGE_SIZE);
	world->f.config.threads = QUIRE_THREADS_LIBRARY;
	world->f.config.sink = true;
	world->f.config.depth = 1 + below(random, 6);
	world->f.config.commands_max = 1 + below(random, 12);
	world->f.config.tickets_max = TICKETS_MAX;
	world->f.config.requests_max = CLIENTS * REQUESTS;
	world->f.config.request_labels_max = LABELS;
	world->f.config.user_bytes = 64;
	world->f.config.on_plan = on_plan;
	world->f.config.on_plan_argument = world;
	world->f.config.on_poll = lose_time;
	world->f.config.on_poll_argument = world;
	world->poll_random[0] = 1 + next_random(random);
	world->poll_random[1] = 1 + next_random(random);
	fixture_create(&world->f);
	for (int32_t c = 0; c < CLIENTS; c++) {
		struct client *client = &world->clients[c];

		client->world = world;
		client->number = c;
		client->random = 1 + next_random(random);
		client->salt = c * 1000;
		for (int32_t s = 0; s < STREAMS; s++)
			new_content(client, s, false);
		for (int32_t r = 0; r < REQUESTS; r++) {
			uint64_t ticket;

			must(quire_runtime_open(world->f.runtime,
			                        request_of(client, r * LABELS),
			                        &ticket) == QUIRE_OK);
			must(await(client, ticket, QUIRE_STAGE_RETIRED) == QUIRE_OK);
		}
	}
	for (int32_t r = 0; r < READERS; r++) {
		world->readers[r].world = world;
		world->readers[r].random = 1 + next_random(random);
	}
}

/* Nothing moves any more: every page is free, the sink, or of exactly one stream, and
 * every stream is as its client knows it. */
static void check_quiet(struct world *world)
{
	bool listed[NUM_PAGES] = {true};
	int64_t owned = 1;
	struct quire_runtime_stats stats = stats_of(&world->f);
	struct quire_refusal refusal;

	for (int64_t limit = now_ns() + HANG_NS; stats.pages_retiring != 0;
	     stats = stats_of(&world->f))
		must(now_ns() < limit);
	for (int32_t c = 0; c < CLIENTS; c++)
		for (int32_t s = 0; s < STREAMS; s++) {
			const struct stream *stream = &world->clients[c].streams[s];
			struct quire_snapshot snapshot;
			int32_t pages[SHARE];
			enum quire_status status = quire_runtime_snapshot(
				world->f.runtime, request_of(&world->clients[c], s),
				labels[s % LABELS], &snapshot, pages, SHARE);

			if (status == QUIRE_NO_LABEL && stream->pages == 0)
				continue;
			must(status == QUIRE_OK);
			must(snapshot.length == stream->length &&
			     snapshot.num_pages == stream->pages);
			for (int64_t i = 0; i < snapshot.num_pages; i++) {
				must(!listed[pages[i]]);
				listed[pages[i]] = true;
			}
			owned += snapshot.num_pages;
		}
	must(stats.pages_owned == owned && stats.pages_free == NUM_PAGES - owned);
	must(stats.requests_open == CLIENTS * REQUESTS);
	must(quire_runtime_check(world->f.runtime, &refusal) == QUIRE_OK);
}

static void play_round(struct world *world, uint64_t *random, int64_t end_ns)
{
	begin(world, random);
	world->end_ns = now_ns() + ROUND_NS < end_ns ? now_ns() + ROUND_NS : end_ns;
	for (int32_t c = 0; c < CLIENTS; c++)
		must(pthread_create(&world->clients[c].thread, NULL, be_client,
		                    &world->clients[c]) == 0);
	for (int32_t r = 0; r < READERS; r++)
		must(pthread_create(&world->readers[r].thread, NULL, be_reader,
		                    &world->readers[r]) == 0);
	for (int32_t c = 0; c < CLIENTS; c++)
		pthread_join(world->clients[c].thread, NULL);
	atomic_store_explicit(&world->over, true, memory_order_relaxed);
	for (int32_t r = 0; r < READERS; r++)
		pthread_join(world->readers[r].thread, NULL);
	check_quiet(world);
	fixture_end(&world->f);
}

int main(int argc, char **argv)
{
	static struct world world;
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)now_ns();
	uint64_t random = seed | 1, steps = 0, looks = 0, refused = 0;
	int64_t end_ns = now_ns() + (int64_t)(seconds * (double)NS_PER_S);
	int rounds = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (; now_ns() < end_ns; rounds++) {
		play_round(&world, &random, end_ns);
		for (int32_t c = 0; c < CLIENTS; c++)
			steps += world.clients[c].steps;
		for (int32_t r = 0; r < READERS; r++)
			looks += world.readers[r].looks;
		refused += atomic_load(&world.refused_in_callback);
	}
	printf("%d rounds, %llu steps, %llu looks, %llu times refused to wait\n", rounds,
	       (unsigned long long)steps, (unsigned long long)looks,
	       (unsigned long long)refused);
	return EXIT_SUCCESS;
}
