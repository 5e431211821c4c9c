/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/tickets_impl.h"

#include "runtime/memory_impl.h"

enum quire_status quire_tickets_init(struct quire_tickets *tickets, int32_t tickets_max,
                                     const struct quire_memory *memory)
{
	uint64_t n = quire_power_of_two_from(tickets_max);

	tickets->mask = n - 1;
	tickets->cells = quire_memory_zeroed(memory, (int64_t)n, sizeof(*tickets->cells));
	if (tickets->cells == NULL)
		return QUIRE_NO_MEMORY;
	/* As if ticket 0, which nobody draws, had used every cell before. */
	for (uint64_t i = 0; i < n; i++)
		atomic_store_explicit(&tickets->cells[i].state, QUIRE_STAGE_RETIRED,
		                      memory_order_relaxed);
	return QUIRE_OK;
}

void quire_tickets_end(struct quire_tickets *tickets, const struct quire_memory *memory)
{
	quire_memory_free(memory, tickets->cells, (int64_t)tickets->mask + 1,
	                  sizeof(*tickets->cells));
}
