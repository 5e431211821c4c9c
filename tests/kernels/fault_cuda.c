/* SPDX-License-Identifier: MIT */
/* Every call of the CUDA runtime, and every allocation, fails in its turn, once and from
 * then on, while a device is opened, used and closed: the answers are clear, nothing
 * leaks, every notice that was accepted comes once, and closing works. */
#include "config.h"

#include "tests/runtime/counting_malloc.h"

#include "tests/kernels/test_cuda.h"

#define TURNS_MAX 200

static const struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 2, 4, 2, 2, 8};

struct life {
	struct quire_device *device;
	struct quire_dstream *dstreams[2];
	struct quire_event *events[2];
	struct quire_cache *cache;
	char *pinned;
	int accepted;
	_Atomic int noted;
	bool failed;           /* some call answered other than QUIRE_OK */
	enum quire_status odd; /* an answer that none should give; QUIRE_OK: none */
	bool silent;           /* a refusal without its details */
};

#define PINNED_BYTES 4096

static void take_note(void *argument)
{
	struct life *life = argument;

	life->noted++;
}

static enum quire_status do_nothing(void *argument)
{
	(void)argument;
	return QUIRE_OK;
}

/* Nothing is asserted while something is to fail: that takes memory.  Nothing but these
 * may be answered to a program that does all right; AGAIN where a wait has failed. */
static bool answered(struct life *life, enum quire_status status)
{
	if (status == QUIRE_OK)
		return true;
	life->failed = true;
	if (status != QUIRE_NO_MEMORY && status != QUIRE_DEVICE && status != QUIRE_AGAIN)
		life->odd = status;
	return false;
}

static bool open_all(struct life *life)
{
	struct quire_refusal refusal = {.what = NULL};
	enum quire_status status =
		quire_device_create("cuda+checks", &life->device, &refusal);
	void *pinned = NULL;

	life->silent =
		status != QUIRE_OK && (refusal.status != status || refusal.what == NULL);
	if (!answered(life, status))
		return false;
	for (int i = 0; i < 2; i++)
		if (!answered(life, quire_dstream_create(life->device, "test",
		                                         &life->dstreams[i])) ||
		    !answered(life,
		              quire_event_create_timed(life->device, &life->events[i])))
			return false;
	if (!answered(life,
	              quire_device_alloc_pinned(life->device, PINNED_BYTES, &pinned)))
		return false;
	life->pinned = pinned;
	return answered(life,
	                quire_cache_create(life->device, &shape, &life->cache, NULL));
}

/* All kinds of operation; a failed stream answers the later ones. */
static void use_all(struct life *life)
{
	struct quire_dstream *first = life->dstreams[0];
	struct quire_dstream *second = life->dstreams[1];
	int32_t *pages = (int32_t *)life->pinned;
	struct quire_slots slots = {pages, NULL, 1, 3};
	char *rows = life->pinned + 1024;
	struct quire_refusal refusal;
	int64_t ns;

	memcpy(pages, (int32_t[]){0, 1, 2, 3}, 16);
	answered(life, quire_event_record(life->events[0], first));
	answered(life, copy(first, quire_cache_data_ptr(life->cache), rows, 64));
	answered(life, quire_cache_write_tokens(life->cache, first, 1, &slots, rows, rows,
	                                        QUIRE_F32, rows + 1024, &refusal));
	answered(life, quire_cache_copy_pages(life->cache, first, pages, pages + 1, 3,
	                                      &refusal));
	answered(life, quire_dstream_call(first, do_nothing, NULL));
	answered(life, quire_event_record(life->events[1], first));
	if (answered(life, quire_event_notify(life->events[1], take_note, life)))
		life->accepted++;
	answered(life, quire_dstream_wait_event(second, life->events[1]));
	answered(life, quire_cache_read_tokens(life->cache, second, 0, &slots,
	                                       rows + 2048, &refusal));
	answered(life, quire_event_synchronize(life->events[1]));
	answered(life, quire_event_query(life->events[0]));
	answered(life, quire_event_elapsed(life->events[0], life->events[1], &ns));
	answered(life, quire_dstream_synchronize(second, &refusal));
	answered(life, quire_dstream_synchronize(first, &refusal));
}

static void close_all(struct life *life)
{
	for (int i = 0; i < 2; i++)
		quire_dstream_destroy(life->dstreams[i]);
	for (int i = 0; i < 2; i++)
		quire_event_destroy(life->events[i]);
	quire_cache_destroy(life->cache);
	if (life->pinned != NULL)
		quire_device_release_pinned(life->device, life->pinned, PINNED_BYTES);
	quire_device_destroy(life->device);
}

static struct life live(void)
{
	struct life life = {.failed = false};

	if (open_all(&life))
		use_all(&life);
	close_all(&life);
	return life;
}

/* Nothing is to fail any more.  Did a call answer a failure? */
static bool judge(const struct life *life)
{
	ck_assert_msg(life->odd == QUIRE_OK, "answered %s", quire_status_name(life->odd));
	ck_assert(!life->silent);
	ck_assert_int_eq(life->noted, life->accepted);
	expect_nothing_live();
	return life->failed;
}

/* Entry points whose failure changes nothing: they only end things. */
static bool ends_things(enum standin_entry entry)
{
	return entry == STANDIN_cudaFree || entry == STANDIN_cudaFreeHost ||
	       entry == STANDIN_cudaStreamDestroy || entry == STANDIN_cudaEventDestroy;
}

/* Answers of how many lives the n-th call was part. */
static int fail_each_call(enum standin_entry entry, bool onward, cudaError_t error)
{
	for (int n = 1; n < TURNS_MAX; n++) {
		struct life life;
		bool failed;

		standin_reset();
		standin_set_jitter((uint64_t)n);
		standin_fail(entry, n, onward, error);
		life = live();
		failed = judge(&life);
		if (standin_calls(entry) < n)
			return n - 1;
		if (onward && n == 1 && !ends_things(entry))
			ck_assert_msg(failed, "%s fails unnoticed",
			              standin_entry_names[entry]);
	}
	ck_abort_msg("%s is called without end", standin_entry_names[entry]);
	return 0;
}

START_TEST(every_call_of_the_runtime_may_fail)
{
	const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorLaunchFailure};
	/* What a life is sure to call. */
	const enum standin_entry called[] = {
		STANDIN_cudaDriverGetVersion,
		STANDIN_cudaGetDeviceCount,
		STANDIN_cudaGetDevice,
		STANDIN_cudaDeviceGetStreamPriorityRange,
		STANDIN_cudaMalloc,
		STANDIN_cudaFree,
		STANDIN_cudaHostAlloc,
		STANDIN_cudaFreeHost,
		STANDIN_cudaMemcpyAsync,
		STANDIN_cudaMemsetAsync,
		STANDIN_cudaStreamCreateWithPriority,
		STANDIN_cudaStreamDestroy,
		STANDIN_cudaStreamSynchronize,
		STANDIN_cudaStreamWaitEvent,
		STANDIN_cudaStreamIsCapturing,
		STANDIN_cudaEventCreateWithFlags,
		STANDIN_cudaEventDestroy,
		STANDIN_cudaEventRecord,
		STANDIN_cudaEventQuery,
		STANDIN_cudaEventSynchronize,
		STANDIN_cudaEventElapsedTime,
		STANDIN_cudaLaunchHostFunc,
		STANDIN_cudaLaunchKernel,
	};

	for (int i = 0; i < 4; i++)
		for (size_t k = 0; k < sizeof(called) / sizeof(called[0]); k++)
			ck_assert_msg(fail_each_call(called[k], i / 2, errors[i % 2]) > 0,
			              "%s is not called", standin_entry_names[called[k]]);
}
END_TEST

/* A current device that is another makes cudaSetDevice part of every call. */
START_TEST(a_device_that_cannot_be_made_current_is_told)
{
	for (int i = 0; i < 2; i++) {
		for (int n = 1; n < TURNS_MAX; n++) {
			struct life life;
			int current = -1;

			standin_reset();
			standin_set_devices(2);
			ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
			standin_fail(STANDIN_cudaSetDevice, n, i == 1,
			             cudaErrorDevicesUnavailable);
			life = live();
			standin_fail(STANDIN_cudaSetDevice, 0, false, 0);
			(void)judge(&life);
			if (standin_calls(STANDIN_cudaSetDevice) < n + 1)
				break;
			ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
			ck_assert_int_lt(n, TURNS_MAX - 1);
		}
	}
}
END_TEST

#if COUNTING_MALLOC
START_TEST(every_allocation_may_fail)
{
	for (int i = 0; i < 2; i++) {
		for (int n = 1; n < 4 * TURNS_MAX; n++) {
			struct life life;

			standin_reset();
			counting.failed = 0;
			counting.fail_on = i == 1;
			counting.fail_in = n;
			life = live();
			counting.fail_in = 0;
			(void)judge(&life);
			if (counting.failed == 0)
				break;
			ck_assert_int_lt(n, 4 * TURNS_MAX - 1);
		}
	}
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("cuda faults");
	TCase *tcase = tcase_create("stand-in");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, every_call_of_the_runtime_may_fail);
	tcase_add_test(tcase, a_device_that_cannot_be_made_current_is_told);
#if COUNTING_MALLOC
	tcase_add_test(tcase, every_allocation_may_fail);
#endif
	return run_suite(suite);
}
