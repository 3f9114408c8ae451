// SPDX-License-Identifier: MIT
// The memory plan, without a device: no overlap, alignment, reuse, limits.

#include <string.h>

#include "base/alloc.h"
#include "compile/holes.h"
#include "compile/memory_plan.h"
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

LOOP_TEST(random_plans_are_sound_and_close_to_the_bound, 0, 20)
{
    enum { N = 120 };
    struct plan_item items[N];
    unsigned state = 12345u + (unsigned)_i;
    size_t arena;

    for (int i = 0; i < N; ++i) {
        state = state * 1664525u + 1013904223u;
        const int first = (int)(state >> 16) % 60;
        state = state * 1664525u + 1013904223u;
        items[i] = (struct plan_item){.bytes = 128u * ((state >> 12) % 50),
                                      .first = first,
                                      .last = first + (int)((state >> 24) % 8)};
    }
    ck_ok(attncl__memory_plan(items, N, 128, &arena));
    check_plan(items, N, 128, arena);
    // Greedy by size stays within a third of the bound on such graphs.
    ck_assert_uint_le(arena, lower_bound(items, N) * 4 / 3);
}

LOOP_TEST(sizes_that_are_no_multiples_are_aligned, 0, 20)
{
    enum { N = 60 };
    struct plan_item items[N];
    unsigned state = 54321u + (unsigned)_i;
    size_t arena;

    for (int i = 0; i < N; ++i) {
        state = state * 1664525u + 1013904223u;
        const int first = (int)(state >> 16) % 30;
        items[i] = (struct plan_item){
            .bytes = (state >> 8) % 5000, .first = first, .last = first + (int)((state >> 24) % 8)};
    }
    ck_ok(attncl__memory_plan(items, N, 256, &arena));
    check_plan(items, N, 256, arena);
}

TEST(the_same_plan_each_time)
{
    struct plan_item a[40], b[40];
    size_t arena_a, arena_b;
    for (int i = 0; i < 40; ++i)
        a[i] = b[i] = (struct plan_item){.bytes = 512, .first = i / 3, .last = i / 3 + 2};
    ck_ok(attncl__memory_plan(a, 40, 128, &arena_a));
    ck_ok(attncl__memory_plan(b, 40, 128, &arena_b));
    for (int i = 0; i < 40; ++i)
        ck_assert_uint_eq(a[i].offset, b[i].offset);
    ck_assert_uint_eq(arena_a, arena_b);
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

TEST(out_of_memory_is_reported)
{
    struct plan_item item = {.bytes = 128, .first = 0, .last = 0};
    const size_t before = attncl__alloc_live();
    size_t arena;
    for (size_t n = 1;; ++n) {
        attncl__alloc_fail_at(n);
        const attncl_status status = attncl__memory_plan(&item, 1, 128, &arena);
        const int failed = attncl__alloc_has_failed();
        attncl__alloc_fail_at(0);
        ck_assert_uint_eq(attncl__alloc_live(), before);
        if (!failed) {
            ck_assert_int_eq(status, ATTNCL_OK);
            break;
        }
        ck_assert_int_eq(status, ATTNCL_ERR_NO_MEMORY);
    }
}

// Ranges are taken lowest first, given back in any order, and joined with their neighbours.
TEST(holes_are_joined)
{
    enum { N_TAKEN = 64 };
    struct holes h = {0};
    size_t offset[N_TAKEN], all;

    ck_ok(attncl__holes_begin(&h, N_TAKEN, N_TAKEN * 16));
    for (int time = 0; time < 3; ++time) {
        for (int i = 0; i < N_TAKEN; ++i) {
            ck_assert(attncl__holes_take(&h, 16, &offset[i]));
            ck_assert_uint_eq(offset[i], (size_t)i * 16);
        }
        ck_assert(!attncl__holes_take(&h, 16, &all));
        for (int i = 0; i < N_TAKEN; ++i) // every 5th, modulo N_TAKEN
            attncl__holes_give(&h, offset[i * 5 % N_TAKEN], 16);
    }
    ck_assert(attncl__holes_take(&h, N_TAKEN * 16, &all));
    ck_assert_uint_eq(all, 0);
    attncl__holes_free(&h);
}
