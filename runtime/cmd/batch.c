/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/batch_impl.h"

#include <quire/kernels/device.h>

#include <stdlib.h>
#include <string.h>

/* A CPU reads any memory, and pinned memory would be zeroed first. */
static bool reads_any_memory(const struct quire_device *device)
{
	return strncmp(quire_device_name(device), "cpu", 3) == 0;
}

void *cmd_memory_alloc(struct quire_device *device, int64_t bytes)
{
	void *memory;

	if (reads_any_memory(device))
		return malloc((size_t)bytes);
	if (quire_device_alloc_pinned(device, bytes, &memory) != QUIRE_OK)
		return NULL;
	return memory;
}

void cmd_memory_release(struct quire_device *device, void *memory, int64_t bytes)
{
	if (reads_any_memory(device))
		free(memory);
	else
		quire_device_release_pinned(device, memory, bytes);
}

struct cmd_batch *cmd_batch_create(struct quire_device *device, int32_t rows_max)
{
	struct cmd_batch *batch =
		calloc(1, sizeof(*batch) + (size_t)rows_max * sizeof(struct cmd_row));

	if (batch != NULL)
		batch->device = device;
	return batch;
}

void cmd_batch_free(struct cmd_batch *batch)
{
	if (batch != NULL)
		cmd_memory_release(batch->device, batch->buffer, batch->bytes + 1);
	free(batch);
}

/* ------------------------------------------------------------------ plan */

static bool combine(struct cmd_streams *streams, const struct quire_step *step,
                    struct quire_combined_ids *ids)
{
	for (int32_t c = 0; c < step->num_combined; c++) {
		const struct quire_combined *combined = &step->combined[c];

		if (combined->num_labels > QUIRE_LABELS_MAX)
			return false;
		ids[c].name = cmd_streams_label(streams, combined->name);
		ids[c].num_labels = combined->num_labels;
		if (ids[c].name < 0)
			return false;
		for (int32_t i = 0; i < combined->num_labels; i++) {
			ids[c].labels[i] =
				cmd_streams_label(streams, combined->labels[i]);
			if (ids[c].labels[i] < 0)
				return false;
		}
	}
	return true;
}

/* The tables that the step's plan will have; false: the runtime refuses it. */
static bool group(struct cmd_batch *batch, const struct quire_step *step,
                  struct cmd_streams *streams)
{
	struct quire_combined_ids *ids = NULL;
	int32_t *labels = malloc((size_t)batch->num_rows * sizeof(*labels));
	bool grouped = false;

	if (step->num_combined > 0 && step->num_combined <= QUIRE_TABLES_MAX)
		ids = calloc((size_t)step->num_combined, sizeof(*ids));
	if (labels == NULL || (step->num_combined > 0 && ids == NULL) ||
	    !combine(streams, step, ids))
		goto undo_lists;
	for (int32_t i = 0; i < batch->num_rows; i++)
		labels[i] = batch->rows[i].label;
	grouped = quire_grouping_init(&batch->grouping, labels, batch->num_rows, ids,
	                              step->num_combined, QUIRE_TABLES_MAX,
	                              NULL) == QUIRE_OK;

undo_lists:
	free(ids);
	free(labels);
	return grouped;
}

/* Bytes of what a step reads of a row. */
static int64_t read_bytes(const struct cmd_row *row,
                          const struct quire_geometry *geometry)
{
	return geometry->num_layers * (row->start + row->span) * geometry->token_bytes;
}

/* Choose rows to read while there is room in the work list: last steps first. */
static void choose_reads(struct cmd_batch *batch, const struct quire_geometry *geometry)
{
	int64_t room = QUIRE_WORK_MAX - batch->grouping.num_tables * geometry->num_layers;
	int64_t bytes = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int32_t i = 0; i < batch->num_rows && room >= geometry->num_layers;
		     i++) {
			struct cmd_row *row = &batch->rows[i];
			int64_t more = read_bytes(row, geometry);

			if (row->start == CMD_START_UNKNOWN || row->is_read ||
			    !(pass == 0 ? row->is_last : row->is_due) || more == 0 ||
			    bytes + more > geometry->nbytes)
				continue;
			row->is_read = true;
			room -= geometry->num_layers;
			bytes += more;
		}
	}
	batch->bytes += bytes;
}

enum cmd_plan_result cmd_batch_plan(struct cmd_batch *batch,
                                    const struct quire_step *step,
                                    struct cmd_streams *streams,
                                    const struct quire_geometry *geometry,
                                    int64_t tokens_most)
{
	int64_t tokens = 0;

	/* More tokens than there is room for are not written, whatever refuses them. */
	for (int32_t i = 0; i < batch->num_rows; i++) {
		const struct cmd_row *row = &batch->rows[i];

		tokens += row->span;
		if (row->start + row->span > tokens_most || tokens > tokens_most)
			return CMD_PLAN_REFUSED;
	}
	if (!group(batch, step, streams))
		return CMD_PLAN_REFUSED;
	if (batch->grouping.num_tables * geometry->num_layers > QUIRE_WORK_MAX)
		return CMD_PLAN_TOO_WIDE;
	batch->bytes = geometry->num_layers * tokens * geometry->token_bytes;
	choose_reads(batch, geometry);
	return CMD_PLAN_OK;
}

/* ------------------------------------------------------------------ fill */

/* Rows of one table and layer, K or V, in packed token order; returns the end of them. */
static char *fill_rows(const struct cmd_batch *batch, int32_t table, int64_t layer,
                       int is_value, const struct cmd_pattern *pattern, char *out)
{
	const struct quire_grouping *grouping = &batch->grouping;

	for (int32_t m = 0; m < grouping->num_members[table]; m++) {
		for (int32_t i = 0; i < batch->num_rows; i++) {
			const struct cmd_row *row = &batch->rows[i];

			if (row->label != grouping->members[table][m])
				continue;
			for (int64_t j = 0; j < row->span; j++, out += pattern->row_bytes)
				cmd_pattern_fill(pattern, row->seed, row->first + j,
				                 layer, is_value, out);
		}
	}
	return out;
}

static char *add_writes(struct cmd_batch *batch, const struct quire_geometry *geometry,
                        const struct cmd_pattern *pattern, char *out)
{
	for (int32_t t = 0; t < batch->grouping.num_tables; t++) {
		for (int64_t layer = 0; layer < geometry->num_layers; layer++) {
			char *k = out;
			char *v = fill_rows(batch, t, layer, 0, pattern, k);

			if (v == k)
				continue; /* a table that is only read */
			out = v;
			if (geometry->num_kv == 2)
				out = fill_rows(batch, t, layer, 1, pattern, v);
			batch->work[batch->num_work++] = (struct quire_work){
				.kind = QUIRE_WORK_WRITE,
				.layer = (int32_t)layer,
				.write = {.table = t,
			                  .dtype = geometry->dtype,
			                  .k = k,
			                  .v = geometry->num_kv == 2 ? v : NULL},
			};
		}
	}
	return out;
}

static void add_reads(struct cmd_batch *batch, const struct quire_geometry *geometry,
                      char *out)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		struct cmd_row *row = &batch->rows[i];
		int32_t tokens;

		if (!row->is_read)
			continue;
		tokens = (int32_t)(row->start + row->span);
		row->out = out;
		for (int64_t layer = 0; layer < geometry->num_layers; layer++) {
			batch->work[batch->num_work++] = (struct quire_work){
				.kind = QUIRE_WORK_READ,
				.layer = (int32_t)layer,
				.read = {.segment = i, .count = tokens, .out = out},
			};
			out += read_bytes(row, geometry) / geometry->num_layers;
		}
	}
}

bool cmd_batch_fill(struct cmd_batch *batch, const struct quire_geometry *geometry,
                    const struct cmd_pattern *pattern)
{
	char *out;

	batch->buffer = cmd_memory_alloc(batch->device, batch->bytes + 1);
	if (batch->buffer == NULL)
		return false;
	out = add_writes(batch, geometry, pattern, batch->buffer);
	add_reads(batch, geometry, out);
	return true;
}
