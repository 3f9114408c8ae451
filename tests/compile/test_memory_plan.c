// SPDX-License-Identifier: MIT
// The memory plan, without a device: no overlap, alignment, reuse, limits.

#include <string.h>

#include "compile/lowered.h"
#include "support/test.h"

NO_DEVICE;

static int overlap(const struct plan_item *a, const struct plan_item *b)
{
    const int same_time = a->first <= b->last && b->first <= a->last;
    const int same_place = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return a->bytes && b->bytes && same_time && same_place;
}

static void check_plan(const struct plan_item *items, size_t n, size_t align, size_t arena)
{
    for (size_t i = 0; i < n; ++i) {
        ck_assert_uint_eq(items[i].offset % align, 0);
        ck_assert_uint_le(items[i].offset + items[i].bytes, arena);
        for (size_t j = i + 1; j < n; ++j)
            ck_assert_msg(!overlap(&items[i], &items[j]), "items %zu and %zu overlap", i, j);
    }
}

// Sum of live bytes at the fullest step: no plan is smaller.
static size_t lower_bound(const struct plan_item *items, size_t n)
{
    size_t max_sum = 0;
    for (size_t i = 0; i < n; ++i) {
        size_t sum = 0;
        for (size_t j = 0; j < n; ++j)
            if (items[j].first <= items[i].first && items[i].first <= items[j].last)
                sum += items[j].bytes;
        max_sum = sum > max_sum ? sum : max_sum;
    }
    return max_sum;
}

TEST(a_chain_needs_two_buffers)
{
    // x0 -> x1 -> x2 ...: each value lives until the next node is done.
    struct plan_item items[10];
    size_t arena;
    for (int i = 0; i < 10; ++i)
        items[i] = (struct plan_item){.bytes = 1024, .first = i, .last = i + 1};
    ck_ok(attncl__memory_plan(items, 10, 128, &arena));
    check_plan(items, 10, 128, arena);
    ck_assert_uint_eq(arena, 2048);
}

TEST(small_values_fill_gaps)
{
    struct plan_item items[] = {
        {.bytes = 4096, .first = 0, .last = 1}, {.bytes = 4096, .first = 4, .last = 5},
        {.bytes = 1024, .first = 0, .last = 5}, {.bytes = 2048, .first = 2, .last = 3},
        {.bytes = 2048, .first = 2, .last = 3},
    };
    size_t arena;
    ck_ok(attncl__memory_plan(items, 5, 256, &arena));
    check_plan(items, 5, 256, arena);
    ck_assert_uint_eq(arena, 5120);
}

// Sizes that are multiples of the alignment, where the plan stays within a third of the bound, and any sizes.
LOOP_TEST(random_plans_are_sound_and_repeat, 0, 40)
{
    enum { MAX_ITEMS = 120 };
    const bool whole = _i < 20;
    const int n = whole ? MAX_ITEMS : MAX_ITEMS / 2;
    const size_t align = whole ? 128 : 256;
    struct plan_item items[MAX_ITEMS], again[MAX_ITEMS];
    unsigned state = 12345u + (unsigned)_i;
    size_t arena, arena_again;

    for (int i = 0; i < n; ++i) {
        state = state * 1664525u + 1013904223u;
        const int first = (int)(state >> 16) % (n / 2);
        state = state * 1664525u + 1013904223u;
        items[i] =
            (struct plan_item){.bytes = whole ? 128u * ((state >> 12) % 50) : (state >> 8) % 5000,
                               .first = first,
                               .last = first + (int)((state >> 24) % 8)};
    }
    memcpy(again, items, sizeof items);
    ck_ok(attncl__memory_plan(items, (size_t)n, align, &arena));
    ck_ok(attncl__memory_plan(again, (size_t)n, align, &arena_again));
    check_plan(items, (size_t)n, align, arena);
    if (whole)
        ck_assert_uint_le(arena, lower_bound(items, (size_t)n) * 4 / 3);
    ck_assert_uint_eq(arena, arena_again);
    for (int i = 0; i < n; ++i)
        ck_assert_uint_eq(items[i].offset, again[i].offset);
}

TEST(nothing_and_empty_items)
{
    struct plan_item items[] = {{.bytes = 0, .first = 0, .last = 3},
                                {.bytes = 128, .first = 0, .last = 1}};
    size_t arena = 7;
    ck_ok(attncl__memory_plan(NULL, 0, 128, &arena));
    ck_assert_uint_eq(arena, 0);
    ck_ok(attncl__memory_plan(items, 2, 128, &arena));
    ck_assert_uint_eq(arena, 128);
    ck_assert_uint_eq(items[0].offset, 0);
}

TEST(too_large_is_refused)
{
    struct plan_item items[] = {{.bytes = SIZE_MAX - 255, .first = 0, .last = 3},
                                {.bytes = 1024, .first = 0, .last = 1}};
    size_t arena;
    ck_fails(attncl__memory_plan(items, 2, 128, &arena), ATTNCL_ERR_DEVICE_MEMORY, "address space");
}
