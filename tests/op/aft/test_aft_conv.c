// SPDX-License-Identifier: MIT
// Mixing of heads against its reference (tests/ref/aft_conv.c), whole and position by position.
// What the kernels share with AFT-local is tested more broadly there (test_aft_local.c).

#include <math.h>

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_test.h"

// As for AFT-local, of which each head is one.
static const double tolerance = 1e-5;
static const double tiny = 1e-25;

struct data {
    struct host *q, *k, *v, *w, *mask;
};

// Extents, and what data look like beside N(0, 1).
struct variant {
    int steps, batch, channels, heads, size;
    double key_scale, bias_scale, late, ramp;
};
static const struct variant variants[] = {
    // One; a head a channel; one head; ragged heads; whole vectors; several panels.
    {1, 1, 1, 1, 1, 1, 1, 0, 0},
    {2, 2, 6, 6, 3, 1, 1, 0, 0},
    {13, 3, 5, 1, 7, 1, 1, 0, 0},
    {37, 2, 21, 3, 11, 1, 1, 0, 0},
    {97, 2, 64, 2, 25, 1, 1, 0, 0},
    {211, 1, 40, 2, 63, 1, 1, 0, 0},
    // Windows: one, the table longer than the sequence.
    {23, 2, 18, 2, 1, 1, 30, 0, 0},
    {23, 2, 18, 2, 91, 1, 1, 0, 0},
    // Extremes: keys, biases, both; a late key; keys that rise and fall.
    {37, 2, 18, 2, 9, 80, 1, 0, 0},
    {37, 2, 18, 2, 9, 1, 80, 0, 0},
    {37, 2, 18, 2, 9, 60, 30, 0, 0},
    {131, 1, 18, 2, 9, 1, 1, 400, 0},
    {131, 1, 18, 2, 31, 1, 1, 0, 300},
    {131, 1, 18, 2, 31, 1, 1, 0, -300},
    {37, 1, 18, 2, 5, 1, 1e30, 0, 0},
    {37, 1, 18, 2, 5, 0, 0, 0, 0},
};
enum { N_VARIANTS = sizeof variants / sizeof variants[0] };

static struct data make(const struct variant *x, unsigned seed)
{
    const int64_t row = x->batch * x->heads;
    struct data d = {
        .q = host_random(seed, DIMS(x->steps, x->batch, x->channels)),
        .k = host_random(seed + 1, DIMS(x->steps, x->batch, x->heads)),
        .v = host_random(seed + 2, DIMS(x->steps, x->batch, x->channels)),
        .w = host_random(seed + 3, DIMS(x->heads, x->size)),
    };

    host_scale(d.k, x->key_scale);
    host_scale(d.w, x->bias_scale);
    for (int64_t i = 0; i < d.k->count; ++i) {
        const int64_t t = i / row;
        const double slope = x->steps > 1 ? 2.0 * (double)t / (x->steps - 1) - 1 : 0;
        const double late = t == x->steps * 4 / 5 ? x->late : 0;
        d.k->data[i] = (float)(d.k->data[i] + late + x->ramp * slope);
    }
    return d;
}

// Simulators take seconds for what others do in milliseconds: the short shapes, not the extremes.
static bool skipped(const struct variant *x)
{
    return on_simulator() && (x->steps > 40 || x->key_scale != 1 || x->bias_scale != 1);
}

static void compare(const struct host *got, const struct host *want, const struct host *scale,
                    int64_t first, const char *what)
{
    for (int64_t i = 0; i < got->count; ++i) {
        const double error =
            fabs(got->data[i] - want->data[first + i]) / (scale->data[first + i] + tiny);
        ck_assert_msg(error <= tolerance, "%s: y[%lld] = %.9g, want %.9g, relative %.2g", what,
                      (long long)(first + i), got->data[i], want->data[first + i], error);
    }
}

static void check(const struct data *d, int causal, int path, const char *what)
{
    struct host *got = host_like(d->q), *want = host_like(d->q), *scale = host_like(d->q);
    const struct aft_conv_fwd_params params = {causal, path};

    ref_aft_conv_fwd(d->q, d->k, d->v, d->w, d->mask, causal, want, scale);
    ck_ok(run_op("aft_conv_fwd", &params, HOSTS(d->q, d->k, d->v, d->w, d->mask), HOSTS(got)));
    compare(got, want, scale, 0, what);
}

LOOP_TEST(meets_the_definition, 0, N_VARIANTS)
{
    const struct variant *x = &variants[_i];
    struct data d = make(x, 10u * (unsigned)_i + 1);

    if (skipped(x))
        return;
    // Paths are the CPU variant's.
    const int paths = test_context()->caps.variant == VARIANT_CPU ? 3 : 1;
    for (int path = 0; path < paths; ++path) {
        check(&d, 0, path, "all seen");
        check(&d, 1, path, "causal");
    }
}

// Per row, one row for all, per batch entry; each with rows that see nothing.
LOOP_TEST(meets_the_definition_under_masks, 0, N_VARIANTS)
{
    const struct variant *x = &variants[_i];
    struct data d = make(x, 10u * (unsigned)_i + 2);

    if (skipped(x))
        return;
    for (int form = 0; form < 3; ++form) {
        if (on_simulator() && (_i + form) % 3 != 0)
            continue;
        const int64_t rows = form == 1 ? 1 : x->steps, entries = form == 2 ? x->batch : 1;
        d.mask = host_mask(7u + (unsigned)form, 0.5, DIMS(rows, x->steps, entries));
        for (int64_t i = 3; i < rows; i += 5)
            for (int64_t j = 0; j < x->steps; ++j)
                d.mask->data[(i * x->steps + j) * entries] = 0;
        check(&d, 0, 0, "masked");
    }
}

TEST(takes_views)
{
    const struct variant x = {23, 3, 38, 2, 7, 1, 1, 0, 0};
    struct data d = make(&x, 6);

    host_view(d.q), host_view(d.k), host_view(d.v);
    check(&d, 0, 0, "views");
    d.mask = host_mask(3, 0.5, DIMS(23, 23, 3));
    check(&d, 0, 0, "views, masked");
}

LOOP_TEST(empty_is_fine, 0, 3)
{
    const struct variant none[] = {
        {0, 2, 4, 2, 3, 1, 1, 0, 0}, {4, 0, 4, 2, 3, 1, 1, 0, 0}, {4, 2, 0, 2, 3, 1, 1, 0, 0}};
    struct data d = make(&none[_i], 6);

    check(&d, 0, 0, "empty");
}

static struct host *row_of(const struct host *x, int64_t t)
{
    struct host *row = host_new(ATTNCL_F32, DIMS(x->dim[1], x->dim[2]));

    for (int64_t c = 0; c < row->count; ++c)
        row->data[c] = x->data[t * row->count + c];
    return row;
}

LOOP_TEST(steps_follow_the_causal_pass, 0, N_VARIANTS)
{
    const struct variant *x = &variants[_i];
    const int64_t all = x->batch * x->channels;
    struct data d = make(x, 10u * (unsigned)_i + 3);
    struct host *want = host_like(d.q), *scale = host_like(d.q);
    struct host *sums = host_new(ATTNCL_F32, DIMS(3, all));
    struct host *keys = host_new(ATTNCL_F32, DIMS((x->size + 1) / 2, all));
    struct host *values = host_like(keys), *at = host_new(ATTNCL_I32, DIMS(1));

    if (skipped(x))
        return;
    sums->data[0] = NAN; // whatever the state held, position 0 starts anew
    ref_aft_conv_fwd(d.q, d.k, d.v, d.w, NULL, 1, want, scale);
    for (int64_t t = 0; t < x->steps && t < (on_simulator() ? 14 : 60); ++t) {
        struct host *q = row_of(d.q, t), *k = row_of(d.k, t), *v = row_of(d.v, t);
        struct host *y = host_like(q);
        at->data[0] = (double)t;
        if (t % 2)
            host_view(q), host_view(k), host_view(v);
        ck_ok(run_op("aft_conv_step_fwd", NULL, HOSTS(q, k, v, d.w, at, sums, keys, values),
                     HOSTS(y)));
        compare(y, want, scale, t * all, "step");
    }
}

static attncl_status attempt(const struct data *d, int causal)
{
    const struct aft_conv_fwd_params params = {causal, 0};

    return run_op("aft_conv_fwd", &params, HOSTS(d->q, d->k, d->v, d->w, d->mask),
                  HOSTS(host_like(d->q)));
}

TEST(refusals)
{
    const struct variant x = {5, 2, 6, 2, 3, 1, 1, 0, 0};
    struct data d = make(&x, 6), bad = d;

    bad.k = host_random(1, DIMS(5, 2, 4));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "H = 4 does not divide C = 6");
    bad.k = host_random(1, DIMS(5, 2, 0));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "H = 0 does not divide C = 6");
    bad.k = host_random(1, DIMS(4, 2, 2));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "k is [4, 2, 2], q is [5, 2, 6]");
    bad = d, bad.v = host_random(1, DIMS(5, 2, 2));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "v is [5, 2, 2], q is [5, 2, 6]");
    bad = d, bad.w = host_random(1, DIMS(2, 4));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "s = 4, expected an odd number");
    bad = d, bad.w = host_random(1, DIMS(3, 3));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "w is [3, 3], expected [H = 2, s]");
    bad = d, bad.w = host_ints(1, 0, 3, DIMS(2, 3));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_DTYPE, "w is I32");
    bad = d, bad.mask = host_mask(1, 0.5, DIMS(5, 5, 3));
    ck_fails(attempt(&bad, 0), ATTNCL_ERR_SHAPE, "axis 2 of the mask is 3, expected 1 or B = 2");
    bad.mask = host_mask(1, 0.5, DIMS(5, 5, 1));
    ck_fails(attempt(&bad, 1), ATTNCL_ERR_ARGUMENT, "causal");
}
