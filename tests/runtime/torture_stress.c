/* SPDX-License-Identifier: MIT */
/*
 * quire stress on pools of many sizes: both kinds, any giver and one.
 *
 *   torture_stress [--ops N | --seconds N]
 *
 * One run each; --ops is the default, for a short run.  The variants of this program are
 * linked with a pool whose groups are small, so that few pages make many of them.
 */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <stdlib.h>

#define OPS "100"

/* Threads and pages: more threads than pages, about as many, and far fewer. */
static char *const sizes[][2] = {
	{"16", "3"}, {"16", "16"},     {"16", "200"},
	{"4", "64"}, {"16", "100000"}, {"1", "500"},
};

static char *const kinds[] = {
#ifdef QUIRE_HAVE_CAS128
	"fifo",
#endif
	"mutex",
};

static char *const givers[] = {"any", "single"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(int argc, char **argv)
{
	static char name[] = "quire stress", quiet[] = "--quiet", threads[] = "--threads",
		    pages[] = "--pages", allocator[] = "--allocator", giver[] = "--giver",
		    ops[] = "--ops", few[] = OPS;
	char *until = argc == 3 ? argv[1] : ops;
	char *end = argc == 3 ? argv[2] : few;

	for (size_t i = 0; i < COUNT(sizes) * COUNT(kinds) * COUNT(givers); i++) {
		char *const *size = sizes[i % COUNT(sizes)];
		char *arguments[] = {
			name,      quiet,
			threads,   size[0],
			pages,     size[1],
			allocator, kinds[i / COUNT(sizes) % COUNT(kinds)],
			giver,     givers[i / COUNT(sizes) / COUNT(kinds)],
			until,     end,
			NULL,
		};
		int code = cmd_stress(COUNT(arguments) - 1, arguments);

		if (code != CMD_DONE)
			return code;
	}
	return EXIT_SUCCESS;
}
