/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/stress_impl.h"

#include <quire/runtime/limits.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 1024
#define SECONDS_MAX 1000000

/* Of the options that are not given. */
#define SECONDS   5
#define BATCH_MAX 64
#define HOLD      4 /* batches */

#ifdef QUIRE_HAVE_CAS128
#define KIND_DEFAULT QUIRE_POOL_LOCK_FREE
#else
#define KIND_DEFAULT QUIRE_POOL_LOCKED
#endif

enum {
	KEY_THREADS = 256,
	KEY_SECONDS,
	KEY_OPS,
	KEY_PAGES,
	KEY_SEED,
	KEY_BATCH_MAX,
	KEY_HOLD,
	KEY_ALLOCATOR,
	KEY_GIVER,
};

static const struct argp_option option_list[] = {
	{"threads", KEY_THREADS, "N", 0, "Threads (4)", 0},
	{"seconds", KEY_SECONDS, "N", 0, "How long (5)", 0},
	{"ops", KEY_OPS, "N", 0, "Takes and frees of each thread, not a time", 0},
	{"pages", KEY_PAGES, "N", 0, "Pages of the pool (65536)", 0},
	{"seed", KEY_SEED, "N", 0, "Of the random choices (another every time)", 0},
	{"batch-max", KEY_BATCH_MAX, "N", 0, "Most pages of a take or a free (64)", 0},
	{"hold", KEY_HOLD, "N", 0, "Most pages that a thread has (4 largest batches)", 0},
	{"allocator", KEY_ALLOCATOR, "NAME", 0,
         "fifo: the lock-free one; mutex: the same with a lock (fifo)", 0},
	{"giver", KEY_GIVER, "WHOSE", 0,
         "any: every thread takes and gives; single: one gives, the others take (any)",
         0},
	CMD_COMMON_OPTIONS,
	{0},
};

static error_t parse_allocator(struct argp_state *state, const char *name)
{
	struct cmd_stress_options *options = state->input;

	if (strcmp(name, "fifo") != 0 && strcmp(name, "mutex") != 0)
		return cmd_refuse_usage(
			state, "--allocator must be fifo or mutex, got \"%s\"", name);
	options->kind =
		strcmp(name, "fifo") == 0 ? QUIRE_POOL_LOCK_FREE : QUIRE_POOL_LOCKED;
	if (options->kind == QUIRE_POOL_LOCK_FREE && KIND_DEFAULT == QUIRE_POOL_LOCKED)
		return cmd_refuse_usage(state,
		                        "--allocator fifo is not in this build: there "
		                        "is no 128-bit compare-and-swap");
	return 0;
}

static error_t parse_giver(struct argp_state *state, const char *whose)
{
	struct cmd_stress_options *options = state->input;

	if (strcmp(whose, "any") != 0 && strcmp(whose, "single") != 0)
		return cmd_refuse_usage(
			state, "--giver must be any or single, got \"%s\"", whose);
	options->one_giver = strcmp(whose, "single") == 0;
	return 0;
}

/* What depends on another option. */
static error_t parse_end(struct argp_state *state)
{
	struct cmd_stress_options *options = state->input;

	if (options->ops != 0 && options->seconds != 0)
		return cmd_refuse_usage(state, "--ops and --seconds: one of the two");
	if (options->ops == 0 && options->seconds == 0)
		options->seconds = SECONDS;
	if (options->batch_max == 0)
		options->batch_max =
			options->pages < BATCH_MAX ? options->pages : BATCH_MAX;
	if (options->batch_max > options->pages)
		return cmd_refuse_usage(state,
		                        "--batch-max must be at most --pages %" PRId64
		                        ", got %" PRId64,
		                        options->pages, options->batch_max);
	if (options->hold == 0)
		options->hold = HOLD * options->batch_max;
	if (options->hold < options->batch_max)
		return cmd_refuse_usage(state,
		                        "--hold must be at least --batch-max %" PRId64
		                        ", got %" PRId64,
		                        options->batch_max, options->hold);
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct cmd_stress_options *options = state->input;

	switch (key) {
	case KEY_THREADS:
		return cmd_parse_int(state, "--threads", argument, 1, THREADS_MAX,
		                     &options->threads);
	case KEY_SECONDS:
		return cmd_parse_int(state, "--seconds", argument, 1, SECONDS_MAX,
		                     &options->seconds);
	case KEY_OPS:
		return cmd_parse_int(state, "--ops", argument, 1, INT64_MAX,
		                     &options->ops);
	case KEY_PAGES:
		return cmd_parse_int(state, "--pages", argument, 1, QUIRE_PAGES_MAX,
		                     &options->pages);
	case KEY_SEED:
		return cmd_parse_int(state, "--seed", argument, 1, INT64_MAX,
		                     &options->seed);
	case KEY_BATCH_MAX:
		return cmd_parse_int(state, "--batch-max", argument, 1, QUIRE_PAGES_MAX,
		                     &options->batch_max);
	case KEY_HOLD:
		return cmd_parse_int(state, "--hold", argument, 1, QUIRE_PAGES_MAX,
		                     &options->hold);
	case KEY_ALLOCATOR:
		return parse_allocator(state, argument);
	case KEY_GIVER:
		return parse_giver(state, argument);
	case ARGP_KEY_ARG:
		return cmd_refuse_usage(state, "no file is wanted, got \"%s\"", argument);
	case ARGP_KEY_END:
		return options->common.help ? 0 : parse_end(state);
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.doc = "Take pages from a pool and give them back, from many threads at once, "
	       "and "
	       "see that no page is ever in two hands and none is lost.\v"
	       "Batches that are bad, with a page that does not exist, named twice or "
	       "not "
	       "owned, are mixed in and must be refused.  The first violation is named, "
	       "with the command line that repeats it, and ends the run with exit status "
	       "1.\n"
	       "\n"
	       "Example:\n"
	       "  quire stress --threads 16 --pages 1000 --seconds 60",
};

/* ------------------------------------------------------------------ make */

static bool make_workers(struct cmd_stress *stress)
{
	const struct cmd_stress_options *options = &stress->options;

	stress->workers = calloc((size_t)options->threads, sizeof(*stress->workers));
	if (stress->workers == NULL)
		return false;
	for (int64_t t = 0; t < options->threads; t++) {
		struct cmd_worker *worker = &stress->workers[t];
		uint64_t seed = (uint64_t)options->seed + (uint64_t)t;
		bool shares = options->one_giver && options->threads > 1;

		worker->stress = stress;
		worker->id = (int32_t)t;
		worker->takes_pages = !shares || t != 0;
		worker->gives_pages = !shares || t == 0;
		worker->random = cmd_random(&seed);
		worker->batch =
			malloc((size_t)options->batch_max * sizeof(*worker->batch));
		worker->held = malloc((size_t)options->hold * sizeof(*worker->held));
		if (worker->batch == NULL || worker->held == NULL)
			return false;
	}
	return true;
}

static void destroy(struct cmd_stress *stress)
{
	for (int64_t t = 0; stress->workers != NULL && t < stress->options.threads; t++) {
		free(stress->workers[t].batch);
		free(stress->workers[t].held);
	}
	free(stress->workers);
	free(stress->uses);
	free(stress->owner);
	quire_pool_destroy(stress->pool);
	free(stress);
}

/* NULL: no memory. */
static struct cmd_stress *make(const struct cmd_stress_options *options)
{
	struct cmd_stress *stress = calloc(1, sizeof(*stress));
	size_t pages = (size_t)options->pages;

	if (stress == NULL)
		return NULL;
	stress->options = *options;
	atomic_init(&stress->running, options->threads);
	atomic_init(&stress->lacking, options->threads);
	quire_wake_init(&stress->start);
	quire_wake_init(&stress->wake);
	stress->owner = calloc(pages, sizeof(*stress->owner));
	stress->uses = calloc(pages, sizeof(*stress->uses));
	if (stress->owner == NULL || stress->uses == NULL || !make_workers(stress) ||
	    quire_pool_create_kind(options->pages, options->kind, &stress->pool) !=
	            QUIRE_OK) {
		destroy(stress);
		return NULL;
	}
	return stress;
}

static int64_t choose_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* Short enough to be typed. */
	return 1 + (now.tv_nsec / 1000 + now.tv_sec * 1000 + getpid()) % 1000000000;
}

int cmd_stress(int argc, char **argv)
{
	struct cmd_stress_options options = {
		.threads = 4,
		.pages = 65536,
		.kind = KIND_DEFAULT,
	};
	struct cmd_stress *stress;
	int code = cmd_parse(&argp, argc, argv, &options.common, 0);

	if (code != CMD_DONE || options.common.help)
		return code;
	if (options.seed == 0)
		options.seed = choose_seed();
	stress = make(&options);
	if (stress == NULL) {
		cmd_tell(NULL, 0,
		         "no memory for %" PRId64 " pages and %" PRId64 " threads",
		         options.pages, options.threads);
		return CMD_BAD;
	}
	code = cmd_stress_run(stress);
	if (!stress->is_left_behind)
		destroy(stress);
	return code;
}
