/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_CUDA_STANDIN_STANDIN_H
#define QUIRE_TESTS_CUDA_STANDIN_STANDIN_H
/*
 * A CUDA runtime for tests, without CUDA and without a device.
 *
 * Overview.  A stream is a thread that runs its operations in order; an event is its
 * newest record; device memory is host memory; a kernel is a function registered here.
 * Where CUDA leaves a choice, the stand-in takes the one that hurts a wrong program:
 *
 *   - device memory can be touched only while operations run: a host thread that reads or
 *     writes it on an idle device faults, and so does a kernel that leaves its block;
 *   - memory is 0xDB when allocated, and unmapped when freed;
 *   - copies are checked: inside one live block at either end, in the direction named;
 *   - from pageable memory, the call reads the source before it returns; to pageable
 *     memory it returns when the copy is done, but gives no order (below);
 *   - cudaMemcpy from device to device, and cudaMemset of device memory, do not wait;
 *   - the copies of a batch run last to first;
 *   - a host function that calls CUDA is answered cudaErrorNotPermitted;
 *   - what frees, destroys or ends a capture does so even when it answers an error, as CUDA's calls may
 *     answer an error of earlier work.
 *
 * Order.  Built with ThreadSanitizer, a missing wait is a reported race, however the
 * threads happened to run.  Three things alone give order: an operation runs after what
 * its caller did before the call; after the operations before it in its stream; and, by
 * an event, after those before the record.  A host thread is ordered behind operations by
 * a synchronize, a copy or set that CUDA says waits, a query that answered cudaSuccess,
 * and by cudaFree and cudaFreeHost, which wait for the whole device.  The stand-in's own
 * lock gives none: ThreadSanitizer is told to look away while it is held.
 *
 * Limits.  Threads of a grid run one after the other, so races among them, warps, shared
 * memory and timing are not modelled; no memory pools, no managed memory; streams per
 * thread are refused.
 *
 * Graphs.  One stream's work is captured in a line: kernels, copies, sets and host
 * functions, with their arguments; a launch queues them as one.  Permitted less than CUDA
 * permits: only a stream made with cudaStreamNonBlocking captures; while it does, records
 * and waits, copies in batches, of pageable memory, and from host to host are refused on
 * it, and while any stream captures, in any mode, cudaDeviceSynchronize, cudaMalloc and
 * cudaHostAlloc.  What is refused is answered cudaErrorStreamCaptureUnsupported and spoils
 * the capture.  Launches of a graph on two streams have no order; which thread ends a
 * capture is not looked at.
 *
 * Threads: all calls may come from any thread, except standin_reset.
 */
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The entry points that can fail. */
#define STANDIN_ENTRIES(X)                  \
	X(cudaDriverGetVersion)             \
	X(cudaRuntimeGetVersion)            \
	X(cudaGetDeviceCount)               \
	X(cudaSetDevice)                    \
	X(cudaGetDevice)                    \
	X(cudaDeviceGetAttribute)           \
	X(cudaDeviceGetStreamPriorityRange) \
	X(cudaDeviceSynchronize)            \
	X(cudaMalloc)                       \
	X(cudaFree)                         \
	X(cudaHostAlloc)                    \
	X(cudaFreeHost)                     \
	X(cudaMemGetInfo)                   \
	X(cudaPointerGetAttributes)         \
	X(cudaMemcpy)                       \
	X(cudaMemcpyAsync)                  \
	X(cudaMemcpyBatchAsync)             \
	X(cudaMemset)                       \
	X(cudaMemsetAsync)                  \
	X(cudaStreamCreateWithPriority)     \
	X(cudaStreamDestroy)                \
	X(cudaStreamSynchronize)            \
	X(cudaStreamQuery)                  \
	X(cudaStreamWaitEvent)              \
	X(cudaStreamIsCapturing)            \
	X(cudaStreamBeginCapture)           \
	X(cudaStreamEndCapture)             \
	X(cudaStreamGetCaptureInfo)         \
	X(cudaGraphInstantiate)             \
	X(cudaGraphLaunch)                  \
	X(cudaGraphDestroy)                 \
	X(cudaGraphExecDestroy)             \
	X(cudaEventCreateWithFlags)         \
	X(cudaEventDestroy)                 \
	X(cudaEventRecord)                  \
	X(cudaEventQuery)                   \
	X(cudaEventSynchronize)             \
	X(cudaEventElapsedTime)             \
	X(cudaLaunchHostFunc)               \
	X(cudaLaunchKernel)

#define STANDIN_ENUMERATOR(name) STANDIN_##name,
enum standin_entry { STANDIN_ENTRIES(STANDIN_ENUMERATOR) STANDIN_NUM_ENTRIES };
#undef STANDIN_ENUMERATOR

extern const char *const standin_entry_names[STANDIN_NUM_ENTRIES];

/* What an operation does when it runs; STANDIN_ORDER is a record or a wait. */
enum standin_work {
	STANDIN_COPY,
	STANDIN_SET,
	STANDIN_KERNEL,
	STANDIN_HOST_FUNCTION,
	STANDIN_ORDER,
};

struct standin_live {
	int streams;
	int events;
	int graphs; /* executable ones too, and those being captured */
	int device_blocks;
	int host_blocks;
};

/*
 * standin_reset - the state of a new process: one device of 1 GiB, a driver as new as the
 * runtime, no faults, no jitter, counts at zero, and the caller's thread without an error
 * Waits until all streams have run out, then frees what is still live; no other thread
 * may use the runtime meanwhile.  A test that ends with it leaves no threads, with which
 * ThreadSanitizer makes a process wait a second before it exits.
 */
void standin_reset(void);

/* Answered by cudaDriverGetVersion; 0: no driver.  Older than CUDA 13, the other calls
 * answer cudaErrorInsufficientDriver. */
void standin_set_driver(int version);

/* With none, calls answer cudaErrorNoDevice. */
void standin_set_devices(int devices);

/* Memory of each device, and as much again that can be pinned. */
void standin_set_memory(size_t bytes);

/* From now on streams now and then sleep or yield before an operation; 0: no more. */
void standin_set_jitter(uint64_t seed);

/*
 * standin_fail - have the n-th call of an entry point from now fail
 * @n:      1 is the next call; 0 takes an earlier order back
 * @onward: also every call after it
 * @error:  what it answers; it is not sticky
 */
void standin_fail(enum standin_entry entry, int n, bool onward, cudaError_t error);

/*
 * standin_break - have the n-th operation of a kind that runs from now break the device
 * @n:     1 is the next one; 0 takes an earlier order back
 * @error: sticky: from then on every call answers it, and no copy, kernel or host
 *         function runs any more, while records and waits complete
 */
void standin_break(enum standin_work work, int n, cudaError_t error);

/* Calls of an entry point since the reset, those that failed too. */
int64_t standin_calls(enum standin_entry entry);

/* What is created or allocated, and not yet destroyed or freed. */
struct standin_live standin_live(void);

/* Calls a kernel with its argument. */
typedef void (*standin_caller)(const void *function, const void *argument);

/*
 * standin_register - make a kernel known to cudaLaunchKernel
 * @function:       the kernel; NULL: each that is not registered by itself
 * @argument_bytes: of the one struct that it takes by value
 * @caller:         called for each thread of a grid
 * Registering again replaces.  A reset keeps what is registered.
 */
void standin_register(const void *function, size_t argument_bytes, standin_caller caller);

#ifdef __cplusplus
}
#endif

#endif
