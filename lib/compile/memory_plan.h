// SPDX-License-Identifier: MIT
// The memory plan: where each value lives in one arena.  A pure function of lifetimes and sizes.
#ifndef ATTNCL_COMPILE_MEMORY_PLAN_H
#define ATTNCL_COMPILE_MEMORY_PLAN_H

#include <stddef.h>

#include "attncl/status.h"

// One block of memory, needed from step `first` to step `last`, both included.
struct plan_item {
    size_t bytes;
    int first, last;
    size_t offset; // result
};

// Gives every item an offset, a multiple of `align` (a power of two), such that items alive at the
// same step do not overlap; zero-size items get offset 0.  *arena_ret is the space needed.
// ERR_DEVICE_MEMORY when sizes overflow.
attncl_status attncl__memory_plan(struct plan_item *items, size_t n, size_t align,
                                  size_t *arena_ret);

#endif
