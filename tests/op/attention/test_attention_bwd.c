// SPDX-License-Identifier: MIT
// Gradients of attention on devices with other limits against their reference (tests/ref/attention_bwd.c); on the device as
// it is: test_attention.c, by matrix instructions: test_attention_mma.c.

#include <stdlib.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "support/attention_gradient.h"
#include "support/op_test.h"

static void check_random(struct attention_size n, struct ref_attention a, bool time_first,
                         bool weights)
{
    const struct attention_problem p = attention_problem_random(n, a, time_first, weights);

    attention_problem_check(&p, 1e-5); // test_attention.c says why
}

// Tests that change the device's limits leave them to be restored, so that one which fails does not fail the others.
static struct device_caps as_opened;

static void remember_limits(void)
{
    as_opened = test_context()->caps;
}

static void restore_limits(void)
{
    test_context()->caps = as_opened;
}

FIXTURE(remember_limits, restore_limits);

// On GPUs ds is kept for as many heads as fit into a quarter of the largest buffer: of 6 all but one, 2
// at a time, none.
TEST(kept_scores)
{
    enum { N = 41, PITCH = 44 };
    static const int heads[] = {5, 2, 0};
    const struct attention_size n = {2, 3, N, N, 6, 5};
    struct device_caps *caps = &test_context()->caps;

    // Work-groups of 1 or 16 take the CPU variant's scratch, which does not fit.
    if (on_simulator() || caps->variant != VARIANT_GPU || getenv("TEST_KERNEL_GROUP"))
        return;
    for (size_t i = 0; i < COUNT_OF(heads); ++i) {
        caps->max_buffer_bytes = 4 * sizeof(float[PITCH][N]) * (size_t)heads[i] + 100;
        if (heads[i] == 0)
            caps->max_buffer_bytes = 4 * sizeof(float[PITCH][N]) - 100;
        check_random(n, (struct ref_attention){0}, i % 2, false);
        check_random(n, (struct ref_attention){.causal = 1}, i % 2, i == 1);
        check_random(n, (struct ref_attention){.valid_lens = host_ints(9, -2, 50, DIMS(2, N))},
                     i % 2, false);
        *caps = as_opened;
    }
}

// Intel's tiles, whose products stay in local memory, up to 64 columns and wider.
TEST(tiles_for_intel)
{
    static const struct attention_size sizes[] = {{2, 2, 35, 70, 20, 24}, {1, 2, 37, 67, 72, 70}};
    struct device_caps *caps = &test_context()->caps;

    if (on_simulator() || caps->variant != VARIANT_GPU)
        return;
    caps->vendor = VENDOR_INTEL;
    for (size_t i = 0; i < COUNT_OF(sizes); ++i) {
        const struct attention_size n = sizes[i];
        struct ref_attention a = {.bias = host_random(8, DIMS(1, n.heads, n.queries, n.keys))};

        check_random(n, a, i % 2, false);
        a.bias = host_random(8, DIMS(n.batch, 1, 1, n.keys));
        a.causal = 1;
        check_random(n, a, i % 2, true);
    }
}

// The CPU variant, in which one panel's rows of the usual size do not fit.
TEST(little_local_memory)
{
    static const struct {
        size_t bytes;
        struct attention_size n;
    } cases[] = {{16384, {1, 1, 13, 140, 256, 256}},
                 {8192, {1, 2, 7, 33, 100, 33}},
                 {4096, {2, 1, 15, 70, 40, 40}},
                 {1024, {1, 2, 5, 40, 9, 10}}};
    struct device_caps *caps = &test_context()->caps;

    caps->variant = VARIANT_CPU;
    for (size_t i = 0; i < (on_simulator() ? 0 : COUNT_OF(cases)); ++i) {
        if (cases[i].bytes > as_opened.local_bytes)
            continue;
        caps->local_bytes = cases[i].bytes;
        check_random(cases[i].n, (struct ref_attention){.causal = i % 2}, i % 2, i == 2);
    }
}

TEST(refusals)
{
    const struct attention_bwd_params params = {{.scale = 1, .layout = ATTNCL_LAYOUT_BATCH_FIRST}};
    struct host *q = host_new(ATTNCL_F32, DIMS(2, 3, 4, 8)),
                *k = host_new(ATTNCL_F32, DIMS(2, 3, 5, 8));
    struct host *y = host_new(ATTNCL_F32, DIMS(2, 4, 3, 8)),
                *bad = host_new(ATTNCL_F32, DIMS(4, 2, 3, 8)), *rows = attention_problem_rows(q),
                *weights = host_new(ATTNCL_F32, DIMS(2, 3, 4, 5));
#define REFUSED(status, words, ...)                                                                \
    ck_refused("attention_bwd", &params, HOSTS(q, k, k, NULL, NULL, NULL, NULL, y, __VA_ARGS__),   \
               status, words)

    REFUSED(ATTNCL_ERR_SHAPE,
            "dy is [4, 2, 3, 8], must be [B, T, H, E] with B = 2 as q [2, 3, 4, 8]", NULL, rows,
            bad);
    REFUSED(ATTNCL_ERR_SHAPE, "rows is [2, 3, 4, 8], must be [B, H, T, 2]", NULL, q, y);
    REFUSED(ATTNCL_ERR_SHAPE, "dweights is [2, 3, 4, 8], must be [B, H, T, S] with S = 5", weights,
            rows, y, q);
    REFUSED(ATTNCL_ERR_SHAPE, "weights is [2, 3, 4, 8], must be [B, H, T, S] with S = 5", q, rows,
            y, weights);
    REFUSED(ATTNCL_ERR_ARGUMENT, "the weights are missing", NULL, rows, y, weights);
#undef REFUSED
}
