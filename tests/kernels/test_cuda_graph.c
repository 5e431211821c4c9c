/* SPDX-License-Identifier: MIT */
/* Work on a CUDA device stream in graphs: captured once, launched on other lists. */
#include "config.h"

#include "tests/cuda_standin/standin.h"
#include "tests/kernels/cache_fixture.h"
#include "tests/run_suite.h"

#include <cuda_runtime_api.h>

#define ck_assert_ok(call) \
	ck_assert_str_eq(cudaGetErrorName(call), cudaGetErrorName(cudaSuccess))

#define PAGES 5
#define PAIRS 2
#define SLOTS 3
#define LAYER 1

static const struct quire_shape shape = {QUIRE_HND, QUIRE_BF16, 2, PAGES, 4, 2, 8};
static const char *const devices[] = {"cuda", "cuda+checks"};

/* Pinned: what the captured operations read, and what they read back. */
struct operands {
	struct quire_slots slots;
	int32_t *page;
	int32_t *offset;
	int32_t *source;
	int32_t *target;
	int32_t *end;
	char *k;
	char *v;
	char *out;
	int64_t row_bytes;
	int64_t out_bytes;
};

/* What a launch finds in the lists. */
struct lists {
	int32_t page[SLOTS];
	int32_t offset[SLOTS];
	int32_t source[PAIRS];
	int32_t target[PAIRS];
	int32_t end[PAIRS];
};

static void put_lists(struct operands *o, uint64_t *seed, const struct lists *lists)
{
	memcpy(o->page, lists->page, sizeof(lists->page));
	memcpy(o->offset, lists->offset, sizeof(lists->offset));
	memcpy(o->source, lists->source, sizeof(lists->source));
	memcpy(o->target, lists->target, sizeof(lists->target));
	memcpy(o->end, lists->end, sizeof(lists->end));
	any_values(seed, QUIRE_F32, o->k, SLOTS * naive_row(&shape));
	any_values(seed, QUIRE_F32, o->v, SLOTS * naive_row(&shape));
}

static void make_operands(struct fixture *f, struct operands *o, uint64_t *seed)
{
	const struct lists straight = {{0, 1, 0}, {3, 0, 1}, {0, 1}, {2, 3}, {4, 2}};
	int64_t row = naive_row(&shape);

	o->page = fixture_pinned(f, sizeof(straight.page));
	o->offset = fixture_pinned(f, sizeof(straight.offset));
	o->source = fixture_pinned(f, sizeof(straight.source));
	o->target = fixture_pinned(f, sizeof(straight.target));
	o->end = fixture_pinned(f, sizeof(straight.end));
	o->slots = (struct quire_slots){.page = o->page, .offset = o->offset, .n = SLOTS};
	o->k = fixture_rows(f, seed, QUIRE_F32, SLOTS * row, 0);
	o->v = fixture_rows(f, seed, QUIRE_F32, SLOTS * row, 0);
	o->out_bytes = SLOTS * 2 * row * quire_dtype_bytes(shape.dtype);
	o->out = fixture_pinned(f, (size_t)o->out_bytes);
	put_lists(o, seed, &straight);
}

/* Write, copy whole pages, then starts of them, and read the slots that were written. */
static void queue(struct fixture *f, const struct operands *o)
{
	ck_assert_int_eq(quire_cache_write_tokens(f->cache, f->dstream, LAYER, &o->slots,
	                                          o->k, o->v, QUIRE_F32, NULL, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_copy_pages(f->cache, f->dstream, o->source,
	                                        o->target, PAIRS, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_copy_slots(f->cache, f->dstream, o->source,
	                                        o->target, o->end, PAIRS, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_read_tokens(f->cache, f->dstream, LAYER, &o->slots,
	                                         o->out, NULL),
	                 QUIRE_OK);
}

/* The bytes are those of so many times the work above, on the lists as they are. */
static void expect(struct fixture *f, const struct operands *o, int times,
                   const char *when)
{
	char *wanted = malloc((size_t)o->out_bytes);

	for (int i = 0; i < times; i++) {
		naive_write(&f->expected, LAYER, &o->slots, o->k, o->v, QUIRE_F32);
		naive_copy(&f->expected, o->source, o->target, NULL, PAIRS);
		naive_copy(&f->expected, o->source, o->target, o->end, PAIRS);
		naive_read(&f->expected, LAYER, &o->slots, wanted);
	}
	fixture_expect(f, when, 0);
	if (times > 0)
		ck_assert(memcmp(o->out, wanted, (size_t)o->out_bytes) == 0);
	free(wanted);
}

static void begin_capture(struct fixture *f)
{
	ck_assert_ok(cudaStreamBeginCapture(quire_dstream_native(f->dstream),
	                                    cudaStreamCaptureModeThreadLocal));
}

/* What was queued since, made ready to launch. */
static cudaGraphExec_t end_capture(struct fixture *f)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	ck_assert_ok(cudaStreamEndCapture(quire_dstream_native(f->dstream), &graph));
	ck_assert_ok(cudaGraphInstantiate(&exec, graph, 0));
	ck_assert_ok(cudaGraphDestroy(graph));
	return exec;
}

static void launch(struct fixture *f, cudaGraphExec_t exec)
{
	ck_assert_ok(cudaGraphLaunch(exec, quire_dstream_native(f->dstream)));
}

static void expect_nothing_live(void)
{
	struct standin_live live = standin_live();

	ck_assert_int_eq(live.streams, 0);
	ck_assert_int_eq(live.graphs, 0);
	ck_assert_int_eq(live.device_blocks, 0);
	ck_assert_int_eq(live.host_blocks, 0);
}

/* A swap of two pages, with slots in either. */
static const struct lists swap = {{1, 4, 0}, {2, 2, 0}, {0, 1}, {1, 0}, {3, 1}};
/* A chain, written over as it is read. */
static const struct lists chain = {{3, 3, 2}, {1, 3, 2}, {3, 2}, {4, 3}, {2, 4}};

START_TEST(a_graph_moves_what_the_lists_say_when_it_is_launched)
{
	struct operands o;
	cudaGraphExec_t exec;
	uint64_t seed = 21;
	struct fixture f;

	fixture_begin(&f, devices[_i], &shape);
	make_operands(&f, &o, &seed);
	queue(&f, &o);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	fixture_fill(&f, &seed);
	begin_capture(&f);
	queue(&f, &o);
	exec = end_capture(&f);
	expect(&f, &o, 0, "captured");
	launch(&f, exec);
	expect(&f, &o, 1, "launched");
	put_lists(&o, &seed, &swap);
	launch(&f, exec);
	expect(&f, &o, 1, "swap");
	put_lists(&o, &seed, &chain);
	for (int i = 0; i < 3; i++)
		launch(&f, exec);
	expect(&f, &o, 3, "three times");
	/* Among other work of the stream. */
	put_lists(&o, &seed, &swap);
	queue(&f, &o);
	launch(&f, exec);
	queue(&f, &o);
	expect(&f, &o, 3, "among others");
	ck_assert_ok(cudaGraphExecDestroy(exec));
	fixture_end(&f);
	expect_nothing_live();
}
END_TEST

/* Of so many pages that the stream takes more memory for it. */
static void copy_in_larger_cache(struct fixture *f, const struct operands *o)
{
	struct quire_shape larger = shape;
	struct quire_cache *cache;
	void *memory;

	larger.num_pages = 4 * PAGES;
	ck_assert_int_eq(quire_device_alloc(f->device, 4 * f->nbytes, &memory), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create_on(f->device, &larger, memory, 4 * f->nbytes,
	                                       &cache, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_copy_pages(cache, f->dstream, o->source, o->target,
	                                        PAIRS, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(f->dstream, NULL), QUIRE_OK);
	quire_cache_destroy(cache);
	quire_device_release(f->device, memory, 4 * f->nbytes);
}

START_TEST(a_graph_is_good_after_the_stream_took_more_memory)
{
	struct operands o;
	cudaGraphExec_t exec;
	uint64_t seed = 22;
	struct fixture f;
	int64_t blocks;

	fixture_begin(&f, devices[_i], &shape);
	make_operands(&f, &o, &seed);
	queue(&f, &o);
	begin_capture(&f);
	queue(&f, &o);
	exec = end_capture(&f);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	fixture_fill(&f, &seed);
	blocks = standin_live().device_blocks;
	copy_in_larger_cache(&f, &o);
	ck_assert_int_gt(standin_live().device_blocks, blocks);
	put_lists(&o, &seed, &swap);
	launch(&f, exec);
	launch(&f, exec);
	expect(&f, &o, 2, "grown");
	ck_assert_ok(cudaGraphExecDestroy(exec));
	fixture_end(&f);
	expect_nothing_live();
}
END_TEST

START_TEST(a_copy_that_was_not_done_before_is_not_captured)
{
	struct quire_refusal refusal = {.status = QUIRE_OK};
	struct operands o;
	cudaGraphExec_t exec;
	uint64_t seed = 23;
	struct fixture f;

	fixture_begin(&f, devices[_i], &shape);
	make_operands(&f, &o, &seed);
	fixture_fill(&f, &seed);
	begin_capture(&f);
	ck_assert_int_eq(quire_cache_copy_pages(f.cache, f.dstream, o.source, o.target,
	                                        PAIRS, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	/* The capture is as good as it was; so is one pair, which needs no memory. */
	ck_assert_int_eq(
		quire_cache_copy_pages(f.cache, f.dstream, o.source, o.target, 1, NULL),
		QUIRE_OK);
	exec = end_capture(&f);
	expect(&f, &o, 0, "refused");
	launch(&f, exec);
	naive_copy(&f.expected, o.source, o.target, NULL, 1);
	expect(&f, &o, 0, "one pair");
	queue(&f, &o);
	expect(&f, &o, 1, "used on");
	ck_assert_ok(cudaGraphExecDestroy(exec));
	fixture_end(&f);
	expect_nothing_live();
}
END_TEST

static enum quire_status count_call(void *calls)
{
	++*(int *)calls;
	return QUIRE_OK;
}

START_TEST(host_functions_are_not_captured)
{
	cudaGraphExec_t exec;
	struct fixture f;
	int calls = 0;

	fixture_begin(&f, devices[_i], &shape);
	begin_capture(&f);
	ck_assert_int_eq(quire_dstream_call(f.dstream, count_call, &calls),
	                 QUIRE_INVALID);
	exec = end_capture(&f);
	launch(&f, exec);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	ck_assert_int_eq(calls, 0);
	ck_assert_int_eq(quire_dstream_call(f.dstream, count_call, &calls), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	ck_assert_int_eq(calls, 1);
	ck_assert_ok(cudaGraphExecDestroy(exec));
	fixture_end(&f);
	expect_nothing_live();
}
END_TEST

static enum quire_status answer_failure(void *argument)
{
	(void)argument;
	return QUIRE_CALLBACK;
}

START_TEST(a_graph_moves_nothing_on_a_stream_that_failed_since)
{
	struct operands o;
	cudaGraphExec_t exec;
	uint64_t seed = 24;
	struct fixture f;

	fixture_begin(&f, devices[_i], &shape);
	make_operands(&f, &o, &seed);
	queue(&f, &o);
	begin_capture(&f);
	queue(&f, &o);
	exec = end_capture(&f);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	fixture_fill(&f, &seed);
	ck_assert_int_eq(quire_dstream_call(f.dstream, answer_failure, NULL), QUIRE_OK);
	launch(&f, exec);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_CALLBACK);
	fixture_fetch(&f);
	ck_assert(memcmp(f.got, f.expected.storage, (size_t)f.nbytes) == 0);
	ck_assert_ok(cudaGraphExecDestroy(exec));
	fixture_end(&f);
	expect_nothing_live();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_graph");
	TCase *tcase = tcase_create("stand-in");
	const int num = sizeof(devices) / sizeof(devices[0]);

	exact_prepare();
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, standin_reset, standin_reset);
	tcase_add_loop_test(tcase, a_graph_moves_what_the_lists_say_when_it_is_launched,
	                    0, num);
	tcase_add_loop_test(tcase, a_graph_is_good_after_the_stream_took_more_memory, 0,
	                    num);
	tcase_add_loop_test(tcase, a_copy_that_was_not_done_before_is_not_captured, 0,
	                    num);
	tcase_add_loop_test(tcase, host_functions_are_not_captured, 0, num);
	tcase_add_loop_test(tcase, a_graph_moves_nothing_on_a_stream_that_failed_since, 0,
	                    num);
	return run_suite(suite);
}
