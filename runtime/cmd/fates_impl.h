/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_FATES_IMPL_H
#define QUIRE_RUNTIME_CMD_FATES_IMPL_H
/*
 * What a replay knows of the speculative submits of a trace: whose fate is open, and
 * which rests on which.  It follows from the order of the commands alone, never from an
 * outcome.
 *
 * Two views of one order.  The *trace* says what was: a step may rest on one that was
 * resolved before it took effect, and a command that is left out counts as any other.
 * The *runtime* knows what it was given.  They are kept the same where it matters:
 *
 *   A promote is *told* once all that its step rests on is promoted and told, or at the
 *   latest before a submit that rests on an older one.  Until then the runtime lets a
 *   further step rest on the promoted one, as it did when that step was given first.
 */
#include <stdbool.h>
#include <stdint.h>

/* Submits remembered: a base is one of these, the newest ones. */
#define CMD_FATES 8192

enum cmd_fate_state {
	CMD_FATE_OPEN,
	CMD_FATE_PROMOTED,
	CMD_FATE_ABANDONED,
};

struct cmd_fate {
	uint64_t id;
	uint64_t base;   /* an id; 0: none */
	uint64_t ticket; /* 0: the runtime was not given it */
	uint64_t number; /* speculative submits before it */
	uint64_t place;  /* in the trace's order */
	uint64_t index;  /* of its submit, counted as the run does */
	int64_t line;    /* of its submit, and of its promote */
	int64_t promote_line;
	enum cmd_fate_state state;
	bool is_late;  /* its base was abandoned before it came */
	bool is_final; /* nothing can change it any more */
	bool is_told;  /* the runtime knows */
	bool is_ended; /* on record with its runtime: its fate may have been given, unheard */
	bool is_ok; /* its outcome is settled, and is OK */
	struct cmd_fate *older,
		*newer; /* of those that are open, or promoted and not told */
};

struct cmd_fates {
	struct cmd_fate *ring; /* [CMD_FATES] */
	uint64_t count;        /* ever added */
	uint64_t place;        /* commands so far */
	uint64_t other;        /* place of the newest command of another kind */
	uint64_t other_given;  /* ... that the runtime was given */
	struct cmd_fate *oldest, *newest;
};

/* false: no memory */
bool cmd_fates_init(struct cmd_fates *fates);
void cmd_fates_end(struct cmd_fates *fates);

/* A command that is no speculative submit, promote or abandon.  @is_given: it drew a
 * position of the runtime. */
void cmd_fates_other(struct cmd_fates *fates, bool is_given);

/* NULL: never added, or forgotten. */
struct cmd_fate *cmd_fates_find(struct cmd_fates *fates, uint64_t id);

/* What a submit rests on that comes now, as the trace has it and as the runtime will have
 * it; NULL: nothing. */
struct cmd_fate *cmd_fates_base(struct cmd_fates *fates);
struct cmd_fate *cmd_fates_derived(struct cmd_fates *fates);

/* May a submit that comes now rest on @base, or on nothing (NULL), as the trace's order
 * has it?  Not where one that is open, or a command of another kind, lies between. */
bool cmd_fates_may_rest(struct cmd_fates *fates, const struct cmd_fate *base);

/* The newest step whose fate the runtime waits for; NULL: none. */
struct cmd_fate *cmd_fates_given(struct cmd_fates *fates);

/* A speculative submit, @id above all before it; ABANDONED already when its base is.  The
 * one that is forgotten for it is final. */
struct cmd_fate *cmd_fates_add(struct cmd_fates *fates, uint64_t id, uint64_t base);

/*
 * cmd_fates_promote, cmd_fates_abandon - of a step that is open
 * What the runtime has to be told of a promote is found with cmd_fates_untold.
 */
void cmd_fates_promote(struct cmd_fates *fates, struct cmd_fate *fate);
void cmd_fates_abandon(struct cmd_fates *fates, struct cmd_fate *fate);

/* The oldest step whose promote the runtime has to be told of now: all that it rests on
 * is promoted and told, or, with @above, it is newer than that one.  NULL: none. */
struct cmd_fate *cmd_fates_untold(struct cmd_fates *fates, const struct cmd_fate *above);

/* The runtime was told. */
void cmd_fates_tell(struct cmd_fates *fates, struct cmd_fate *fate);

/* The oldest step that is open; NULL: none. */
struct cmd_fate *cmd_fates_open(struct cmd_fates *fates);

#endif
