/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks from this size, one huge page, on are mapped and asked for as huge pages. */
#define MAPPED_MIN (INT64_C(2) << 20)

#define SMALL_ALIGN 64

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

static void cpu_destroy(struct quire_device *base)
{
	struct cpu_device *device = (struct cpu_device *)base;

	while (device->notices != NULL) {
		struct cpu_notice *notice = device->notices;

		device->notices = notice->next;
		free(notice);
	}
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
	.event_notify = quire_cpu_event_notify,
	.write_tokens = quire_cpu_write_tokens,
	.read_tokens = quire_cpu_read_tokens,
	.copy_pages = quire_cpu_copy_pages,
};

static enum quire_status create(bool runs_inline, struct quire_device **device_out)
{
	struct cpu_device *device = calloc(1, sizeof(*device));

	if (device == NULL)
		return QUIRE_NO_MEMORY;
	device->base.ops = &cpu_ops;
	device->runs_inline = runs_inline;
	pthread_mutex_init(&device->lock, NULL);
	*device_out = &device->base;
	return QUIRE_OK;
}

enum quire_status quire_device_create_cpu(struct quire_device **device_out)
{
	return create(false, device_out);
}

enum quire_status quire_device_create_cpu_inline(struct quire_device **device_out)
{
	return create(true, device_out);
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
