// SPDX-License-Identifier: MIT
//
// The memory plan, greedy by size: the largest item first, each into the smallest gap between the items already placed
// that live at the same time (Pisarchyk and Lee 2020, arXiv 2001.03288).

#include "compile/lowered.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"

static attncl_status too_large(void)
{
    return FAIL(ATTNCL_ERR_DEVICE_MEMORY, "the memory plan is larger than the address space");
}

static int larger_first(const void *a, const void *b)
{
    const struct plan_item *x = *(const struct plan_item *const *)a;
    const struct plan_item *y = *(const struct plan_item *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

// Chooses the item's offset among the n placed ones, which are sorted by theirs.
static attncl_status place(struct plan_item *item, struct plan_item *const *placed, size_t n,
                           size_t align)
{
    size_t free_from = 0; // end of what was passed so far, aligned
    size_t best = 0, best_gap = SIZE_MAX, end;

    for (size_t i = 0; i < n; ++i) {
        const struct plan_item *const o = placed[i];
        if (o->last < item->first || item->last < o->first)
            continue;
        if (o->offset >= free_from && o->offset - free_from >= item->bytes &&
            o->offset - free_from < best_gap) {
            best_gap = o->offset - free_from;
            best = free_from;
        }
        if (!ckd_round_up(o->offset + o->bytes, align, &end))
            return too_large();
        free_from = end > free_from ? end : free_from;
    }
    item->offset = best_gap < SIZE_MAX ? best : free_from;
    return ckd_add_size(item->offset, item->bytes, &end) ? ATTNCL_OK : too_large();
}

static void insert(struct plan_item **placed, size_t n, struct plan_item *item)
{
    size_t from = 0, to = n;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (placed[middle]->offset < item->offset)
            from = middle + 1;
        else
            to = middle;
    }
    memmove(placed + from + 1, placed + from, (n - from) * sizeof *placed);
    placed[from] = item;
}

attncl_status attncl__memory_plan(struct plan_item *items, size_t n, size_t align,
                                  size_t *arena_ret)
{
    attncl_status status = ATTNCL_OK;
    struct plan_item **order = attncl__alloc_array(2 * n, sizeof *order);

    REQUIRE(order, ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", n);
    struct plan_item **const placed = order + n;
    *arena_ret = 0;
    for (size_t i = 0; i < n; ++i) {
        order[i] = &items[i];
        items[i].offset = 0;
    }
    qsort(order, n, sizeof *order, larger_first);
    for (size_t i = 0; i < n && order[i]->bytes; ++i) {
        TRY_DONE(place(order[i], placed, i, align));
        insert(placed, i, order[i]);
        const size_t end = order[i]->offset + order[i]->bytes;
        *arena_ret = end > *arena_ret ? end : *arena_ret;
    }
done:
    attncl__free(order);
    return status;
}
