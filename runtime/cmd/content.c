/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/content_impl.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct cmd_content *x = a, *y = b;

	if (x->request != y->request)
		return x->request < y->request ? -1 : 1;
	return (x->label > y->label) - (x->label < y->label);
}

static void free_content(void *item)
{
	struct cmd_content *content = item;

	free(content->pieces);
	free(content);
}

void cmd_contents_end(struct cmd_contents *contents)
{
	tdestroy(contents->tree, free_content);
}

struct cmd_content *cmd_contents_find(struct cmd_contents *contents, uint64_t request,
                                      int32_t label)
{
	const struct cmd_content key = {.request = request, .label = label};
	struct cmd_content **found = tfind(&key, &contents->tree, compare);

	return found != NULL ? *found : NULL;
}

struct cmd_content *cmd_contents_make(struct cmd_contents *contents, uint64_t request,
                                      int32_t label)
{
	struct cmd_content *content = cmd_contents_find(contents, request, label);

	if (content != NULL)
		return content;
	content = calloc(1, sizeof(*content));
	if (content == NULL)
		return NULL;
	content->request = request;
	content->label = label;
	if (tsearch(content, &contents->tree, compare) != NULL)
		return content;
	free(content);
	return NULL;
}

void cmd_contents_drop(struct cmd_contents *contents, struct cmd_content *content)
{
	if (content == NULL)
		return;
	tdelete(content, &contents->tree, compare);
	free_content(content);
}

/* Room for @num pieces. */
static bool grow(struct cmd_content *content, int32_t num)
{
	int32_t room = content->room > 0 ? content->room : 4;
	struct cmd_piece *pieces;

	if (num <= content->room)
		return true;
	while (room < num)
		room *= 2;
	pieces = realloc(content->pieces, (size_t)room * sizeof(*pieces));
	if (pieces == NULL)
		return false;
	content->pieces = pieces;
	content->room = room;
	return true;
}

bool cmd_content_append(struct cmd_content *content, const struct cmd_piece *piece)
{
	struct cmd_piece *last = NULL;

	if (piece->count == 0)
		return true;
	if (content->num > 0)
		last = &content->pieces[content->num - 1];
	if (last != NULL && last->seed == piece->seed &&
	    last->first + last->count == piece->first) {
		last->count += piece->count;
	} else {
		if (!grow(content, content->num + 1))
			return false;
		content->pieces[content->num++] = *piece;
	}
	content->length += piece->count;
	return true;
}

bool cmd_content_copy(struct cmd_content *to, const struct cmd_content *from)
{
	if (!grow(to, from->num))
		return false;
	if (from->num > 0)
		memcpy(to->pieces, from->pieces,
		       (size_t)from->num * sizeof(*from->pieces));
	to->num = from->num;
	to->length = from->length;
	to->released = from->released;
	return true;
}

void cmd_content_cut_end(struct cmd_content *content, int64_t tokens)
{
	content->length -= tokens;
	while (tokens > 0) {
		struct cmd_piece *last = &content->pieces[content->num - 1];
		int64_t cut = tokens < last->count ? tokens : last->count;

		last->count -= cut;
		tokens -= cut;
		if (last->count == 0)
			content->num--;
	}
}

void cmd_content_cut_front(struct cmd_content *content, int64_t tokens)
{
	int32_t gone = 0;

	content->length -= tokens;
	content->released += tokens;
	while (tokens > 0) {
		struct cmd_piece *piece = &content->pieces[gone];
		int64_t cut = tokens < piece->count ? tokens : piece->count;

		piece->first += cut;
		piece->count -= cut;
		tokens -= cut;
		gone += piece->count == 0;
	}
	content->num -= gone;
	if (gone > 0)
		memmove(content->pieces, content->pieces + gone,
		        (size_t)content->num * sizeof(*content->pieces));
}

void cmd_content_clear(struct cmd_content *content)
{
	content->num = 0;
	content->length = 0;
	content->released = 0;
}
