/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_H
#define QUIRE_H
/* Quire: a runtime for paged KV caches that plans ahead while the device executes
 * behind. */
#include <quire/runtime/status.h>
#include <quire/runtime/limits.h>
#include <quire/alloc/pool.h>
#include <quire/alloc/ledger.h>
#include <quire/kernels/dtype.h>
#include <quire/kernels/layout.h>
#include <quire/kernels/device.h>
#include <quire/kernels/cache.h>
#include <quire/plans/step.h>
#include <quire/plans/plan.h>
#include <quire/plans/trace.h>
#include <quire/plans/requests.h>
#include <quire/plans/import.h>
#include <quire/runtime/hooks.h>
#include <quire/runtime/runtime_config.h>
#include <quire/runtime/stats.h>
#include <quire/runtime/runtime.h>
#include <quire/runtime/record.h>
#endif
