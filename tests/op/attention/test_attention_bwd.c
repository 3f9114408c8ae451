// SPDX-License-Identifier: MIT
// Gradients of attention against their reference (tests/ref/attention_bwd.c), and that against
// differences; by matrix instructions: test_attention_bwd_mma.c.

#include <math.h>
#include <stdlib.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "ref/ref.h"
#include "support/attention_gradient.h"
#include "support/derivative.h"
#include "support/op_test.h"

// Relative to the sum of the sizes of all terms.  Scores of random data are sums of some sqrt(D)
// terms' size and known to 2e-6 of 1 at D = 256, p to twice that; sums over keys and queries, a
// random walk of a few hundred roundings of 6e-8, make the rest.
static const double tolerance = 1e-5;

static void check(const struct attention_problem *p)
{
    attention_problem_check(p, tolerance);
}

static void check_random(struct attention_size n, struct ref_attention a, bool time_first,
                         bool weights)
{
    const struct attention_problem p = attention_problem_random(n, a, time_first, weights);
    check(&p);
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

LOOP_TEST(matches_the_reference, 0, 2)
{
    static const struct attention_size sizes[] = {
        {1, 1, 1, 1, 1, 1},     {2, 3, 5, 7, 4, 6},      {1, 2, 33, 17, 16, 16},
        {1, 1, 3, 129, 5, 31},  {1, 1, 70, 40, 64, 64},  {1, 1, 50, 130, 17, 80},
        {1, 1, 7, 33, 100, 33}, {1, 1, 13, 9, 256, 256}, {1, 2, 1, 65, 31, 7},
        {2, 1, 65, 1, 3, 112},
    };

    for (size_t i = 0; i < COUNT_OF(sizes); ++i)
        if (!on_simulator() || (i < 4 && (int)i % 2 == _i))
            check_random(sizes[i], (struct ref_attention){0}, i % 2, _i == 1);
}

TEST(views)
{
    struct attention_problem p = attention_problem_random(
        (struct attention_size){2, 2, 35, 37, 16, 32}, (struct ref_attention){0}, true, false);

    if (on_simulator())
        return;
    host_view(p.x.q);
    host_view(p.x.k);
    host_view(p.x.v);
    check(&p);
}

TEST(ranges)
{
    static const struct {
        int64_t queries, keys;
        int causal;
        int64_t window;
    } cases[] = {
        {1, 1, 1, 0},   {40, 40, 1, 0},  {140, 140, 1, 0}, {5, 70, 1, 0},  {70, 5, 1, 0},
        {50, 50, 0, 1}, {50, 150, 0, 3}, {150, 150, 1, 7}, {60, 20, 0, 4}, {30, 30, 0, 1000},
    };

    for (size_t i = 0; i < COUNT_OF(cases); ++i) {
        const struct ref_attention a = {.causal = cases[i].causal, .window = cases[i].window};
        if (!on_simulator() || i == 9)
            check_random((struct attention_size){1, 2, cases[i].queries, cases[i].keys, 9, 10}, a,
                         i % 2, i % 3 == 1);
    }
}

TEST(masks)
{
    const struct attention_size n = {on_simulator() ? 1 : 2, on_simulator() ? 1 : 2, 37, 135, 6, 5};
    struct host *kinds[] = {
        host_mask(5, 0.5, DIMS(37, 135, 1)),  host_mask(6, 0.01, DIMS(37, 135, 2)),
        host_mask(7, 0.5, DIMS(1, 135, 2)),   host_mask(8, 0.02, DIMS(1, 135, 1)),
        host_new(ATTNCL_U8, DIMS(1, 135, 1)),
    };

    for (int64_t j = 0; j < 135; ++j) // the first and the last query see nothing
        kinds[0]->data[j] = kinds[0]->data[kinds[0]->count - 1 - j] = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); ++i)
        if (!on_simulator() || i == 0)
            check_random(n, (struct ref_attention){.mask = kinds[i]}, i % 2, i % 3 == 0);
}

LOOP_TEST(lengths, 0, 2)
{
    const struct attention_size n = {4, 2, 29, 140, 6, 21};
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 70, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 150, DIMS(4, 29));

    if (on_simulator())
        return;
    check_random(n, (struct ref_attention){.valid_lens = one}, _i == 1, _i == 0);
    check_random(n, (struct ref_attention){.valid_lens = two}, _i == 1, _i == 1);
}

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

LOOP_TEST(dropout_of_weights, 0, 3)
{
    static const struct ref_dropout d = {0.3, 0x123456789u, 5, 77};
    struct host *lens = host_ints(9, -2, 150, DIMS(2, 29));

    if (on_simulator() && _i > 0)
        return;
    if (_i == 0) {
        check_random((struct attention_size){2, 3, 5, 7, 4, 6},
                     (struct ref_attention){.dropout = d}, true, true);
        check_random((struct attention_size){1, 2, 50, 130, 17, 20},
                     (struct ref_attention){.dropout = d}, false, false);
    } else if (_i == 1) {
        check_random((struct attention_size){1, 1, 140, 140, 9, 10},
                     (struct ref_attention){.causal = 1, .dropout = d}, true, false);
    } else {
        check_random((struct attention_size){2, 1, 29, 140, 6, 21},
                     (struct ref_attention){.valid_lens = lens, .dropout = d}, false, true);
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

// One channel and scale 1: scores are products of two floats, exact where the factors are.
static struct attention_problem lines(int64_t n_queries, int64_t n_keys, struct ref_attention a,
                                      double q, double k, double k_step)
{
    struct attention_problem p = attention_problem_random(
        (struct attention_size){1, 1, n_queries, n_keys, 1, 3}, a, false, true);

    for (int64_t i = 0; i < n_queries; ++i)
        p.x.q->data[i] = q;
    for (int64_t j = 0; j < n_keys; ++j)
        p.x.k->data[j] = k + k_step * (double)(j % 5);
    return p;
}

TEST(extremes)
{
    static const double q[] = {1e4, -1e4, 1e15}, k[] = {-1e4, 1e4, 1e15}, step[] = {1, -3, 0};
    static const double lowest[] = {-1e6 - 3, -1e6 + 60, -1e6 + 110, -2e6};

    for (int i = 0; i < (on_simulator() ? 1 : 3); ++i) {
        const struct attention_problem p = lines(
            40, 70, (struct ref_attention){.scale = 1, .causal = i != 1}, q[i], k[i], step[i]);
        host_scale(p.x.v, 1e4);
        check(&p);
    }
    for (int i = 0; i < (on_simulator() ? 1 : 4); ++i) {
        struct host *lens = host_with(ATTNCL_I32, (const double[]){2, 31, 299}, DIMS(1, 3));
        const struct attention_problem p = lines(
            3, 300, (struct ref_attention){.scale = 1, .valid_lens = lens}, 1, lowest[i], 0.25);
        check(&p);
    }
}

TEST(empty_is_fine)
{
    check_random((struct attention_size){0, 2, 3, 4, 5, 6}, (struct ref_attention){0}, true, false);
    check_random((struct attention_size){2, 2, 0, 4, 5, 6}, (struct ref_attention){0}, true, false);
    check_random((struct attention_size){2, 2, 3, 0, 5, 6}, (struct ref_attention){0}, false,
                 false);
}

struct difference {
    struct attention_problem p;
    struct host *y, *weights;
};

static double loss(void *context)
{
    const struct difference *d = context;

    attention_problem_forward(&d->p, d->y, d->weights);
    return host_dot(d->y, d->p.x.g) + host_dot(d->weights, d->p.x.c);
}

LOOP_TEST(the_definition_meets_differences, 0, 6)
{
    struct host *mask = host_mask(7, 0.6, DIMS(4, 5, 1)),
                *lens = host_with(ATTNCL_I32, (const double[]){3, 0}, DIMS(2));
    const struct ref_attention kinds[] = {{0},
                                          {.causal = 1},
                                          {.window = 2},
                                          {.mask = mask},
                                          {.valid_lens = lens},
                                          {.dropout = {0.4, 3, 1, 2}}};

    const struct attention_problem p = attention_problem_random(
        (struct attention_size){2, 1, 4, 5, 3, 2}, kinds[_i], _i % 2, true);
    struct difference d = {p, host_like(p.x.g), attention_problem_weights(&p)};
    struct host *dq = host_like(p.x.q), *dk = host_like(p.x.k), *dv = host_like(p.x.v);
    ref_attention_bwd(&p.a, &p.x, p.time_first, false, dq, dk, dv);
    ck_derivative(loss, &d, p.x.q, dq, "q");
    ck_derivative(loss, &d, p.x.k, dk, "k");
    ck_derivative(loss, &d, p.x.v, dv, "v");
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
    ck_refused("attention_bwd", &params, HOSTS(q, k, k, NULL, NULL, y, __VA_ARGS__), status, words)

    REFUSED(ATTNCL_ERR_SHAPE, "the gradient of y is [4, 2, 3, 8], expected [2, 4, 3, 8]", NULL,
            rows, bad);
    REFUSED(ATTNCL_ERR_SHAPE, "totals of the rows is [2, 3, 4, 8], expected [2, 3, 4, 2]", NULL, q,
            y);
    REFUSED(ATTNCL_ERR_SHAPE, "expected [2, 3, 4, 5]", weights, rows, y, q);
    REFUSED(ATTNCL_ERR_SHAPE, "weights is [2, 3, 4, 8], expected [2, 3, 4, 5]", q, rows, y,
            weights);
    REFUSED(ATTNCL_ERR_ARGUMENT, "the weights are missing", NULL, rows, y, weights);
#undef REFUSED
}
