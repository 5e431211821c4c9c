/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/convert_impl.h"
#include "kernels/device_cpu_impl.h"
#include "runtime/refuse_impl.h"

/* A read prefetches so much of what comes next: what one core gets from memory during two
 * or three of its latencies. */
#define AHEAD_BYTES 8192

/* An aligned stretch of a page's tokens, all written by one thread. */
#define GROUP_TOKENS 16

/* How the pieces of a run of tokens lie on one side of a move, in bytes. */
struct side {
	int64_t chunk_step; /* from a token's piece to its next */
	int64_t token_step; /* from a piece to the next token's */
};

/* What all slots of a move have in common. */
struct mover {
	const struct quire_token_move *move;
	quire_converter convert;
	struct side cache;
	struct side rows; /* write: of K or of V; read: of both, token by token */
	int64_t bytes;    /* in the cache, of all slots */
	bool joined;      /* on both sides a run's pieces follow one another */
	bool streams;     /* by non-temporal stores */
};

enum quire_status quire_cpu_check_ids(const int32_t *list, int64_t first, int64_t last,
                                      int64_t bound, const char *what,
                                      struct quire_refusal *refusal)
{
	for (int64_t i = first; i <= last; i++) {
		if (list[i] >= 0 && list[i] < bound)
			continue;
		return quire_refuse_bound(refusal, QUIRE_INVALID, what, i, list[i],
		                          list[i] < 0 ? 0 : bound - 1);
	}
	return QUIRE_OK;
}

static enum quire_status check_slots(const struct quire_geometry *geometry,
                                     const struct quire_slots *slots,
                                     struct quire_refusal *refusal)
{
	int64_t page_size = geometry->page_size;
	int64_t num_pages = geometry->num_pages;
	/* As in quire_slot_place. */
	uint32_t first = (uint32_t)slots->first;
	uint32_t size = (uint32_t)page_size;
	enum quire_status status;

	if (slots->n == 0)
		return QUIRE_OK;
	if (slots->offset == NULL)
		return quire_cpu_check_ids(slots->page, first / size,
		                           (first + (uint32_t)slots->n - 1) / size,
		                           num_pages, "page", refusal);
	status = quire_cpu_check_ids(slots->page, 0, slots->n - 1, num_pages, "page",
	                             refusal);
	if (status != QUIRE_OK)
		return status;
	return quire_cpu_check_ids(slots->offset, 0, slots->n - 1, page_size, "offset",
	                           refusal);
}

/* How many slots from i on lie one behind the other in one page; at most max. */
static int64_t run_length(const struct quire_slots *slots, int64_t page_size, int64_t i,
                          int64_t max)
{
	int64_t length = 1;

	if (slots->offset == NULL) {
		uint32_t token = (uint32_t)(slots->first + i);
		int64_t to_page_end = page_size - token % (uint32_t)page_size;

		return max < to_page_end ? max : to_page_end;
	}
	while (length < max && slots->page[i + length] == slots->page[i] &&
	       slots->offset[i + length] == slots->offset[i] + length)
		length++;
	return length;
}

/* Move the pieces that a run of tokens has in so many chunks. */
static void move_run(const struct mover *mover, char *target, const struct side *to,
                     const char *source, const struct side *from, int64_t chunks,
                     int64_t run)
{
	int64_t elements = mover->move->geometry->token_stride;

	for (int64_t c = 0; c < chunks; c++) {
		if (mover->joined)
			mover->convert(target, source, run * elements);
		else
			for (int64_t t = 0; t < run; t++)
				mover->convert(target + t * to->token_step,
				               source + t * from->token_step, elements);
		target += to->chunk_step;
		source += from->chunk_step;
	}
}

/* Ask for the row of slot i, into the second-level cache: on its way to the first it
 * would take one of the few buffers in which the copy's own misses wait.  Always inline:
 * gcc leaves out calls of a function that does nothing else. */
static inline __attribute__((always_inline)) void prefetch(const struct mover *mover,
                                                           int64_t i)
{
	const struct quire_token_move *move = mover->move;
	const struct quire_geometry *geometry = move->geometry;
	const char *piece = move->storage +
	                    quire_slot_offset(geometry, &move->slots, move->layer, i, 0);

	for (int64_t c = 0; c < geometry->num_kv * geometry->pieces; c++) {
		for (int64_t b = 0; b < mover->cache.token_step; b += QUIRE_LINE_BYTES)
			__builtin_prefetch(piece + b, 0, 2);
		piece += mover->cache.chunk_step;
	}
}

/* Which part writes a group.  Fibonacci hashing: the pages of one list often have a
 * pattern. */
static int part_of(int64_t group, int parts)
{
	uint32_t hash = (uint32_t)group * UINT32_C(0x9e3779b9);

	return (int)((uint64_t)hash * (uint64_t)parts >> 32);
}

/* Writes are divided by slot, not by place in the list, so that no two threads write to
 * one that is named twice. */
static void write_part(void *argument, int part, int parts)
{
	const struct mover *mover = argument;
	const struct quire_token_move *move = mover->move;
	const struct quire_geometry *geometry = move->geometry;
	const struct quire_slots *slots = &move->slots;
	int64_t run;

	for (int64_t i = 0; i < slots->n; i += run) {
		struct quire_place place =
			quire_slot_place(slots, geometry->page_size, i);
		int64_t slot = place.page * geometry->page_size + place.token;
		int64_t max = slots->n - i;

		if (parts > 1 && max > GROUP_TOKENS - slot % GROUP_TOKENS)
			max = GROUP_TOKENS - slot % GROUP_TOKENS;
		run = run_length(slots, geometry->page_size, i, max);
		if (parts > 1 && part_of(slot / GROUP_TOKENS, parts) != part)
			continue;
		for (int64_t kv = 0; kv < geometry->num_kv; kv++)
			move_run(mover,
			         move->storage +
			                 quire_geometry_offset(
						 geometry, move->layer, place.page,
						 kv * geometry->pieces, place.token),
			         &mover->cache,
			         move->row[kv] + i * mover->rows.token_step, &mover->rows,
			         geometry->pieces, run);
	}
	if (mover->streams)
		quire_cpu_stream_end();
}

static void read_part(void *argument, int part, int parts)
{
	const struct mover *mover = argument;
	const struct quire_token_move *move = mover->move;
	const struct quire_geometry *geometry = move->geometry;
	const struct quire_slots *slots = &move->slots;
	int64_t end = slots->n * (part + 1) / parts;
	int64_t distance = AHEAD_BYTES / geometry->token_bytes + 1;
	int64_t ahead = 0;
	int64_t run;

	for (int64_t i = slots->n * part / parts; i < end; i += run) {
		run = run_length(slots, geometry->page_size, i, end - i);
		if (ahead < i + run)
			ahead = i + run;
		for (; ahead < end && ahead < i + run + distance; ahead++)
			prefetch(mover, ahead);
		move_run(mover, move->out + i * mover->rows.token_step, &mover->rows,
		         move->storage +
		                 quire_slot_offset(geometry, slots, move->layer, i, 0),
		         &mover->cache, geometry->num_kv * geometry->pieces, run);
	}
	if (mover->streams)
		quire_cpu_stream_end();
}

/* @from:    dtype that becomes the cache's
 * @rows:    of a token, one behind the other in memory: 1 or num_kv
 * @region_bytes: where what is written lies somewhere */
static void mover_init(struct mover *mover, const struct quire_token_move *move,
                       enum quire_dtype from, int64_t rows, int64_t region_bytes)
{
	const struct quire_geometry *geometry = move->geometry;
	const struct quire_converters *converters =
		quire_converters_of(quire_simd_best());
	int64_t piece_bytes = geometry->token_stride * quire_dtype_bytes(from);

	mover->move = move;
	mover->cache.chunk_step = geometry->chunk_stride * geometry->element_bytes;
	mover->cache.token_step = geometry->token_stride * geometry->element_bytes;
	mover->rows.chunk_step = piece_bytes;
	mover->rows.token_step = rows * geometry->pieces * piece_bytes;
	mover->joined = rows * geometry->pieces == 1;
	mover->bytes = move->slots.n * geometry->token_bytes;
	mover->streams = quire_cpu_streams(region_bytes, mover->bytes);
	mover->convert = mover->streams ? converters->streamed[from][geometry->dtype]
	                                : converters->cached[from][geometry->dtype];
}

enum quire_status quire_cpu_run_read_tokens(const void *argument,
                                            struct cpu_dstream *dstream,
                                            struct quire_refusal *refusal)
{
	const struct quire_token_move *move = argument;
	const struct quire_geometry *geometry = move->geometry;
	struct mover mover;

	QUIRE_TRY(check_slots(geometry, &move->slots, refusal));
	mover_init(&mover, move, geometry->dtype, geometry->num_kv,
	           move->slots.n * geometry->token_bytes);
	quire_cpu_split(dstream->team,
	                quire_cpu_parts(dstream->team, move->slots.n, mover.bytes),
	                read_part, &mover);
	return QUIRE_OK;
}

/* The caller's thread, inline, may want signals of floating-point exceptions; those of
 * conversions are nobody's. */
static void write_masked(struct cpu_team *team, struct mover *mover)
{
	uint32_t before = quire_cpu_float_get();
	bool signals = (before & CPU_FLOAT_DEFAULT) != CPU_FLOAT_DEFAULT;

	if (signals)
		quire_cpu_float_set(CPU_FLOAT_DEFAULT);
	quire_cpu_split(team,
	                quire_cpu_parts_walking(team, mover->move->slots.n, mover->bytes),
	                write_part, mover);
	if (signals)
		quire_cpu_float_set(before);
}

enum quire_status quire_cpu_run_write_tokens(const void *argument,
                                             struct cpu_dstream *dstream,
                                             struct quire_refusal *refusal)
{
	const struct quire_token_move *move = argument;
	const struct quire_geometry *geometry = move->geometry;
	struct mover mover;

	QUIRE_TRY(check_slots(geometry, &move->slots, refusal));
	/* Not one layer of the cache but all of it: a step writes to each in turn. */
	mover_init(&mover, move, move->dtype, 1, geometry->nbytes);
	write_masked(dstream->team, &mover);
	if (move->out == NULL)
		return QUIRE_OK;
	return quire_cpu_run_read_tokens(move, dstream, refusal);
}
