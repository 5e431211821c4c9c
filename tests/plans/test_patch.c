/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"

/*
 * Block tables are patched: one slot, plan after plan over lists that grow, shrink, are
 * replaced and change places.  The device half gets what ranges and patches say and nothing
 * else, and must hold each plan's block table.
 */
#define STREAMS 7
#define ROWS    6
#define WIDTH   40
#define PS      3
#define PLANS   400

struct stream {
	uint64_t list;
	int32_t length;
	int32_t pages[WIDTH];
};

struct bench {
	uint64_t seed;
	uint64_t lists;
	struct stream streams[STREAMS];
	struct quire_slot_layout layout;
	struct quire_block_row block_rows[2 * ROWS];
	struct quire_plan plan;
	struct quire_view views[ROWS];
	int32_t num_views;
	bool was_lost; /* the plan before was never uploaded */
	char *host;
	char *device;
};

static void renew(struct bench *b, struct stream *stream, int32_t length)
{
	stream->list = ++b->lists;
	stream->length = length;
	for (int32_t p = 0; p < WIDTH; p++)
		stream->pages[p] = random_in(&b->seed, 0, 1 << 20);
}

/* A stream's list changes as a runtime changes it. */
static void change(struct bench *b, struct stream *stream)
{
	int32_t more = random_in(&b->seed, 0, 4);

	if (random_in(&b->seed, 0, 9) == 0)
		renew(b, stream, random_in(&b->seed, 0, WIDTH * PS));
	else if (random_in(&b->seed, 0, 9) == 0)
		stream->length = random_in(&b->seed, 0, stream->length);
	else
		stream->length = stream->length + more > WIDTH * PS
		                         ? WIDTH * PS
		                         : stream->length + more;
}

/* Different streams, often in the order of the plan before. */
static void pick_rows(struct bench *b, int32_t *order)
{
	if (random_in(&b->seed, 0, 4) == 0) {
		int32_t i = random_in(&b->seed, 0, STREAMS - 1);
		int32_t k = random_in(&b->seed, 0, STREAMS - 1), other = order[i];

		order[i] = order[k];
		order[k] = other;
		b->num_views = random_in(&b->seed, 1, ROWS);
	}
	for (int32_t i = 0; i < b->num_views; i++) {
		const struct stream *stream = &b->streams[order[i]];

		b->views[i] = (struct quire_view){
			.request = (uint64_t)order[i],
			.label = order[i] % 2,
			.length = stream->length,
			.pages = stream->pages,
			.list = stream->list,
		};
	}
}

static void upload(struct bench *b)
{
	struct quire_slot_range ranges[3];
	struct quire_patch_cursor cursor = {0};
	int32_t n;

	while ((n = quire_plan_patches(&b->plan, &cursor, ranges, 3)) > 0)
		for (int32_t i = 0; i < n; i++)
			memcpy(b->device + ranges[i].offset, b->host + ranges[i].offset,
			       (size_t)ranges[i].bytes);
	ck_assert_int_eq(quire_plan_patches(&b->plan, &cursor, ranges, 3), 0);
}

static int64_t patched_bytes(const struct quire_plan *plan)
{
	struct quire_slot_range ranges[1000];
	struct quire_patch_cursor cursor = {0};
	int64_t bytes = 0;
	int32_t n = quire_plan_patches(plan, &cursor, ranges, 1000);

	for (int32_t i = 0; i < n; i++)
		bytes += ranges[i].bytes;
	return bytes;
}

/* Both halves of the slot hold the block tables of the views, zeros behind them. */
static void check_halves(const struct bench *b)
{
	for (int32_t t = 0; t < b->plan.num_tables; t++) {
		const struct quire_table *table = &b->plan.tables[t];
		int32_t row = 0;

		for (int32_t i = 0; i < b->num_views + ROWS; i++) {
			bool is_view = i < b->num_views;
			int32_t pages = is_view ? (b->views[i].length + PS - 1) / PS : 0;
			const int32_t *host, *device;

			if (is_view ? b->views[i].label != table->name
			            : row >= table->bucket_rows)
				continue;
			host = table->block_table + row++ * WIDTH;
			device = quire_plan_device(&b->plan, host);
			for (int32_t p = 0; p < WIDTH; p++) {
				int32_t right = p < pages ? b->views[i].pages[p] : 0;

				SAME(host[p], right);
				SAME(device[p], right);
			}
		}
		ck_assert_int_eq(row, table->bucket_rows);
	}
}

static void begin(struct bench *b, uint64_t seed)
{
	const struct quire_slot_limits limits = {2, ROWS, 1, 0, WIDTH, 0, 0, 0};

	memset(b, 0, sizeof(*b));
	b->seed = seed;
	b->num_views = 2;
	ck_assert_int_eq(quire_slot_layout_init(&limits, &b->layout, NULL), QUIRE_OK);
	b->host = malloc((size_t)b->layout.slot_bytes);
	b->device = malloc((size_t)b->layout.slot_bytes);
	memset(b->host, 0x5a, (size_t)b->layout.slot_bytes);
	memset(b->device, 0xa5, (size_t)b->layout.slot_bytes);
	quire_plan_bind(&b->plan, &b->layout, b->host, b->device, b->block_rows);
	for (int32_t s = 0; s < STREAMS; s++)
		renew(b, &b->streams[s], random_in(&b->seed, 0, WIDTH * PS));
}

static void end(struct bench *b)
{
	free(b->host);
	free(b->device);
}

static void build(struct bench *b, bool bucket)
{
	int32_t labels[ROWS];
	struct quire_grouping grouping;

	for (int32_t i = 0; i < b->num_views; i++)
		labels[i] = b->views[i].label;
	ck_assert_int_eq(
		quire_grouping_init(&grouping, labels, b->num_views, NULL, 0, 2, NULL),
		QUIRE_OK);
	quire_plan_build(&b->plan, &grouping, b->views, b->num_views, PS,
	                 bucket ? ROWS : 0, bucket ? 1 : 0, NULL);
}

START_TEST(the_device_half_follows_whatever_changes)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct bench b;
		int32_t order[STREAMS];

		begin(&b, 900 + seed);
		for (int32_t i = 0; i < STREAMS; i++)
			order[i] = i;
		for (int32_t plan = 0; plan < PLANS; plan++) {
			for (int32_t s = 0; s < STREAMS; s++)
				change(&b, &b.streams[s]);
			pick_rows(&b, order);
			build(&b, random_in(&b.seed, 0, 2) == 0);
			if (random_in(&b.seed, 0, 5) == 0) {
				quire_plan_forget(&b.plan);
				continue;
			}
			upload(&b);
			check_halves(&b);
		}
		end(&b);
	}
}
END_TEST

/* A row that grows by k pages costs k entries, whatever its length; one that shrinks by k, k
 * zeros; one that is as it was, nothing; a new list, all that it and the old one have. */
START_TEST(a_patch_is_as_long_as_what_changed)
{
	static const struct {
		int32_t from, to;
		bool renewed;
		int64_t entries;
	} cases[] = {
		{10, 10, false, 0}, {10, 13, false, 3}, {39, 40, false, 1},
		{40, 1, false, 39}, {0, 2, false, 2},   {12, 0, false, 12},
		{10, 13, true, 13}, {13, 4, true, 13},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench b;
		int32_t order[STREAMS] = {0};

		begin(&b, 5);
		b.num_views = 1;
		b.streams[0].length = cases[i].from * PS;
		do
			pick_rows(&b, order);
		while (b.num_views != 1);
		build(&b, false);
		ck_assert_int_eq(patched_bytes(&b.plan), 4 * WIDTH); /* rubbish before */
		b.streams[0].length = cases[i].to * PS;
		if (cases[i].renewed)
			renew(&b, &b.streams[0], cases[i].to * PS);
		b.views[0].length = b.streams[0].length;
		b.views[0].list = b.streams[0].list;
		build(&b, false);
		ck_assert_int_eq(patched_bytes(&b.plan), 4 * cases[i].entries);
		build(&b, false);
		ck_assert_int_eq(patched_bytes(&b.plan), 0);
		end(&b);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("patch");
	TCase *cases = tcase_create("block tables");

	tcase_add_test(cases, the_device_half_follows_whatever_changes);
	tcase_add_test(cases, a_patch_is_as_long_as_what_changed);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
