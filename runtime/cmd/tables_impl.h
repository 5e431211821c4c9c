/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_TABLES_IMPL_H
#define QUIRE_RUNTIME_CMD_TABLES_IMPL_H
/*
 * A plan's tables, entry by entry, against the formulas of docs/trace-format.md
 * (section 6).
 */
#include "runtime/cmd/divergence_impl.h"
#include "runtime/cmd/image_impl.h"

#include <quire/plans/plan.h>

/*
 * cmd_tables_check - the first entry that is not as it has to be
 * @image:   the step applied
 * @divergence: what and where it is, added
 * Returns:  true: all are.
 */
bool cmd_tables_check(struct cmd_image *image, const struct quire_plan *plan,
                      struct cmd_divergence *divergence);

/* Where a page that a step took has its place: added to @divergence. */
void cmd_tables_place(struct cmd_image *image, int32_t take,
                      struct cmd_divergence *divergence);

#endif
