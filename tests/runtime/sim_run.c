/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_run.h"

#include "sim_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_fail(struct sim *sim, const struct sim_record *record, const char *format, ...)
{
	va_list arguments;
	size_t used;

	if (sim->failed)
		return;
	sim->failed = true;
	used = (size_t)snprintf(sim->text, sizeof(sim->text), "seed %llu, command %d: ",
	                        (unsigned long long)sim->list->seed,
	                        record == NULL ? -1 : record->number);
	va_start(arguments, format);
	vsnprintf(sim->text + used, sizeof(sim->text) - used, format, arguments);
	va_end(arguments);
}

/* Nobody steps the device while a runtime is destroyed. */
static void step_all(void *argument, enum quire_role role)
{
	struct sim *sim = argument;
	bool moved = sim->ending;

	(void)role;
	while (moved) {
		moved = false;
		for (int32_t i = 0; i < sim_device_streams(sim->device); i++)
			moved |= sim_device_step(sim->device, i);
	}
}

static void create_runtime(struct sim *sim, const struct sim_mode *mode)
{
	struct quire_runtime_config config = sim->list->config;

	config.cache = sim->cache;
	config.threads = mode->threads;
	config.on_plan = sim_on_plan;
	config.on_plan_argument = sim;
	config.on_poll_argument = sim;
	if (sim->stepped)
		config.on_poll = step_all;
	else if (mode->delays && mode->threads == QUIRE_THREADS_LIBRARY)
		config.on_poll = sim_delay;
	REQUIRE(quire_runtime_create(&config, &sim->runtime, NULL) == QUIRE_OK);
}

static void begin(struct sim *sim, const struct sim_mode *mode)
{
	const struct quire_shape shape = {
		.layout = QUIRE_NHD,
		.dtype = QUIRE_F32,
		.num_layers = 1,
		.num_pages = sim->list->num_pages,
		.page_size = sim->list->page_size,
		.num_kv_heads = 1,
		.head_dim = 1,
	};

	sim->stepped = strcmp(mode->device, "sim") == 0;
	if (sim->stepped)
		sim->device = sim_device_create();
	else
		REQUIRE(quire_device_create(mode->device, &sim->device, NULL) ==
		        QUIRE_OK);
	REQUIRE(quire_cache_create(sim->device, &shape, &sim->cache, NULL) == QUIRE_OK);
	create_runtime(sim, mode);
}

static void end(struct sim *sim)
{
	if (sim->stuck)
		return;
	sim->ending = true;
	if (sim->recorded != NULL)
		sim_record_look(sim);
	quire_runtime_destroy(sim->runtime);
	if (sim->recorded != NULL)
		sim_record_compare(sim);
	quire_cache_destroy(sim->cache);
	quire_device_destroy(sim->device);
	for (int32_t i = 0; i < sim->list->num_commands; i++) {
		free(sim->records[i].host);
		free(sim->records[i].device);
		free(sim->records[i].reads);
	}
	free(sim->records);
	free(sim->by_ticket);
	order_end(&sim->order);
}

bool sim_run(struct sim *sim, const struct list *list, const struct sim_mode *mode,
             struct sim_cover *cover)
{
	size_t tickets = 2 * (size_t)list->num_commands + 2;

	memset(sim, 0, offsetof(struct sim, order));
	memset(&sim->device, 0, sizeof(*sim) - offsetof(struct sim, device));
	sim->list = list;
	sim->cover = cover;
	sim->check_each = mode->check_each;
	dice_seed(&sim->dice, mode->seed);
	order_init(&sim->order, &list->config, list->num_pages, list->page_size);
	sim->records = calloc((size_t)list->num_commands, sizeof(*sim->records));
	sim->by_ticket = calloc(tickets, sizeof(*sim->by_ticket));
	REQUIRE(sim->records != NULL);
	REQUIRE(sim->by_ticket != NULL);
	for (int32_t i = 0; i < list->num_commands; i++)
		if (mode->delays && dice_percent(&sim->dice, 15))
			sim->records[i].delay_us = 1 + dice_below(&sim->dice, 150);
	begin(sim, mode);
	if (mode->records)
		sim_record_begin(sim);
	cover->lists++;
	if (mode->threads == QUIRE_THREADS_CALLER)
		sim_drive_caller(sim, mode);
	else
		sim_drive_threads(sim, mode);
	end(sim);
	return !sim->failed;
}
