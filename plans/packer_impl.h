/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_PACKER_IMPL_H
#define QUIRE_PLANS_PACKER_IMPL_H
/*
 * A packer compresses what is written to zstd frames, each with a checksum.  A frame
 * begins with its first byte and ends where the writer says so: up to there a reader
 * has everything, whatever follows.
 */
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>

struct quire_packer;

/* Takes compressed bytes, in order. */
typedef enum quire_status quire_packer_write(void *argument, const void *bytes, size_t n);

/* quire_packer_create - NULL: no memory */
struct quire_packer *quire_packer_create(void);

/*
 * quire_packer_put - compress @n bytes
 * @end:     end the frame, if there is one: all bytes so far are handed out
 * Returns:  QUIRE_OK; QUIRE_NO_MEMORY; what @write answered: either is the end of it.
 */
QUIRE_MUST_CHECK enum quire_status quire_packer_put(struct quire_packer *packer,
                                                    const void *bytes, size_t n, bool end,
                                                    quire_packer_write *write,
                                                    void *argument);

/* quire_packer_free - NULL is a no-op */
void quire_packer_free(struct quire_packer *packer);

#endif
