/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/runtime_impl.h"

/* The addresses of one entry of built-in work, in the device half of the slot. */
static void resolve(const struct quire_runtime *rt, struct quire_plan *plan,
                    const struct quire_work *work, struct quire_issue *issue)
{
	const struct quire_planner *planner = &rt->planner;
	const struct quire_table *table;
	int32_t segment;

	*issue = (struct quire_issue){.kind = work->kind, .layer = work->layer};
	switch (work->kind) {
	case QUIRE_WORK_WRITE:
		table = &plan->tables[work->write.table];
		issue->slots.page = quire_plan_device(plan, table->slot_page);
		issue->slots.offset = quire_plan_device(plan, table->slot_offset);
		issue->slots.n = table->tokens;
		issue->dtype = work->write.dtype;
		issue->k = work->write.k;
		issue->v = work->write.v;
		break;
	case QUIRE_WORK_READ:
		segment = work->read.segment;
		table = &plan->tables[planner->grouping
		                              .table_of[planner->labels[segment]]];
		issue->slots.page = quire_plan_device(
			plan,
			quire_row_pages(plan, table, planner->row_of_view[segment]));
		issue->slots.first = work->read.first;
		issue->slots.n = work->read.count;
		issue->out = work->read.out;
		break;
	case QUIRE_WORK_COPY:
		issue->copy = plan->num_work_copies++;
		issue->source = planner->rows[work->copy.source_segment]
		                        .stream->now.pages[work->copy.source_page];
		issue->target = planner->rows[work->copy.target_segment]
		                        .stream->now.pages[work->copy.target_page];
		break;
	}
}

void quire_slot_fill(struct quire_runtime *rt, const struct quire_command_cell *cell,
                     struct quire_slot *slot)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_plan *plan = &slot->plan;

	plan->ticket = cell->ticket;
	plan->step = planner->step + 1;
	plan->label_names = rt->commands.labels.names;
	plan->num_work_copies = 0;
	quire_plan_build(plan, &planner->grouping, planner->views, cell->num_segments,
	                 rt->page_size, cell->bucket_rows, cell->bucket_tokens,
	                 planner->row_of_view);
	slot->run = cell->run;
	slot->run_argument = cell->run_argument;
	slot->wait_event = cell->wait_event;
	slot->record_event = cell->record_event;
	slot->done = cell->done;
	slot->done_argument = cell->done_argument;
	slot->num_work = cell->num_work;
	for (int32_t i = 0; i < cell->num_work; i++)
		resolve(rt, plan, &cell->work[i], &slot->work[i]);
}

void quire_slot_finish(struct quire_slot *slot, int32_t page_size)
{
	struct quire_plan *plan = &slot->plan;
	int32_t first = plan->num_pre_copies + plan->num_post_copies;

	for (int32_t i = 0; i < slot->num_work; i++) {
		const struct quire_issue *work = &slot->work[i];

		if (work->kind != QUIRE_WORK_COPY)
			continue;
		plan->copy_source[first + work->copy] = work->source;
		plan->copy_target[first + work->copy] = work->target;
		plan->copy_end[first + work->copy] = page_size;
	}
}

#ifdef QUIRE_DEBUG
bool quire_slot_names(const struct quire_slot *slot, int32_t page)
{
	const struct quire_plan *plan = &slot->plan;
	int32_t copies =
		plan->num_pre_copies + plan->num_post_copies + plan->num_work_copies;

	for (int32_t i = 0; i < copies; i++)
		if (plan->copy_source[i] == page || plan->copy_target[i] == page)
			return true;
	for (int32_t t = 0; t < plan->num_tables; t++) {
		const struct quire_table *table = &plan->tables[t];

		for (int32_t row = 0; row < table->rows; row++)
			for (int32_t i = 0;
			     i < table->kv_indptr[row + 1] - table->kv_indptr[row]; i++)
				if (quire_row_pages(plan, table, row)[i] == page)
					return true;
	}
	return false;
}
#endif
