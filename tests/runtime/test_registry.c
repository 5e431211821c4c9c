/* SPDX-License-Identifier: MIT */
/* The registry: requests come and go in a few slots, and no reader ever sees two of them
 * mixed. */
#include "config.h"

#include "runtime/memory_impl.h"
#include "runtime/registry_impl.h"
#include "runtime/wake_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define PAGES_MAX  16
#define PAGE_SIZE  4
#define LABEL_MAIN 0
#define LABEL_B    1
#define LABEL_C    2

static const _Atomic uint64_t no_step;

static enum quire_status begin_lists(struct quire_registry *registry,
                                     int32_t requests_max, int32_t labels_max,
                                     int64_t pages_max)
{
	const struct quire_registry_limits limits = {
		.requests_max = requests_max,
		.request_labels_max = labels_max,
		.changes_max = 3,
		.pages_max = pages_max,
		.lists_more = labels_max, /* of one stream or request that changes */
	};
	struct quire_memory memory = {0};

	quire_memory_resolve(&memory);
	return quire_registry_init(registry, &limits, &memory);
}

static void begin(struct quire_registry *registry, int32_t requests_max,
                  int32_t labels_max)
{
	ck_assert_int_eq(begin_lists(registry, requests_max, labels_max, PAGES_MAX),
	                 QUIRE_OK);
}

static void end(struct quire_registry *registry)
{
	struct quire_memory memory = {0};

	quire_memory_resolve(&memory);
	quire_registry_end(registry, &memory);
}

static enum quire_status look_pages(struct quire_registry *registry, uint64_t id,
                                    int32_t label, struct quire_snapshot *snapshot,
                                    int32_t *pages, int64_t pages_max)
{
	return quire_registry_snapshot(registry, id, label, &no_step, &no_step, snapshot,
	                               pages, pages_max);
}

static enum quire_status look(struct quire_registry *registry, uint64_t id, int32_t label,
                              struct quire_snapshot *snapshot)
{
	return look_pages(registry, id, label, snapshot, NULL, 0);
}

/* Everyone may see the change; the block from before is nobody's any more. */
static void show(struct quire_registry *registry, struct quire_request *request,
                 struct quire_stream *stream, const struct quire_stream_state *before)
{
	quire_stream_show(registry, request, stream, &stream->now);
	if (stream->now.pages != before->pages)
		quire_list_free(&registry->lists, before->pages, before->size);
}

/* What a step does to a stream: pages, length, generation; then everyone may see it. */
static void extend(struct quire_registry *registry, struct quire_request *request,
                   struct quire_stream *stream, int32_t first, int32_t n)
{
	const struct quire_stream_state before = stream->now;

	for (int32_t i = 0; i < n; i++) {
		int32_t page = first + i;

		quire_stream_append(registry, stream, &page, 1, before.pages);
	}
	stream->now.length += n * PAGE_SIZE;
	stream->now.generation++;
	show(registry, request, stream, &before);
}

START_TEST(an_open_request_is_found_with_an_empty_main_stream)
{
	struct quire_registry registry;
	struct quire_request *request;
	struct quire_snapshot snapshot;

	begin(&registry, 4, 2);
	ck_assert_ptr_null(quire_registry_find(&registry, 7));
	ck_assert_int_eq(look(&registry, 7, LABEL_MAIN, &snapshot), QUIRE_NO_REQUEST);
	ck_assert_int_eq(quire_registry_open(&registry, 7), QUIRE_OK);
	request = quire_registry_find(&registry, 7);
	ck_assert_ptr_nonnull(request);
	ck_assert_uint_eq(request->id, 7);
	ck_assert_int_eq(registry.num_open, 1);
	ck_assert_ptr_nonnull(quire_request_find(request, LABEL_MAIN));
	ck_assert_ptr_null(quire_request_find(request, LABEL_B));
	ck_assert_int_eq(look(&registry, 7, LABEL_MAIN, &snapshot), QUIRE_OK);
	ck_assert_int_eq(snapshot.length, 0);
	ck_assert_int_eq(snapshot.num_pages, 0);
	ck_assert_int_eq(look(&registry, 7, LABEL_B, &snapshot), QUIRE_NO_LABEL);
	ck_assert_int_eq(look(&registry, 7, -1, &snapshot), QUIRE_NO_LABEL);
	end(&registry);
}
END_TEST

/* Three lists of 2^30 pages are 12 GiB of addresses, of which a page each is touched. */
START_TEST(lists_lie_apart_when_they_are_longer_than_32_bits_can_count)
{
	struct quire_registry registry;

	ck_assert_int_eq(begin_lists(&registry, 3, 1, 1 << 30), QUIRE_OK);
	for (int32_t id = 0; id < 3; id++) {
		struct quire_request *request;
		int32_t page = 100 * id;

		ck_assert_int_eq(quire_registry_open(&registry, (uint64_t)id), QUIRE_OK);
		request = quire_registry_find(&registry, (uint64_t)id);
		quire_stream_replace(&registry, &request->streams[0], &page, 1, 1 << 30,
		                     NULL);
		quire_stream_show(&registry, request, &request->streams[0],
		                  &request->streams[0].now);
	}
	for (int32_t id = 0; id < 3; id++) {
		struct quire_snapshot snapshot;
		int32_t page;

		ck_assert_int_eq(look_pages(&registry, (uint64_t)id, LABEL_MAIN,
		                            &snapshot, &page, 1),
		                 QUIRE_OK);
		ck_assert_int_eq(page, 100 * id);
	}
	end(&registry);
}
END_TEST

START_TEST(ids_of_every_size_are_told_apart)
{
	static const uint64_t ids[] = {
		0, 1, 2, 1ull << 32, (1ull << 32) + 1, QUIRE_REQUEST_MAX};
	struct quire_registry registry;

	begin(&registry, 6, 1);
	for (size_t i = 0; i < 6; i++)
		ck_assert_int_eq(quire_registry_open(&registry, ids[i]), QUIRE_OK);
	for (size_t i = 0; i < 6; i++)
		ck_assert_uint_eq(quire_registry_find(&registry, ids[i])->id, ids[i]);
	ck_assert_int_eq(quire_registry_open(&registry, 3), QUIRE_LIMIT);
	ck_assert_int_eq(registry.num_open, 6);
	end(&registry);
}
END_TEST

START_TEST(slots_are_used_again_for_ever_and_never_by_two)
{
	struct quire_registry registry;

	begin(&registry, 3, 1);
	for (uint64_t id = 0; id < 300; id++) {
		if (id >= 3)
			quire_registry_close(&registry,
			                     quire_registry_find(&registry, id - 3));
		ck_assert_int_eq(quire_registry_open(&registry, id), QUIRE_OK);
		for (uint64_t a = id < 2 ? 0 : id - 2; a <= id; a++)
			for (uint64_t b = a + 1; b <= id; b++)
				ck_assert_ptr_ne(quire_registry_find(&registry, a),
				                 quire_registry_find(&registry, b));
	}
	ck_assert_ptr_null(quire_registry_find(&registry, 0));
	ck_assert_int_eq(registry.num_open, 3);
	end(&registry);
}
END_TEST

#define SEED           20260608
#define CHAIN_REQUESTS 8

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Ids at random in few chains, against a plain list of those open. */
START_TEST(requests_come_and_go_in_any_order_and_all_others_stay)
{
	uint64_t open[CHAIN_REQUESTS], closed = 1, state = SEED;
	struct quire_registry registry;
	int num = 0;

	begin(&registry, CHAIN_REQUESTS, 1);
	for (int round = 0; round < 5000; round++) {
		if (num < CHAIN_REQUESTS && next_random(&state) % 2 == 0) {
			open[num] = next_random(&state) >> 1;
			ck_assert_int_eq(quire_registry_open(&registry, open[num++]),
			                 QUIRE_OK);
		} else if (num > 0) {
			int which = (int)(next_random(&state) % (uint64_t)num);

			closed = open[which];
			quire_registry_close(&registry,
			                     quire_registry_find(&registry, closed));
			open[which] = open[--num];
		}
		ck_assert_ptr_null(quire_registry_find(&registry, closed));
		for (int i = 0; i < num; i++) {
			struct quire_request *request =
				quire_registry_find(&registry, open[i]);

			ck_assert_ptr_nonnull(request);
			ck_assert_uint_eq(request->id, open[i]);
		}
		ck_assert_int_eq(registry.num_open, num);
	}
	end(&registry);
}
END_TEST

START_TEST(a_reopened_request_starts_empty_above_every_generation_it_had)
{
	struct quire_registry registry;
	struct quire_snapshot before, after;

	begin(&registry, 2, 2);
	for (int round = 0; round < 20; round++) {
		struct quire_request *request;
		struct quire_stream *stream;

		ck_assert_int_eq(quire_registry_open(&registry, 1), QUIRE_OK);
		request = quire_registry_find(&registry, 1);
		ck_assert_int_eq(look(&registry, 1, LABEL_MAIN, &after), QUIRE_OK);
		ck_assert_int_eq(after.length, 0);
		ck_assert_int_eq(after.num_pages, 0);
		if (round > 0)
			ck_assert_uint_gt(after.generation, before.generation);
		extend(&registry, request, quire_request_find(request, LABEL_MAIN), 0,
		       1 + round % 3);
		stream = quire_request_add(&registry, request, LABEL_B);
		if (round > 0)
			ck_assert_uint_gt(stream->now.generation, before.generation);
		for (int i = 0; i <= round % 4; i++)
			extend(&registry, request, stream, 5, 1);
		ck_assert_int_eq(look(&registry, 1, round % 2, &before), QUIRE_OK);
		quire_registry_close(&registry, request);
		ck_assert_int_eq(look(&registry, 1, LABEL_MAIN, &after),
		                 QUIRE_NO_REQUEST);
	}
	end(&registry);
}
END_TEST

START_TEST(a_request_has_so_many_labels_and_no_more)
{
	struct quire_registry registry;
	struct quire_request *request;

	begin(&registry, 2, 2);
	ck_assert_int_eq(quire_registry_open(&registry, 1), QUIRE_OK);
	ck_assert_int_eq(quire_registry_open(&registry, 2), QUIRE_OK);
	request = quire_registry_find(&registry, 1);
	ck_assert_ptr_nonnull(quire_request_add(&registry, request, LABEL_B));
	ck_assert_ptr_null(quire_request_add(&registry, request, LABEL_C));
	ck_assert_int_eq(request->num_streams, 2);
	ck_assert_ptr_nonnull(
		quire_request_add(&registry, quire_registry_find(&registry, 2), LABEL_C));
	end(&registry);
}
END_TEST

START_TEST(a_stream_that_was_taken_back_was_never_seen)
{
	struct quire_registry registry;
	struct quire_request *request;
	struct quire_snapshot snapshot;

	begin(&registry, 1, 2);
	ck_assert_int_eq(quire_registry_open(&registry, 1), QUIRE_OK);
	request = quire_registry_find(&registry, 1);
	ck_assert_ptr_nonnull(quire_request_add(&registry, request, LABEL_B));
	ck_assert_int_eq(look(&registry, 1, LABEL_B, &snapshot), QUIRE_NO_LABEL);
	request->num_streams--;
	extend(&registry, request, quire_request_add(&registry, request, LABEL_C), 3, 2);
	ck_assert_ptr_null(quire_request_find(request, LABEL_B));
	ck_assert_int_eq(look(&registry, 1, LABEL_B, &snapshot), QUIRE_NO_LABEL);
	ck_assert_int_eq(look(&registry, 1, LABEL_C, &snapshot), QUIRE_OK);
	ck_assert_int_eq(snapshot.length, 2 * PAGE_SIZE);
	end(&registry);
}
END_TEST

START_TEST(a_change_is_seen_when_it_is_shown_and_not_before)
{
	struct quire_registry registry;
	struct quire_request *request;
	struct quire_stream *stream;
	struct quire_snapshot snapshot;
	int32_t page = 9;

	begin(&registry, 1, 1);
	ck_assert_int_eq(quire_registry_open(&registry, 1), QUIRE_OK);
	request = quire_registry_find(&registry, 1);
	stream = quire_request_find(request, LABEL_MAIN);
	quire_stream_append(&registry, stream, &page, 1, NULL);
	stream->now.length = 3;
	stream->now.released = 8;
	stream->now.step = 12;
	stream->now.generation += 5;
	ck_assert_int_eq(look(&registry, 1, LABEL_MAIN, &snapshot), QUIRE_OK);
	ck_assert_int_eq(snapshot.length, 0);
	ck_assert_int_eq(snapshot.num_pages, 0);
	quire_stream_show(&registry, request, stream, &stream->now);
	ck_assert_int_eq(look(&registry, 1, LABEL_MAIN, &snapshot), QUIRE_OK);
	ck_assert_int_eq(snapshot.length, 3);
	ck_assert_int_eq(snapshot.released, 8);
	ck_assert_int_eq(snapshot.num_pages, 1);
	ck_assert_uint_eq(snapshot.step, 12);
	ck_assert_uint_eq(snapshot.generation, stream->now.generation);
	end(&registry);
}
END_TEST

START_TEST(a_snapshot_copies_as_many_pages_as_there_is_room_for)
{
	struct quire_registry registry;
	struct quire_request *request;

	begin(&registry, 1, 1);
	ck_assert_int_eq(quire_registry_open(&registry, 1), QUIRE_OK);
	request = quire_registry_find(&registry, 1);
	extend(&registry, request, quire_request_find(request, LABEL_MAIN), 20,
	       PAGES_MAX);
	for (int64_t room = 0; room <= PAGES_MAX + 2; room++) {
		int64_t copied = room < PAGES_MAX ? room : PAGES_MAX;
		struct quire_snapshot snapshot;
		int32_t pages[PAGES_MAX + 3];

		for (int i = 0; i < PAGES_MAX + 3; i++)
			pages[i] = -1;
		ck_assert_int_eq(
			look_pages(&registry, 1, LABEL_MAIN, &snapshot, pages, room),
			QUIRE_OK);
		ck_assert_int_eq(snapshot.num_pages, PAGES_MAX);
		for (int i = 0; i < PAGES_MAX + 3; i++)
			ck_assert_int_eq(pages[i], i < copied ? 20 + i : -1);
	}
	end(&registry);
}
END_TEST

/* ------------------------------------------------------ readers beside the planner */

/*
 * Requests 1, 2 and 3 come and go in two slots, with up to two streams each, whose lists
 * grow, move to longer blocks and are replaced.  Whatever state a reader sees:
 * length = num_pages * PAGE_SIZE, step = generation, or 0 when it is empty, and every
 * page says whose it is, from which list, and which in it; `released` counts the lists.
 */
#define LIST_MAX   600 /* pages: blocks of several sizes */
#define LISTS      97  /* told apart */
#define ROUNDS     60000
#define READERS    2
#define SEEN_LEAST 3000 /* states, by every reader */

static int32_t page_of(uint64_t id, int32_t label, int32_t list, int32_t place)
{
	return (((int32_t)id * 2 + label) * LISTS + list % LISTS) * LIST_MAX + place;
}

struct scene {
	struct quire_registry registry;
	_Atomic bool over;
	_Atomic int32_t satisfied; /* readers that saw enough, or something wrong */
};

struct reader {
	struct scene *scene;
	uint64_t seed;
	uint64_t seen;
	const char *wrong;
};

static const char *read_once(struct scene *scene, uint64_t id, int32_t label,
                             uint64_t *newest, uint64_t *seen)
{
	struct quire_snapshot snapshot = {.length = 0};
	int32_t pages[LIST_MAX];
	enum quire_status status =
		look_pages(&scene->registry, id, label, &snapshot, pages, LIST_MAX);

	if (status == QUIRE_NO_REQUEST ||
	    (status == QUIRE_NO_LABEL && label != LABEL_MAIN))
		return NULL;
	if (status != QUIRE_OK)
		return "the request has no main stream";
	if (snapshot.length != snapshot.num_pages * PAGE_SIZE)
		return "length and pages of different states";
	if (snapshot.step != (snapshot.length > 0 ? snapshot.generation : 0))
		return "step and generation of different states";
	if (snapshot.generation < *newest)
		return "the generation went back";
	for (int32_t i = 0; i < snapshot.num_pages; i++)
		if (pages[i] != page_of(id, label, (int32_t)snapshot.released, i))
			return "pages of another state, or of another stream";
	*newest = snapshot.generation;
	(*seen)++;
	return NULL;
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	uint64_t newest[4][2] = {{0}};
	bool enough = false;

	/* Relaxed: only ends the loop. */
	while (!atomic_load_explicit(&reader->scene->over, memory_order_relaxed) &&
	       reader->wrong == NULL) {
		uint64_t id = 1 + (reader->seed >> 2) % 3;
		int32_t label = (int32_t)(reader->seed++ & 1);

		reader->wrong = read_once(reader->scene, id, label, &newest[id][label],
		                          &reader->seen);
		if (!enough && (reader->wrong != NULL || reader->seen >= SEEN_LEAST)) {
			atomic_fetch_add(&reader->scene->satisfied, 1);
			enough = true;
		}
	}
	return NULL;
}

/* The pages at [first, first + n) of a stream's list. */
static void make_pages(const struct quire_request *request,
                       const struct quire_stream *stream, int32_t first, int32_t n,
                       int32_t *pages)
{
	for (int32_t i = 0; i < n; i++)
		pages[i] = page_of(request->id, stream->label, stream->now.released,
		                   first + i);
}

/* One change that everyone sees: some pages more, another list, or none at first, whose
 * block is written again at once. */
static void change(struct quire_registry *registry, struct quire_request *request,
                   struct quire_stream *stream, uint64_t random)
{
	const struct quire_stream_state before = stream->now;
	int32_t listed = before.num_pages, n = 1 + (int32_t)(random >> 8 & 31);
	int32_t pages[LIST_MAX];
	uint64_t kind = random % 8;

	if (kind == 0 || listed + n > LIST_MAX) {
		stream->now.released++;
		n = (int32_t)(random >> 16 & 511);
		make_pages(request, stream, 0, n, pages);
		quire_stream_replace(registry, stream, pages, n, n, before.pages);
	} else if (kind == 1) {
		stream->now.released++;
		stream->now.num_pages = 0;
	} else {
		make_pages(request, stream, listed, n, pages);
		quire_stream_append(registry, stream, pages, n, before.pages);
	}
	stream->now.length = stream->now.num_pages * PAGE_SIZE;
	stream->now.generation++;
	stream->now.step = stream->now.length > 0 ? stream->now.generation : 0;
	show(registry, request, stream, &before);
}

/* A change that nobody sees, as a step that is taken back. */
static void change_in_vain(struct quire_registry *registry, struct quire_stream *stream,
                           int32_t n)
{
	const struct quire_stream_state before = stream->now;

	for (int32_t i = 0; i < n && stream->now.num_pages < LIST_MAX; i++)
		quire_stream_append(registry, stream, &(int32_t){-7}, 1, before.pages);
	if (stream->now.pages != before.pages)
		quire_list_free(&registry->lists, stream->now.pages, stream->now.size);
	stream->now = before;
}

/* A request that is open, opened in another's place if need be. */
static struct quire_request *request_for(struct quire_registry *registry, uint64_t id,
                                         uint64_t random)
{
	struct quire_request *request = quire_registry_find(registry, id);

	if (request != NULL)
		return request;
	if (registry->num_open == registry->requests_max) {
		request = quire_registry_find(registry, 1 + (id + random % 2) % 3);
		quire_registry_close(registry, request);
	}
	ck_assert_int_eq(quire_registry_open(registry, id), QUIRE_OK);
	return quire_registry_find(registry, id);
}

static void act(struct scene *scene)
{
	struct quire_registry *registry = &scene->registry;
	uint64_t state = SEED, id = 1;

	for (int32_t round = 0;
	     round < ROUNDS || atomic_load(&scene->satisfied) < READERS; round++) {
		uint64_t random = next_random(&state);
		int32_t label = (int32_t)(random >> 40 & 1);
		struct quire_request *request;
		struct quire_stream *stream;

		if (random % 16 == 0)
			id = 1 + (random >> 4) % 3;
		request = request_for(registry, id, random >> 33);
		stream = quire_request_find(request, label);
		if (stream == NULL)
			stream = quire_request_add(registry, request, label);
		if (random >> 60 == 0)
			change_in_vain(registry, stream, (int32_t)(random >> 24 & 511));
		change(registry, request, stream, random >> 10);
	}
}

START_TEST(no_reader_sees_two_requests_or_two_states_mixed)
{
	static struct scene scene;
	struct reader readers[READERS];
	pthread_t threads[READERS];

	ck_assert_int_eq(begin_lists(&scene.registry, 2, 2, LIST_MAX), QUIRE_OK);
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.scene = &scene, .seed = (uint64_t)i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_on, &readers[i]),
		                 0);
	}
	act(&scene);
	atomic_store(&scene.over, true);
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_msg(readers[i].wrong == NULL, "%s", readers[i].wrong);
	}
	end(&scene.registry);
}
END_TEST

/* Beside one request that stays, in a chain that it shares with others which come and go:
 * a reader that stands on another's node when that is closed still finds its way on. */
#define STAYS       17
#define WALKERS     4
#define NEIGHBOURS  8
#define WALK_NS     700000000 /* so that walkers lose their core on the way, many times */
#define WALKS_LEAST 1000

struct walker {
	struct scene *scene;
	enum quire_status status; /* the first that is wrong */
};

static void *look_for_it(void *argument)
{
	struct walker *walker = argument;
	int walks = 0;

	/* Relaxed: only ends the loop. */
	while (!atomic_load_explicit(&walker->scene->over, memory_order_relaxed)) {
		struct quire_snapshot snapshot;

		if (walker->status == QUIRE_OK)
			walker->status = look(&walker->scene->registry, STAYS, LABEL_MAIN,
			                      &snapshot);
		if (++walks == WALKS_LEAST)
			atomic_fetch_add(&walker->scene->satisfied, 1);
	}
	return NULL;
}

static void come_and_go(struct quire_registry *registry, uint64_t id)
{
	ck_assert_int_eq(quire_registry_open(registry, id), QUIRE_OK);
	quire_registry_close(registry, quire_registry_find(registry, id));
}

/* Ids whose nodes are linked in front of the one that stays. */
static void find_neighbours(struct quire_registry *registry, uint64_t *ids)
{
	const struct quire_request_node *stays =
		quire_registry_find(registry, STAYS)->node;
	int n = 0;

	for (uint64_t id = STAYS + 1; n < NEIGHBOURS; id++) {
		struct quire_request *request;

		ck_assert_int_eq(quire_registry_open(registry, id), QUIRE_OK);
		request = quire_registry_find(registry, id);
		if (atomic_load(&request->node->next) == stays)
			ids[n++] = id;
		quire_registry_close(registry, request);
	}
}

START_TEST(a_request_that_stays_is_always_found)
{
	static struct scene scene;
	struct walker walkers[WALKERS];
	pthread_t threads[WALKERS];
	uint64_t ids[NEIGHBOURS], state = SEED;
	int64_t end_ns;

	begin(&scene.registry, 16, 1);
	ck_assert_int_eq(quire_registry_open(&scene.registry, STAYS), QUIRE_OK);
	find_neighbours(&scene.registry, ids);
	for (int i = 0; i < WALKERS; i++) {
		walkers[i] = (struct walker){.scene = &scene, .status = QUIRE_OK};
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, look_for_it, &walkers[i]), 0);
	}
	end_ns = quire_now_ns() + WALK_NS;
	for (int i = 0;
	     quire_now_ns() < end_ns || atomic_load(&scene.satisfied) < WALKERS; i++) {
		come_and_go(&scene.registry, ids[i % NEIGHBOURS]);
		come_and_go(&scene.registry, next_random(&state) | 1ull << 62);
	}
	atomic_store(&scene.over, true);
	for (int i = 0; i < WALKERS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(walkers[i].status, QUIRE_OK);
	}
	end(&scene.registry);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("registry");
	TCase *tcase = tcase_create("registry");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, an_open_request_is_found_with_an_empty_main_stream);
	tcase_add_test(tcase,
	               lists_lie_apart_when_they_are_longer_than_32_bits_can_count);
	tcase_add_test(tcase, ids_of_every_size_are_told_apart);
	tcase_add_test(tcase, slots_are_used_again_for_ever_and_never_by_two);
	tcase_add_test(tcase, requests_come_and_go_in_any_order_and_all_others_stay);
	tcase_add_test(tcase,
	               a_reopened_request_starts_empty_above_every_generation_it_had);
	tcase_add_test(tcase, a_request_has_so_many_labels_and_no_more);
	tcase_add_test(tcase, a_stream_that_was_taken_back_was_never_seen);
	tcase_add_test(tcase, a_change_is_seen_when_it_is_shown_and_not_before);
	tcase_add_test(tcase, a_snapshot_copies_as_many_pages_as_there_is_room_for);
	tcase_add_test(tcase, no_reader_sees_two_requests_or_two_states_mixed);
	tcase_add_test(tcase, a_request_that_stays_is_always_found);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
