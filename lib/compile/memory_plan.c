// SPDX-License-Identifier: MIT
//
// The memory plan, greedy by size: places the largest item first, each into the smallest sufficient gap between placed
// items that live at the same time (Pisarchyk and Lee 2020, arXiv 2001.03288).

#include "compile/lowered.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"

static attncl_status fail_too_large(void)
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

// Chooses the item's offset among the n placed ones, which are sorted by offset.
static attncl_status place(struct plan_item *item, struct plan_item *const *placed, size_t n,
                           size_t align)
{
    size_t free_from = 0; // aligned end of the items visited so far
    size_t best = 0, best_gap = SIZE_MAX, end;

    for (size_t i = 0; i < n; ++i) {
        const struct plan_item *const other = placed[i];
        if (other->last < item->first || item->last < other->first)
            continue;
        const size_t gap = other->offset > free_from ? other->offset - free_from : 0;
        if (gap >= item->bytes && gap < best_gap) {
            best_gap = gap;
            best = free_from;
        }
        if (!ckd_round_up(other->offset + other->bytes, align, &end))
            return fail_too_large();
        free_from = end > free_from ? end : free_from;
    }
    item->offset = best_gap < SIZE_MAX ? best : free_from;
    return ckd_add_size(item->offset, item->bytes, &end) ? ATTNCL_OK : fail_too_large();
}

static void insert_by_offset(struct plan_item **placed, size_t n, struct plan_item *item)
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
        insert_by_offset(placed, i, order[i]);
        const size_t end = order[i]->offset + order[i]->bytes;
        *arena_ret = end > *arena_ret ? end : *arena_ret;
    }
done:
    attncl__free(order);
    return status;
}
