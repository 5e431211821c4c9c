/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_LISTS_IMPL_H
#define QUIRE_RUNTIME_LISTS_IMPL_H
/*
 * Page lists: where the lists of pages of streams lie.
 *
 * A list is one block of memory, of one of a few sizes, each four times the one before.
 * Blocks of one size lie side by side, so the short lists of many streams are dense: a
 * step over a thousand of them walks few OS pages.  All blocks there can ever be have
 * address space from the start, and memory once they are used.
 *
 * Who may write
 *   The planner alone.  What readers may be copying (a stream's shown list, up to its
 *   shown count) and what a note may bring back never changes: a list grows behind
 *   its end, and moves to another block for every other change.  A block that is free
 *   again may be another stream's at once: a reader that still copies from it finds its
 *   stream's sequence count changed.  It may also read past a block's end, with a count
 *   that is not this list's: the blocks of the largest size lie last, so it stays inside.
 */
#include <quire/runtime/status.h>

#include <stdint.h>

#define QUIRE_LIST_SIZES    14
#define QUIRE_LIST_GROWTH   4
#define QUIRE_LIST_SHORTEST 32 /* pages of the smallest block */
#define QUIRE_LIST_NONE     (-1)

struct quire_list_size {
	int32_t *blocks;
	int64_t pages; /* of one block */
	int64_t used;  /* from here on never used */
	int64_t free; /* first free block before that; each holds the next one's number */
};

struct quire_lists {
	char *memory;
	int64_t bytes;
	int64_t max; /* blocks of each size */
	int32_t num_sizes;
	struct quire_list_size sizes[QUIRE_LIST_SIZES];
};

/*
 * quire_lists_init - room for @max lists at a time, of up to @pages_max pages each
 * Returns:  QUIRE_OK; QUIRE_NO_MEMORY: no address space.
 */
enum quire_status quire_lists_init(struct quire_lists *lists, int64_t max,
                                   int64_t pages_max);
void quire_lists_end(struct quire_lists *lists);

/* A block for n pages or more; its size for quire_list_free. */
int32_t *quire_list_new(struct quire_lists *lists, int64_t n, int32_t *size_out);

/* @size: QUIRE_LIST_NONE is a no-op */
void quire_list_free(struct quire_lists *lists, int32_t *pages, int32_t size);

/* Pages that a block of a size holds; 0 for QUIRE_LIST_NONE. */
static inline int64_t quire_list_room(const struct quire_lists *lists, int32_t size)
{
	return size == QUIRE_LIST_NONE ? 0 : lists->sizes[size].pages;
}

#endif
