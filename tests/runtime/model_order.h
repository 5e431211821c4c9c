/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_MODEL_ORDER_H
#define QUIRE_TESTS_MODEL_ORDER_H
/*
 * The order of commands in the model: which speculative step rests on which, what is
 * held, what becomes of it.
 *
 * A command is *drawn* when it is given, and *followed* when its turn has come: the model
 * decides it then.  Fates are known as they are drawn, so what the model says of a step
 * whose fate is drawn is final.  To abandon is to go back to a copy of the state.
 *
 *   followed <= drawn
 *   held: steps without a fate, or above one without; each keeps the state before it
 *   shown[effects] = the newest state that no held step is in, one more with every
 *   command that took effect; what no reader can see any more is given back
 */
#include "model_rules.h"

#define ORDER_COMMANDS_MAX 512

enum model_fate {
	FATE_OPEN,
	FATE_PROMOTED,
	FATE_ABANDONED,
};

struct model_entry {
	uint64_t ticket;
	const struct quire_command *command;
	bool speculative;
	enum model_fate fate;
	int32_t base;      /* the entry it rests on, or -1 */
	uint64_t position; /* among all commands, those about fates too */
	/* Once followed: */
	struct quire_refusal refusal;
	int32_t need;
	int64_t owned; /* pages, then */
	int32_t pages_taken;
	int32_t pages_released;
	int32_t num_pre, num_post, first_writes;
	uint64_t step;
	struct image *image; /* of a step that runs, or would if it were promoted */
	struct image *reads;
};

struct model_held {
	int32_t entry;
	struct model *before;
};

struct model_order {
	struct model model;
	int32_t drawn;
	int32_t followed;
	struct model_entry entries[ORDER_COMMANDS_MAX];
	int32_t num_held; /* lowest first */
	struct model_held held[ORDER_COMMANDS_MAX];
	uint64_t position;
	uint64_t last_other; /* position of the newest command of another kind */
	int32_t effects;
	int32_t first_shown;
	struct model *shown[ORDER_COMMANDS_MAX + 1];
	struct model_answer answer; /* of the newest that was followed */
};

void order_init(struct model_order *order, const struct quire_runtime_config *config,
                int32_t num_pages, int32_t page_size);
void order_end(struct model_order *order);

/* order_draw - a command took its place; @command: kept.  Not of PROMOTE and ABANDON. */
void order_draw(struct model_order *order, const struct quire_command *command,
                uint64_t ticket);

/* order_resolve - PROMOTE or ABANDON of a ticket; false: INVALID, nothing changed */
bool order_resolve(struct model_order *order, enum quire_command_kind kind,
                   uint64_t ticket);

/* order_is_open - is it a speculative step whose fate is open? */
bool order_is_open(const struct model_order *order, uint64_t ticket);

/* order_is_settled - is the command's fate known, and can that of no other change what
 * came of it? */
bool order_is_settled(const struct model_order *order, int32_t entry);

/* order_num_unsettled - speculative steps that may still be abandoned: their fate is
 * open, or that of one below */
int32_t order_num_unsettled(const struct model_order *order);

/* order_num_open - speculative steps whose fate is open */
int32_t order_num_open(const struct model_order *order);

/* order_next_base - the entry that a speculative step given now would rest on, or -1 */
int32_t order_next_base(const struct model_order *order);

/* order_is_parked - has the next command to wait for the fate of a held step? */
bool order_is_parked(const struct model_order *order);

/*
 * order_follow - the next command's turn has come
 * @again:   the runtime answered AGAIN
 */
void order_follow(struct model_order *order, bool again);

/* order_is_doomed - will the next command end as ABANDONED, whatever the state? */
bool order_is_doomed(const struct model_order *order);

/* order_forget - states older than this one are never asked for again */
void order_forget(struct model_order *order, int32_t effects);

/* order_find - the entry of a ticket, or -1 */
int32_t order_find(const struct model_order *order, uint64_t ticket);

#endif
