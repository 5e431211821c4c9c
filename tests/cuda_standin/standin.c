/* SPDX-License-Identifier: MIT */
#include "tests/cuda_standin/standin_impl.h"

#include <pthread.h>

#define MEMORY_DEFAULT ((size_t)1 << 30)

/* The n-th from now, by counting down; 0: none is ordered. */
struct countdown {
	int left;
	bool onward;
	cudaError_t error;
};

/* All under the lock. */
static struct {
	int driver;
	int devices;
	size_t memory;
	uint64_t jitter;
	cudaError_t sticky;
	int64_t calls[STANDIN_NUM_ENTRIES];
	struct countdown failures[STANDIN_NUM_ENTRIES];
	struct countdown breaks[STANDIN_ORDER];
} state = {.driver = CUDART_VERSION, .devices = 1, .memory = MEMORY_DEFAULT};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t standin_done = PTHREAD_COND_INITIALIZER;

static __thread cudaError_t last_error;
static __thread int current_device;
static __thread bool in_host_function;

#define STANDIN_NAME(name) #name,
const char *const standin_entry_names[STANDIN_NUM_ENTRIES] = {
	STANDIN_ENTRIES(STANDIN_NAME)};
#undef STANDIN_NAME

#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

static void look_away(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

static void look_again(void)
{
	AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static void look_away(void)
{
}

static void look_again(void)
{
}
#endif

void standin_lock(void)
{
	look_away();
	pthread_mutex_lock(&mutex);
}

void standin_unlock(void)
{
	pthread_mutex_unlock(&mutex);
	look_again();
}

void standin_wait(pthread_cond_t *condition)
{
	pthread_cond_wait(condition, &mutex);
}

void standin_edge_release(struct standin_edge *edge)
{
	/* Pairs with the load in standin_edge_acquire; the lock lies between the two. */
	atomic_store_explicit(&edge->passed, 1, memory_order_release);
}

void standin_edge_acquire(struct standin_edge *edge)
{
	(void)atomic_load_explicit(&edge->passed, memory_order_acquire);
}

/* Called under the lock: is it this one? */
static bool count_down(struct countdown *countdown)
{
	if (countdown->left == 0)
		return false;
	if (countdown->left > 1) {
		countdown->left--;
		return false;
	}
	if (!countdown->onward)
		countdown->left = 0;
	return true;
}

static cudaError_t missing_locked(void)
{
	if (state.driver / 1000 < CUDART_VERSION / 1000)
		return cudaErrorInsufficientDriver;
	return state.devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t standin_admit(enum standin_entry entry)
{
	cudaError_t error = cudaSuccess;

	standin_lock();
	state.calls[entry]++;
	if (in_host_function)
		error = cudaErrorNotPermitted;
	else if (entry != STANDIN_cudaDriverGetVersion &&
	         entry != STANDIN_cudaRuntimeGetVersion)
		error = missing_locked();
	standin_unlock();
	return standin_answer(error);
}

/* The failure ordered for this call, or the sticky error. */
static cudaError_t verdict(enum standin_entry entry)
{
	cudaError_t error = cudaSuccess;

	standin_lock();
	if (count_down(&state.failures[entry]))
		error = state.failures[entry].error;
	else if (entry != STANDIN_cudaDriverGetVersion &&
	         entry != STANDIN_cudaRuntimeGetVersion)
		error = state.sticky;
	standin_unlock();
	return standin_answer(error);
}

cudaError_t standin_enter(enum standin_entry entry)
{
	cudaError_t error = standin_admit(entry);

	return error != cudaSuccess ? error : verdict(entry);
}

cudaError_t standin_leave(enum standin_entry entry, cudaError_t error)
{
	cudaError_t ordered = verdict(entry);

	return ordered != cudaSuccess ? ordered : standin_answer(error);
}

cudaError_t standin_answer(cudaError_t error)
{
	/* The runtime does not count "not ready" among the errors. */
	if (error != cudaSuccess && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

cudaError_t standin_sticky(void)
{
	cudaError_t error;

	standin_lock();
	error = state.sticky;
	standin_unlock();
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	cudaError_t sticky = standin_sticky();

	return sticky != cudaSuccess ? sticky : last_error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = cudaPeekAtLastError();

	/* A driver that is missing or too old stays so. */
	if (error != cudaErrorInsufficientDriver)
		last_error = cudaSuccess;
	return error;
}

bool standin_may_run(enum standin_work work)
{
	if (work == STANDIN_ORDER)
		return true;
	if (state.sticky == cudaSuccess && count_down(&state.breaks[work]))
		state.sticky = state.breaks[work].error;
	return state.sticky == cudaSuccess;
}

uint64_t standin_jitter(void)
{
	uint64_t seed;

	standin_lock();
	seed = state.jitter;
	standin_unlock();
	return seed;
}

size_t standin_memory_max(void)
{
	return state.memory;
}

int standin_num_devices(void)
{
	int devices;

	standin_lock();
	devices = state.devices;
	standin_unlock();
	return devices;
}

int standin_device(void)
{
	return current_device;
}

cudaError_t cudaDriverGetVersion(int *version_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaDriverGetVersion);
	int driver;

	if (error != cudaSuccess)
		return error;
	if (version_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	standin_lock();
	driver = state.driver;
	standin_unlock();
	*version_out = driver;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = standin_enter(STANDIN_cudaSetDevice);

	if (error != cudaSuccess)
		return error;
	if (device < 0 || device >= standin_num_devices())
		return standin_answer(cudaErrorInvalidDevice);
	current_device = device;
	return cudaSuccess;
}

void standin_host_function(bool entered)
{
	in_host_function = entered;
}

void standin_reset(void)
{
	standin_end_streams();
	standin_end_events();
	standin_end_graphs();
	standin_end_blocks();
	standin_lock();
	state.driver = CUDART_VERSION;
	state.devices = 1;
	state.memory = MEMORY_DEFAULT;
	state.jitter = 0;
	state.sticky = cudaSuccess;
	for (int i = 0; i < STANDIN_NUM_ENTRIES; i++) {
		state.calls[i] = 0;
		state.failures[i].left = 0;
	}
	for (int i = 0; i < STANDIN_ORDER; i++)
		state.breaks[i].left = 0;
	standin_unlock();
	last_error = cudaSuccess;
	current_device = 0;
}

void standin_set_driver(int version)
{
	standin_lock();
	state.driver = version;
	standin_unlock();
}

void standin_set_devices(int devices)
{
	standin_lock();
	state.devices = devices;
	standin_unlock();
}

void standin_set_memory(size_t bytes)
{
	standin_lock();
	state.memory = bytes;
	standin_unlock();
}

void standin_set_jitter(uint64_t seed)
{
	standin_lock();
	state.jitter = seed;
	standin_unlock();
}

void standin_fail(enum standin_entry entry, int n, bool onward, cudaError_t error)
{
	standin_lock();
	state.failures[entry] = (struct countdown){n, onward, error};
	standin_unlock();
}

void standin_break(enum standin_work work, int n, cudaError_t error)
{
	standin_lock();
	state.breaks[work] = (struct countdown){n, false, error};
	standin_unlock();
}

int64_t standin_calls(enum standin_entry entry)
{
	int64_t calls;

	standin_lock();
	calls = state.calls[entry];
	standin_unlock();
	return calls;
}

struct standin_live standin_live(void)
{
	struct standin_live live;

	standin_lock();
	live.streams = standin_count_streams();
	live.events = standin_count_events();
	live.graphs = standin_count_graphs();
	standin_count_blocks(&live);
	standin_unlock();
	return live;
}
