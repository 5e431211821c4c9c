/* SPDX-License-Identifier: MIT */
/*
 * bench_gpu [DEVICE] - the cache's operations on a GPU, each beside one copy of the same
 * bytes from device memory to device memory, in turns, timed by events.  A line is
 * "name GB/s ratio", a median of rounds; the bars come last.
 */
#include "config.h"

#include <quire/kernels/cache.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS    21
#define TURNS     8 /* operations of one timing */
#define PAGE_SIZE 16
#define BAR       0.85

static struct quire_device *device;
static struct quire_dstream *dstream;
static struct quire_event *first;
static struct quire_event *last;

static void must(enum quire_status status, const char *what)
{
	if (status == QUIRE_OK)
		return;
	fprintf(stderr, "bench_gpu: %s: %s\n", what, quire_status_text(status));
	exit(1);
}

static void *device_memory(int64_t bytes)
{
	void *memory;

	must(quire_device_alloc(device, bytes, &memory), "device memory");
	return memory;
}

static void shuffle(int32_t *list, int64_t n)
{
	uint64_t state = 1;

	for (int64_t i = n - 1; i > 0; i--) {
		int32_t swapped = list[i];
		int64_t j;

		state = state * 6364136223846793005u + 1442695040888963407u;
		j = (int64_t)((state >> 33) % (uint64_t)(i + 1));
		list[i] = list[j];
		list[j] = swapped;
	}
}

/* Of the numbers 0 .. n - 1 the quotients, or the remainders, by @divisor, in device
 * memory; every call shuffles alike. */
static int32_t *device_list(int64_t n, bool shuffled, int32_t divisor, bool remainders)
{
	int64_t bytes = n * (int64_t)sizeof(int32_t);
	int32_t *list = device_memory(bytes);
	struct quire_range range = {.target = list, .bytes = bytes};
	int32_t *host;
	void *memory;

	must(quire_device_alloc_pinned(device, bytes, &memory), "pinned memory");
	host = memory;
	for (int64_t i = 0; i < n; i++)
		host[i] = (int32_t)i;
	if (shuffled)
		shuffle(host, n);
	for (int64_t i = 0; i < n; i++)
		host[i] = remainders ? host[i] % divisor : host[i] / divisor;
	range.source = host;
	must(quire_dstream_copy(dstream, &range, 1), "upload");
	must(quire_dstream_synchronize(dstream, NULL), "upload");
	quire_device_release_pinned(device, memory, bytes);
	return list;
}

/* ------------------------------------------------------------------ cases */

enum operation { WRITE, CONVERT, READ, COPY };

static const char *const names[] = {"write", "write_f32", "read", "copy_pages"};

struct bench {
	enum operation operation;
	enum quire_layout layout;
	bool scattered;
	int64_t row_bytes;
	int64_t n; /* tokens, or pages */
	struct quire_cache *cache;
	int64_t bytes; /* that one operation moves */
	int32_t *pages;
	int32_t *offsets; /* NULL: pages are copied */
	int64_t list_bytes;
	int64_t num_pages;
	char *rows;
	char *rival;
};

static enum quire_status run_once(const struct bench *b)
{
	struct quire_slots slots = {.page = b->pages, .offset = b->offsets, .n = b->n};
	enum quire_dtype dtype = b->operation == CONVERT ? QUIRE_F32 : QUIRE_BF16;

	switch (b->operation) {
	case WRITE:
	case CONVERT:
		return quire_cache_write_tokens(b->cache, dstream, 0, &slots, b->rows,
		                                b->rows + b->bytes, dtype, NULL, NULL);
	case READ:
		return quire_cache_read_tokens(b->cache, dstream, 0, &slots, b->rows,
		                               NULL);
	case COPY:
		return quire_cache_copy_pages(b->cache, dstream, b->pages,
		                              b->pages + b->n, b->n, NULL);
	}
	return QUIRE_INVALID;
}

static enum quire_status run_rival(const struct bench *b)
{
	struct quire_range range = {
		.target = b->rival, .source = b->rival + b->bytes, .bytes = b->bytes};

	return quire_dstream_copy(dstream, &range, 1);
}

static double time_of(const struct bench *b,
                      enum quire_status (*run)(const struct bench *))
{
	int64_t ns;

	must(quire_event_record(first, dstream), "record");
	for (int turn = 0; turn < TURNS; turn++)
		must(run(b), names[b->operation]);
	must(quire_event_record(last, dstream), "record");
	must(quire_event_synchronize(last), "synchronize");
	must(quire_event_elapsed(first, last, &ns), "elapsed");
	return (double)ns / TURNS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

/* All of the pages' slots; of a copy, sources and then targets. */
static void make_lists(struct bench *b)
{
	b->list_bytes = b->n * (int64_t)sizeof(int32_t);
	if (b->operation == COPY) {
		b->num_pages = 2 * b->n;
		b->list_bytes *= 2;
		b->pages = device_list(2 * b->n, b->scattered, 1, false);
		return;
	}
	b->num_pages = b->n / PAGE_SIZE;
	b->pages = device_list(b->n, b->scattered, PAGE_SIZE, false);
	b->offsets = device_list(b->n, b->scattered, PAGE_SIZE, true);
}

static double measure(struct bench *b)
{
	struct quire_shape shape = {
		.layout = b->layout,
		.dtype = QUIRE_BF16,
		.num_layers = 1,
		.page_size = PAGE_SIZE,
		.num_kv_heads = 8,
		.head_dim = b->row_bytes / 8 / 2,
	};
	double ns[ROUNDS], ratios[ROUNDS], value;
	int64_t rows_bytes;

	make_lists(b);
	shape.num_pages = b->num_pages;
	b->bytes = b->n * 2 * b->row_bytes * (b->operation == COPY ? PAGE_SIZE : 1);
	rows_bytes = 4 * b->bytes;
	must(quire_cache_create(device, &shape, &b->cache, NULL), "cache");
	b->rows = device_memory(rows_bytes);
	b->rival = device_memory(2 * b->bytes);
	time_of(b, run_once);
	time_of(b, run_rival);
	for (int round = 0; round < ROUNDS; round++) {
		ns[round] = time_of(b, run_once);
		ratios[round] = time_of(b, run_rival) / ns[round];
	}
	must(quire_dstream_synchronize(dstream, NULL), names[b->operation]);
	value = median(ratios);
	printf("gpu_%s_%s_%s_row_%" PRId64 "_n_%" PRId64 " %.1f GB/s %.2f\n",
	       names[b->operation], quire_layout_name(b->layout),
	       b->scattered ? "scattered" : "runs", b->row_bytes, b->n,
	       (double)b->bytes / median(ns), value);
	fflush(stdout);
	quire_device_release(device, b->rival, 2 * b->bytes);
	quire_device_release(device, b->rows, rows_bytes);
	quire_device_release(device, b->offsets, b->list_bytes);
	quire_device_release(device, b->pages, b->list_bytes);
	quire_cache_destroy(b->cache);
	return value;
}

int main(int argc, char **argv)
{
	static const int64_t rows[] = {256, 1024, 2048, 16384};
	static const int64_t tokens[] = {16, 1024, 16384};
	static const int64_t pages[] = {64, 1024};
	double worst[COPY + 1] = {1e9, 1e9, 1e9, 1e9};
	struct quire_refusal refusal;
	int missed = 0;

	if (quire_device_create(argc > 1 ? argv[1] : "cuda", &device, &refusal) !=
	    QUIRE_OK) {
		char text[200];

		quire_refusal_text(&refusal, text, sizeof(text));
		printf("bench_gpu: %s\n", text);
		return 77;
	}
	must(quire_dstream_create(device, "bench", &dstream), "device stream");
	must(quire_event_create_timed(device, &first), "event");
	must(quire_event_create_timed(device, &last), "event");
	for (int operation = WRITE; operation <= COPY; operation++) {
		const int64_t *list = operation == COPY ? pages : tokens;
		int num = operation == COPY ? 2 : 3;

		for (int i = 0; i < 4 * num * 4; i++) {
			struct bench b = {
				.operation = (enum operation)operation,
				.layout = i / num / 4 % 2 == 0 ? QUIRE_NHD : QUIRE_HND,
				.scattered = i / num / 8 == 0,
				.row_bytes = rows[i % 4],
				.n = list[i / 4 % num],
			};
			double ratio = measure(&b);

			if (b.row_bytes >= 1024 &&
			    b.n * (operation == COPY ? 16 : 1) >= 1024 &&
			    ratio < worst[operation])
				worst[operation] = ratio;
		}
	}
	puts("# what | bar | measured");
	for (int operation = WRITE; operation <= COPY; operation++) {
		printf("bar | %s, rows of 1 KiB and more, 64 pages and more, to a copy "
		       "of the "
		       "same bytes | >= %.2f | %.2f | %s\n",
		       names[operation], BAR, worst[operation],
		       worst[operation] >= BAR ? "met" : "missed");
		missed += worst[operation] < BAR;
	}
	quire_event_destroy(last);
	quire_event_destroy(first);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	return missed > 0 ? 1 : 0;
}
