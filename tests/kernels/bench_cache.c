/* SPDX-License-Identifier: MIT */
/*
 * GB/s of the cache's operations on cpu:inline, each beside one memcpy of the same bytes
 * in the same cache: interleaved rounds, medians, the median of the rounds' ratios.
 */
#include "config.h"

#include <quire/kernels/cache.h>

#include "tests/alloc/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 15
#define TOKENS 4096
#define COPIES 256

/* 4 layers of 1,024 pages of 16 tokens of 2 KiB rows, K and V: 256 MiB. */
static const struct quire_shape shape = {
	.layout = QUIRE_NHD,
	.dtype = QUIRE_BF16,
	.num_layers = 4,
	.num_pages = 1024,
	.page_size = 16,
	.num_kv_heads = 8,
	.head_dim = 128,
};

struct bench {
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_cache *cache;
	char *k; /* f32 rows, used as rows of any dtype */
	char *v;
	char *out;
	int32_t pages[1024];
	int32_t page[1024 * 16];
	int32_t offset[1024 * 16];
	uint64_t seed;
	int64_t layer;
	int failed;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void shuffle_slots(struct bench *b, int in_runs)
{
	int32_t order[1024];

	for (int32_t i = 0; i < 1024; i++)
		order[i] = i;
	random_shuffle(&b->seed, order, 1024);
	for (int32_t i = 0; i < 1024 * 16; i++) {
		b->page[i] = order[i / 16];
		b->offset[i] = i % 16;
	}
	memcpy(b->pages, order, sizeof(order));
	b->layer = (b->layer + 1) % shape.num_layers;
	if (in_runs)
		return;
	for (int32_t i = 1024 * 16 - 1; i > 0; i--) {
		int32_t j = random_in(&b->seed, 0, i);
		int32_t page = b->page[i];
		int32_t offset = b->offset[i];

		b->page[i] = b->page[j];
		b->offset[i] = b->offset[j];
		b->page[j] = page;
		b->offset[j] = offset;
	}
}

static void write_from(struct bench *b, enum quire_dtype dtype)
{
	struct quire_slots slots = {b->page, b->offset, 0, TOKENS};

	b->failed |= quire_cache_write_tokens(b->cache, b->dstream, b->layer, &slots,
	                                      b->k, b->v, dtype, NULL) != QUIRE_OK;
}

static void write_same(struct bench *b)
{
	write_from(b, QUIRE_BF16);
}

static void write_converted(struct bench *b)
{
	write_from(b, QUIRE_F32);
}

static void read_back(struct bench *b)
{
	struct quire_slots slots = {b->page, b->offset, 0, TOKENS};

	b->failed |= quire_cache_read_tokens(b->cache, b->dstream, b->layer, &slots,
	                                     b->out, NULL) != QUIRE_OK;
}

static void copy_pages(struct bench *b)
{
	b->failed |= quire_cache_copy_pages(b->cache, b->dstream, b->pages,
	                                    b->pages + COPIES, COPIES, NULL) != QUIRE_OK;
}

/* One memcpy within the cache's storage, or between it and warm memory. */
static void plain_copy(struct bench *b, int64_t bytes, int direction)
{
	char *storage = quire_cache_data_ptr(b->cache);
	int64_t half = quire_cache_nbytes(b->cache) / 2;
	char *place = storage +
	              random_in(&b->seed, 0, (int32_t)((half - bytes) / 4096)) * 4096l;

	if (direction > 0)
		memcpy(place, b->k, (size_t)bytes);
	else if (direction < 0)
		memcpy(b->out, place, (size_t)bytes);
	else
		memcpy(place + half, place, (size_t)bytes);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static void measure(struct bench *b, const char *name, void (*operation)(struct bench *),
                    int64_t bytes, int direction, int in_runs)
{
	double speeds[ROUNDS];
	double ratios[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		int64_t start;
		int64_t middle;
		int64_t end;

		shuffle_slots(b, in_runs);
		start = now_ns();
		plain_copy(b, bytes, direction);
		middle = now_ns();
		operation(b);
		end = now_ns();
		speeds[i] = (double)bytes / (double)(end - middle);
		ratios[i] = (double)(middle - start) / (double)(end - middle);
	}
	printf("%s %.2f GB/s %.2f\n", name, median(speeds), median(ratios));
}

/* One token of one layer, call to done. */
static void measure_one_token(struct bench *b)
{
	double times[ROUNDS];
	double ratios[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		struct quire_slots slots = {b->page, b->offset, 0, 1};
		char *storage = quire_cache_data_ptr(b->cache);
		int64_t start = now_ns();
		int64_t middle;

		for (int k = 0; k < 1000; k++) {
			memcpy(storage + k % 64 * 2048, b->k, 2048);
			memcpy(storage + k % 64 * 2048 + 32768, b->v, 2048);
		}
		middle = now_ns();
		for (int k = 0; k < 1000; k++) {
			b->offset[0] = k % 16;
			b->failed |= quire_cache_write_tokens(
					     b->cache, b->dstream, 0, &slots, b->k, b->v,
					     QUIRE_BF16, NULL) != QUIRE_OK;
		}
		times[i] = (double)(now_ns() - middle) / 1000;
		ratios[i] = (double)(middle - start) / 1000 / times[i];
	}
	printf("cache_write_one_token %.0f ns %.2f\n", median(times), median(ratios));
}

/* Record on a device stream to synchronize: there and back between two threads. */
static void measure_round_trip(struct bench *b)
{
	struct quire_device *device = NULL;
	struct quire_dstream *dstream = NULL;
	struct quire_event *event = NULL;
	double times[ROUNDS];

	if (quire_device_create("cpu", &device, NULL) != QUIRE_OK ||
	    quire_dstream_create(device, "bench", &dstream) != QUIRE_OK ||
	    quire_event_create(device, &event) != QUIRE_OK) {
		b->failed = 1;
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		int64_t start = now_ns();

		for (int k = 0; k < 200; k++) {
			b->failed |= quire_event_record(event, dstream) != QUIRE_OK;
			b->failed |= quire_event_synchronize(event) != QUIRE_OK;
		}
		times[i] = (double)(now_ns() - start) / 200;
	}
	printf("device_round_trip %.0f ns 1.00\n", median(times));
	quire_event_destroy(event);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}

static int set_up(struct bench *b)
{
	int64_t rows_bytes = TOKENS * shape.num_kv_heads * shape.head_dim * 4;

	b->k = malloc((size_t)rows_bytes);
	b->v = malloc((size_t)rows_bytes);
	b->out = malloc((size_t)rows_bytes);
	if (b->k == NULL || b->v == NULL || b->out == NULL ||
	    quire_device_create("cpu:inline", &b->device, NULL) != QUIRE_OK ||
	    quire_dstream_create(b->device, "bench", &b->dstream) != QUIRE_OK ||
	    quire_cache_create(b->device, &shape, &b->cache, NULL) != QUIRE_OK)
		return 1;
	memset(b->k, 0x3c, (size_t)rows_bytes);
	memset(b->v, 0x3d, (size_t)rows_bytes);
	memset(b->out, 0, (size_t)rows_bytes);
	memset(quire_cache_data_ptr(b->cache), 1, (size_t)quire_cache_nbytes(b->cache));
	return 0;
}

int main(void)
{
	static struct bench b = {.seed = 1};
	int64_t token_bytes = TOKENS * 2 * shape.num_kv_heads * shape.head_dim * 2;
	int64_t page_bytes = COPIES * shape.num_layers * 2 * shape.page_size *
	                     shape.num_kv_heads * shape.head_dim * 2;

	if (set_up(&b) != 0) {
		fprintf(stderr, "bench_cache: no memory\n");
		return 77;
	}
	measure(&b, "cache_write_scattered", write_same, token_bytes, 1, 0);
	measure(&b, "cache_write_runs", write_same, token_bytes, 1, 1);
	measure(&b, "cache_write_f32_to_bf16_runs", write_converted, token_bytes, 1, 1);
	measure(&b, "cache_read_scattered", read_back, token_bytes, -1, 0);
	measure(&b, "cache_read_runs", read_back, token_bytes, -1, 1);
	measure(&b, "cache_copy_pages", copy_pages, page_bytes, 0, 1);
	measure_one_token(&b);
	measure_round_trip(&b);
	quire_dstream_destroy(b.dstream);
	quire_cache_destroy(b.cache);
	quire_device_destroy(b.device);
	free(b.out);
	free(b.v);
	free(b.k);
	return b.failed;
}
