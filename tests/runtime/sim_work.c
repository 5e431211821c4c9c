/* SPDX-License-Identifier: MIT */
/* The callbacks of a simulated run: capture tables, move the bytes of tokens. */
#include "config.h"

#include "sim_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t user_word(uint64_t ticket, int64_t i)
{
	return ticket * 0x9e3779b97f4a7c15ull + (uint64_t)i;
}

enum quire_status sim_on_plan(void *argument, struct quire_plan *plan)
{
	static _Thread_local struct image image;
	struct sim *sim = argument;
	struct sim_record *record = sim->by_ticket[plan->ticket];
	uint64_t *user = plan->user;

	if (record == NULL || record->host != NULL)
		return QUIRE_CALLBACK;
	image_of_plan(&image, plan, false);
	record->host = image_copy(&image);
	record->digest = quire_plan_digest(plan);
	for (int64_t i = 0; i < plan->user_bytes / 8; i++)
		user[i] = user_word(plan->ticket, i);
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ bytes */

/* One layer, one head of one number, NHD: a page is its K, then its V. */
static uint32_t *token_place(const struct sim *sim, int32_t page, int32_t offset, int kv)
{
	uint32_t *storage = quire_cache_data_ptr(sim->cache);
	int32_t ps = sim->list->page_size;

	return storage + ((int64_t)page * 2 + kv) * ps + offset;
}

int64_t sim_token_in_cache(const struct sim *sim, int32_t page, int32_t offset)
{
	uint32_t k = *token_place(sim, page, offset, 0);

	return *token_place(sim, page, offset, 1) == ~k ? (int64_t)k : -1;
}

static void write_table(const struct sim_record *record, const struct quire_table *t)
{
	const struct quire_plan *plan = &record->plan;
	const int32_t *qo_indptr = quire_plan_device(plan, t->qo_indptr);
	const int32_t *slot_page = quire_plan_device(plan, t->slot_page);
	const int32_t *slot_offset = quire_plan_device(plan, t->slot_offset);
	const int32_t *position = quire_plan_device(plan, t->position);
	const int64_t *request = quire_plan_device(plan, t->row_request);
	const int32_t *label = quire_plan_device(plan, t->row_label);

	for (int32_t row = 0; row < t->rows; row++) {
		int32_t name = model_label(plan->label_names[label[row]]);

		for (int32_t j = qo_indptr[row]; j < qo_indptr[row + 1]; j++) {
			uint32_t word = model_token(plan->ticket, (uint64_t)request[row],
			                            name, position[j]);

			*token_place(record->sim, slot_page[j], slot_offset[j], 0) = word;
			*token_place(record->sim, slot_page[j], slot_offset[j], 1) =
				~word;
		}
	}
}

static void read_table(const struct sim_record *record, const struct quire_table *t,
                       struct image *reads)
{
	const struct quire_plan *plan = &record->plan;
	const int32_t *kv_indptr = quire_plan_device(plan, t->kv_indptr);
	const int32_t *last = quire_plan_device(plan, t->kv_last_page_len);

	for (int32_t row = 0; row < t->rows; row++) {
		const int32_t *pages = t->kv_indices != NULL
		                               ? (const int32_t *)quire_plan_device(
							 plan, t->kv_indices) +
		                                         kv_indptr[row]
		                               : (const int32_t *)quire_plan_device(
							 plan, t->block_table) +
		                                         (int64_t)row * plan->block_width;
		int32_t n = kv_indptr[row + 1] - kv_indptr[row];

		image_begin(reads, IMAGE_READS);
		for (int32_t k = 0; k < n; k++) {
			int32_t tokens = k + 1 < n ? plan->page_size : last[row];

			for (int32_t offset = 0; offset < tokens; offset++)
				image_add(reads, sim_token_in_cache(record->sim, pages[k],
				                                    offset));
		}
	}
}

/* On the compute stream: the device half must hold this step's tables until it
 * returns. */
static enum quire_status work(void *argument)
{
	static _Thread_local struct image image;
	struct sim_record *record = argument;
	const struct quire_plan *plan = &record->plan;
	const uint64_t *user =
		plan->user == NULL ? NULL : quire_plan_device(plan, plan->user);

	if (record->device != NULL)
		return QUIRE_CALLBACK;
	if (record->delay_us > 0)
		usleep((useconds_t)record->delay_us);
	image_of_plan(&image, plan, true);
	record->device = image_copy(&image);
	for (int64_t i = 0; i < plan->user_bytes / 8; i++)
		record->user_wrong |= user[i] != user_word(record->ticket, i);
	for (int32_t t = 0; t < plan->num_tables; t++)
		write_table(record, &plan->tables[t]);
	image.n = 0;
	for (int32_t t = 0; t < plan->num_tables; t++)
		read_table(record, &plan->tables[t], &image);
	record->reads = image_copy(&image);
	return QUIRE_OK;
}

enum quire_status sim_run_step(void *argument, const struct quire_plan *plan,
                               struct quire_dstream *compute)
{
	struct sim_record *record = argument;

	record->plan = *plan;
	return quire_dstream_call(compute, work, record);
}

void sim_done(void *argument, uint64_t ticket, const struct quire_outcome *outcome)
{
	struct sim_record *record = argument;

	(void)ticket;
	record->num_done++;
	record->done_status = outcome->refusal.status;
}
