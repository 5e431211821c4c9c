/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/convert_impl.h"
#include "kernels/device_cpu_impl.h"
#include "runtime/refuse_impl.h"

#include <stdbool.h>
#include <string.h>

/*
 * Copying pages as if all sources were read before any target is written.
 *
 * A page is the target of at most one copy, so copies hang together as chains and cycles
 * with chains that branch off.  A copy is ready when no copy that has yet to run reads
 * its target.  Running ready copies until there are none leaves simple cycles; each is
 * opened by saving one target, after which it is a chain.
 *
 * The result is a list of moves; SAVED stands for the saved page, of which memory has the
 * tokens that are read again.
 */
#define SAVED (-1)

struct page_step {
	int32_t source;
	int32_t target;
	int32_t tokens; /* the first so many */
};

struct page_order {
	struct page_step *steps; /* room for 2n: each cycle, of 2 or more, adds one */
	int64_t num_steps;
	int32_t saved_tokens; /* of the longest saved page; 0: none is */
	int32_t *map; /* open addressing: a copy's number + 1 by its target, 0 for none */
	uint32_t map_mask; /* 2^(32 - map_shift) - 1 */
	int map_shift;
	int32_t *upstream; /* of copy i: another whose target is the source of i; -1 */
	int32_t *readers;  /* of copy i: copies to run that read its target; -1: it ran */
};

/* Where a page's entry is, or would be. */
static uint32_t map_place(const struct page_order *order, const int32_t *target,
                          int32_t page)
{
	/* Fibonacci hashing: the high bits of a product with 2^32 over the golden
	 * ratio. */
	uint32_t place = (uint32_t)page * UINT32_C(0x9e3779b9) >> order->map_shift;

	while (order->map[place] != 0 && target[order->map[place] - 1] != page)
		place = (place + 1) & order->map_mask;
	return place;
}

static enum quire_status check_pages(const struct quire_page_move *move,
                                     struct quire_refusal *refusal)
{
	int64_t num_pages = move->geometry->num_pages;
	int64_t last = move->n - 1;

	QUIRE_TRY(
		quire_cpu_check_ids(move->source, 0, last, num_pages, "source", refusal));
	QUIRE_TRY(
		quire_cpu_check_ids(move->target, 0, last, num_pages, "target", refusal));
	if (move->end == NULL)
		return QUIRE_OK;
	return quire_cpu_check_ids(move->end, 0, last, move->geometry->page_size + 1,
	                           "end", refusal);
}

/* Fill the map; a target named twice is refused. */
static enum quire_status map_targets(struct page_order *order,
                                     const struct quire_page_move *move,
                                     struct quire_refusal *refusal)
{
	memset(order->map, 0, ((size_t)order->map_mask + 1) * sizeof(*order->map));
	for (int64_t i = 0; i < move->n; i++) {
		uint32_t place = map_place(order, move->target, move->target[i]);

		if (order->map[place] != 0) {
			quire_refuse_what(refusal, QUIRE_INVALID, "target named twice");
			refusal->index = i;
			refusal->page = move->target[i];
			return QUIRE_INVALID;
		}
		order->map[place] = (int32_t)(i + 1);
	}
	return QUIRE_OK;
}

static int32_t tokens_of(const struct quire_page_move *move, int64_t i)
{
	return move->end != NULL ? move->end[i] : (int32_t)move->geometry->page_size;
}

static bool moves_nothing(const struct quire_page_move *move, int64_t i)
{
	return move->source[i] == move->target[i] || tokens_of(move, i) == 0;
}

static void count_readers(struct page_order *order, const struct quire_page_move *move)
{
	memset(order->readers, 0, (size_t)move->n * sizeof(*order->readers));
	for (int64_t i = 0; i < move->n; i++) {
		uint32_t place = map_place(order, move->target, move->source[i]);

		order->upstream[i] = moves_nothing(move, i) ? -1 : order->map[place] - 1;
		if (order->upstream[i] >= 0)
			order->readers[order->upstream[i]]++;
	}
}

static void add_step(struct page_order *order, int32_t source, int32_t target,
                     int32_t tokens)
{
	order->steps[order->num_steps++] = (struct page_step){source, target, tokens};
}

/* Run copy i, which is ready, and those that this makes ready one after the other. */
static void run_chain(struct page_order *order, const struct quire_page_move *move,
                      int64_t i)
{
	while (i >= 0 && order->readers[i] == 0) {
		order->readers[i] = -1;
		if (!moves_nothing(move, i))
			add_step(order, move->source[i], move->target[i],
			         tokens_of(move, i));
		i = order->upstream[i];
		if (i >= 0)
			order->readers[i]--;
	}
}

/* Open the cycle that copy i is on: its target is saved, and read from there. */
static void run_cycle(struct page_order *order, const struct quire_page_move *move,
                      int64_t i)
{
	int64_t first = i;
	struct page_step *save = &order->steps[order->num_steps];

	add_step(order, move->target[first], SAVED, 0);
	for (; order->upstream[i] != first; i = order->upstream[i]) {
		order->readers[i] = -1;
		add_step(order, move->source[i], move->target[i], tokens_of(move, i));
	}
	order->readers[i] = -1;
	save->tokens = tokens_of(move, i);
	if (order->saved_tokens < save->tokens)
		order->saved_tokens = save->tokens;
	add_step(order, SAVED, move->target[i], save->tokens);
}

static enum quire_status plan_order(struct page_order *order,
                                    const struct quire_page_move *move,
                                    struct quire_refusal *refusal)
{
	enum quire_status status = map_targets(order, move, refusal);

	if (status != QUIRE_OK)
		return status;
	count_readers(order, move);
	for (int64_t i = 0; i < move->n; i++)
		run_chain(order, move, i);
	for (int64_t i = 0; i < move->n; i++)
		if (order->readers[i] > 0)
			run_cycle(order, move, i);
	return QUIRE_OK;
}

/* What all the steps have in common. */
struct page_mover {
	const struct page_order *order;
	const struct quire_page_move *move;
	char *saved;               /* NULL: nothing is; of each part so many bytes: */
	int64_t saved_part_bytes;  /* what it saves at a time, */
	int64_t saved_chunk_bytes; /* so much of each chunk */
	quire_converter copy;      /* of elements as wide as the cache's */
	quire_converter save;      /* to a page that is read again soon */
	bool streams;
};

/* The chunks of a page, from some chunk on. */
struct page_side {
	char *first;
	int64_t chunk_bytes; /* from one to the next */
};

static struct page_side side_of(const struct page_mover *mover, int64_t layer,
                                int32_t page, int64_t first, char *saved)
{
	const struct quire_page_move *move = mover->move;
	const struct quire_geometry *geometry = move->geometry;

	if (page == SAVED)
		return (struct page_side){saved, mover->saved_chunk_bytes};
	return (struct page_side){
		move->storage + quire_geometry_offset(geometry, layer, page, first, 0),
		geometry->chunk_stride * geometry->element_bytes};
}

/* Run all the steps on chunks [first, end) of the pages of one layer. */
static void copy_chunks(const struct page_mover *mover, int64_t layer, int64_t first,
                        int64_t end, char *saved)
{
	const struct quire_geometry *geometry = mover->move->geometry;

	for (int64_t i = 0; i < mover->order->num_steps; i++) {
		struct page_step step = mover->order->steps[i];
		struct page_side to = side_of(mover, layer, step.target, first, saved);
		struct page_side from = side_of(mover, layer, step.source, first, saved);
		quire_converter copy = step.target == SAVED ? mover->save : mover->copy;
		int64_t n = step.tokens * geometry->token_stride;
		int64_t chunks = end - first;

		/* Whole chunks follow one another, saved ones too. */
		if (n == geometry->chunk_stride) {
			n *= chunks;
			chunks = 1;
		}
		for (int64_t c = 0; c < chunks; c++)
			copy(to.first + c * to.chunk_bytes,
			     from.first + c * from.chunk_bytes, n);
	}
}

/* A chunk's bytes hang on none of another chunk or layer, so each part runs all the steps
 * on its share of the chunks of all layers. */
static void copy_part(void *argument, int part, int parts)
{
	const struct page_mover *mover = argument;
	const struct quire_geometry *geometry = mover->move->geometry;
	int64_t chunks = geometry->num_kv * geometry->pieces;
	int64_t at = geometry->num_layers * chunks * part / parts;
	int64_t end = geometry->num_layers * chunks * (part + 1) / parts;
	char *saved = NULL;

	if (mover->saved != NULL)
		saved = mover->saved + part * mover->saved_part_bytes;
	while (at < end) {
		int64_t layer = at / chunks;
		int64_t first = at % chunks;
		int64_t count = chunks - first < end - at ? chunks - first : end - at;

		copy_chunks(mover, layer, first, first + count, saved);
		at += count;
	}
	if (mover->streams)
		quire_cpu_stream_end();
}

/* Room for what the parts save.  Of one layer's chunks a part has all, or its share. */
static enum quire_status reserve_saved(struct page_mover *mover, int parts,
                                       struct cpu_dstream *dstream,
                                       struct quire_refusal *refusal)
{
	const struct quire_geometry *geometry = mover->move->geometry;
	int64_t chunks = geometry->num_kv * geometry->pieces;
	int64_t share = (geometry->num_layers * chunks + parts - 1) / parts;

	if (mover->order->saved_tokens == 0)
		return QUIRE_OK;
	mover->saved_chunk_bytes = mover->order->saved_tokens * geometry->token_stride *
	                           geometry->element_bytes;
	mover->saved_part_bytes =
		(share < chunks ? share : chunks) * mover->saved_chunk_bytes;
	mover->saved = quire_cpu_scratch_get(&dstream->saved,
	                                     (size_t)(parts * mover->saved_part_bytes));
	if (mover->saved == NULL)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY,
		                         "saved pages of copy_pages");
	return QUIRE_OK;
}

static enum quire_status run_order(const struct page_order *order,
                                   const struct quire_page_move *move,
                                   struct cpu_dstream *dstream,
                                   struct quire_refusal *refusal)
{
	const struct quire_geometry *geometry = move->geometry;
	const struct quire_converters *converters =
		quire_converters_of(quire_simd_best());
	enum quire_dtype dtype = geometry->dtype;
	int64_t rows = 0;
	int64_t bytes;
	int parts;
	struct page_mover mover = {
		.order = order,
		.move = move,
		.save = converters->cached[dtype][dtype],
	};

	for (int64_t i = 0; i < order->num_steps; i++)
		if (order->steps[i].target != SAVED)
			rows += order->steps[i].tokens * geometry->num_layers;
	if (rows == 0)
		return QUIRE_OK;
	bytes = rows * geometry->token_bytes;
	parts = quire_cpu_parts(dstream->team, rows, bytes);
	QUIRE_TRY(reserve_saved(&mover, parts, dstream, refusal));
	mover.streams = quire_cpu_streams(geometry->nbytes, bytes);
	mover.copy = mover.streams ? converters->streamed[dtype][dtype] : mover.save;
	quire_cpu_split(dstream->team, parts, copy_part, &mover);
	return QUIRE_OK;
}

enum quire_status quire_cpu_run_copy_pages(const void *argument,
                                           struct cpu_dstream *dstream,
                                           struct quire_refusal *refusal)
{
	const struct quire_page_move *move = argument;
	size_t n = (size_t)move->n;
	size_t map_size = 4;
	struct page_order order = {.map_shift = 30};
	char *memory;

	if (n == 0)
		return QUIRE_OK;
	QUIRE_TRY(check_pages(move, refusal));
	while (map_size < 2 * n) {
		map_size *= 2;
		order.map_shift--;
	}
	memory = quire_cpu_scratch_get(&dstream->scratch,
	                               2 * n * sizeof(*order.steps) +
	                                       (map_size + 2 * n) * sizeof(int32_t));
	if (memory == NULL)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY,
		                         "scratch of copy_pages");
	order.steps = (struct page_step *)memory;
	order.map = (int32_t *)(order.steps + 2 * n);
	order.map_mask = (uint32_t)map_size - 1;
	order.upstream = order.map + map_size;
	order.readers = order.upstream + n;
	QUIRE_TRY(plan_order(&order, move, refusal));
	return run_order(&order, move, dstream, refusal);
}
