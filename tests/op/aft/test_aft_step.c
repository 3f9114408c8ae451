// SPDX-License-Identifier: MIT
// Decoding with AFT-local: position by position against the reference of the causal pass
// (tests/ref/aft.c), and against the causal pass itself.

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

// As for the causal pass (test_aft.c), of which each step is a row with every exponential by
// itself.
static const double tolerance = 1e-5;
static const double tiny = 1e-25;

// Lengths, windows and widths: without a ring, one slot, a ring that wraps, one that never fills.
struct variant {
    int steps, batch, channels, window;
    double key_scale, bias_scale, late, early; // late, early: added to one row of keys
};
static const struct variant variants[] = {
    {1, 1, 1, 1, 1, 1, 0, 0},        {17, 2, 9, 0, 1, 1, 0, 0},    {17, 2, 9, 1, 1, 1, 0, 0},
    {23, 1, 37, 5, 1, 1, 0, 0},      {23, 1, 37, 5, 80, 1, 0, 0},  {23, 3, 16, 5, 80, 80, 0, 0},
    {23, 2, 9, 40, 1, 40, 0, 0},     {37, 2, 9, 7, 1, 1, 400, 0},  {37, 2, 9, 7, 1, 1, 0, 400},
    {37, 1, 16, 7, 1, 1e4, 0, -400}, {37, 1, 16, 0, 100, 1, 0, 0}, {23, 1, 70, 5, 0, 0, 0, 0},
    {23, 1, 37, 5, 300, 1e30, 0, 0},
};

struct decoder {
    struct host *q, *k, *v, *w; // [T, B, C], the table
    struct host *sums, *keys, *values;
    int window;
    bool views;
};

static struct decoder make(const struct variant *x, unsigned seed)
{
    const int64_t all = x->batch * x->channels, slots = x->window > 0 ? x->window : 1;
    struct decoder d = {
        .q = host_random(seed, DIMS(x->steps, x->batch, x->channels)),
        .k = host_random(seed + 1, DIMS(x->steps, x->batch, x->channels)),
        .v = host_random(seed + 2, DIMS(x->steps, x->batch, x->channels)),
        .w = host_random(seed + 3, DIMS(x->steps, x->steps)),
        .sums = host_new(ATTNCL_F32, DIMS(3, all)),
        .keys = host_new(ATTNCL_F32, DIMS(slots, all)),
        .values = host_new(ATTNCL_F32, DIMS(slots, all)),
        .window = x->window,
    };
    host_scale(d.k, x->key_scale);
    host_scale(d.w, x->bias_scale);
    for (int64_t c = 0; c < all; ++c) {
        double *late = &d.k->data[x->steps * 4 / 5 * all + c],
               *early = &d.k->data[x->steps / 5 * all + c];
        *late = (float)(*late + x->late);
        *early = (float)(*early + x->early);
    }
    // Whatever the state held, position 0 starts anew.
    for (int64_t i = 0; i < d.sums->count; ++i)
        d.sums->data[i] = NAN;
    for (int64_t i = 0; i < d.keys->count; ++i)
        d.keys->data[i] = d.values->data[i] = NAN;
    return d;
}

// y [B, C] at `position`, fed with row t.
static struct host *step(struct decoder *d, int64_t t, int position)
{
    const struct aft_step_fwd_params params = {.window = d->window};
    struct host *q = host_row(d->q, t), *k = host_row(d->k, t), *v = host_row(d->v, t),
                *y = host_like(q);
    struct host *at = host_index(position);

    if (d->views)
        host_view(q), host_view(k), host_view(v);
    ck_ok(run_op("aft_step_fwd", &params, HOSTS(q, k, v, d->w, at, d->sums, d->keys, d->values),
                 HOSTS(y)));
    return y;
}

static void check_row(const struct host *y, const struct host *want, const struct host *scale,
                      int64_t t)
{
    for (int64_t c = 0; c < y->count; ++c) {
        const int64_t i = t * y->count + c;
        const double error = fabs(y->data[c] - want->data[i]) / (scale->data[i] + tiny);
        ck_assert_msg(error <= tolerance,
                      "position %lld, channel %lld: %.9g, want %.9g, relative %.2g", (long long)t,
                      (long long)c, y->data[c], want->data[i], error);
    }
}

// Simulators take seconds for what others do in milliseconds: they stop when the rings have
// wrapped.
static int64_t n_checked(int64_t steps)
{
    return on_simulator() && steps > 12 ? 12 : steps;
}

static void check(struct decoder *d)
{
    struct host *want = host_like(d->q), *scale = host_like(d->q), *pass = host_like(d->q);
    const struct aft_fwd_params causal = {.window = d->window, .causal = 1};

    ref_aft_local_fwd(d->q, d->k, d->v, d->w, NULL, d->window, 1, want, scale);
    ck_ok(run_op("aft_fwd", &causal, HOSTS(d->q, d->k, d->v, d->w, NULL), HOSTS(pass)));
    for (int64_t t = 0; t < n_checked(d->q->dim[0]); ++t) {
        const struct host *y = step(d, t, (int)t);
        check_row(y, want, scale, t);
        check_row(y, pass, scale, t);
    }
}

TABLE_TEST(meets_the_causal_definition, variants)
{
    struct decoder d = make(&variants[_i], 10u + (unsigned)_i);

    check(&d);
}

// Rings of 16 bits: as the definition of the rounded keys and values, those that have left the window too;
// the sums stay float.
TABLE_TEST(rings_of_16_bits_are_rounded, variants)
{
    static const attncl_dtype types[] = {ATTNCL_F16, ATTNCL_BF16};

    for (int i = 0; i < 2; ++i) {
        struct decoder d = make(&variants[_i], 30u + (unsigned)_i);
        struct host *want = host_like(d.q), *scale = host_like(d.q);
        struct host *k = host_stored(host_copy(d.k), types[i]);
        struct host *v = host_stored(host_copy(d.v), types[i]);

        if (d.window > 0) // the ring is not touched without a window
            d.keys->dtype = d.values->dtype = types[i];
        else
            k = d.k, v = d.v;
        ref_aft_local_fwd(d.q, k, v, d.w, NULL, d.window, 1, want, scale);
        for (int64_t t = 0; t < n_checked(d.q->dim[0]); ++t) {
            const int64_t all = d.keys->dim[1], slot = d.window > 0 ? t % d.window : 0;
            check_row(step(&d, t, (int)t), want, scale, t);
            for (int64_t c = 0; c < all && d.window > 0; ++c) {
                ck_assert_double_eq(d.keys->data[slot * all + c], k->data[t * all + c]);
                ck_assert_double_eq(d.values->data[slot * all + c], v->data[t * all + c]);
            }
        }
    }
}

TEST(position_0_starts_anew)
{
    struct decoder d = make(&variants[3], 1), other = make(&variants[3], 2);

    check(&d);
    other.sums = d.sums, other.keys = d.keys, other.values = d.values;
    check(&other);
}

TEST(takes_views)
{
    struct decoder d = make(&variants[5], 3);

    d.views = true;
    check(&d);
}

TEST(without_a_table_biases_are_0)
{
    struct decoder d = make(&variants[6], 4);

    d.w = NULL;
    check(&d);
}

// Nothing beyond the table is read, and the state stays good.
TEST(positions_beyond_the_table_give_nan)
{
    struct decoder d = make(&variants[3], 5);
    struct host *want = host_like(d.q), *scale = host_like(d.q);
    const int beyond[] = {23, 24, 1 << 30, -1, INT32_MAX, INT32_MIN};

    ref_aft_local_fwd(d.q, d.k, d.v, d.w, NULL, d.window, 1, want, scale);
    for (int t = 0; t < n_checked(23); ++t) {
        check_row(step(&d, t, t), want, scale, t);
        const struct host *y = step(&d, 0, beyond[t % 6]);
        for (int64_t c = 0; c < y->count; ++c)
            ck_assert(isnan(y->data[c]));
    }
}

TEST(refusals)
{
    struct decoder d = make(&variants[3], 6);
    struct host *q = host_row(d.q, 0), *y = host_like(q), *at = host_new(ATTNCL_I32, DIMS(1));
    struct host *two = host_new(ATTNCL_I32, DIMS(2)), *narrow = host_random(1, DIMS(1, 3));
    struct host *square = host_random(1, DIMS(4, 5));
    const struct aft_step_fwd_params window5 = {.window = 5}, window6 = {.window = 6},
                                     negative = {.window = -1};
    const struct aft_step_fwd_params per_head = {.per_head = true};

#define ATTEMPT(params, k, w, at)                                                                  \
    run_op("aft_step_fwd", &(params), HOSTS(q, k, q, w, at, d.sums, d.keys, d.values), HOSTS(y))
    ck_fails(ATTEMPT(window5, narrow, d.w, at), ATTNCL_ERR_SHAPE,
             "k is [1, 3], must be [B, C] with C = 37 as q [1, 37]");
    ck_fails(ATTEMPT(window5, q, square, at), ATTNCL_ERR_SHAPE,
             "pos_bias is [4, 5], must be [N, N]");
    ck_fails(ATTEMPT(window5, q, d.w, two), ATTNCL_ERR_SHAPE, "position is [2]");
    ck_fails(ATTEMPT(window6, q, d.w, at), ATTNCL_ERR_SHAPE, "keys is [5, 37], expected [6, 37]");
    ck_fails(ATTEMPT(negative, q, d.w, at), ATTNCL_ERR_ARGUMENT, "-1");
    ck_fails(ATTEMPT(per_head, q, NULL, at), ATTNCL_ERR_ARGUMENT, "pos_bias is missing");
    ck_fails(ATTEMPT(per_head, two, d.w, at), ATTNCL_ERR_DTYPE, "k is I32");
    ck_fails(ATTEMPT(per_head, narrow, square, at), ATTNCL_ERR_SHAPE,
             "k has H = 3, which does not divide C = 37");
#undef ATTEMPT
}
