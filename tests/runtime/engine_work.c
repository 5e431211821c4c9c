/* SPDX-License-Identifier: MIT */
/* The engine's kernels: a plan is its device half, the cache its views, and both are
 * copies that the compute stream makes where a kernel would read. */
#include "config.h"

#include "engine_run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define PADDING 0.5f /* K and V of tokens that only fill a captured shape */

/* What the kernels read of a table. */
struct device_table {
	const int32_t *qo_indptr;
	const int32_t *kv_indptr;
	const int32_t *kv_indices;
	const int32_t *kv_last_page_len;
	const int32_t *slot_page;
	const int32_t *slot_offset;
	const int32_t *position;
	const int64_t *row_request;
	const uint64_t *row_tag;
	const int32_t *row_label;
	const struct quire_table *table; /* its counts */
};

static struct device_table device_table(const struct quire_plan *plan, int32_t t)
{
	const struct quire_table *table = &plan->tables[t];

	return (struct device_table){
		.qo_indptr = quire_plan_device(plan, table->qo_indptr),
		.kv_indptr = quire_plan_device(plan, table->kv_indptr),
		.kv_indices = quire_plan_device(plan, table->kv_indices),
		.kv_last_page_len = quire_plan_device(plan, table->kv_last_page_len),
		.slot_page = quire_plan_device(plan, table->slot_page),
		.slot_offset = quire_plan_device(plan, table->slot_offset),
		.position = quire_plan_device(plan, table->position),
		.row_request = quire_plan_device(plan, table->row_request),
		.row_tag = quire_plan_device(plan, table->row_tag),
		.row_label = quire_plan_device(plan, table->row_label),
		.table = table,
	};
}

void engine_view_layer(const struct engine *engine, char *cache, int32_t layer,
                       struct engine_view *view_out)
{
	const char *start = quire_cache_data_ptr(engine->cache);
	bool nhd = engine->way.layout == QUIRE_NHD;
	struct quire_tensor tensor;

	must(quire_cache_layer_view(engine->cache, layer, &tensor, NULL) == QUIRE_OK);
	*view_out = (struct engine_view){
		.base = (float *)(void *)(cache + ((char *)tensor.dl.data - start) +
	                                  tensor.dl.byte_offset),
		.page = tensor.strides[0],
		.kv = tensor.strides[1],
		.token = tensor.strides[nhd ? 2 : 3],
		.head = tensor.strides[nhd ? 3 : 2],
	};
}

static void find_wrong(struct engine_record *record, bool wrong, const char *what)
{
	if (wrong && record->wrong == NULL)
		record->wrong = what;
}

/* ------------------------------------------------------------------ user bytes */

static struct engine_user user_of(const struct quire_plan *plan, uint64_t tag,
                                  int32_t table)
{
	return (struct engine_user){
		.ticket = plan->ticket,
		.tag = tag,
		.temperature = (float)(tag % 100 + plan->step) / 100,
		.table = table,
	};
}

enum quire_status engine_on_plan(void *argument, struct quire_plan *plan)
{
	struct engine_user *user = plan->user;

	(void)argument;
	for (int32_t t = 0; t < plan->num_tables; t++)
		for (int32_t row = 0; row < plan->tables[t].rows; row++)
			user[t * ENGINE_ROWS + row] =
				user_of(plan, plan->tables[t].row_tag[row], t);
	return QUIRE_OK;
}

static void check_user(struct engine_record *record)
{
	const struct quire_plan *plan = &record->plan;
	const struct engine_user *user = quire_plan_device(plan, plan->user);

	for (int32_t t = 0; t < plan->num_tables; t++) {
		struct device_table table = device_table(plan, t);

		for (int32_t row = 0; row < table.table->rows; row++) {
			struct engine_user want = user_of(plan, table.row_tag[row], t);

			find_wrong(record,
			           memcmp(&user[t * ENGINE_ROWS + row], &want,
			                  sizeof(want)) != 0,
			           "user bytes");
		}
	}
}

/* ------------------------------------------------------------------ projections */

/* The segment that a row stands for; -1: of no segment of this step. */
static int32_t segment_of(struct engine_record *record, const struct device_table *table,
                          int32_t row)
{
	uint64_t first = (uint64_t)record->number * ENGINE_ROWS;
	uint64_t tag = table->row_tag[row];

	if (tag < first || tag >= first + (uint64_t)record->num_segments) {
		find_wrong(record, true, "row_tag");
		return -1;
	}
	return (int32_t)(tag - first);
}

static struct engine_token token_of(const struct engine_record *record,
                                    const struct device_table *table, int32_t row,
                                    int32_t segment, int32_t j)
{
	int32_t first = table->qo_indptr[row];

	return (struct engine_token){
		.request = (uint64_t)table->row_request[row],
		.label = engine_label(record->plan.label_names[table->row_label[row]]),
		.position = table->position[j],
		.value = record->values[segment][j - first],
	};
}

static void project_token(struct engine_table *out, const struct engine_token *token,
                          int32_t j)
{
	for (int32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		for (int32_t head = 0; head < ENGINE_KV_HEADS; head++)
			for (int32_t d = 0; d < ENGINE_DIM; d++) {
				out->k[layer][j][head][d] =
					engine_number(token, layer, ENGINE_K, head, d);
				out->v[layer][j][head][d] =
					engine_number(token, layer, ENGINE_V, head, d);
			}
}

static void project_padding(struct engine_table *out, int32_t j)
{
	for (int32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		for (int32_t head = 0; head < ENGINE_KV_HEADS; head++)
			for (int32_t d = 0; d < ENGINE_DIM; d++) {
				out->k[layer][j][head][d] = PADDING;
				out->v[layer][j][head][d] = PADDING;
			}
}

static void project_table(struct engine_record *record, int32_t t)
{
	struct device_table table = device_table(&record->plan, t);

	for (int32_t row = 0; row < table.table->rows; row++) {
		int32_t segment = segment_of(record, &table, row);

		if (segment < 0)
			continue;
		record->seen[segment]++;
		for (int32_t j = table.qo_indptr[row]; j < table.qo_indptr[row + 1];
		     j++) {
			struct engine_token token =
				token_of(record, &table, row, segment, j);

			project_token(&record->staging->tables[t], &token, j);
		}
	}
	for (int32_t j = table.table->tokens; j < table.table->bucket_tokens; j++)
		project_padding(&record->staging->tables[t], j);
}

/* On the compute stream, in front of the writes. */
static enum quire_status project(void *argument)
{
	struct engine_record *record = argument;

	record->num_runs++;
	record->plan.device = record->staging->halves[0];
	check_user(record);
	for (int32_t t = 0; t < record->plan.num_tables; t++)
		project_table(record, t);
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ bytes */

/* Do to the old bytes what the step's writes should have done to the cache. */
static void write_before(struct engine_record *record, const struct engine_view *view,
                         int32_t layer, int32_t t)
{
	struct device_table table = device_table(&record->plan, t);
	const struct engine_table *from = &record->staging->tables[t];

	for (int32_t j = 0; j < table.table->bucket_tokens; j++) {
		bool padding = j >= table.table->tokens;
		int32_t page = padding ? 0 : table.slot_page[j];
		int32_t offset = padding ? 0 : table.slot_offset[j];

		find_wrong(record, !padding && page == 0, "a token's slot in the sink");
		for (int32_t head = 0; head < ENGINE_KV_HEADS; head++) {
			memcpy(engine_place(view, 0, page, offset, head),
			       from->k[layer][j][head], sizeof(from->k[0][0][0]));
			memcpy(engine_place(view, 1, page, offset, head),
			       from->v[layer][j][head], sizeof(from->v[0][0][0]));
		}
	}
}

/* Every byte of the cache: the step's slots are as written, the sink too, all others as
 * before. */
static void check_bytes(struct engine_record *record)
{
	const struct engine *engine = record->engine;
	char **caches = record->staging->caches;

	for (int32_t layer = 0; layer < ENGINE_LAYERS; layer++) {
		struct engine_view view;

		engine_view_layer(engine, caches[0], layer, &view);
		for (int32_t t = 0; t < record->plan.num_tables; t++)
			write_before(record, &view, layer, t);
	}
	find_wrong(record, memcmp(caches[0], caches[1], (size_t)engine->cache_bytes) != 0,
	           "bytes outside the step's slots, or in them");
}

/* ------------------------------------------------------------------ attention */

/* One query over the first num_tokens tokens of a row's pages. */
static void attend_head(const struct engine_view *view, const int32_t *pages,
                        int32_t page_size, int32_t num_tokens, const float *query,
                        int32_t head, float *out)
{
	int32_t kv_head = head * ENGINE_KV_HEADS / ENGINE_Q_HEADS;
	float sum = 0;

	for (int32_t i = 0; i < num_tokens; i++) {
		int32_t page = pages[i / page_size], offset = i % page_size;
		const float *k = engine_place(view, 0, page, offset, kv_head);
		const float *v = engine_place(view, 1, page, offset, kv_head);
		float score = 0;

		for (int32_t d = 0; d < ENGINE_DIM; d++)
			score += query[d] * k[d];
		score = expf(score / sqrtf(ENGINE_DIM));
		sum += score;
		for (int32_t d = 0; d < ENGINE_DIM; d++)
			out[d] += score * v[d];
	}
	for (int32_t d = 0; d < ENGINE_DIM && num_tokens > 0; d++)
		out[d] /= sum;
}

static void attend_token(const struct engine_record *record, const int32_t *pages,
                         int32_t num_tokens, const struct engine_token *query, float *out)
{
	for (int32_t layer = 0; layer < ENGINE_LAYERS; layer++) {
		struct engine_view view;

		engine_view_layer(record->engine, record->staging->caches[1], layer,
		                  &view);
		for (int32_t head = 0; head < ENGINE_Q_HEADS; head++, out += ENGINE_DIM) {
			float q[ENGINE_DIM];

			for (int32_t d = 0; d < ENGINE_DIM; d++)
				q[d] = engine_number(query, layer, ENGINE_Q, head, d);
			attend_head(&view, pages, record->plan.page_size, num_tokens, q,
			            head, out);
		}
	}
}

static void attend_row(struct engine_record *record, const struct device_table *table,
                       int32_t row)
{
	int32_t first = table->qo_indptr[row], end = table->qo_indptr[row + 1];
	int32_t num_pages = table->kv_indptr[row + 1] - table->kv_indptr[row];
	const int32_t *pages = table->kv_indices + table->kv_indptr[row];
	int32_t segment = segment_of(record, table, row);
	int32_t length = 0;

	if (segment < 0)
		return;
	if (num_pages > 0)
		length = (num_pages - 1) * record->plan.page_size +
		         table->kv_last_page_len[row];
	for (int32_t j = first; j < end; j++) {
		struct engine_token query = token_of(record, table, row, segment, j);

		attend_token(record, pages, length - (end - 1 - j), &query,
		             record->out[segment][j - first]);
	}
	if (first == end) {
		int32_t label =
			engine_label(record->plan.label_names[table->row_label[row]]);
		struct engine_token query =
			engine_question((uint64_t)table->row_request[row], label, length);

		attend_token(record, pages, length, &query, record->out[segment][0]);
	}
}

/* On the compute stream, behind the writes. */
static enum quire_status attend(void *argument)
{
	struct engine_record *record = argument;

	if (record->outputs != NULL)
		usleep(200); /* who does not wait for the event reads too early */
	record->plan.device = record->staging->halves[1];
	check_bytes(record);
	for (int32_t t = 0; t < record->plan.num_tables; t++) {
		struct device_table table = device_table(&record->plan, t);

		for (int32_t row = 0; row < table.table->rows; row++)
			attend_row(record, &table, row);
	}
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ the step's work */

/* What the host functions see from here on; @after: behind the step's writes. */
static enum quire_status queue_images(const struct engine_record *record,
                                      const struct quire_plan *plan,
                                      struct quire_dstream *compute, bool after)
{
	const struct engine *engine = record->engine;
	const struct quire_range ranges[] = {
		{record->staging->halves[after], plan->device, engine->half_bytes},
		{record->staging->caches[after], quire_cache_data_ptr(engine->cache),
	         engine->cache_bytes},
	};

	return quire_dstream_copy(compute, ranges, 2);
}

static enum quire_status queue_writes(const struct engine_record *record,
                                      const struct quire_plan *plan,
                                      struct quire_dstream *compute, int32_t t)
{
	struct device_table table = device_table(plan, t);
	const struct quire_slots slots = {.page = table.slot_page,
	                                  .offset = table.slot_offset,
	                                  .n = table.table->bucket_tokens};
	struct engine_table *rows = &record->engine->rows[t];
	const struct quire_range range = {rows, &record->staging->tables[t],
	                                  sizeof(*rows)};
	enum quire_status status = quire_dstream_copy(compute, &range, 1);

	for (int32_t layer = 0; layer < ENGINE_LAYERS && status == QUIRE_OK; layer++)
		status = quire_cache_write_tokens(record->engine->cache, compute, layer,
		                                  &slots, rows->k[layer], rows->v[layer],
		                                  QUIRE_F32, NULL, NULL);
	return status;
}

enum quire_status engine_work(void *argument, const struct quire_plan *plan,
                              struct quire_dstream *compute)
{
	struct engine_record *record = argument;
	enum quire_status status;

	record->plan = *plan;
	status = queue_images(record, plan, compute, false);
	if (status == QUIRE_OK)
		status = quire_dstream_call(compute, project, record);
	for (int32_t t = 0; t < plan->num_tables && status == QUIRE_OK; t++)
		status = queue_writes(record, plan, compute, t);
	if (status == QUIRE_OK)
		status = queue_images(record, plan, compute, true);
	if (status != QUIRE_OK)
		return status;
	return quire_dstream_call(compute, attend, record);
}
