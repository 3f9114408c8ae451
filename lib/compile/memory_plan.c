// SPDX-License-Identifier: MIT
//
// The memory plan.  First fit in the order of time, which takes n log n steps; it is often optimal:
// as large as what is alive at the fullest step.  Where it is not, and not too many items are alive
// at the same time, greedy by size is tried too: largest item first, each into the smallest gap
// between the items already placed that live at the same time.  (Pisarchyk and Lee 2020, arXiv
// 2001.03288, "greedy by size for offset calculation".)  The smaller plan is taken.

#include "compile/memory_plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/try.h"
#include "compile/holes.h"

// Greedy by size looks at each pair of items that are alive together: so many are always worth it,
// and so many for each item.
enum { FREE_PAIRS = 1 << 19, PAIRS_PER_ITEM = 32 };

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

static int lower_first(const void *a, const void *b)
{
    const struct plan_item *x = *(const struct plan_item *const *)a;
    const struct plan_item *y = *(const struct plan_item *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

// Lists the items by their first or last step, in array order where the step is the same.
static attncl_status list_by_step(struct plan_item *items, size_t n, bool by_last,
                                  struct plan_item **list)
{
    size_t n_steps = 0;

    for (size_t i = 0; i < n; ++i)
        n_steps = (size_t)items[i].last >= n_steps ? (size_t)items[i].last + 1 : n_steps;
    size_t *start = attncl__alloc_array(n_steps + 1, sizeof *start);
    REQUIRE(start, ATTNCL_ERR_NO_MEMORY, "memory plan of %zu steps", n_steps);
    for (size_t i = 0; i < n; ++i)
        ++start[(by_last ? items[i].last : items[i].first) + 1];
    for (size_t step = 1; step <= n_steps; ++step)
        start[step] += start[step - 1];
    for (size_t i = 0; i < n; ++i)
        list[start[by_last ? items[i].last : items[i].first]++] = &items[i];
    attncl__free(start);
    return ATTNCL_OK;
}

// Within a step, the largest first.
static attncl_status list_begun(struct plan_item *items, size_t n, struct plan_item **begun)
{
    TRY(list_by_step(items, n, false, begun));
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && begun[end]->first == begun[i]->first; ++end)
            ;
        if (end - i > 1)
            qsort(begun + i, end - i, sizeof begun[0], larger_first);
    }
    return ATTNCL_OK;
}

// What first fit finds besides offsets.
struct sweep {
    size_t arena, peak; // peak: bytes alive at the fullest step, the least that any plan takes
    size_t n_pairs;     // of items that are alive together
};

// begun: the items by their first step, ended: by their last.
static attncl_status first_fit(struct plan_item *const *begun, struct plan_item *const *ended,
                               size_t n, size_t align, struct sweep *s)
{
    attncl_status status = ATTNCL_OK;
    struct holes holes = {0};
    size_t live = 0, n_ended = 0, bytes = 0;

    *s = (struct sweep){0};
    TRY_DONE(attncl__holes_begin(&holes, n, SIZE_MAX - (align - 1)));
    for (size_t i = 0; i < n; ++i) {
        struct plan_item *item = begun[i];
        for (; ended[n_ended]->last < item->first; ++n_ended) {
            (void)ckd_round_up(ended[n_ended]->bytes, align, &bytes); // as when it was taken
            if (bytes)
                attncl__holes_give(&holes, ended[n_ended]->offset, bytes);
            live -= bytes;
        }
        s->n_pairs += i - n_ended;
        item->offset = 0;
        if (!ckd_round_up(item->bytes, align, &bytes) ||
            (bytes && !attncl__holes_take(&holes, bytes, &item->offset))) {
            status = too_large();
            goto done;
        }
        live += bytes;
        s->peak = live > s->peak ? live : s->peak;
        if (item->offset + item->bytes > s->arena)
            s->arena = item->offset + item->bytes;
    }
done:
    attncl__holes_free(&holes);
    return status;
}

// Chooses the offset of `item` beside `near`, the items already placed that are alive with it.
static attncl_status place(struct plan_item *item, struct plan_item **near, size_t n_near,
                           size_t align)
{
    size_t free_from = 0; // end of what was passed so far, aligned
    size_t best = 0, best_gap = SIZE_MAX;
    bool found = false;

    qsort(near, n_near, sizeof near[0], lower_first);
    for (size_t i = 0; i < n_near; ++i) {
        const struct plan_item *o = near[i];
        if (o->offset >= free_from && o->offset - free_from >= item->bytes &&
            o->offset - free_from < best_gap) {
            best_gap = o->offset - free_from;
            best = free_from;
            found = true;
        }
        size_t end;
        if (!ckd_add_size(o->offset, o->bytes, &end) || !ckd_round_up(end, align, &end))
            return too_large();
        if (end > free_from)
            free_from = end;
    }
    item->offset = found ? best : free_from;
    return ATTNCL_OK;
}

// Lists the items that are alive with each one.  begun: all items by their first step; live: space
// for as many.  First start[i] is the number of item i's neighbours, then the end of its list, at
// last the start.
static void list_neighbours(const struct plan_item *items, struct plan_item *const *begun, size_t n,
                            size_t *start, struct plan_item **neighbours, struct plan_item **live)
{
    for (int filling = 0; filling < 2; ++filling) {
        size_t n_live = 0;
        for (size_t i = 0; i < n; ++i) {
            struct plan_item *const item = begun[i];
            size_t kept = 0;
            for (size_t k = 0; k < n_live; ++k) {
                struct plan_item *const other = live[k];
                if (other->last < item->first)
                    continue;
                live[kept++] = other;
                if (filling) {
                    neighbours[--start[item - items]] = other;
                    neighbours[--start[other - items]] = item;
                } else {
                    ++start[item - items];
                    ++start[other - items];
                }
            }
            live[kept] = item;
            n_live = kept + 1;
        }
        for (size_t i = 1; !filling && i <= n; ++i)
            start[i] += start[i - 1];
    }
}

static attncl_status greedy_by_size(struct plan_item *items, struct plan_item *const *begun,
                                    size_t n, size_t n_pairs, size_t align, size_t *arena_ret)
{
    static const size_t unplaced = SIZE_MAX;
    attncl_status status = ATTNCL_OK;
    size_t *start = attncl__alloc_array(n + 1, sizeof *start);
    struct plan_item **neighbours = attncl__alloc_array(2 * n_pairs, sizeof *neighbours);
    struct plan_item **near = attncl__alloc_array(n, sizeof *near);
    struct plan_item **order = attncl__alloc_array(n, sizeof *order);

    *arena_ret = 0;
    if (!start || !neighbours || !near || !order) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", n);
        goto done;
    }
    list_neighbours(items, begun, n, start, neighbours, near);
    for (size_t i = 0; i < n; ++i) {
        order[i] = &items[i];
        items[i].offset = unplaced;
    }
    qsort(order, n, sizeof order[0], larger_first);
    for (size_t i = 0; i < n; ++i) {
        struct plan_item *const item = order[i];
        size_t n_near = 0, end;
        for (size_t k = start[item - items]; k < start[item - items + 1]; ++k)
            if (neighbours[k]->offset != unplaced && neighbours[k]->bytes)
                near[n_near++] = neighbours[k];
        if (item->bytes)
            TRY_DONE(place(item, near, n_near, align));
        else
            item->offset = 0;
        if (!ckd_add_size(item->offset, item->bytes, &end)) {
            status = too_large();
            goto done;
        }
        *arena_ret = end > *arena_ret ? end : *arena_ret;
    }
done:
    attncl__free(start);
    attncl__free(neighbours);
    attncl__free(near);
    attncl__free(order);
    return status;
}

attncl_status attncl__memory_plan(struct plan_item *items, size_t n, size_t align,
                                  size_t *arena_ret)
{
    attncl_status status = ATTNCL_OK;
    struct sweep s;
    size_t *offset = NULL;
    struct plan_item **begun = attncl__alloc_array(n, sizeof *begun);
    struct plan_item **ended = attncl__alloc_array(n, sizeof *ended);
    if (!begun || !ended) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", n);
        goto done;
    }
    TRY_DONE(list_begun(items, n, begun));
    TRY_DONE(list_by_step(items, n, true, ended));
    TRY_DONE(first_fit(begun, ended, n, align, &s));
    *arena_ret = s.arena;
    if (s.arena > s.peak && s.n_pairs <= FREE_PAIRS + PAIRS_PER_ITEM * n) {
        size_t arena;
        offset = attncl__alloc_array(n, sizeof *offset);
        if (!offset) {
            status = FAIL(ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", n);
            goto done;
        }
        for (size_t i = 0; i < n; ++i)
            offset[i] = items[i].offset;
        TRY_DONE(greedy_by_size(items, begun, n, s.n_pairs, align, &arena));
        if (arena < s.arena)
            *arena_ret = arena;
        for (size_t i = 0; arena >= s.arena && i < n; ++i)
            items[i].offset = offset[i];
    }
done:
    attncl__free(offset);
    attncl__free(begun);
    attncl__free(ended);
    return status;
}
