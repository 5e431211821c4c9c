/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/random.h"
#include "tests/kernels/bench_moves.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

/* Slots of one layer with rows of 256 bytes; no task has smaller ones. */
#define SLOTS_MAX (BENCH_CACHE_BYTES / BENCH_LAYERS / 2 / 256)
#define PAGES_MAX (SLOTS_MAX / BENCH_PAGE_TOKENS)

struct bench {
	struct quire_device *devices[BENCH_THREADS_MAX];
	struct quire_dstream *dstreams[BENCH_THREADS_MAX];
	char *storage;
	char *rows;
	char *out;
	struct quire_cache *cache;
	struct bench_task task;
	int64_t moves; /* of a sample */
	int64_t bytes; /* of a move */
	int64_t num_pages;
	int64_t next; /* slot or pair of pages */
	int64_t layer;
	uint64_t seed;
	bool failed;
	/* The second thread of a plain copy. */
	pthread_t other;
	sem_t start;
	sem_t done;
	enum bench_way way; /* of a sample; BENCH_WAYS: end */
	int32_t pages[PAGES_MAX];
	int32_t page[SLOTS_MAX];
	int32_t offset[SLOTS_MAX];
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t bench_move_bytes(const struct bench_task *task, bool of_pages)
{
	return task->n * 2 * task->row_bytes *
	       (of_pages ? BENCH_LAYERS * BENCH_PAGE_TOKENS : 1);
}

static void copy_plain(char *target, const char *source, int64_t bytes)
{
	memcpy(target, source, (size_t)bytes);
}

#ifdef __x86_64__
static void copy_nt(char *target, const char *source, int64_t bytes)
{
	for (int64_t i = 0; i < bytes; i += 16)
		_mm_stream_si128((__m128i *)(target + i),
		                 _mm_loadu_si128((const __m128i *)(source + i)));
	_mm_sfence();
}
#else
#define copy_nt copy_plain
#endif

/* Half of a copy, or all of it. */
static void copy_share(const struct bench *b, int thread, char *target,
                       const char *source)
{
	int64_t share = b->bytes / b->task.threads;

	copy_plain(target + thread * share, source + thread * share, share);
}

/* One move of a sample, a place after the others. */
static void copy_in_or_out(const struct bench *b, int thread, uint64_t *seed)
{
	int64_t places = (BENCH_CACHE_BYTES - b->bytes) / 4096;
	char *place = b->storage + random_in(seed, 0, (int32_t)places) * INT64_C(4096);

	if (b->way == BENCH_MEMCPY_IN)
		copy_share(b, thread, place, b->rows);
	else
		copy_share(b, thread, b->out, place);
}

static char *block(const struct bench *b, int64_t layer, int32_t page)
{
	int64_t bytes = b->bytes / b->task.n / BENCH_LAYERS;

	return b->storage + (layer * b->num_pages + page) * bytes;
}

/* As copy_pages, block by block. */
static void copy_blocks(const struct bench *b, int thread, int64_t first)
{
	int64_t bytes = b->bytes / b->task.n / BENCH_LAYERS;
	void (*copy)(char *target, const char *source, int64_t bytes) =
		b->way == BENCH_BLOCKS_NT ? copy_nt : copy_plain;

	for (int64_t layer = thread; layer < BENCH_LAYERS; layer += b->task.threads)
		for (int64_t i = first; i < first + b->task.n; i++)
			copy(block(b, layer, b->pages[i + b->task.n]),
			     block(b, layer, b->pages[i]), bytes);
}

/* The first of the next 2n pages, or of the next n slots of the next layer.  After all of
 * them, the layers come in another order. */
static int64_t take_next(struct bench *b, int64_t n, int64_t num)
{
	int64_t first = b->next;

	b->layer = (b->layer + 1) % BENCH_LAYERS;
	if (first + n > num) {
		first = 0;
		b->layer = (b->layer + 1) % BENCH_LAYERS;
	}
	b->next = first + n;
	return first;
}

/* A thread's share of the plain copies of a sample. */
static void copy_plainly(struct bench *b, int thread, uint64_t seed, int64_t next)
{
	int64_t n = 2 * b->task.n;

	for (int64_t m = 0; m < b->moves; m++) {
		if (b->way == BENCH_MEMCPY_IN || b->way == BENCH_MEMCPY_OUT) {
			copy_in_or_out(b, thread, &seed);
			continue;
		}
		if (next + n > b->num_pages)
			next = 0;
		copy_blocks(b, thread, next);
		next += n;
	}
}

static void *be_the_other(void *argument)
{
	struct bench *b = argument;

	for (;;) {
		while (sem_wait(&b->start) != 0)
			continue;
		if (b->way == BENCH_WAYS)
			return NULL;
		copy_plainly(b, 1, b->seed, b->next);
		sem_post(&b->done);
	}
}

static void sample_plain(struct bench *b)
{
	if (b->task.threads > 1)
		sem_post(&b->start);
	copy_plainly(b, 0, b->seed, b->next);
	while (b->task.threads > 1 && sem_wait(&b->done) != 0)
		continue;
	/* On to other places: not to the next number, which starts the same series. */
	b->seed = random_next(&b->seed);
	if (b->way == BENCH_BLOCKS || b->way == BENCH_BLOCKS_NT)
		for (int64_t m = 0; m < b->moves; m++)
			take_next(b, 2 * b->task.n, b->num_pages);
}

static enum quire_status move_tokens(struct bench *b, struct quire_dstream *dstream)
{
	int64_t n = b->task.n;
	int64_t first = take_next(b, n, b->num_pages * BENCH_PAGE_TOKENS);
	struct quire_slots slots = {b->page + first, b->offset + first, 0, n};
	enum quire_dtype dtype = b->way == BENCH_WRITE ? QUIRE_BF16 : QUIRE_F32;
	int64_t k_bytes = b->bytes / 2 * (dtype == QUIRE_F32 ? 2 : 1);

	if (b->way == BENCH_READ)
		return quire_cache_read_tokens(b->cache, dstream, b->layer, &slots,
		                               b->out, NULL);
	return quire_cache_write_tokens(b->cache, dstream, b->layer, &slots, b->rows,
	                                b->rows + k_bytes, dtype, NULL, NULL);
}

static void sample_cache(struct bench *b)
{
	struct quire_dstream *dstream = b->dstreams[b->task.threads - 1];
	int64_t n = b->task.n;
	enum quire_status status = QUIRE_OK;

	for (int64_t m = 0; m < b->moves && status == QUIRE_OK; m++) {
		if (b->way == BENCH_COPY_PAGES) {
			int32_t *pages = b->pages + take_next(b, 2 * n, b->num_pages);

			status = quire_cache_copy_pages(b->cache, dstream, pages,
			                                pages + n, n, NULL);
		} else {
			status = move_tokens(b, dstream);
		}
	}
	b->failed |= status != QUIRE_OK;
	b->failed |= quire_dstream_synchronize(dstream, NULL) != QUIRE_OK;
}

double bench_sample(struct bench *b, enum bench_way way)
{
	int64_t start = now_ns();

	b->way = way;
	switch (way) {
	case BENCH_WRITE:
	case BENCH_WRITE_F32:
	case BENCH_READ:
	case BENCH_COPY_PAGES:
		sample_cache(b);
		break;
	default:
		sample_plain(b);
	}
	return (double)(now_ns() - start) / (double)b->moves;
}

/* Slots of whole pages in the order of b->pages, or all over them. */
static void order_slots(struct bench *b)
{
	int32_t num = (int32_t)b->num_pages;
	int32_t num_slots = num * BENCH_PAGE_TOKENS;

	for (int32_t i = 0; i < num; i++)
		b->pages[i] = i;
	random_shuffle(&b->seed, b->pages, num);
	for (int32_t i = 0; i < num_slots; i++)
		b->page[i] = b->pages[i / BENCH_PAGE_TOKENS] * BENCH_PAGE_TOKENS +
		             i % BENCH_PAGE_TOKENS;
	if (!b->task.in_runs)
		random_shuffle(&b->seed, b->page, num_slots);
	for (int32_t i = 0; i < num_slots; i++) {
		b->offset[i] = b->page[i] % BENCH_PAGE_TOKENS;
		b->page[i] /= BENCH_PAGE_TOKENS;
	}
}

bool bench_prepare(struct bench *b, const struct bench_task *task, bool of_pages)
{
	int64_t page_bytes = 2 * task->row_bytes * BENCH_PAGE_TOKENS * BENCH_LAYERS;
	/* Heads of 128 elements of two bytes. */
	struct quire_shape shape = {
		.layout = task->layout,
		.dtype = QUIRE_BF16,
		.num_layers = BENCH_LAYERS,
		.num_pages = BENCH_CACHE_BYTES / page_bytes,
		.page_size = BENCH_PAGE_TOKENS,
		.num_kv_heads = task->row_bytes / 256,
		.head_dim = 128,
	};

	b->task = *task;
	b->bytes = bench_move_bytes(task, of_pages);
	b->num_pages = shape.num_pages;
	b->next = 0;
	if (of_pages ? 2 * task->n > b->num_pages : b->bytes > BENCH_MOVE_BYTES_MAX)
		return false;
	b->moves = BENCH_SAMPLE_BYTES / b->bytes;
	if (b->moves < 1)
		b->moves = 1;
	quire_cache_destroy(b->cache);
	b->cache = NULL;
	b->failed |=
		quire_cache_create_on(b->devices[task->threads - 1], &shape, b->storage,
	                              BENCH_CACHE_BYTES, &b->cache, NULL) != QUIRE_OK;
	order_slots(b);
	return !b->failed;
}

/* Rows of 2 KiB; 64 tokens of four pages are written in turn. */
#define CALLS       1000
#define CALL_ROW    2048
#define CALL_TOKENS 64

double bench_bare_rows_ns(struct bench *b)
{
	int64_t page_bytes = 2 * BENCH_PAGE_TOKENS * CALL_ROW;
	int64_t start = now_ns();

	for (int i = 0; i < CALLS; i++) {
		int t = i % CALL_TOKENS;
		char *k = b->storage + t / BENCH_PAGE_TOKENS * page_bytes +
		          t % BENCH_PAGE_TOKENS * CALL_ROW;

		memcpy(k, b->rows, CALL_ROW);
		memcpy(k + page_bytes / 2, b->rows + CALL_ROW, CALL_ROW);
	}
	return (double)(now_ns() - start) / CALLS;
}

double bench_call_ns(struct bench *b, int64_t n)
{
	const struct bench_task task = {QUIRE_NHD, CALL_ROW, 1, 1, true};
	int64_t start;

	if (!bench_prepare(b, &task, false))
		return 0;
	for (int i = 0; i < CALL_TOKENS; i++) {
		b->page[i] = i / BENCH_PAGE_TOKENS;
		b->offset[i] = i % BENCH_PAGE_TOKENS;
	}
	start = now_ns();
	for (int i = 0; i < CALLS; i++) {
		int t = i % CALL_TOKENS;
		struct quire_slots slots = {b->page + t, b->offset + t, 0, n};

		b->failed |= quire_cache_write_tokens(b->cache, b->dstreams[0], 0, &slots,
		                                      b->rows, b->rows + CALL_ROW,
		                                      QUIRE_BF16, NULL, NULL) != QUIRE_OK;
	}
	return (double)(now_ns() - start) / CALLS;
}

#define ROUND_TRIPS 200

double bench_round_trip_ns(struct bench *b)
{
	struct quire_event *event;
	int64_t start;

	if (quire_event_create(b->devices[1], &event) != QUIRE_OK) {
		b->failed = true;
		return 0;
	}
	start = now_ns();
	for (int i = 0; i < ROUND_TRIPS; i++) {
		b->failed |= quire_event_record(event, b->dstreams[1]) != QUIRE_OK;
		b->failed |= quire_event_synchronize(event) != QUIRE_OK;
	}
	start = now_ns() - start;
	quire_event_destroy(event);
	return (double)start / ROUND_TRIPS;
}

static char *touched(struct quire_device *device, int64_t bytes)
{
	void *memory;

	if (quire_device_alloc(device, bytes, &memory) != QUIRE_OK)
		return NULL;
	/* Small numbers, as f32 and as bf16. */
	return memset(memory, 0x3c, (size_t)bytes);
}

struct bench *bench_new(void)
{
	static const char *const names[BENCH_THREADS_MAX] = {"cpu:inline", "cpu:2"};
	struct bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->seed = 1;
	for (int t = 0; t < BENCH_THREADS_MAX; t++)
		if (quire_device_create(names[t], &b->devices[t], NULL) != QUIRE_OK ||
		    quire_dstream_create(b->devices[t], "bench", &b->dstreams[t]) !=
		            QUIRE_OK)
			return NULL;
	b->storage = touched(b->devices[0], BENCH_CACHE_BYTES);
	b->rows = touched(b->devices[0], 2 * BENCH_MOVE_BYTES_MAX);
	b->out = touched(b->devices[0], BENCH_MOVE_BYTES_MAX);
	sem_init(&b->start, 0, 0);
	sem_init(&b->done, 0, 0);
	if (b->storage == NULL || b->rows == NULL || b->out == NULL ||
	    pthread_create(&b->other, NULL, be_the_other, b) != 0)
		return NULL;
	return b;
}

bool bench_end(struct bench *b)
{
	bool failed = b->failed;

	b->way = BENCH_WAYS;
	sem_post(&b->start);
	pthread_join(b->other, NULL);
	quire_cache_destroy(b->cache);
	quire_device_release(b->devices[0], b->out, BENCH_MOVE_BYTES_MAX);
	quire_device_release(b->devices[0], b->rows, 2 * BENCH_MOVE_BYTES_MAX);
	quire_device_release(b->devices[0], b->storage, BENCH_CACHE_BYTES);
	for (int t = 0; t < BENCH_THREADS_MAX; t++) {
		quire_dstream_destroy(b->dstreams[t]);
		quire_device_destroy(b->devices[t]);
	}
	sem_destroy(&b->done);
	sem_destroy(&b->start);
	free(b);
	return !failed;
}
