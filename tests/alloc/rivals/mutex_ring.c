/* SPDX-License-Identifier: MIT */
/*
 * The floor: a ring under a mutex that copies ids and looks at none.  A page given twice
 * is in it twice.
 */
#include "config.h"

#include "tests/alloc/rivals/rival.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mutex_ring {
	pthread_mutex_t lock;
	int32_t num_pages, head, count;
	int32_t *ring; /* [num_pages] */
};

static void *create(int32_t num_pages)
{
	struct mutex_ring *self = rival_memory(sizeof(*self));

	pthread_mutex_init(&self->lock, NULL);
	self->num_pages = num_pages;
	self->count = num_pages;
	self->ring = rival_memory((size_t)num_pages * sizeof(*self->ring));
	for (int32_t p = 0; p < num_pages; p++)
		self->ring[p] = p;
	return self;
}

/* Pages in one piece from a place on, of n. */
static int32_t piece(const struct mutex_ring *self, int32_t place, int32_t n)
{
	return n < self->num_pages - place ? n : self->num_pages - place;
}

/* A place up to one turn too far. */
static int32_t wrapped(const struct mutex_ring *self, int32_t place)
{
	return place < self->num_pages ? place : place - self->num_pages;
}

static bool take(void *fifo, int32_t n, int32_t *pages_out)
{
	struct mutex_ring *self = fifo;
	bool fits;

	pthread_mutex_lock(&self->lock);
	fits = n <= self->count;
	if (fits) {
		int32_t first = piece(self, self->head, n);

		memcpy(pages_out, &self->ring[self->head],
		       (size_t)first * sizeof(*pages_out));
		memcpy(pages_out + first, self->ring,
		       (size_t)(n - first) * sizeof(*pages_out));
		self->head = wrapped(self, self->head + n);
		self->count -= n;
	}
	pthread_mutex_unlock(&self->lock);
	return fits;
}

static bool give(void *fifo, const int32_t *pages, int32_t n)
{
	struct mutex_ring *self = fifo;
	bool fits;

	pthread_mutex_lock(&self->lock);
	fits = n <= self->num_pages - self->count;
	if (fits) {
		int32_t tail = wrapped(self, self->head + self->count);
		int32_t first = piece(self, tail, n);

		memcpy(&self->ring[tail], pages, (size_t)first * sizeof(*pages));
		memcpy(self->ring, pages + first, (size_t)(n - first) * sizeof(*pages));
		self->count += n;
	}
	pthread_mutex_unlock(&self->lock);
	return fits;
}

static void destroy(void *fifo)
{
	struct mutex_ring *self = fifo;

	pthread_mutex_destroy(&self->lock);
	free(self->ring);
	free(self);
}

const struct rival rival_mutex = {
	.name = "mutex",
	.create = create,
	.take = take,
	.give = give,
	.destroy = destroy,
};
