/* SPDX-License-Identifier: MIT */
/* The members of a cache that move nothing: given storage, addresses, views, exports. */
#include "config.h"

#include <quire/kernels/cache.h>

#include "tests/kernels/naive_cache.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stddef.h>

#define DEVICE "cpu:inline"
#define LOOPS  (QUIRE_LAYOUT_COUNT * QUIRE_DTYPE_COUNT)
#define ROUNDS 8

/* The structs are those of DLPack, whichever header they come from. */
_Static_assert(offsetof(DLTensor, data) == 0, "DLTensor");
_Static_assert(offsetof(DLTensor, device) == sizeof(void *), "DLTensor");
_Static_assert(offsetof(DLTensor, ndim) == sizeof(void *) + 8, "DLTensor");
_Static_assert(offsetof(DLTensor, dtype) == sizeof(void *) + 12, "DLTensor");
_Static_assert(offsetof(DLTensor, shape) == sizeof(void *) + 16, "DLTensor");
_Static_assert(offsetof(DLTensor, strides) == 2 * sizeof(void *) + 16, "DLTensor");
_Static_assert(offsetof(DLTensor, byte_offset) == 3 * sizeof(void *) + 16, "DLTensor");
_Static_assert(sizeof(DLTensor) == 3 * sizeof(void *) + 24, "DLTensor");
_Static_assert(offsetof(DLDevice, device_id) == 4 && sizeof(DLDevice) == 8, "DLDevice");
_Static_assert(offsetof(DLDataType, bits) == 1, "DLDataType");
_Static_assert(offsetof(DLDataType, lanes) == 2, "DLDataType");
_Static_assert(sizeof(DLDataType) == 4, "DLDataType");
_Static_assert(offsetof(DLManagedTensor, manager_ctx) == sizeof(DLTensor),
               "DLManagedTensor");
_Static_assert(offsetof(DLManagedTensor, deleter) == sizeof(DLTensor) + sizeof(void *),
               "DLManagedTensor");
_Static_assert(sizeof(DLManagedTensor) == sizeof(DLTensor) + 2 * sizeof(void *),
               "DLManagedTensor");
_Static_assert(kDLCPU == 1 && kDLCUDA == 2 && kDLFloat == 2 && kDLBfloat == 4, "codes");

static struct quire_device *device;

static void set_up(void)
{
	ck_assert_int_eq(quire_device_create(DEVICE, &device, NULL), QUIRE_OK);
}

static void tear_down(void)
{
	quire_device_destroy(device);
}

/* A random shape of number _i of the loop. */
static struct quire_shape shape_of(uint64_t *seed, int number)
{
	return any_shape_of(seed, (enum quire_layout)(number % QUIRE_LAYOUT_COUNT),
	                    (enum quire_dtype)(number / QUIRE_LAYOUT_COUNT));
}

static struct quire_cache *make(const struct quire_shape *shape)
{
	struct quire_cache *cache;

	ck_assert_int_eq(quire_cache_create(device, shape, &cache, NULL), QUIRE_OK);
	return cache;
}

static struct quire_chunk any_chunk(uint64_t *seed, const struct quire_shape *s)
{
	struct quire_chunk chunk;

	chunk.layer = random_in(seed, 0, (int32_t)s->num_layers - 1);
	chunk.page = random_in(seed, 0, (int32_t)s->num_pages - 1);
	chunk.first = random_in(seed, 0, (int32_t)s->page_size);
	chunk.end = random_in(seed, (int32_t)chunk.first, (int32_t)s->page_size);
	return chunk;
}

static void expect_bound(const struct quire_refusal *refusal, enum quire_status status,
                         const char *what, int64_t got, int64_t bound)
{
	ck_assert_int_eq(refusal->status, status);
	ck_assert_str_eq(refusal->what, what);
	ck_assert_int_eq(refusal->index, -1);
	ck_assert_int_eq(refusal->got, got);
	ck_assert_int_eq(refusal->expected, bound);
}

START_TEST(given_storage_is_used_as_it_is_and_left_as_it_is)
{
	uint64_t seed = (uint64_t)_i;
	struct quire_shape shape = shape_of(&seed, _i);
	struct naive_image image = {.shape = shape};
	size_t nbytes = (size_t)(naive_total(&shape) * quire_dtype_bytes(shape.dtype));
	const int32_t page = (int32_t)shape.num_pages - 1;
	const struct quire_slots slots = {&page, NULL, 0, shape.page_size};
	char *storage = aligned_alloc(64, (nbytes + 63) / 64 * 64);
	char *out = malloc(nbytes);
	char *wanted = malloc(nbytes);
	struct quire_dstream *dstream;
	struct quire_cache *cache;

	image.storage = malloc(nbytes);
	any_bytes(&seed, storage, nbytes);
	memcpy(image.storage, storage, nbytes);
	memset(out, 0, nbytes);
	memset(wanted, 0, nbytes);
	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create_on(device, &shape, storage, (int64_t)nbytes,
	                                       &cache, NULL),
	                 QUIRE_OK);
	ck_assert_ptr_eq(quire_cache_data_ptr(cache), storage);
	ck_assert_int_eq(quire_cache_nbytes(cache), (int64_t)nbytes);
	ck_assert_int_eq(quire_cache_read_tokens(cache, dstream, 0, &slots, out, NULL),
	                 QUIRE_OK);
	naive_read(&image, 0, &slots, wanted);
	ck_assert_mem_eq(out, wanted, nbytes);
	/* Page 0 becomes the last one; all else stays, also behind the cache's end. */
	ck_assert_int_eq(quire_cache_copy_pages(cache, dstream, &page,
	                                        (const int32_t[]){0}, 1, NULL),
	                 QUIRE_OK);
	naive_copy(&image, &page, (const int32_t[]){0}, NULL, 1);
	quire_cache_destroy(cache);
	quire_dstream_destroy(dstream);
	ck_assert_mem_eq(storage, image.storage, nbytes);
	free(image.storage);
	free(wanted);
	free(out);
	free(storage);
}
END_TEST

static void expect_storage_refused(const struct quire_shape *shape, void *storage,
                                   int64_t bytes, const char *what, int64_t got,
                                   int64_t bound)
{
	struct quire_cache *cache = (struct quire_cache *)&bytes;
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(
		quire_cache_create_on(device, shape, storage, bytes, &cache, &refusal),
		QUIRE_INVALID);
	expect_bound(&refusal, QUIRE_INVALID, what, got, bound);
	ck_assert_ptr_eq(cache, &bytes);
	ck_assert_int_eq(
		quire_cache_create_on(device, shape, storage, bytes, &cache, NULL),
		QUIRE_INVALID);
	ck_assert_ptr_eq(cache, &bytes);
}

START_TEST(wrong_storage_is_refused)
{
	static char memory[1024] __attribute__((aligned(64)));
	const struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1, 2, 4, 1, 8};
	const struct quire_shape wrong = {QUIRE_NHD, QUIRE_BF16, 1, 2, 0, 1, 8};
	struct quire_cache *cache;

	expect_storage_refused(&shape, NULL, 1024, "storage is NULL", 0, 0);
	expect_storage_refused(&shape, memory, 255, "storage_bytes", 255, 256);
	expect_storage_refused(&shape, memory, 0, "storage_bytes", 0, 256);
	expect_storage_refused(&shape, memory, -1, "storage_bytes", -1, 256);
	expect_storage_refused(&wrong, memory, 1024, "page_size", 0, 1);
	for (int64_t shift = 1; shift < 64; shift++) {
		if (shift % 16 != 0) {
			expect_storage_refused(&shape, memory + shift, 512,
			                       "storage: its address is not a "
			                       "multiple of 16",
			                       0, 0);
			continue;
		}
		ck_assert_int_eq(quire_cache_create_on(device, &shape, memory + shift,
		                                       256, &cache, NULL),
		                 QUIRE_OK);
		quire_cache_destroy(cache);
	}
	ck_assert_int_eq(
		quire_cache_create_on(device, &shape, memory, INT64_MAX, &cache, NULL),
		QUIRE_OK);
	ck_assert_int_eq(quire_cache_nbytes(cache), 256);
	quire_cache_destroy(cache);
	quire_cache_destroy(NULL);
}
END_TEST

/* How many chunks hold K and V of one page: heads apart only under HND. */
static int64_t chunks_of(const struct quire_shape *s)
{
	if (s->layout == QUIRE_MLA)
		return 1;
	return s->layout == QUIRE_HND && s->page_size > 1 ? 2 * s->num_kv_heads : 2;
}

static void expect_pointers(struct quire_cache *cache, const struct quire_chunk *chunk,
                            uint64_t base)
{
	const struct quire_shape *s = quire_cache_shape(cache);
	uint64_t from = base != 0 ? base : (uintptr_t)quire_cache_data_ptr(cache);
	int64_t chunks = chunks_of(s);
	int64_t num_kv = naive_size(s, AXIS_KV);
	int64_t heads = num_kv * s->num_kv_heads / chunks;
	int64_t element = quire_dtype_bytes(s->dtype);
	uint64_t pointers[7];
	int64_t num = -1;
	int64_t bytes = -1;

	pointers[chunks] = 0x5a;
	ck_assert_int_eq(quire_cache_chunk_ptrs(cache, chunk, base, pointers, chunks,
	                                        &num, &bytes, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(num, chunks);
	ck_assert_int_eq(bytes,
	                 (chunk->end - chunk->first) * heads * s->head_dim * element);
	ck_assert_uint_eq(pointers[chunks], 0x5a);
	/* Where no tokens are is left open. */
	for (int64_t c = 0; c < chunks && bytes > 0; c++) {
		int64_t at[NUM_AXES] = {chunk->layer,
		                        chunk->page,
		                        c * num_kv / chunks,
		                        chunk->first,
		                        c % (chunks / num_kv) * heads,
		                        0};

		ck_assert_uint_eq(pointers[c],
		                  from + (uint64_t)(naive_place(s, at) * element));
	}
}

/* Every element of the tokens is in one chunk, once, and nothing else is. */
static void expect_cover(struct quire_cache *cache, const struct quire_chunk *chunk)
{
	const struct quire_shape *s = quire_cache_shape(cache);
	int64_t element = quire_dtype_bytes(s->dtype);
	char *named = calloc(1, (size_t)naive_total(s));
	int64_t at[NUM_AXES] = {0};
	uint64_t pointers[6];
	int64_t num, bytes;

	/* An address that nobody owns: it is only counted with. */
	ck_assert_int_eq(quire_cache_chunk_ptrs(cache, chunk, UINT64_C(1) << 60, pointers,
	                                        6, &num, &bytes, NULL),
	                 QUIRE_OK);
	for (int64_t c = 0; c < num; c++)
		for (int64_t i = 0; i < bytes / element; i++)
			named[(int64_t)(pointers[c] - (UINT64_C(1) << 60)) / element +
			      i]++;
	do {
		bool inside =
			at[AXIS_LAYER] == chunk->layer && at[AXIS_PAGE] == chunk->page &&
			at[AXIS_TOKEN] >= chunk->first && at[AXIS_TOKEN] < chunk->end;

		if (named[naive_place(s, at)] != inside)
			ck_abort_msg("element %ld is named %d times",
			             (long)naive_place(s, at), named[naive_place(s, at)]);
	} while (naive_next(s, at));
	free(named);
}

START_TEST(chunk_ptrs_are_where_the_tokens_are)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = (uint64_t)(round * LOOPS + _i);
		struct quire_shape shape = shape_of(&seed, _i);
		struct quire_cache *cache = make(&shape);
		struct quire_chunk chunk = any_chunk(&seed, &shape);

		expect_pointers(cache, &chunk, 0);
		expect_pointers(cache, &chunk, UINT64_C(0x7654321000000001));
		expect_cover(cache, &chunk);
		quire_cache_destroy(cache);
	}
}
END_TEST

static const struct quire_shape bounded = {QUIRE_HND, QUIRE_F16, 2, 5, 4, 3, 8};

/* Chunks of that shape, each wrong in one place, named with its bound. */
static const struct {
	struct quire_chunk chunk;
	const char *what;
	int64_t got;
	int64_t bound;
} wrong_chunks[] = {
	{{-1, 0, 0, 1}, "layer", -1, 0},
	{{2, 0, 0, 1}, "layer", 2, 1},
	{{INT64_MIN, 0, 0, 1}, "layer", INT64_MIN, 0},
	{{0, -1, 0, 1}, "page", -1, 0},
	{{0, 5, 0, 1}, "page", 5, 4},
	{{0, INT64_MAX, 0, 1}, "page", INT64_MAX, 4},
	{{0, 0, -1, 1}, "first", -1, 0},
	{{0, 0, 5, 5}, "first", 5, 4},
	{{0, 0, 2, 1}, "end", 1, 2},
	{{0, 0, 0, -1}, "end", -1, 0},
	{{0, 0, 2, 5}, "end", 5, 4},
	{{0, 0, 0, INT64_MAX}, "end", INT64_MAX, 4},
};
#define NUM_WRONG_CHUNKS ((int)(sizeof(wrong_chunks) / sizeof(wrong_chunks[0])))

START_TEST(chunks_out_of_range_are_refused)
{
	const struct quire_chunk *chunk = &wrong_chunks[_i].chunk;
	struct quire_cache *cache = make(&bounded);
	struct quire_refusal refusal = {0};
	struct quire_tensor view, before;
	uint64_t pointers[6] = {7, 7, 7, 7, 7, 7};
	int64_t num = 7, bytes = 7;

	ck_assert_int_eq(quire_cache_chunk_ptrs(cache, chunk, 0, pointers, 6, &num,
	                                        &bytes, &refusal),
	                 QUIRE_INVALID);
	expect_bound(&refusal, QUIRE_INVALID, wrong_chunks[_i].what, wrong_chunks[_i].got,
	             wrong_chunks[_i].bound);
	ck_assert_int_eq(
		quire_cache_chunk_ptrs(cache, chunk, 0, pointers, 6, &num, &bytes, NULL),
		QUIRE_INVALID);
	ck_assert(num == 7 && bytes == 7);
	for (int i = 0; i < 6; i++)
		ck_assert_uint_eq(pointers[i], 7);
	memset(&refusal, 0, sizeof(refusal));
	memset(&view, 0x5a, sizeof(view));
	before = view;
	ck_assert_int_eq(quire_cache_chunk_view(cache, chunk, NULL, &view, &refusal),
	                 QUIRE_INVALID);
	expect_bound(&refusal, QUIRE_INVALID, wrong_chunks[_i].what, wrong_chunks[_i].got,
	             wrong_chunks[_i].bound);
	ck_assert_mem_eq(&view, &before, sizeof(view));
	quire_cache_destroy(cache);
}
END_TEST

START_TEST(more_pointers_than_there_is_room_for_are_refused)
{
	const struct quire_chunk chunk = {1, 2, 1, 3};
	struct quire_cache *cache = make(&bounded);
	uint64_t pointers[6] = {7, 7, 7, 7, 7, 7};
	int64_t num = 7, bytes = 7;

	for (int64_t max = -1; max < 6; max++) {
		struct quire_refusal refusal = {0};

		ck_assert_int_eq(quire_cache_chunk_ptrs(cache, &chunk, 0, pointers, max,
		                                        &num, &bytes, &refusal),
		                 QUIRE_LIMIT);
		expect_bound(&refusal, QUIRE_LIMIT, "pointers_max", max, 6);
	}
	ck_assert(num == 7 && bytes == 7 && pointers[0] == 7);
	quire_cache_destroy(cache);
}
END_TEST

static void expect_type(const DLTensor *dl, enum quire_dtype dtype)
{
	static const struct {
		uint8_t code;
		uint8_t bits;
	} types[QUIRE_DTYPE_COUNT] = {{2, 32}, {2, 16}, {4, 16}, {10, 8}, {12, 8}};

	ck_assert_int_eq(dl->dtype.code, types[dtype].code);
	ck_assert_int_eq(dl->dtype.bits, types[dtype].bits);
	ck_assert_int_eq(dl->dtype.lanes, 1);
	ck_assert_int_eq(dl->device.device_type, 1);
	ck_assert_int_eq(dl->device.device_id, 0);
	ck_assert_uint_eq(dl->byte_offset, 0);
}

/* Dimension i of the view is axis axes[i], its first element is that at @at, and every
 * element of it is where the layout has it. */
static void expect_view(const DLTensor *dl, const struct quire_shape *s, char *storage,
                        const enum naive_axis *axes, int ndim, const int64_t *at)
{
	int64_t element = quire_dtype_bytes(s->dtype);
	int64_t index[6] = {0};
	int dimension = 0;

	ck_assert_int_eq(dl->ndim, ndim);
	expect_type(dl, s->dtype);
	for (int i = 0; i < ndim; i++)
		if (dl->shape[i] == 0)
			return;
	while (dimension >= 0) {
		int64_t place[NUM_AXES];
		int64_t offset = 0;

		memcpy(place, at, sizeof(place));
		for (int i = 0; i < ndim; i++) {
			offset += index[i] * dl->strides[i];
			place[axes[i]] += index[i];
		}
		ck_assert_ptr_eq((char *)dl->data + offset * element,
		                 storage + naive_place(s, place) * element);
		dimension = ndim - 1;
		while (dimension >= 0 && ++index[dimension] == dl->shape[dimension])
			index[dimension--] = 0;
	}
}

START_TEST(chunk_views_show_the_tokens_in_the_cache_or_elsewhere)
{
	static const enum naive_axis axes[] = {AXIS_KV, AXIS_TOKEN, AXIS_HEAD, AXIS_DIM};

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = (uint64_t)(round * LOOPS + _i);
		struct quire_shape shape = shape_of(&seed, _i);
		struct quire_cache *cache = make(&shape);
		struct quire_chunk chunk = any_chunk(&seed, &shape);
		int64_t at[NUM_AXES] = {chunk.layer, chunk.page, 0, chunk.first, 0, 0};
		char *storages[] = {NULL, (char *)0x7654000};

		for (int s = 0; s < 2; s++) {
			struct quire_tensor view;

			ck_assert_int_eq(quire_cache_chunk_view(cache, &chunk,
			                                        storages[s], &view, NULL),
			                 QUIRE_OK);
			ck_assert_ptr_eq(view.dl.shape, view.shape);
			ck_assert_ptr_eq(view.dl.strides, view.strides);
			ck_assert_int_eq(view.shape[0], naive_size(&shape, AXIS_KV));
			ck_assert_int_eq(view.shape[1], chunk.end - chunk.first);
			ck_assert_int_eq(view.shape[2], shape.num_kv_heads);
			ck_assert_int_eq(view.shape[3], shape.head_dim);
			expect_view(&view.dl, &shape,
			            s == 0 ? quire_cache_data_ptr(cache) : storages[s],
			            axes, 4, at);
		}
		quire_cache_destroy(cache);
	}
}
END_TEST

/* @dl is one layer of the cache, in its layout. */
static void expect_layer(struct quire_cache *cache, int64_t layer, const DLTensor *dl)
{
	const struct quire_shape *shape = quire_cache_shape(cache);
	int64_t at[NUM_AXES] = {layer, 0, 0, 0, 0, 0};
	const enum naive_axis *axes;
	int num;

	axes = naive_axes(shape->layout, &num);
	for (int i = 1; i < num; i++)
		ck_assert_int_eq(dl->shape[i - 1], naive_size(shape, axes[i]));
	expect_view(dl, shape, quire_cache_data_ptr(cache), axes + 1, num - 1, at);
}

START_TEST(layer_views_are_a_layer_in_its_layout)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = (uint64_t)(round * LOOPS + _i);
		struct quire_shape shape = shape_of(&seed, _i);
		struct quire_cache *cache = make(&shape);

		for (int64_t layer = 0; layer < shape.num_layers; layer++) {
			struct quire_tensor view;

			ck_assert_int_eq(
				quire_cache_layer_view(cache, layer, &view, NULL),
				QUIRE_OK);
			ck_assert_ptr_eq(view.dl.shape, view.shape);
			ck_assert_ptr_eq(view.dl.strides, view.strides);
			expect_layer(cache, layer, &view.dl);
		}
		quire_cache_destroy(cache);
	}
}
END_TEST

START_TEST(layers_out_of_range_are_refused)
{
	static const int64_t layers[] = {-1, 2, INT64_MIN, INT64_MAX};
	struct quire_cache *cache = make(&bounded);
	DLManagedTensor *managed = (DLManagedTensor *)&cache;
	struct quire_tensor view, before;

	memset(&view, 0x5a, sizeof(view));
	before = view;
	for (int i = 0; i < 4; i++) {
		struct quire_refusal refusal = {0};

		ck_assert_int_eq(
			quire_cache_layer_view(cache, layers[i], &view, &refusal),
			QUIRE_INVALID);
		expect_bound(&refusal, QUIRE_INVALID, "layer", layers[i], i % 2);
		ck_assert_mem_eq(&view, &before, sizeof(view));
		memset(&refusal, 0, sizeof(refusal));
		ck_assert_int_eq(
			quire_cache_export_layer(cache, layers[i], &managed, &refusal),
			QUIRE_INVALID);
		expect_bound(&refusal, QUIRE_INVALID, "layer", layers[i], i % 2);
		ck_assert_ptr_eq(managed, &cache);
	}
	quire_cache_destroy(cache);
}
END_TEST

static DLManagedTensor *export_layer(struct quire_cache *cache, int64_t layer)
{
	DLManagedTensor *managed = NULL;

	ck_assert_int_eq(quire_cache_export_layer(cache, layer, &managed, NULL),
	                 QUIRE_OK);
	expect_layer(cache, layer, &managed->dl_tensor);
	return managed;
}

/* Bytes of the layer that is exported. */
static size_t exported_bytes(const DLManagedTensor *managed)
{
	size_t bytes = managed->dl_tensor.dtype.bits / 8;

	for (int i = 0; i < managed->dl_tensor.ndim; i++)
		bytes *= (size_t)managed->dl_tensor.shape[i];
	return bytes;
}

static void *run_deleter(void *argument)
{
	DLManagedTensor *managed = argument;

	managed->deleter(managed);
	return NULL;
}

static void delete_elsewhere(DLManagedTensor *managed)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run_deleter, managed), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* The storage outlives the cache and the device while an export of it lives. */
START_TEST(exports_keep_the_storage_until_the_last_of_them_ends)
{
	uint64_t seed = (uint64_t)_i;
	struct quire_shape shape = shape_of(&seed, _i);
	struct quire_device *own;
	struct quire_cache *cache;
	DLManagedTensor *first, *last;
	size_t bytes;

	shape.num_layers = 2;
	ck_assert_int_eq(quire_device_create("cpu", &own, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(own, &shape, &cache, NULL), QUIRE_OK);
	first = export_layer(cache, 0);
	last = export_layer(cache, 1);
	bytes = exported_bytes(first);
	ck_assert_int_eq((int64_t)(2 * bytes), quire_cache_nbytes(cache));
	memset(first->dl_tensor.data, 0x11, bytes);
	quire_cache_destroy(cache);
	memset(last->dl_tensor.data, 0x22, bytes);
	quire_device_destroy(own);
	for (size_t i = 0; i < bytes; i++)
		ck_assert_int_eq(((char *)first->dl_tensor.data)[i], 0x11);
	delete_elsewhere(first);
	for (size_t i = 0; i < bytes; i++)
		ck_assert_int_eq(((char *)last->dl_tensor.data)[i], 0x22);
	delete_elsewhere(last);
}
END_TEST

START_TEST(an_export_may_end_before_its_cache)
{
	struct quire_cache *cache = make(&bounded);
	DLManagedTensor *managed = export_layer(cache, 1);

	managed->deleter(managed);
	memset(quire_cache_data_ptr(cache), 0x11, (size_t)quire_cache_nbytes(cache));
	managed = export_layer(cache, 0);
	quire_cache_destroy(cache);
	managed->deleter(managed);
}
END_TEST

START_TEST(given_storage_is_not_freed_with_the_last_export)
{
	static char memory[4096] __attribute__((aligned(64)));
	struct quire_cache *cache;
	DLManagedTensor *managed;

	ck_assert_int_eq(quire_cache_create_on(device, &bounded, memory, sizeof(memory),
	                                       &cache, NULL),
	                 QUIRE_OK);
	managed = export_layer(cache, 0);
	ck_assert_ptr_eq(managed->dl_tensor.data, memory);
	quire_cache_destroy(cache);
	memset(managed->dl_tensor.data, 0x11, exported_bytes(managed));
	managed->deleter(managed);
	ck_assert_int_eq(memory[0], 0x11);
}
END_TEST

static void *export_many(void *cache)
{
	for (int i = 0; i < 2000; i++) {
		DLManagedTensor *managed;

		if (quire_cache_export_layer(cache, i % 2, &managed, NULL) != QUIRE_OK)
			return cache;
		managed->deleter(managed);
	}
	return NULL;
}

START_TEST(threads_export_and_end_exports_at_the_same_time)
{
	struct quire_cache *cache = make(&bounded);
	DLManagedTensor *managed = export_layer(cache, 1);
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, export_many, cache),
		                 0);
	for (int i = 0; i < 2; i++) {
		void *failed;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	quire_cache_destroy(cache);
	memset(managed->dl_tensor.data, 0x11, exported_bytes(managed));
	managed->deleter(managed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("members");
	TCase *tcase = tcase_create("members");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, given_storage_is_used_as_it_is_and_left_as_it_is, 0,
	                    LOOPS);
	tcase_add_test(tcase, wrong_storage_is_refused);
	tcase_add_loop_test(tcase, chunk_ptrs_are_where_the_tokens_are, 0, LOOPS);
	tcase_add_loop_test(tcase, chunks_out_of_range_are_refused, 0, NUM_WRONG_CHUNKS);
	tcase_add_test(tcase, more_pointers_than_there_is_room_for_are_refused);
	tcase_add_loop_test(tcase, chunk_views_show_the_tokens_in_the_cache_or_elsewhere,
	                    0, LOOPS);
	tcase_add_loop_test(tcase, layer_views_are_a_layer_in_its_layout, 0, LOOPS);
	tcase_add_test(tcase, layers_out_of_range_are_refused);
	tcase_add_loop_test(tcase, exports_keep_the_storage_until_the_last_of_them_ends,
	                    0, LOOPS);
	tcase_add_test(tcase, an_export_may_end_before_its_cache);
	tcase_add_test(tcase, given_storage_is_not_freed_with_the_last_export);
	tcase_add_test(tcase, threads_export_and_end_exports_at_the_same_time);
	return run_suite(suite);
}
