/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "runtime/refuse_impl.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks from this size, one huge page, on are mapped and asked for as huge pages. */
#define MAPPED_MIN (INT64_C(2) << 20)

#define SMALL_ALIGN 64

/* Of a stream on cpu:N: more than one socket's memory can use. */
#define THREADS_MAX 64

/* Of each part.  Two smaller ones are done as soon by one thread: it gets most of the
 * memory's bandwidth by itself, and a helper that has to be woken comes when half of
 * the work is done. */
#define PART_ROWS_MIN  8
#define PART_BYTES_MIN (INT64_C(256) << 10)

/* To walk past one row takes as long as to copy so much. */
#define WALK_BYTES 64

/* Looks for the next work before a thread sleeps: some 10 us, about what it costs to be
 * woken. */
#define LOOKS 500

/* Characters of a thread's name with the final zero: Linux takes no more. */
#define THREAD_NAME_BYTES 16

/*
 * The helpers of a device.  They serve one stream's operation at a time, the one of whose
 * worker holds `turn`; the others' run their own undivided meanwhile.  The worker and the
 * helpers take parts until there are none, so one that is late delays nobody.
 *   taken = next;  0 <= left <= parts;  left = parts that have not been done
 */
struct cpu_team {
	pthread_mutex_t turn;
	pthread_mutex_t lock; /* guards what follows; of atomics, the stores */
	pthread_cond_t work;  /* for helpers: parts to take, or closing */
	pthread_cond_t done;  /* for the worker: left = 0 */
	cpu_part part;
	void *argument;
	int parts;
	int next;
	_Atomic int left;
	_Atomic unsigned posted; /* works so far */
	int sleepers;
	bool closing;
	int parts_max; /* of one work: no more than threads, nor than CPUs for them */
	int num_helpers;
	pthread_t helpers[];
};

/* Mapping more than there is would succeed here and kill the process later. */
static bool exceeds_memory(int64_t bytes)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES);
	int64_t page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 && bytes / page_bytes >= pages;
}

/* Zeroed memory that begins at a huge page; the rest of what was mapped is unmapped. */
static void *map_aligned(int64_t bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t length = ((size_t)bytes + page_bytes - 1) / page_bytes * page_bytes;
	size_t mapped = length + MAPPED_MIN;
	char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (start == MAP_FAILED)
		return NULL;
	before = (size_t)(-(uintptr_t)start % MAPPED_MIN);
	if (before > 0)
		munmap(start, before);
	munmap(start + before + length, mapped - before - length);
	/* A wish: without huge pages all works, slower. */
	(void)madvise(start + before, length, MADV_HUGEPAGE);
	return start + before;
}

static enum quire_status cpu_alloc(struct quire_device *device, int64_t bytes,
                                   void **memory_out)
{
	void *memory;

	(void)device;
	if (exceeds_memory(bytes))
		return QUIRE_NO_MEMORY;
	if (bytes >= MAPPED_MIN) {
		memory = map_aligned(bytes);
	} else {
		size_t length =
			((size_t)bytes + SMALL_ALIGN - 1) / SMALL_ALIGN * SMALL_ALIGN;

		memory = aligned_alloc(SMALL_ALIGN, length);
		if (memory != NULL)
			memset(memory, 0, length);
	}
	if (memory == NULL)
		return QUIRE_NO_MEMORY;
	*memory_out = memory;
	return QUIRE_OK;
}

static void cpu_release(struct quire_device *device, void *memory, int64_t bytes)
{
	(void)device;
	if (bytes < MAPPED_MIN)
		free(memory);
	else
		munmap(memory, (size_t)bytes);
}

int quire_cpu_thread_start(pthread_t *thread, const char *name,
                           void *(*function)(void *argument), void *argument)
{
	char short_name[THREAD_NAME_BYTES];
	sigset_t all;
	sigset_t before;
	uint32_t float_before = quire_cpu_float_get();
	int error;

	/* Signals are for the program's own threads, those of floating-point exceptions
	 * too. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	quire_cpu_float_set(CPU_FLOAT_DEFAULT);
	error = pthread_create(thread, NULL, function, argument);
	quire_cpu_float_set(float_before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error == 0 && name != NULL) {
		snprintf(short_name, sizeof(short_name), "%s", name);
		pthread_setname_np(*thread, short_name);
	}
	return error;
}

static inline void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

/* Called, and left, under the lock. */
static void do_parts(struct cpu_team *team)
{
	while (team->next < team->parts) {
		int left;
		int i = team->next++;

		pthread_mutex_unlock(&team->lock);
		team->part(team->argument, i, team->parts);
		pthread_mutex_lock(&team->lock);
		/* Relaxed: the lock orders what the part did. */
		left = atomic_load_explicit(&team->left, memory_order_relaxed) - 1;
		atomic_store_explicit(&team->left, left, memory_order_relaxed);
		if (left == 0)
			pthread_cond_signal(&team->done);
	}
}

/* Called, and left, under the lock. */
static void await_parts(struct cpu_team *team)
{
	unsigned seen = atomic_load_explicit(&team->posted, memory_order_relaxed);

	pthread_mutex_unlock(&team->lock);
	/* Relaxed, here and in await_done: a hint to look under the lock. */
	for (int i = 0; i < LOOKS; i++) {
		if (atomic_load_explicit(&team->posted, memory_order_relaxed) != seen)
			break;
		relax();
	}
	pthread_mutex_lock(&team->lock);
	if (atomic_load_explicit(&team->posted, memory_order_relaxed) == seen &&
	    !team->closing) {
		team->sleepers++;
		pthread_cond_wait(&team->work, &team->lock);
		team->sleepers--;
	}
}

static void *help(void *argument)
{
	struct cpu_team *team = argument;

	pthread_mutex_lock(&team->lock);
	for (;;) {
		do_parts(team);
		if (team->closing)
			break;
		await_parts(team);
	}
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

/* Called, and left, under the lock. */
static void await_done(struct cpu_team *team)
{
	if (atomic_load_explicit(&team->left, memory_order_relaxed) > 0) {
		pthread_mutex_unlock(&team->lock);
		for (int i = 0; i < LOOKS; i++) {
			if (atomic_load_explicit(&team->left, memory_order_relaxed) == 0)
				break;
			relax();
		}
		pthread_mutex_lock(&team->lock);
	}
	while (atomic_load_explicit(&team->left, memory_order_relaxed) > 0)
		pthread_cond_wait(&team->done, &team->lock);
}

int quire_cpu_parts(const struct cpu_team *team, int64_t rows, int64_t bytes)
{
	int64_t parts = bytes / PART_BYTES_MIN;

	if (parts > rows / PART_ROWS_MIN)
		parts = rows / PART_ROWS_MIN;
	if (team == NULL || parts < 1)
		return 1;
	return parts < team->parts_max ? (int)parts : team->parts_max;
}

int quire_cpu_parts_walking(const struct cpu_team *team, int64_t rows, int64_t bytes)
{
	int parts = quire_cpu_parts(team, rows, bytes);

	/* None walks longer than it copies. */
	if (parts > 1 && parts > bytes / rows / WALK_BYTES)
		parts = (int)(bytes / rows / WALK_BYTES);
	return parts > 1 ? parts : 1;
}

void quire_cpu_split(struct cpu_team *team, int parts, cpu_part part, void *argument)
{
	if (parts <= 1 || pthread_mutex_trylock(&team->turn) != 0) {
		part(argument, 0, 1);
		return;
	}
	pthread_mutex_lock(&team->lock);
	team->part = part;
	team->argument = argument;
	team->parts = parts;
	team->next = 0;
	atomic_store_explicit(&team->left, parts, memory_order_relaxed);
	atomic_fetch_add_explicit(&team->posted, 1, memory_order_relaxed);
	for (int i = 1; i < parts && i <= team->sleepers; i++)
		pthread_cond_signal(&team->work);
	do_parts(team);
	await_done(team);
	pthread_mutex_unlock(&team->lock);
	pthread_mutex_unlock(&team->turn);
}

/* On which the threads made by this one may run. */
static int count_cpus(void)
{
	cpu_set_t cpus;

	/* It fails where there are more than a set has room for. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return INT_MAX;
	return CPU_COUNT(&cpus);
}

enum quire_status quire_cpu_team_create(int num_helpers, struct cpu_team **team_out)
{
	size_t bytes = sizeof(struct cpu_team) + (size_t)num_helpers * sizeof(pthread_t);
	struct cpu_team *team = calloc(1, bytes);
	int cpus = count_cpus();

	if (team == NULL)
		return QUIRE_NO_MEMORY;
	team->parts_max = cpus < num_helpers + 1 ? cpus : num_helpers + 1;
	pthread_mutex_init(&team->turn, NULL);
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->work, NULL);
	pthread_cond_init(&team->done, NULL);
	for (int i = 0; i < num_helpers; i++) {
		char name[32];

		snprintf(name, sizeof(name), "quire-helper-%d", i + 1);
		if (quire_cpu_thread_start(&team->helpers[i], name, help, team) != 0) {
			quire_cpu_team_destroy(team);
			return QUIRE_DEVICE;
		}
		team->num_helpers++;
	}
	*team_out = team;
	return QUIRE_OK;
}

void quire_cpu_team_destroy(struct cpu_team *team)
{
	if (team == NULL)
		return;
	pthread_mutex_lock(&team->lock);
	team->closing = true;
	pthread_cond_broadcast(&team->work);
	pthread_mutex_unlock(&team->lock);
	for (int i = 0; i < team->num_helpers; i++)
		pthread_join(team->helpers[i], NULL);
	pthread_cond_destroy(&team->done);
	pthread_cond_destroy(&team->work);
	pthread_mutex_destroy(&team->lock);
	pthread_mutex_destroy(&team->turn);
	free(team);
}

static void cpu_destroy(struct quire_device *base)
{
	struct cpu_device *device = (struct cpu_device *)base;

	while (device->notices != NULL) {
		struct cpu_notice *notice = device->notices;

		device->notices = notice->next;
		free(notice);
	}
	quire_cpu_team_destroy(device->team);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

static const struct quire_device_ops cpu_ops = {
	.destroy = cpu_destroy,
	.alloc = cpu_alloc,
	.release = cpu_release,
	.alloc_pinned = cpu_alloc,
	.release_pinned = cpu_release,
	.dstream_create = quire_cpu_dstream_create,
	.dstream_destroy = quire_cpu_dstream_destroy,
	.dstream_native = quire_cpu_dstream_native,
	.synchronize = quire_cpu_synchronize,
	.wait_event = quire_cpu_wait_event,
	.copy = quire_cpu_copy,
	.call = quire_cpu_call,
	.event_create = quire_cpu_event_create,
	.event_destroy = quire_cpu_event_destroy,
	.event_record = quire_cpu_event_record,
	.event_query = quire_cpu_event_query,
	.event_synchronize = quire_cpu_event_synchronize,
	.event_elapsed = quire_cpu_event_elapsed,
	.event_notify = quire_cpu_event_notify,
	.write_tokens = quire_cpu_write_tokens,
	.read_tokens = quire_cpu_read_tokens,
	.copy_pages = quire_cpu_copy_pages,
};

/* ":N" -> N, threads of a stream, INT64_MAX when it is larger; others: -1 */
static int64_t parse_threads(const char *rest)
{
	int64_t threads = 0;

	if (rest[0] != ':' || rest[1] < '0' || rest[1] > '9' ||
	    (rest[1] == '0' && rest[2] != '\0'))
		return -1;
	for (rest++; *rest >= '0' && *rest <= '9'; rest++)
		if (__builtin_mul_overflow(threads, 10, &threads) ||
		    __builtin_add_overflow(threads, *rest - '0', &threads))
			threads = INT64_MAX;
	return *rest == '\0' ? threads : -1;
}

enum quire_status quire_device_create_cpu(const char *rest,
                                          struct quire_device **device_out,
                                          struct quire_refusal *refusal_out)
{
	bool runs_inline = strcmp(rest, ":inline") == 0;
	int64_t threads = runs_inline || rest[0] == '\0' ? 1 : parse_threads(rest);
	enum quire_status status = QUIRE_OK;
	struct cpu_device *device;

	if (threads < 0)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         QUIRE_NO_SUCH_DEVICE);
	if (threads < 1 || threads > THREADS_MAX)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID,
		                          "device: threads of cpu:N", -1, threads,
		                          threads < 1 ? 1 : THREADS_MAX);
	device = calloc(1, sizeof(*device));
	if (device == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "device");
	if (threads > 1)
		status = quire_cpu_team_create((int)threads - 1, &device->team);
	if (status != QUIRE_OK) {
		free(device);
		return quire_refuse_what(refusal_out, status, "helpers of the device");
	}
	device->base.ops = &cpu_ops;
	device->base.dlpack_type = kDLCPU;
	device->runs_inline = runs_inline;
	pthread_mutex_init(&device->lock, NULL);
	*device_out = &device->base;
	return QUIRE_OK;
}

void *quire_cpu_scratch_get(struct cpu_scratch *scratch, size_t bytes)
{
	void *memory;

	if (bytes <= scratch->bytes)
		return scratch->memory;
	memory = malloc(bytes);
	if (memory == NULL)
		return NULL;
	free(scratch->memory);
	*scratch = (struct cpu_scratch){.memory = memory, .bytes = bytes};
	return memory;
}
