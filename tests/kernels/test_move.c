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
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const devices[] = {"cpu:inline", "cpu", "cpu:3"};
#define NUM_DEVICES 3

static int num_cpus = 64;

/* In front of the system's: whatever the machine, work is divided. */
__attribute__((visibility("default"))) int sched_getaffinity(pid_t pid, size_t bytes,
                                                             cpu_set_t *cpus)
{
	(void)pid;
	CPU_ZERO_S(bytes, cpus);
	for (int i = 0; i < num_cpus; i++)
		CPU_SET_S((size_t)i, bytes, cpus);
	return 0;
}

/* Tokens of 258 elements: no piece but the first begins at a line.  The large cache has
 * more than 16 MiB, the small one 2.5; 1,200 tokens have more than 3 * 256 KiB. */
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

#define HELPERS    3
#define PART_ROWS  8
#define PART_BYTES (256 << 10)

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
	for (int round = 1; round <= 1000; round++) {
		for (int parts = 1; parts <= HELPERS + 1; parts++) {
			quire_cpu_split(work.team, parts, count_part, &work);
			/* Read without atomics: all that the parts did is seen. */
			ck_assert_int_eq(work.num_parts, parts);
		}
		for (int p = 0; p <= HELPERS; p++)
			ck_assert_int_eq(work.parts[p], round * (HELPERS + 1 - p));
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
		quire_cpu_split(work.team, HELPERS + 1, meet_in_part, &work);
		ck_assert_int_eq(work.others, HELPERS * round);
		if (round % 5 == 0)
			usleep(3000);
	}
	quire_cpu_team_destroy(work.team);
	pthread_barrier_destroy(&work.all);
}
END_TEST

START_TEST(parts_follow_the_work)
{
	static const struct {
		int64_t rows;
		int64_t bytes;
		int parts;
		int walking;
	} cases[] = {
		{0, 0, 1, 1},
		{1, INT64_MAX, 1, 1},
		{2 * PART_ROWS - 1, INT64_MAX, 1, 1},
		{2 * PART_ROWS, INT64_MAX, 2, 2},
		{INT64_MAX, 2 * PART_BYTES - 1, 1, 1},
		{1000, 2 * PART_BYTES, 2, 2},
		{1000, 3 * PART_BYTES - 1, 2, 2},
		{3 * PART_ROWS, 3 * PART_BYTES, 3, 3},
		{INT64_MAX / 256, INT64_MAX, HELPERS + 1, HELPERS + 1},
		/* Each walks past rows no longer than it copies: 64 bytes a row. */
		{1 << 20, 256 << 20, HELPERS + 1, HELPERS + 1},
		{1 << 20, 255 << 20, HELPERS + 1, HELPERS},
		{1 << 20, 128 << 20, HELPERS + 1, 2},
		{1 << 20, 64 << 20, HELPERS + 1, 1},
		{1 << 20, 2 << 20, HELPERS + 1, 1},
	};
	struct cpu_team *team;

	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &team), QUIRE_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t rows = cases[i].rows;
		int64_t bytes = cases[i].bytes;

		ck_assert_int_eq(quire_cpu_parts(team, rows, bytes), cases[i].parts);
		ck_assert_int_eq(quire_cpu_parts_walking(team, rows, bytes),
		                 cases[i].walking);
		ck_assert_int_eq(quire_cpu_parts(NULL, rows, bytes), 1);
		ck_assert_int_eq(quire_cpu_parts_walking(NULL, rows, bytes), 1);
	}
	quire_cpu_team_destroy(team);
}
END_TEST

START_TEST(there_are_no_more_parts_than_cpus)
{
	for (int cpus = 1; cpus <= HELPERS + 2; cpus++) {
		int most = cpus <= HELPERS ? cpus : HELPERS + 1;
		struct cpu_team *team;

		num_cpus = cpus;
		ck_assert_int_eq(quire_cpu_team_create(HELPERS, &team), QUIRE_OK);
		ck_assert_int_eq(quire_cpu_parts(team, INT64_MAX, INT64_MAX), most);
		quire_cpu_team_destroy(team);
	}
}
END_TEST

START_TEST(one_part_is_left_to_the_caller)
{
	struct work work = {.caller = pthread_self()};

	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &work.team), QUIRE_OK);
	quire_cpu_split(work.team, 1, count_part, &work);
	ck_assert_int_eq(work.num_parts, 1);
	work.num_parts = 0;
	quire_cpu_split(NULL, 1, count_part, &work);
	ck_assert_int_eq(work.num_parts, 1);
	ck_assert_int_eq(work.parts[0], 2);
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
	quire_cpu_split(work->team, HELPERS + 1, count_part, &inner);
	if (inner.num_parts == 1 && inner.others == 0)
		count_part(work, part, parts);
	pthread_barrier_wait(&work->all);
}

START_TEST(work_that_finds_the_helpers_busy_is_left_undivided)
{
	struct work work = {.caller = pthread_self()};

	pthread_barrier_init(&work.all, NULL, HELPERS + 1);
	ck_assert_int_eq(quire_cpu_team_create(HELPERS, &work.team), QUIRE_OK);
	quire_cpu_split(work.team, HELPERS + 1, split_in_part, &work);
	for (int p = 0; p <= HELPERS; p++)
		ck_assert_int_eq(work.parts[p], 1);
	quire_cpu_team_destroy(work.team);
	pthread_barrier_destroy(&work.all);
}
END_TEST

/* Runs that begin anywhere, overlap, and go on past what one thread writes. */
static void any_runs(uint64_t *seed, int32_t num_pages, int32_t page_size, int64_t n)
{
	int32_t left = 0;

	for (int64_t i = 0; i < n; i++, left--) {
		bool goes_on = left > 0 && lists.offset[i - 1] < page_size - 1;

		if (!goes_on)
			left = random_in(seed, 1, page_size);
		lists.page[i] =
			goes_on ? lists.page[i - 1] : random_in(seed, 0, num_pages - 1);
		lists.offset[i] = goes_on ? lists.offset[i - 1] + 1
		                          : random_in(seed, 0, page_size - 1);
	}
	lists.slots = (struct quire_slots){lists.page, lists.offset, 0, n};
}

/* A thread writes in the order of the list: the last row naming a slot is left, if one
 * thread writes it. */
START_TEST(a_slot_named_by_many_runs_is_written_by_one_thread)
{
	enum { PAGES = 3, PAGE = 64, TOKENS = 512, ROUNDS = 5, ROW = 8192 };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1, PAGES, PAGE, 8, ROW / 16};
	struct naive_image expected = {.shape = shape};
	struct quire_device *device = NULL;
	struct quire_dstream *dstream = NULL;
	struct quire_cache *cache = NULL;
	size_t nbytes = (size_t)PAGES * 2 * PAGE * ROW;
	char *rows = malloc((size_t)TOKENS * ROW);
	uint64_t seed = 9;

	expected.storage = calloc(1, nbytes);
	any_bytes(&seed, rows, (size_t)TOKENS * ROW);
	ck_assert_int_eq(quire_device_create("cpu:4", &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL), QUIRE_OK);
	for (int round = 0; round < ROUNDS; round++) {
		any_runs(&seed, PAGES, PAGE, TOKENS);
		ck_assert_int_eq(quire_cache_write_tokens(cache, dstream, 0, &lists.slots,
		                                          rows, rows, QUIRE_BF16, NULL,
		                                          NULL),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
		naive_write(&expected, 0, &lists.slots, rows, rows, QUIRE_BF16);
		ck_assert(memcmp(quire_cache_data_ptr(cache), expected.storage, nbytes) ==
		          0);
	}
	quire_dstream_destroy(dstream);
	quire_cache_destroy(cache);
	quire_device_destroy(device);
	free(expected.storage);
	free(rows);
}
END_TEST

static int64_t saved_bytes(const struct mover *m)
{
	return (int64_t)((const struct cpu_dstream *)m->dstream)->saved.bytes;
}

struct pairs {
	int32_t source[4];
	int32_t target[4];
	int32_t end[4];
};

static void copy_pairs(struct mover *m, const struct pairs *pairs)
{
	ck_assert_int_eq(quire_cache_copy_slots(m->cache, m->dstream, pairs->source,
	                                        pairs->target, pairs->end, 4, NULL),
	                 QUIRE_OK);
	finish(m);
	naive_copy(&m->expected, pairs->source, pairs->target, pairs->end, 4);
	check_storage(m, "copy_slots");
}

/* Of one layer, and of the part of a page that is read again. */
START_TEST(only_cycles_take_memory_for_pages)
{
	static const struct pairs chain = {{4, 5, 6, 4}, {5, 6, 7, 8}, {16, 7, 3, 1}};
	static const struct pairs broken = {{4, 5, 6, 9}, {5, 6, 4, 7}, {16, 16, 0, 2}};
	static const struct pairs cycle = {{4, 5, 6, 4}, {5, 6, 4, 9}, {3, 3, 3, 16}};
	static const struct pairs two = {{4, 5, 6, 7}, {5, 4, 7, 6}, {9, 9, 2, 2}};
	struct mover m;
	int64_t token_bytes;

	open_mover(&m, devices[_i % NUM_DEVICES], (enum quire_layout)(_i / NUM_DEVICES),
	           false);
	token_bytes =
		naive_row(&m.expected.shape) * naive_size(&m.expected.shape, AXIS_KV) * 2;
	any_bytes(&m.seed, m.expected.storage, (size_t)m.nbytes);
	memcpy(m.memory + AROUND, m.expected.storage, (size_t)m.nbytes);
	copy_pairs(&m, &chain);
	ck_assert_int_eq(saved_bytes(&m), 0);
	/* What a copy of no tokens would read is not kept for it. */
	copy_pairs(&m, &broken);
	ck_assert_int_eq(saved_bytes(&m), 0);
	copy_pairs(&m, &cycle);
	ck_assert_int_eq(saved_bytes(&m), 3 * token_bytes);
	copy_pairs(&m, &two);
	ck_assert_int_eq(saved_bytes(&m), 9 * token_bytes);
	close_mover(&m);
}
END_TEST

/* So many layers that nobody lives to see the end of a walk over them. */
START_TEST(copies_that_move_nothing_walk_over_nothing)
{
	static char memory[64] __attribute__((aligned(64)));
	static const int32_t pages[] = {0, 1};
	static const int32_t swapped[] = {1, 0};
	static const int32_t none[] = {0, 0};
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F32, INT64_C(1) << 58, 2, 1, 1, 1};
	struct quire_device *device = NULL;
	struct quire_dstream *dstream = NULL;
	struct quire_cache *cache = NULL;

	ck_assert_int_eq(quire_device_create(devices[_i], &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	ck_assert_int_eq(
		quire_cache_create_on(device, &shape, memory, INT64_MAX, &cache, NULL),
		QUIRE_OK);
	ck_assert_int_eq(quire_cache_copy_pages(cache, dstream, pages, pages, 2, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(
		quire_cache_copy_slots(cache, dstream, pages, swapped, none, 2, NULL),
		QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
	quire_dstream_destroy(dstream);
	quire_cache_destroy(cache);
	quire_device_destroy(device);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("move");
	TCase *moves = tcase_create("moves");
	TCase *nothing = tcase_create("nothing to move");
	TCase *team = tcase_create("helpers");

	exact_prepare();
	suite_add_tcase(suite, moves);
	suite_add_tcase(suite, nothing);
	suite_add_tcase(suite, team);
	tcase_set_timeout(moves, 60);
	tcase_set_timeout(nothing, 10);
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
	tcase_add_test(moves, a_slot_named_by_many_runs_is_written_by_one_thread);
	tcase_add_loop_test(moves, only_cycles_take_memory_for_pages, 0, NUM_DEVICES * 3);
	tcase_add_loop_test(nothing, copies_that_move_nothing_walk_over_nothing, 0,
	                    NUM_DEVICES);
	tcase_add_test(team, every_part_is_done_once_whoever_does_it);
	tcase_add_test(team, parts_are_done_side_by_side);
	tcase_add_test(team, parts_follow_the_work);
	tcase_add_test(team, there_are_no_more_parts_than_cpus);
	tcase_add_test(team, one_part_is_left_to_the_caller);
	tcase_add_test(team, work_that_finds_the_helpers_busy_is_left_undivided);
	return run_suite(suite);
}
