/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_TARGET_IMPL_H
#define QUIRE_PLANS_TARGET_IMPL_H
/*
 * A target: an output file that is there whole or not at all.
 *
 * The bytes go to a file without a name in the target's folder, which the commit names
 * and renames over the target, keeping the mode of what it replaces; so whatever ends the
 * process before leaves nothing behind.  Where the file system knows no files without
 * names, the file has a temporary one, "PATH.PROCESS-ATTEMPT.tmp".  Links are followed; a
 * pipe or a device is written to as it is, and so is what is open already: standard
 * output, "-", and names such as "/dev/stdout" and "/dev/fd/3".
 */
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <sys/types.h>

struct quire_target {
	int fd;
	bool unnamed; /* the file has no name yet */
	mode_t mode;  /* permissions to create it with */
	char *name;   /* as it was given */
	char *path; /* what a commit replaces; NULL: written straight to what is there */
	char *temporary; /* the name beside it, whether it is in use or not */
};

/* quire_target_is_same - would two targets be one file or pipe, which need not be there
 * yet?  A device that has two names takes both. */
bool quire_target_is_same(const char *one, const char *other);

/* quire_target_open - QUIRE_OK; QUIRE_IO; QUIRE_NO_MEMORY; end it with one of the
 * others */
enum quire_status quire_target_open(struct quire_target *target, const char *path,
                                    struct quire_refusal *refusal_out);

/* quire_target_commit - QUIRE_OK; QUIRE_IO: nothing was replaced, nothing is left
 * behind */
enum quire_status quire_target_commit(struct quire_target *target,
                                      struct quire_refusal *refusal_out);

/* quire_target_discard - leave nothing behind */
void quire_target_discard(struct quire_target *target);

#endif
