/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/requests_impl.h"

#include "plans/fault_impl.h"

#include <quire/runtime/limits.h>
#include <quire/runtime/refuse_impl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_MAX (QUIRE_REQUEST_SECONDS_MAX * QUIRE_SECOND_NS)

/* Bytes of "requests[7].requests[11]", with room for any places. */
#define SCOPE_BYTES 64

/* One request: the main thread's, or a sub-agent's. */
struct turn {
	int64_t ns;
	const struct quire_json_value *value;
	int32_t place;    /* in the session's requests: its own, or its sub-agent's */
	int32_t subplace; /* in its sub-agent's requests; -1: it has none */
};

static void name_turn(const struct turn *turn, char *scope)
{
	if (turn->subplace < 0)
		snprintf(scope, SCOPE_BYTES, "requests[%" PRId32 "]", turn->place);
	else
		snprintf(scope, SCOPE_BYTES,
		         "requests[%" PRId32 "].requests[%" PRId32 "]", turn->place,
		         turn->subplace);
}

static bool is_text(const struct quire_json_value *value, const char *text)
{
	return quire_json_is(value, QUIRE_JSON_STRING) && value->size == strlen(text) &&
	       memcmp(value->text, text, value->size) == 0;
}

/* Add the `t` of an object to *@ns. */
static enum quire_status add_time(const struct quire_json *json,
                                  const struct quire_json_value *object,
                                  const char *scope, int64_t *ns)
{
	const struct quire_json_value *t = quire_json_get(object, "t");
	int64_t more = NS_MAX;

	if (quire_json_is(t, QUIRE_JSON_INTEGER) && t->integer >= 0 &&
	    t->integer < QUIRE_REQUEST_SECONDS_MAX)
		more = t->integer * QUIRE_SECOND_NS;
	else if (quire_json_is(t, QUIRE_JSON_REAL) &&
	         !quire_request_seconds(t->text, t->size, &more))
		more = NS_MAX;
	if (more >= NS_MAX - *ns)
		return quire_json_refuse(json, t, QUIRE_FIELD_OF(scope, "t"),
		                         QUIRE_REQUEST_SECONDS);
	*ns += more;
	return QUIRE_OK;
}

/* @turn: its time is that of what it lies in. */
static enum quire_status add_turn(struct quire_session *session,
                                  const struct quire_json *json, struct turn turn)
{
	const struct quire_json_value *type = quire_json_get(turn.value, "type");
	struct turn *turns = session->turns.items;
	char scope[SCOPE_BYTES];

	name_turn(&turn, scope);
	QUIRE_TRY(quire_json_object(json, turn.value, QUIRE_FIELD(scope)));
	if (!is_text(type, "n") && !is_text(type, "s"))
		return quire_json_refuse(json, type, QUIRE_FIELD_OF(scope, "type"),
		                         turn.subplace < 0
		                                 ? "\"n\", \"s\" or \"subagent\""
		                                 : "\"n\" or \"s\"");
	QUIRE_TRY(add_time(json, turn.value, scope, &turn.ns));
	turns[session->num_turns++] = turn;
	return QUIRE_OK;
}

/* @turn: the sub-agent. */
static enum quire_status add_subagent(struct quire_session *session,
                                      const struct quire_json *json, struct turn turn)
{
	const struct quire_json_value *list = quire_json_get(turn.value, "requests");
	char scope[SCOPE_BYTES];

	name_turn(&turn, scope);
	QUIRE_TRY(add_time(json, turn.value, scope, &turn.ns));
	QUIRE_TRY(quire_json_array(json, list, QUIRE_FIELD_OF(scope, "requests")));
	turn.value = quire_json_first(list);
	for (uint32_t i = 0; i < list->size; i++) {
		turn.subplace = (int32_t)i;
		QUIRE_TRY(add_turn(session, json, turn));
		turn.value = quire_json_next(turn.value);
	}
	return QUIRE_OK;
}

/* At least as many as there are turns. */
static size_t turns_max(const struct quire_json_value *list)
{
	const struct quire_json_value *entry = quire_json_first(list);
	size_t count = 0;

	for (uint32_t i = 0; i < list->size; i++, entry = quire_json_next(entry))
		count += 1 + quire_json_size(quire_json_get(entry, "requests"));
	return count;
}

/* By time, and at one time as they stand in the file: values lie in its order. */
static int compare_turns(const void *left, const void *right)
{
	const struct turn *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

enum quire_status quire_session_load(struct quire_session *session,
                                     const struct quire_json *json)
{
	const struct quire_json_value *list = quire_json_get(json->root, "requests");
	const struct quire_json_value *entry;

	QUIRE_TRY(quire_json_int(json, quire_json_get(json->root, "block_size"),
	                         QUIRE_FIELD("block_size"), 1, QUIRE_SEQ_TOKENS_MAX,
	                         &session->block_tokens));
	QUIRE_TRY(quire_json_array(json, list, QUIRE_FIELD("requests")));
	QUIRE_TRY(quire_json_room(json, &session->turns, turns_max(list),
	                          sizeof(struct turn)));
	entry = quire_json_first(list);
	for (uint32_t i = 0; i < list->size; i++, entry = quire_json_next(entry)) {
		const struct turn turn = {
			.value = entry, .place = (int32_t)i, .subplace = -1};

		if (is_text(quire_json_get(entry, "type"), "subagent"))
			QUIRE_TRY(add_subagent(session, json, turn));
		else
			QUIRE_TRY(add_turn(session, json, turn));
	}
	if (session->num_turns == 0)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "requests must hold at least one turn");
	qsort(session->turns.items, (size_t)session->num_turns, sizeof(struct turn),
	      compare_turns);
	return QUIRE_OK;
}

/* A turn's names: of whole blocks only. */
static enum quire_status parse_ids(const struct quire_session *session,
                                   const struct quire_json *json, const struct turn *turn,
                                   const char *scope, struct quire_json_list *keys,
                                   struct quire_request_row *row)
{
	int64_t right = row->input_tokens / session->block_tokens;
	char name[SCOPE_BYTES + sizeof(".hash_ids")];

	snprintf(name, sizeof(name), "%s.hash_ids", scope);
	QUIRE_TRY(quire_json_numbers(json, quire_json_get(turn->value, "hash_ids"), name,
	                             INT64_MAX, keys, &row->prefix.num_keys));
	if (row->prefix.num_keys != right) {
		quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		            "%s must be %" PRId64 " ids, one for each whole %" PRId64
		            " tokens of in %" PRId64 ", got %" PRId32,
		            name, right, session->block_tokens, row->input_tokens,
		            row->prefix.num_keys);
		if (json->refusal_out != NULL) {
			json->refusal_out->expected = right;
			json->refusal_out->got = row->prefix.num_keys;
		}
		return QUIRE_FORMAT;
	}
	row->prefix.tokens = right == 0 ? 0 : session->block_tokens;
	row->prefix.keys = keys->items;
	return QUIRE_OK;
}

enum quire_status quire_session_next(struct quire_session *session,
                                     const struct quire_json *json,
                                     struct quire_json_list *keys, int64_t *ns_out,
                                     struct quire_request_row *row)
{
	const struct turn *turn = session->turns.items;
	char scope[SCOPE_BYTES];

	if (session->next == session->num_turns)
		return QUIRE_END;
	turn += session->next++;
	name_turn(turn, scope);
	*ns_out = turn->ns;
	QUIRE_TRY(quire_json_int(json, quire_json_get(turn->value, "in"),
	                         QUIRE_FIELD_OF(scope, "in"), 0, QUIRE_SEQ_TOKENS_MAX,
	                         &row->input_tokens));
	QUIRE_TRY(quire_json_int(json, quire_json_get(turn->value, "out"),
	                         QUIRE_FIELD_OF(scope, "out"), 0, QUIRE_SEQ_TOKENS_MAX,
	                         &row->output_tokens));
	return parse_ids(session, json, turn, scope, keys, row);
}
