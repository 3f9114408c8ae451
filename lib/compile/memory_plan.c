// SPDX-License-Identifier: MIT
//
// The memory plan: greedy by size.  Largest item first, each into the smallest gap between the
// items already placed that live at the same time.  (Pisarchyk and Lee 2020, arXiv 2001.03288,
// "greedy by size for offset calculation".)

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/try.h"
#include "compile/memory_plan.h"

static int larger_first(const void *a, const void *b)
{
    const struct plan_item *x = *(const struct plan_item *const *)a;
    const struct plan_item *y = *(const struct plan_item *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; // array order: the plan is the same each time
}

static int lower_first(const void *a, const void *b)
{
    const struct plan_item *x = *(const struct plan_item *const *)a;
    const struct plan_item *y = *(const struct plan_item *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

// Chooses the offset of `item` beside `placed`, the `n` items already placed.  `near` has space for
// n pointers.
static attncl_status place(struct plan_item *item, struct plan_item *const *placed, size_t n,
                           struct plan_item **near, size_t align)
{
    size_t n_near = 0;
    for (size_t i = 0; i < n; ++i)
        if (placed[i]->first <= item->last && item->first <= placed[i]->last)
            near[n_near++] = placed[i];
    qsort(near, n_near, sizeof near[0], lower_first);

    size_t free_from = 0; // end of what was passed so far, aligned
    size_t best = 0, best_gap = SIZE_MAX;
    bool found = false;
    for (size_t i = 0; i < n_near; ++i) {
        const struct plan_item *o = near[i];
        if (o->offset >= free_from && o->offset - free_from >= item->bytes &&
            o->offset - free_from < best_gap) {
            best_gap = o->offset - free_from;
            best = free_from;
            found = true;
        }
        size_t end;
        REQUIRE(ckd_add_size(o->offset, o->bytes, &end) && ckd_round_up(end, align, &end),
                ATTNCL_ERR_DEVICE_MEMORY, "the memory plan is larger than the address space");
        if (end > free_from)
            free_from = end;
    }
    item->offset = found ? best : free_from;
    return ATTNCL_OK;
}

attncl_status attncl__memory_plan(struct plan_item *items, size_t n, size_t align,
                                  size_t *arena_ret)
{
    attncl_status status = ATTNCL_OK;
    size_t arena = 0, n_placed = 0;
    struct plan_item **order = attncl__alloc_array(n, sizeof *order);
    struct plan_item **near = attncl__alloc_array(n, sizeof *near);
    if (!order || !near) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", n);
        goto done;
    }
    for (size_t i = 0; i < n; ++i)
        order[i] = &items[i];
    qsort(order, n, sizeof order[0], larger_first);

    for (; n_placed < n; ++n_placed) {
        struct plan_item *item = order[n_placed];
        size_t end;
        item->offset = 0;
        if (item->bytes == 0)
            break; // and so are all that follow
        TRY_DONE(place(item, order, n_placed, near, align));
        if (!ckd_add_size(item->offset, item->bytes, &end)) {
            status =
                FAIL(ATTNCL_ERR_DEVICE_MEMORY, "the memory plan is larger than the address space");
            goto done;
        }
        if (end > arena)
            arena = end;
    }
    for (; n_placed < n; ++n_placed)
        order[n_placed]->offset = 0;
    *arena_ret = arena;

done:
    attncl__free(near);
    attncl__free(order);
    return status;
}
