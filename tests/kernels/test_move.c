/* SPDX-License-Identifier: MIT */
/*
 * Moves that are large enough to be streamed past the machine's caches and divided among
 * threads, beside small ones, against the definition element by element.
 */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "tests/kernels/naive_cache.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const devices[] = {"cpu:inline", "cpu", "cpu:3"};
#define NUM_DEVICES 3

/* Tokens of 258 elements: no piece but the first begins at a line.  The large cache has
 * more than 16 MiB, the small one 2.5; 1,200 tokens have more than 512 KiB. */
#define HEADS      3
#define DIM        43
#define PAGE_SIZE  16
#define PAGES_MAX  600
#define TOKENS_MAX 1200
#define AROUND     4096

struct mover {
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_cache *cache;
	struct naive_image expected;
	char *memory; /* the storage, with AROUND bytes of nobody's on both sides */
	int64_t nbytes;
	uint64_t seed;
};

static struct quire_shape shape_of(enum quire_layout layout, bool large)
{
	return (struct quire_shape){
		.layout = layout,
		.dtype = QUIRE_BF16,
		.num_layers = 4, /* so that three threads share a page */
		.num_pages = large ? PAGES_MAX : 80,
		.page_size = PAGE_SIZE,
		.num_kv_heads = layout == QUIRE_MLA ? 1 : HEADS,
		.head_dim = layout == QUIRE_MLA ? 2 * DIM * HEADS : DIM,
	};
}

static void open_mover(struct mover *m, const char *device, enum quire_layout layout,
                       bool large)
{
	struct quire_shape shape = shape_of(layout, large);

	*m = (struct mover){.seed = 5, .expected.shape = shape};
	m->nbytes = naive_total(&shape) * 2;
	ck_assert_int_eq(m->nbytes >= CPU_STREAM_REGION_MIN, large);
	m->memory =
		aligned_alloc(AROUND, (size_t)(m->nbytes + 3 * AROUND) / AROUND * AROUND);
	m->expected.storage = malloc((size_t)m->nbytes);
	memset(m->memory, 0x77, (size_t)(m->nbytes + 2 * AROUND));
	memset(m->expected.storage, 0x77, (size_t)m->nbytes);
	ck_assert_int_eq(quire_device_create(device, &m->device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(m->device, "test", &m->dstream), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create_on(m->device, &shape, m->memory + AROUND,
	                                       m->nbytes, &m->cache, NULL),
	                 QUIRE_OK);
}

static void close_mover(struct mover *m)
{
	quire_dstream_destroy(m->dstream);
	quire_cache_destroy(m->cache);
	quire_device_destroy(m->device);
	free(m->expected.storage);
	free(m->memory);
}

static void check_storage(const struct mover *m, const char *after)
{
	const char *storage = m->memory + AROUND;

	for (int64_t i = -AROUND; i < 0; i++)
		if (storage[i] != 0x77 || storage[m->nbytes - 1 - i] != 0x77)
			ck_abort_msg("%s: a byte outside the storage", after);
	if (memcmp(storage, m->expected.storage, (size_t)m->nbytes) == 0)
		return;
	for (int64_t i = 0; i < m->nbytes; i++)
		if (storage[i] != m->expected.storage[i])
			ck_abort_msg("%s: byte %lld", after, (long long)i);
}

static void finish(struct mover *m)
{
	ck_assert_int_eq(quire_dstream_synchronize(m->dstream, NULL), QUIRE_OK);
}

/* n different slots: in runs of whole pages, all over the cache, or tokens of a stream. */
struct slot_lists {
	struct quire_slots slots;
	int32_t page[PAGES_MAX * PAGE_SIZE];
	int32_t offset[PAGES_MAX * PAGE_SIZE];
};

static struct slot_lists lists;

static void any_long_slots(struct mover *m, int64_t n)
{
	static int32_t order[PAGES_MAX * PAGE_SIZE];
	int32_t num_pages = (int32_t)m->expected.shape.num_pages;
	int32_t total = num_pages * PAGE_SIZE;
	int kind = random_in(&m->seed, 0, 2);

	lists.slots = (struct quire_slots){.page = lists.page, .n = n};
	if (kind == 0) {
		for (int32_t i = 0; i < num_pages; i++)
			lists.page[i] = i;
		random_shuffle(&m->seed, lists.page, num_pages);
		lists.slots.first = random_in(&m->seed, 0, total - (int32_t)n);
		return;
	}
	for (int32_t i = 0; i < total; i++)
		order[i] = i;
	if (kind == 1)
		random_shuffle(&m->seed, order, total);
	kind = random_in(&m->seed, 0, total - (int32_t)n);
	for (int64_t i = 0; i < n; i++) {
		lists.page[i] = order[kind + i] / PAGE_SIZE;
		lists.offset[i] = order[kind + i] % PAGE_SIZE;
	}
	lists.slots.offset = lists.offset;
}

static void write_and_compare(struct mover *m, int64_t n, enum quire_dtype dtype)
{
	const struct quire_shape *shape = &m->expected.shape;
	int64_t elements = n * naive_row(shape);
	int64_t at = random_in(&m->seed, 0, 3);
	int64_t layer = random_in(&m->seed, 0, (int32_t)shape->num_layers - 1);
	char *memory = malloc((size_t)(2 * elements * 4 + 2 * at + 1));
	char *k = memory + at;
	char *v = k + elements * quire_dtype_bytes(dtype) + at;

	if (shape->layout == QUIRE_MLA)
		v = NULL;
	any_values(&m->seed, dtype, k, elements);
	if (v != NULL)
		any_values(&m->seed, dtype, v, elements);
	any_long_slots(m, n);
	ck_assert_int_eq(quire_cache_write_tokens(m->cache, m->dstream, layer,
	                                          &lists.slots, k, v, dtype, NULL, NULL),
	                 QUIRE_OK);
	finish(m);
	naive_write(&m->expected, layer, &lists.slots, k, v, dtype);
	check_storage(m, "write");
	free(memory);
}

static void read_and_compare(struct mover *m, int64_t n)
{
	const struct quire_shape *shape = &m->expected.shape;
	int64_t bytes = n * naive_size(shape, AXIS_KV) * naive_row(shape) * 2;
	int64_t at = random_in(&m->seed, 0, 3);
	int64_t layer = random_in(&m->seed, 0, (int32_t)shape->num_layers - 1);
	char *got = malloc((size_t)(bytes + at + 1));
	char *wanted = malloc((size_t)bytes + 1);

	memset(got, 0x55, (size_t)(bytes + at + 1));
	any_long_slots(m, n);
	ck_assert_int_eq(quire_cache_read_tokens(m->cache, m->dstream, layer,
	                                         &lists.slots, got + at, NULL),
	                 QUIRE_OK);
	finish(m);
	naive_read(&m->expected, layer, &lists.slots, wanted);
	if (memcmp(got + at, wanted, (size_t)bytes) != 0)
		ck_abort_msg("read of %lld tokens", (long long)n);
	for (int64_t i = 0; i < at; i++)
		ck_assert_int_eq(got[i], 0x55);
	ck_assert_int_eq(got[at + bytes], 0x55);
	free(wanted);
	free(got);
}

START_TEST(long_and_short_moves_of_tokens_are_those_of_the_definition)
{
	/* On both sides of what is divided, and of what is streamed. */
	static const int64_t counts[] = {1, 15, 16, 17, 130, TOKENS_MAX};
	struct mover m;

	open_mover(&m, devices[_i % NUM_DEVICES],
	           (enum quire_layout)(_i / NUM_DEVICES % 3), _i / NUM_DEVICES / 3);
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		int64_t n = counts[c];

		if (n > m.expected.shape.num_pages * PAGE_SIZE)
			n = m.expected.shape.num_pages * PAGE_SIZE;
		write_and_compare(&m, n, QUIRE_BF16);
		write_and_compare(&m, n, QUIRE_F32);
		read_and_compare(&m, n);
	}
	close_mover(&m);
}
END_TEST

/* Sources with repetition, targets without: chains, cycles and branches. */
static void copy_and_compare(struct mover *m, int32_t n, bool whole)
{
	int32_t num_pages = (int32_t)m->expected.shape.num_pages;
	int32_t *source = malloc(sizeof(*source) * (size_t)num_pages);
	int32_t *target = malloc(sizeof(*target) * (size_t)num_pages);
	int32_t *end = malloc(sizeof(*end) * (size_t)num_pages);

	for (int32_t i = 0; i < num_pages; i++)
		target[i] = i;
	random_shuffle(&m->seed, target, num_pages);
	for (int32_t i = 0; i < n; i++) {
		/* Half of the sources are targets too. */
		source[i] = target[random_in(&m->seed, 0,
		                             2 * n < num_pages ? 2 * n - 1 : n - 1)];
		end[i] = random_in(&m->seed, 0, PAGE_SIZE);
	}
	if (n > 2) {
		source[0] = target[1];
		source[1] = target[2];
		source[2] = target[0];
	}
	if (whole)
		ck_assert_int_eq(quire_cache_copy_pages(m->cache, m->dstream, source,
		                                        target, n, NULL),
		                 QUIRE_OK);
	else
		ck_assert_int_eq(quire_cache_copy_slots(m->cache, m->dstream, source,
		                                        target, end, n, NULL),
		                 QUIRE_OK);
	finish(m);
	naive_copy(&m->expected, source, target, whole ? NULL : end, n);
	check_storage(m, whole ? "copy_pages" : "copy_slots");
	free(end);
	free(target);
	free(source);
}

START_TEST(long_and_short_copies_of_pages_are_those_of_the_definition)
{
	static const int32_t counts[] = {1, 2, 3, 12, 40};
	struct mover m;

	open_mover(&m, devices[_i % NUM_DEVICES],
	           (enum quire_layout)(_i / NUM_DEVICES % 3), _i / NUM_DEVICES / 3);
	any_bytes(&m.seed, m.expected.storage, (size_t)m.nbytes);
	memcpy(m.memory + AROUND, m.expected.storage, (size_t)m.nbytes);
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		copy_and_compare(&m, counts[c], true);
		copy_and_compare(&m, counts[c], false);
	}
	close_mover(&m);
}
END_TEST

/* All bytes of a row are alike. */
static char row_byte(const struct mover *m, int32_t page, int32_t offset, int64_t kv)
{
	const struct quire_shape *shape = &m->expected.shape;
	int64_t at[NUM_AXES] = {
		[AXIS_PAGE] = page, [AXIS_TOKEN] = offset, [AXIS_KV] = kv};
	const char *storage = m->memory + AROUND;
	char first = storage[2 * naive_place(shape, at)];

	for (int64_t e = 0; e < naive_row(shape); e++) {
		int64_t place;

		at[AXIS_HEAD] = e / shape->head_dim;
		at[AXIS_DIM] = e % shape->head_dim;
		place = naive_place(shape, at);
		if (storage[2 * place] != first || storage[2 * place + 1] != first)
			ck_abort_msg("a row of parts: page %d token %d", page, offset);
	}
	return first;
}

START_TEST(a_slot_named_by_many_rows_holds_one_of_them_whole)
{
	enum { SLOTS = 20, ROUNDS = 20 };
	struct mover m;
	int64_t row_bytes;
	char *rows;

	open_mover(&m, devices[_i % NUM_DEVICES], (enum quire_layout)(_i / NUM_DEVICES),
	           true);
	row_bytes = naive_row(&m.expected.shape) * 2;
	rows = malloc((size_t)(TOKENS_MAX * row_bytes));
	for (int round = 0; round < ROUNDS; round++) {
		lists.slots =
			(struct quire_slots){lists.page, lists.offset, 0, TOKENS_MAX};
		for (int32_t i = 0; i < TOKENS_MAX; i++) {
			/* Row i names the slot of its byte's remainder. */
			char byte = (char)(i % 120);

			lists.page[i] = byte % SLOTS * 7;
			lists.offset[i] = byte % SLOTS % PAGE_SIZE;
			memset(rows + i * row_bytes, byte, (size_t)row_bytes);
		}
		ck_assert_int_eq(
			quire_cache_write_tokens(
				m.cache, m.dstream, 0, &lists.slots, rows,
				m.expected.shape.layout == QUIRE_MLA ? NULL : rows,
				QUIRE_BF16, NULL, NULL),
			QUIRE_OK);
		finish(&m);
		for (int32_t s = 0; s < SLOTS; s++)
			for (int64_t kv = 0; kv < naive_size(&m.expected.shape, AXIS_KV);
			     kv++)
				ck_assert_int_eq(row_byte(&m, s * 7, s % PAGE_SIZE, kv) %
				                         SLOTS,
				                 s);
	}
	free(rows);
	close_mover(&m);
}
END_TEST

START_TEST(a_wrong_slot_behind_many_right_ones_stops_all_of_them)
{
	struct quire_refusal refusal = {0};
	int64_t row_bytes;
	struct mover m;
	char *rows;

	open_mover(&m, devices[_i], QUIRE_NHD, true);
	row_bytes = naive_row(&m.expected.shape) * 2;
	rows = calloc(TOKENS_MAX, (size_t)row_bytes);
	any_long_slots(&m, TOKENS_MAX);
	for (int32_t i = 0; i < TOKENS_MAX; i++) {
		lists.page[i] = i % PAGES_MAX;
		lists.offset[i] = i == TOKENS_MAX - 1 ? PAGE_SIZE : 0;
	}
	lists.slots = (struct quire_slots){lists.page, lists.offset, 0, TOKENS_MAX};
	/* On cpu:inline the call itself answers with the failure. */
	ck_assert_int_eq(quire_cache_write_tokens(m.cache, m.dstream, 0, &lists.slots,
	                                          rows, rows, QUIRE_BF16, NULL, NULL),
	                 _i == 0 ? QUIRE_INVALID : QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(m.dstream, &refusal), QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "offset");
	ck_assert_int_eq(refusal.index, TOKENS_MAX - 1);
	ck_assert_int_eq(refusal.got, PAGE_SIZE);
	check_storage(&m, "refused write");
	free(rows);
	close_mover(&m);
}
END_TEST

START_TEST(streams_share_the_helpers_of_their_device)
{
	enum { STREAMS = 3, ROUNDS = 20 };
	struct quire_dstream *streams[STREAMS];
	char *rows[STREAMS];
	int64_t row_bytes;
	struct mover m;

	open_mover(&m, "cpu:3", QUIRE_NHD, true);
	row_bytes = naive_row(&m.expected.shape) * 2;
	any_long_slots(&m, TOKENS_MAX);
	for (int s = 0; s < STREAMS; s++) {
		ck_assert_int_eq(quire_dstream_create(m.device, "test", &streams[s]),
		                 QUIRE_OK);
		rows[s] = malloc((size_t)(2 * TOKENS_MAX * row_bytes));
	}
	/* Each stream has a layer of its own, where it writes the same slots. */
	for (int round = 0; round < ROUNDS; round++) {
		for (int s = 0; s < STREAMS; s++) {
			char *v = rows[s] + TOKENS_MAX * row_bytes;

			any_bytes(&m.seed, rows[s], (size_t)(2 * TOKENS_MAX * row_bytes));
			naive_write(&m.expected, s, &lists.slots, rows[s], v, QUIRE_BF16);
		}
		for (int s = 0; s < STREAMS; s++) {
			char *v = rows[s] + TOKENS_MAX * row_bytes;

			ck_assert_int_eq(quire_cache_write_tokens(
						 m.cache, streams[s], s, &lists.slots,
						 rows[s], v, QUIRE_BF16, NULL, NULL),
			                 QUIRE_OK);
		}
		for (int s = 0; s < STREAMS; s++)
			ck_assert_int_eq(quire_dstream_synchronize(streams[s], NULL),
			                 QUIRE_OK);
	}
	check_storage(&m, "streams side by side");
	for (int s = 0; s < STREAMS; s++) {
		quire_dstream_destroy(streams[s]);
		free(rows[s]);
	}
	close_mover(&m);
}
END_TEST

#define ENOUGH_ROWS  16
#define ENOUGH_BYTES (512 << 10)
#define HELPERS      3

struct work {
	pthread_barrier_t all; /* as many threads as there are parts */
	pthread_t caller;
	struct cpu_team *team;
	int parts[HELPERS + 1]; /* how often each was done */
	int num_parts;
	int others; /* parts done by another thread than the caller */
};

static void count_part(void *argument, int part, int parts)
{
	struct work *work = argument;

	__atomic_add_fetch(&work->parts[part], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&work->num_parts, parts, __ATOMIC_RELAXED);
	if (!pthread_equal(pthread_self(), work->caller))
		__atomic_add_fetch(&work->others, 1, __ATOMIC_RELAXED);
}

static void meet_in_part(void *argument, int part, int parts)
{
	struct work *work = argument;

	count_part(work, part, parts);
	pthread_barrier_wait(&work->all);
}

START_TEST(every_part_is_done_once_whoever_does_it)
{
	struct work work = {.caller = pthread_self()};

	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &work.team), QUIRE_OK);
	ck_assert_int_eq(quire_cpu_parts_max(work.team), HELPERS + 1);
	ck_assert_int_eq(quire_cpu_parts_max(NULL), 1);
	for (int round = 1; round <= 3000; round++) {
		quire_cpu_split(work.team, ENOUGH_ROWS, ENOUGH_BYTES, count_part, &work);
		/* Read without atomics: all that the parts did is seen. */
		ck_assert_int_eq(work.num_parts, HELPERS + 1);
		for (int p = 0; p <= HELPERS; p++)
			ck_assert_int_eq(work.parts[p], round);
	}
	quire_cpu_team_destroy(work.team);
	quire_cpu_team_destroy(NULL);
}
END_TEST

START_TEST(parts_are_done_side_by_side)
{
	struct work work = {.caller = pthread_self()};

	pthread_barrier_init(&work.all, NULL, HELPERS + 1);
	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &work.team), QUIRE_OK);
	/* The barrier opens only when each part has its own thread; in between, the
	 * helpers fall asleep. */
	for (int round = 1; round <= 20; round++) {
		quire_cpu_split(work.team, ENOUGH_ROWS, ENOUGH_BYTES, meet_in_part,
		                &work);
		ck_assert_int_eq(work.others, HELPERS * round);
		if (round % 5 == 0)
			usleep(3000);
	}
	quire_cpu_team_destroy(work.team);
	pthread_barrier_destroy(&work.all);
}
END_TEST

START_TEST(little_work_is_left_undivided)
{
	struct work work = {.caller = pthread_self()};

	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &work.team), QUIRE_OK);
	quire_cpu_split(work.team, ENOUGH_ROWS - 1, INT64_MAX, count_part, &work);
	ck_assert_int_eq(work.num_parts, 1);
	work.num_parts = 0;
	quire_cpu_split(work.team, INT64_MAX, ENOUGH_BYTES - 1, count_part, &work);
	ck_assert_int_eq(work.num_parts, 1);
	work.num_parts = 0;
	quire_cpu_split(NULL, INT64_MAX, INT64_MAX, count_part, &work);
	ck_assert_int_eq(work.num_parts, 1);
	ck_assert_int_eq(work.parts[0], 3);
	ck_assert_int_eq(work.others, 0);
	quire_cpu_team_destroy(work.team);
}
END_TEST

/* While all helpers are at work, other work is not divided and does not wait. */
static void split_in_part(void *argument, int part, int parts)
{
	struct work *work = argument;
	struct work inner = {.caller = pthread_self()};

	pthread_barrier_wait(&work->all);
	quire_cpu_split(work->team, ENOUGH_ROWS, ENOUGH_BYTES, count_part, &inner);
	if (inner.num_parts == 1 && inner.others == 0)
		count_part(work, part, parts);
	pthread_barrier_wait(&work->all);
}

START_TEST(work_that_finds_the_helpers_busy_is_left_undivided)
{
	struct work work = {.caller = pthread_self()};

	pthread_barrier_init(&work.all, NULL, HELPERS + 1);
	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &work.team), QUIRE_OK);
	quire_cpu_split(work.team, ENOUGH_ROWS, ENOUGH_BYTES, split_in_part, &work);
	for (int p = 0; p <= HELPERS; p++)
		ck_assert_int_eq(work.parts[p], 1);
	quire_cpu_team_destroy(work.team);
	pthread_barrier_destroy(&work.all);
}
END_TEST

static void *block_mask(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	return NULL;
}

START_TEST(a_thread_of_the_library_takes_no_signals)
{
	sigset_t before;
	sigset_t inside;
	sigset_t after;
	pthread_t thread;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	ck_assert_int_eq(quire_cpu_thread_start(&thread, NULL, block_mask, &inside), 0);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	ck_assert_int_eq(sigismember(&inside, SIGTERM), 1);
	ck_assert_int_eq(sigismember(&inside, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
	ck_assert_int_eq(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("move");
	TCase *moves = tcase_create("moves");
	TCase *team = tcase_create("helpers");

	exact_prepare();
	suite_add_tcase(suite, moves);
	suite_add_tcase(suite, team);
	tcase_set_timeout(moves, 60);
	tcase_set_timeout(team, 30);
	tcase_add_loop_test(moves,
	                    long_and_short_moves_of_tokens_are_those_of_the_definition, 0,
	                    NUM_DEVICES * 3 * 2);
	tcase_add_loop_test(moves,
	                    long_and_short_copies_of_pages_are_those_of_the_definition, 0,
	                    NUM_DEVICES * 3 * 2);
	tcase_add_loop_test(moves, a_slot_named_by_many_rows_holds_one_of_them_whole, 0,
	                    NUM_DEVICES * 3);
	tcase_add_loop_test(moves, a_wrong_slot_behind_many_right_ones_stops_all_of_them,
	                    0, NUM_DEVICES);
	tcase_add_test(moves, streams_share_the_helpers_of_their_device);
	tcase_add_test(team, every_part_is_done_once_whoever_does_it);
	tcase_add_test(team, parts_are_done_side_by_side);
	tcase_add_test(team, little_work_is_left_undivided);
	tcase_add_test(team, work_that_finds_the_helpers_busy_is_left_undivided);
	tcase_add_test(team, a_thread_of_the_library_takes_no_signals);
	return run_suite(suite);
}
