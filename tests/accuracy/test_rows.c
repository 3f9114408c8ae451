// SPDX-License-Identifier: MIT
// Softmax, layer norm and attention in units in the last place, for rows of several widths and numbers of several sizes:
// softmax relative to each result, layer norm to the largest of a row's, attention to the largest value.

#include <math.h>
#include <stdio.h>

#include "accuracy/table.h"
#include "attncl/kinds.h"
#include "device/context.h"
#include "ref/ref.h"
#include "support/compare.h"
#include "support/op_test.h"

enum { ROWS = 8 };
static const double unit = 0x1p-23; // of a float from 1 on

// The worst errors measured, of PoCL's two variants and rusticl (docs/accuracy.md); three times as much is the limit.
static const struct row_case {
    int width;
    double scale; // of the inputs, N(0, 1) otherwise
    double softmax, layer_norm, attention;
} cases[] = {{7, 1, 2.56, 1.54, 2.45},    {64, 1, 3.81, 0.932, 3.86},
             {64, 30, 61.3, 1.0, 18.3},   {1000, 1, 8.12, 1.09, 6.09},
             {1000, 30, 64.3, 1.0, 26.7}, {4096, 10, 62.7, 0.996, 20.9},
             {50257, 5, 178, 2.05, 366}};

static void report(const char *what, const struct row_case *c, const struct worst *worst,
                   double measured)
{
    const double bound = 3 * measured;
    char where[64];

    snprintf(where, sizeof where, "rows of %d, inputs %g N(0, 1)", c->width, c->scale);
    table_add(what, worst->ratio, bound, "ulp", where);
    ck_worst(worst, bound, "%s of %s", what, where);
}

// The difference to the row's maximum is rounded, which is an error of the exponential's argument: up to 16 for inputs
// of a few times `scale`.  Sums have lanes of width / VW terms at most.
TABLE_TEST(softmax, cases)
{
    const struct row_case *c = &cases[_i];
    struct host *x = host_random(1, DIMS(ROWS, c->width));
    host_scale(x, c->scale);
    struct host *got = host_like(x), *want = host_like(x);
    struct worst worst = {0};

    ref_softmax_fwd(x, want);
    ck_ok(run_op("softmax_fwd", NULL, HOSTS(x), HOSTS(got)));
    for (int64_t i = 0; i < got->count; ++i)
        worst_add(&worst, i, got->data[i], want->data[i],
                  fmax(ulp_of(want->data[i]), 0x1p-126)); // a subnormal may be flushed
    report("softmax", c, &worst, c->softmax);
}

TABLE_TEST(layer_norm, cases)
{
    const struct row_case *c = &cases[_i];
    const struct layer_norm_fwd_params params = {1e-5f};
    struct host *x = host_random(2, DIMS(ROWS, c->width));
    struct host *weight = host_uniform(3, 0.5, 1.5, DIMS(c->width));
    struct host *bias = host_uniform(4, -1, 1, DIMS(c->width));
    host_scale(x, c->scale);
    struct host *got = host_like(x), *want = host_like(x);
    struct worst worst = {0};

    ref_layer_norm_fwd(x, weight, bias, (double)params.eps, want);
    ck_ok(run_op("layer_norm_fwd", &params, HOSTS(x, weight, bias), HOSTS(got)));
    for (int64_t r = 0; r < ROWS; ++r) {
        const double largest = host_largest(host_row(want, r));
        for (int64_t i = r * c->width; i < (r + 1) * c->width; ++i)
            worst_add(&worst, i, got->data[i], want->data[i], largest * unit);
    }
    report("layer norm", c, &worst, c->layer_norm);
}

// Rows of so many keys, width 64; scale of the scores as usual.
TABLE_TEST(attention, cases)
{
    enum { WIDTH = 64 };
    const struct row_case *c = &cases[_i];
    struct attention_fwd_params params = {.scale = (float)(c->scale / 8),
                                          .layout = ATTNCL_LAYOUT_BATCH_FIRST};
    struct host *q = host_random(5, DIMS(1, 1, ROWS, WIDTH));
    struct host *k = host_random(6, DIMS(1, 1, c->width, WIDTH));
    struct host *v = host_uniform(7, 0, 1, DIMS(1, 1, c->width, WIDTH));
    struct host *p = host_new(ATTNCL_F32, DIMS(1, 1, ROWS, c->width));
    struct host *got = host_new(ATTNCL_F32, DIMS(1, ROWS, 1, WIDTH)), *want = host_like(got);
    const struct ref_attention a = {.scale = (double)params.scale};
    struct worst worst = {0};

    if (test_context()->caps.max_loop_iterations && c->width > 4096)
        return; // such a device refuses so many keys
    ref_attention_weights(&a, q, k, p);
    ref_attention_mix(p, v, false, want);
    ck_ok(run_op("attention_fwd", &params, HOSTS(q, k, v), HOSTS(got)));
    for (int64_t i = 0; i < got->count; ++i)
        worst_add(&worst, i, got->data[i], want->data[i], unit);
    report("attention", c, &worst, c->attention);
}
