/* SPDX-License-Identifier: MIT */
/* The stand-in's devices, errors and controls. */
#include "config.h"

#include "tests/cuda_standin/standin_check.h"
#include "tests/run_suite.h"

#include <cuda_runtime.h>

struct increment {
	int *value;
};

static void increment(struct increment argument)
{
	*argument.value += 1;
}

static void call_increment(const void *function, const void *argument)
{
	((void (*)(struct increment))function)(*(const struct increment *)argument);
}

/* One of each, for calls that must be valid. */
struct world {
	cudaStream_t stream;
	cudaEvent_t event;
	cudaEvent_t timed[2];
	int *device;
	int *pinned;
};

static void make_world(struct world *world)
{
	world->stream = new_stream();
	world->event = new_event();
	for (int i = 0; i < 2; i++) {
		ck_assert_ok(cudaEventCreateWithFlags(&world->timed[i], 0));
		ck_assert_ok(cudaEventRecord(world->timed[i], world->stream));
	}
	world->device = new_device_memory(64);
	world->pinned = new_pinned(64);
	standin_register((const void *)increment, sizeof(struct increment),
	                 call_increment);
	ck_assert_ok(cudaMemsetAsync(world->device, 0, 64, world->stream));
	ck_assert_ok(cudaStreamSynchronize(world->stream));
}

static void destroy_world(const struct world *world)
{
	cudaStreamDestroy(world->stream);
	cudaEventDestroy(world->event);
	cudaEventDestroy(world->timed[0]);
	cudaEventDestroy(world->timed[1]);
	cudaFree(world->device);
	cudaFreeHost(world->pinned);
}

static void do_nothing(void *argument)
{
	(void)argument;
}

static cudaError_t copy_batch(const struct world *world)
{
	void *target = world->device;
	const void *source = world->pinned;
	size_t bytes = 64;
	size_t first = 0;
	struct cudaMemcpyAttributes attributes = {
		.srcAccessOrder = cudaMemcpySrcAccessOrderStream,
	};

	return cudaMemcpyBatchAsync(&target, &source, &bytes, 1, &attributes, &first, 1,
	                            world->stream);
}

static cudaError_t launch(const struct world *world, dim3 grid, dim3 block)
{
	struct increment argument = {world->device};
	void *arguments[] = {&argument};

	return cudaLaunchKernel((const void *)increment, grid, block, arguments, 0,
	                        world->stream);
}

/* Calls of the entry points on devices and memory; -1: it is another's. */
static int call_device(enum standin_entry entry, struct world *w)
{
	struct cudaPointerAttributes attributes;
	size_t sizes[2];
	int value[2];

	switch (entry) {
	case STANDIN_cudaDriverGetVersion:
		return cudaDriverGetVersion(value);
	case STANDIN_cudaRuntimeGetVersion:
		return cudaRuntimeGetVersion(value);
	case STANDIN_cudaGetDeviceCount:
		return cudaGetDeviceCount(value);
	case STANDIN_cudaSetDevice:
		return cudaSetDevice(0);
	case STANDIN_cudaGetDevice:
		return cudaGetDevice(value);
	case STANDIN_cudaDeviceGetAttribute:
		return cudaDeviceGetAttribute(value, cudaDevAttrWarpSize, 0);
	case STANDIN_cudaDeviceGetStreamPriorityRange:
		return cudaDeviceGetStreamPriorityRange(&value[0], &value[1]);
	case STANDIN_cudaDeviceSynchronize:
		return cudaDeviceSynchronize();
	case STANDIN_cudaMemGetInfo:
		return cudaMemGetInfo(&sizes[0], &sizes[1]);
	case STANDIN_cudaPointerGetAttributes:
		return cudaPointerGetAttributes(&attributes, w->device);
	case STANDIN_cudaMemcpy:
		return cudaMemcpy(w->pinned, w->device, 64, cudaMemcpyDeviceToHost);
	case STANDIN_cudaMemcpyAsync:
		return cudaMemcpyAsync(w->device, w->pinned, 64, cudaMemcpyHostToDevice,
		                       w->stream);
	case STANDIN_cudaMemcpyBatchAsync:
		return copy_batch(w);
	case STANDIN_cudaMemset:
		return cudaMemset(w->device, 0, 64);
	case STANDIN_cudaMemsetAsync:
		return cudaMemsetAsync(w->device, 0, 64, w->stream);
	default:
		return -1;
	}
}

/* Calls of those on streams and events. */
static int call_stream(enum standin_entry entry, struct world *w)
{
	enum cudaStreamCaptureStatus status;
	float ms;

	switch (entry) {
	case STANDIN_cudaStreamSynchronize:
		return cudaStreamSynchronize(w->stream);
	case STANDIN_cudaStreamQuery:
		return cudaStreamQuery(w->stream);
	case STANDIN_cudaStreamWaitEvent:
		return cudaStreamWaitEvent(w->stream, w->event, 0);
	case STANDIN_cudaStreamIsCapturing:
		return cudaStreamIsCapturing(w->stream, &status);
	case STANDIN_cudaStreamGetCaptureInfo:
		return cudaStreamGetCaptureInfo(w->stream, &status, NULL, NULL, NULL,
		                                NULL, NULL);
	case STANDIN_cudaEventRecord:
		return cudaEventRecord(w->event, w->stream);
	case STANDIN_cudaEventQuery:
		return cudaEventQuery(w->event);
	case STANDIN_cudaEventSynchronize:
		return cudaEventSynchronize(w->event);
	case STANDIN_cudaEventElapsedTime:
		return cudaEventElapsedTime(&ms, w->timed[0], w->timed[1]);
	case STANDIN_cudaLaunchHostFunc:
		return cudaLaunchHostFunc(w->stream, do_nothing, NULL);
	case STANDIN_cudaLaunchKernel:
		return launch(w, (dim3){1, 1, 1}, (dim3){1, 1, 1});
	default:
		return -1;
	}
}

/* Calls of those that create, which destroy again what they got. */
static int call_create(enum standin_entry entry)
{
	cudaStream_t stream = NULL;
	cudaEvent_t event = NULL;
	void *memory = NULL;
	int error;

	switch (entry) {
	case STANDIN_cudaMalloc:
		error = cudaMalloc(&memory, 64);
		cudaFree(memory);
		return error;
	case STANDIN_cudaHostAlloc:
		error = cudaHostAlloc(&memory, 64, 0);
		cudaFreeHost(memory);
		return error;
	case STANDIN_cudaStreamCreateWithPriority:
		error = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1);
		if (error == cudaSuccess)
			cudaStreamDestroy(stream);
		return error;
	case STANDIN_cudaEventCreateWithFlags:
		error = cudaEventCreateWithFlags(&event, 0);
		if (error == cudaSuccess)
			cudaEventDestroy(event);
		return error;
	default:
		return -1;
	}
}

/* Calls of those that destroy, on what they created. */
static int call_destroy(enum standin_entry entry)
{
	cudaStream_t stream = NULL;
	cudaEvent_t event = NULL;
	void *memory = NULL;

	switch (entry) {
	case STANDIN_cudaFree:
		cudaMalloc(&memory, 64);
		return cudaFree(memory);
	case STANDIN_cudaFreeHost:
		cudaHostAlloc(&memory, 64, 0);
		return cudaFreeHost(memory);
	case STANDIN_cudaStreamDestroy:
		cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
		return cudaStreamDestroy(stream);
	case STANDIN_cudaEventDestroy:
		cudaEventCreateWithFlags(&event, 0);
		return cudaEventDestroy(event);
	default:
		return -1;
	}
}

/* A graph that sets memory; NULL: it could not be. */
static cudaGraph_t capture_set(const struct world *w)
{
	cudaGraph_t graph = NULL;

	if (cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeGlobal) != cudaSuccess)
		return NULL;
	cudaMemsetAsync(w->device, 0, 64, w->stream);
	cudaStreamEndCapture(w->stream, &graph);
	return graph;
}

static void destroy_graph(cudaGraph_t graph)
{
	if (graph != NULL)
		cudaGraphDestroy(graph);
}

/* Calls of those on captures. */
static int call_capture(enum standin_entry entry, const struct world *w)
{
	cudaGraph_t graph = NULL;
	int error;

	switch (entry) {
	case STANDIN_cudaStreamBeginCapture:
		error = cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeGlobal);
		if (error == cudaSuccess)
			cudaStreamEndCapture(w->stream, &graph);
		break;
	case STANDIN_cudaStreamEndCapture:
		cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeGlobal);
		error = cudaStreamEndCapture(w->stream, &graph);
		break;
	case STANDIN_cudaGraphDestroy:
		return cudaGraphDestroy(capture_set(w));
	default:
		return -1;
	}
	destroy_graph(graph);
	return error;
}

/* Calls of those on executable graphs. */
static int call_exec(enum standin_entry entry, const struct world *w)
{
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph;
	int error;

	if (entry != STANDIN_cudaGraphInstantiate && entry != STANDIN_cudaGraphLaunch &&
	    entry != STANDIN_cudaGraphExecDestroy)
		return -1;
	graph = capture_set(w);
	error = cudaGraphInstantiate(&exec, graph, 0);
	destroy_graph(graph);
	if (entry == STANDIN_cudaGraphExecDestroy)
		return cudaGraphExecDestroy(exec);
	if (entry == STANDIN_cudaGraphLaunch)
		error = cudaGraphLaunch(exec, w->stream);
	if (exec != NULL)
		cudaGraphExecDestroy(exec);
	return error;
}

/* A valid call of an entry point. */
static cudaError_t call(enum standin_entry entry, struct world *world)
{
	int error = call_device(entry, world);

	if (error < 0)
		error = call_stream(entry, world);
	if (error < 0)
		error = call_create(entry);
	if (error < 0)
		error = call_capture(entry, world);
	if (error < 0)
		error = call_exec(entry, world);
	if (error < 0)
		error = call_destroy(entry);
	ck_assert_int_ge(error, 0);
	return (cudaError_t)error;
}

static bool is_version(enum standin_entry entry)
{
	return entry == STANDIN_cudaDriverGetVersion ||
	       entry == STANDIN_cudaRuntimeGetVersion;
}

/* Wait for the stream by other means than the entry point under test. */
static void settle(const struct world *world, enum standin_entry entry)
{
	ck_assert_ok(entry == STANDIN_cudaStreamSynchronize
	                     ? cudaDeviceSynchronize()
	                     : cudaStreamSynchronize(world->stream));
}

START_TEST(every_entry_point_succeeds_and_is_counted)
{
	struct world world;

	make_world(&world);
	for (int i = 0; i < STANDIN_NUM_ENTRIES; i++) {
		int64_t before = standin_calls(i);

		ck_assert_msg(call(i, &world) == cudaSuccess, "%s",
		              standin_entry_names[i]);
		ck_assert_int_eq(standin_calls(i), before + 1);
		settle(&world, STANDIN_cudaStreamSynchronize);
	}
	ck_assert_str_eq(standin_entry_names[STANDIN_cudaMemcpyAsync], "cudaMemcpyAsync");
	destroy_world(&world);
	ck_assert_nothing_live();
}
END_TEST

START_TEST(the_versions_are_those_of_the_driver_and_of_the_runtime)
{
	int version = -1;

	ck_assert_ok(cudaDriverGetVersion(&version));
	ck_assert_int_eq(version, 13000);
	standin_set_driver(13020);
	ck_assert_ok(cudaDriverGetVersion(&version));
	ck_assert_int_eq(version, 13020);
	ck_assert_ok(cudaRuntimeGetVersion(&version));
	ck_assert_int_eq(version, 13000);
	ck_assert_ok(cudaGetDeviceCount(&version));
	ck_assert_int_eq(version, 1);
}
END_TEST

START_TEST(with_no_driver_or_an_old_one_only_the_versions_answer)
{
	const int drivers[] = {0, 12090};
	struct world world;

	make_world(&world);
	standin_set_driver(drivers[_i]);
	for (int i = 0; i < STANDIN_NUM_ENTRIES; i++)
		ck_assert_msg(call(i, &world) == (is_version(i)
		                                          ? cudaSuccess
		                                          : cudaErrorInsufficientDriver),
		              "%s", standin_entry_names[i]);
	ck_assert_cuda(cudaGetLastError(), cudaErrorInsufficientDriver);
	ck_assert_cuda(cudaGetLastError(), cudaErrorInsufficientDriver);
}
END_TEST

START_TEST(without_a_device_calls_say_so)
{
	int count = -1;
	struct world world;

	make_world(&world);
	standin_set_devices(0);
	for (int i = 0; i < STANDIN_NUM_ENTRIES; i++)
		ck_assert_msg(call(i, &world) ==
		                      (is_version(i) ? cudaSuccess : cudaErrorNoDevice),
		              "%s", standin_entry_names[i]);
	ck_assert_cuda(cudaGetDeviceCount(&count), cudaErrorNoDevice);
	ck_assert_int_eq(count, -1);
}
END_TEST

START_TEST(the_nth_call_of_an_entry_point_fails_once)
{
	struct world world;

	make_world(&world);
	standin_fail(_i, 3, false, cudaErrorUnknown);
	for (int n = 1; n <= 5; n++) {
		ck_assert_cuda(call(_i, &world), n == 3 ? cudaErrorUnknown : cudaSuccess);
		ck_assert_cuda(cudaGetLastError(),
		               n == 3 ? cudaErrorUnknown : cudaSuccess);
		settle(&world, _i);
	}
	destroy_world(&world);
	ck_assert_nothing_live();
}
END_TEST

START_TEST(the_nth_call_of_an_entry_point_and_all_after_it_fail)
{
	struct world world;

	make_world(&world);
	standin_fail(_i, 2, true, cudaErrorLaunchTimeout);
	for (int n = 1; n <= 4; n++) {
		ck_assert_cuda(call(_i, &world),
		               n >= 2 ? cudaErrorLaunchTimeout : cudaSuccess);
		settle(&world, _i);
	}
	destroy_world(&world);
	ck_assert_nothing_live();
	standin_fail(_i, 0, false, cudaSuccess);
	make_world(&world);
	ck_assert_cuda(call(_i, &world), cudaSuccess);
}
END_TEST

START_TEST(a_failed_call_does_nothing)
{
	char pinned[64];
	struct world world;

	make_world(&world);
	standin_fail(STANDIN_cudaMemsetAsync, 1, false, cudaErrorUnknown);
	ck_assert_cuda(cudaMemsetAsync(world.device, 7, 64, world.stream),
	               cudaErrorUnknown);
	ck_assert_ok(cudaMemcpy(pinned, world.device, 64, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		ck_assert_int_eq(pinned[i], 0);
}
END_TEST

static const enum standin_work device_works[] = {STANDIN_COPY, STANDIN_SET,
                                                 STANDIN_KERNEL};

/* A valid operation of a kind, which would change device memory. */
static cudaError_t queue(const struct world *world, enum standin_work work)
{
	if (work == STANDIN_COPY)
		return cudaMemcpyAsync(world->device, world->pinned, 64,
		                       cudaMemcpyHostToDevice, world->stream);
	if (work == STANDIN_SET)
		return cudaMemsetAsync(world->device, 1, 64, world->stream);
	return launch(world, (dim3){1, 1, 1}, (dim3){1, 1, 1});
}

START_TEST(a_broken_operation_shows_at_the_next_calls_and_stays)
{
	struct world world;

	make_world(&world);
	standin_break(device_works[_i], 2, cudaErrorIllegalAddress);
	ck_assert_ok(queue(&world, device_works[_i]));
	ck_assert_ok(cudaStreamSynchronize(world.stream));
	ck_assert_ok(queue(&world, device_works[_i]));
	ck_assert_cuda(cudaStreamSynchronize(world.stream), cudaErrorIllegalAddress);
	for (int i = 0; i < STANDIN_NUM_ENTRIES; i++)
		ck_assert_msg(
			call(i, &world) ==
				(is_version(i) ? cudaSuccess : cudaErrorIllegalAddress),
			"%s", standin_entry_names[i]);
	ck_assert_cuda(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_cuda(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_cuda(cudaPeekAtLastError(), cudaErrorIllegalAddress);
	destroy_world(&world);
	ck_assert_nothing_live();
}
END_TEST

static void set_flag(void *flag)
{
	*(int *)flag = 1;
}

START_TEST(on_a_broken_device_nothing_runs_any_more_and_waits_end)
{
	struct world world;
	cudaStream_t other;
	int called = 0;
	sem_t gate;

	make_world(&world);
	other = new_stream();
	world.pinned[0] = 5;
	close_gate(world.stream, &gate);
	standin_break(STANDIN_COPY, 1, cudaErrorLaunchFailure);
	ck_assert_ok(queue(&world, STANDIN_COPY));
	ck_assert_ok(cudaLaunchHostFunc(world.stream, set_flag, &called));
	ck_assert_ok(cudaMemcpyAsync(world.pinned, world.device, 4,
	                             cudaMemcpyDeviceToHost, world.stream));
	ck_assert_ok(cudaEventRecord(world.event, world.stream));
	ck_assert_ok(cudaStreamWaitEvent(other, world.event, 0));
	sem_post(&gate);
	ck_assert_cuda(cudaStreamSynchronize(other), cudaErrorLaunchFailure);
	standin_reset();
	ck_assert_int_eq(called, 0);
}
END_TEST

START_TEST(names_and_numbers_of_errors_are_those_of_cuda)
{
	static const struct {
		cudaError_t error;
		int number;
		const char *name;
		const char *text;
	} known[] = {
		{cudaSuccess, 0, "cudaSuccess", "no error"},
		{cudaErrorInvalidValue, 1, "cudaErrorInvalidValue", "invalid argument"},
		{cudaErrorMemoryAllocation, 2, "cudaErrorMemoryAllocation",
	         "out of memory"},
		{cudaErrorStubLibrary, 34, "cudaErrorStubLibrary",
	         "CUDA driver is a stub library"},
		{cudaErrorNoDevice, 100, "cudaErrorNoDevice",
	         "no CUDA-capable device is detected"},
		{cudaErrorNotReady, 600, "cudaErrorNotReady", "device not ready"},
		{cudaErrorIllegalAddress, 700, "cudaErrorIllegalAddress",
	         "an illegal memory access was encountered"},
		{(cudaError_t)5000, 5000, "unrecognized error code",
	         "unrecognized error code"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_int_eq(known[i].error, known[i].number);
		ck_assert_str_eq(cudaGetErrorName(known[i].error), known[i].name);
		ck_assert_str_eq(cudaGetErrorString(known[i].error), known[i].text);
	}
}
END_TEST

START_TEST(the_last_error_is_kept_until_it_is_taken)
{
	cudaEvent_t event = new_event();
	cudaStream_t stream = new_stream();
	void *memory = NULL;
	sem_t gate;

	ck_assert_cuda(cudaFree((void *)8), cudaErrorInvalidValue);
	ck_assert_ok(cudaMalloc(&memory, 1));
	ck_assert_cuda(cudaPeekAtLastError(), cudaErrorInvalidValue);
	ck_assert_cuda(cudaGetLastError(), cudaErrorInvalidValue);
	ck_assert_ok(cudaGetLastError());
	close_gate(stream, &gate);
	ck_assert_ok(cudaEventRecord(event, stream));
	ck_assert_cuda(cudaEventQuery(event), cudaErrorNotReady);
	ck_assert_ok(cudaGetLastError());
	sem_post(&gate);
	ck_assert_ok(cudaStreamSynchronize(stream));
}
END_TEST

START_TEST(attributes_are_those_asked_for_and_unknown_ones_are_refused)
{
	int value = -1;

	ck_assert_ok(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
	ck_assert_int_eq(value, 32);
	ck_assert_ok(
		cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
	ck_assert_int_eq(value, 9);
	ck_assert_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1),
	               cudaErrorInvalidDevice);
	ck_assert_cuda(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0),
	               cudaErrorInvalidValue);
	ck_assert_cuda(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0),
	               cudaErrorInvalidValue);
	ck_assert_int_eq(value, 9);
}
END_TEST

START_TEST(streams_events_and_memory_belong_to_the_device_current_at_their_creation)
{
	struct world world;
	size_t left;
	size_t total;
	int device = -1;

	standin_set_devices(2);
	make_world(&world);
	ck_assert_cuda(cudaSetDevice(2), cudaErrorInvalidDevice);
	ck_assert_cuda(cudaSetDevice(-1), cudaErrorInvalidDevice);
	ck_assert_ok(cudaSetDevice(1));
	ck_assert_ok(cudaGetDevice(&device));
	ck_assert_int_eq(device, 1);
	ck_assert_ok(cudaMemGetInfo(&left, &total));
	ck_assert_uint_eq(left, total);
	ck_assert_cuda(launch(&world, (dim3){1, 1, 1}, (dim3){1, 1, 1}),
	               cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaEventRecord(new_event(), world.stream),
	               cudaErrorInvalidResourceHandle);
	ck_assert_ok(cudaEventRecord(world.event, world.stream));
	ck_assert_ok(cudaStreamWaitEvent(new_stream(), world.event, 0));
	ck_assert_ok(cudaSetDevice(0));
	ck_assert_ok(launch(&world, (dim3){1, 1, 1}, (dim3){1, 1, 1}));
	ck_assert_ok(cudaMemGetInfo(&left, &total));
	ck_assert_uint_eq(left, total - 64);
}
END_TEST

START_TEST(a_reset_makes_all_as_new)
{
	struct world world;
	int value = 0;

	make_world(&world);
	standin_set_devices(3);
	standin_set_memory(5000);
	standin_set_jitter(7);
	standin_fail(STANDIN_cudaMalloc, 1, true, cudaErrorUnknown);
	standin_break(STANDIN_SET, 1, cudaErrorIllegalAddress);
	ck_assert_ok(cudaSetDevice(2));
	ck_assert_ok(cudaMemset(world.device, 0, 1));
	ck_assert_cuda(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	standin_reset();
	ck_assert_nothing_live();
	ck_assert_int_eq(standin_calls(STANDIN_cudaMemset), 0);
	ck_assert_ok(cudaGetLastError());
	ck_assert_ok(cudaGetDevice(&value));
	ck_assert_int_eq(value, 0);
	ck_assert_ok(cudaGetDeviceCount(&value));
	ck_assert_int_eq(value, 1);
	ck_assert_cuda(cudaStreamQuery(world.stream), cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaEventQuery(world.event), cudaErrorInvalidResourceHandle);
	make_world(&world);
	ck_assert_ok(cudaMemset(world.device, 0, 1));
	ck_assert_ok(cudaDeviceSynchronize());
}
END_TEST

static void add_controls(Suite *suite)
{
	TCase *tcase = tcase_create("controls");

	tcase_add_checked_fixture(tcase, NULL, standin_reset);
	tcase_add_test(tcase, every_entry_point_succeeds_and_is_counted);
	tcase_add_test(tcase, the_versions_are_those_of_the_driver_and_of_the_runtime);
	tcase_add_loop_test(tcase, with_no_driver_or_an_old_one_only_the_versions_answer,
	                    0, 2);
	tcase_add_test(tcase, without_a_device_calls_say_so);
	tcase_add_loop_test(tcase, the_nth_call_of_an_entry_point_fails_once, 0,
	                    STANDIN_NUM_ENTRIES);
	tcase_add_loop_test(tcase, the_nth_call_of_an_entry_point_and_all_after_it_fail,
	                    0, STANDIN_NUM_ENTRIES);
	tcase_add_test(tcase, a_failed_call_does_nothing);
	tcase_add_loop_test(tcase, a_broken_operation_shows_at_the_next_calls_and_stays,
	                    0, 3);
	tcase_add_test(tcase, on_a_broken_device_nothing_runs_any_more_and_waits_end);
	tcase_add_test(tcase, names_and_numbers_of_errors_are_those_of_cuda);
	tcase_add_test(tcase, the_last_error_is_kept_until_it_is_taken);
	tcase_add_test(tcase,
	               attributes_are_those_asked_for_and_unknown_ones_are_refused);
	tcase_add_test(
		tcase,
		streams_events_and_memory_belong_to_the_device_current_at_their_creation);
	tcase_add_test(tcase, a_reset_makes_all_as_new);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("standin");

	add_controls(suite);
	return run_suite(suite);
}
