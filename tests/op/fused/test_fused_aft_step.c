// SPDX-License-Identifier: MIT
// A fused step of an AFT layer, split into channel blocks, position by position, against the
// references of what it fuses: layer norm, three maps, the causal pass (tests/ref/aft.c), the
// output map.

#include <math.h>

#include "device/context.h"
#include "ref/ref.h"
#include "support/fused_step_test.h"

// An error of a key is one of the weights e^k; else as in test_aft_step.c.
static const double tolerance = 3e-5;

struct layer {
    int64_t m, d, channels, d_out, n_before;
    int steps, window, n_blocks;
    double key_scale;
    bool biased, tabled;
};

struct weights {
    struct host *wq, *bq, *wk, *bk, *wv, *bv, *table, *wo;
};

static struct weights weights_of(const struct layer *l)
{
    const double size = 1 / sqrt((double)l->d);
    struct weights w = {
        .wq = host_random(31, DIMS(l->channels, l->d)),
        .wk = host_random(32, DIMS(l->channels, l->d)),
        .wv = host_random(33, DIMS(l->channels, l->d)),
        .wo = host_random(34, DIMS(l->d_out, l->channels)),
        .table = l->tabled ? host_random(35, DIMS(l->steps, l->steps)) : NULL,
    };
    host_scale(w.wq, size), host_scale(w.wk, size * l->key_scale), host_scale(w.wv, size);
    if (l->biased) {
        w.bq = host_random(36, DIMS(l->channels));
        w.bk = host_random(37, DIMS(l->channels));
        w.bv = host_random(38, DIMS(l->channels));
    }
    return w;
}

static void put_row(struct host *all, int64_t t, const struct host *row)
{
    for (int64_t i = 0; i < row->count; ++i)
        all->data[t * row->count + i] = row->data[i];
}

static struct host *row_of(const struct host *all, int64_t t)
{
    struct host *row = host_new(ATTNCL_F32, DIMS(all->dim[1], all->dim[2]));
    for (int64_t i = 0; i < row->count; ++i)
        row->data[i] = all->data[t * row->count + i];
    return row;
}

static void check(const struct layer *l)
{
    const int64_t all = l->m * l->channels, slots = l->window > 0 ? l->window : 1;
    const struct weights w = weights_of(l);
    const struct fused_aft_step_fwd_params params = {stream_eps, l->window,
                                                     blocks_of(l->channels, l->n_blocks)};
    struct host *q = host_new(ATTNCL_F32, DIMS(l->steps, l->m, l->channels)), *k = host_like(q);
    struct host *v = host_like(q), *y = host_like(q), *size = host_like(q);
    struct host *sums = host_new(ATTNCL_F32, DIMS(3, all));
    struct host *keys = host_new(ATTNCL_F32, DIMS(slots, all)), *values = host_like(keys);
    struct host *at = host_new(ATTNCL_I32, DIMS(1));
    struct host *partials = host_new(ATTNCL_F32, DIMS(params.n_blocks, l->m, l->d_out));

    for (int t = 0; t < l->steps; ++t) {
        const struct stream s = stream_make(100 + 10 * (unsigned)t, l->m, l->d, l->n_before);
        put_row(q, t, map_rows(s.z, w.wq, w.bq));
        put_row(k, t, map_rows(s.z, w.wk, w.bk));
        put_row(v, t, map_rows(s.z, w.wv, w.bv));
    }
    ref_aft_local_fwd(q, k, v, w.table, NULL, l->window, 1, y, size);

    for (int t = 0; t < l->steps; ++t) {
        const struct stream s = stream_make(100 + 10 * (unsigned)t, l->m, l->d, l->n_before);
        struct host *reduced = host_like(s.x);
        at->data[0] = t;
        const attncl_status status =
            run_op("fused_aft_step_fwd", &params,
                   HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, w.wq, w.bq, w.wk,
                         w.bk, w.wv, w.bv, w.wo, w.table, at, sums, keys, values),
                   (struct host *const[]){partials, reduced}, s.partials ? 2 : 1);
        if (test_context()->caps.variant != VARIANT_CPU ||
            test_context()->caps.max_loop_iterations) {
            ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be one launch on this device");
            return;
        }
        ck_ok(status);
        ck_partials(partials, map_rows(row_of(y, t), w.wo, NULL),
                    map_sizes(row_of(size, t), w.wo, NULL), tolerance);
        if (s.partials)
            ck_near(reduced, s.reduced, 1e-5, 1e-5);
    }
}

// Rings that wrap, one that never fills, none; few and many rows; keys far apart.
static const struct layer layers[] = {
    {1, 16, 16, 16, 0, 5, 2, 1, 1, true, true},   {1, 32, 64, 48, 2, 6, 3, 4, 1, true, true},
    {2, 16, 32, 16, 1, 5, 2, 2, 20, false, true}, {5, 16, 48, 32, 3, 3, 9, 0, 1, true, true},
    {3, 16, 32, 16, 1, 4, 0, 2, 1, true, false},
};

LOOP_TEST(meets_the_definitions, 0, sizeof layers / sizeof layers[0])
{
    check(&layers[_i]);
}

TEST(refusals)
{
    const struct layer l = {1, 16, 16, 16, 0, 4, 2, 1, 1, true, true};
    const struct stream s = stream_make(1, 1, 16, 0);
    struct weights w = weights_of(&l);
    const struct fused_aft_step_fwd_params params = {stream_eps, 2, 1};
    struct host *at = host_new(ATTNCL_I32, DIMS(1)), *y = host_new(ATTNCL_F32, DIMS(1, 1, 16));
    struct host *sums = host_new(ATTNCL_F32, DIMS(3, 16)),
                *keys = host_new(ATTNCL_F32, DIMS(2, 16));
    struct host *three = host_new(ATTNCL_F32, DIMS(3, 16)), *map = host_random(2, DIMS(16, 17));

#define ATTEMPT(wk, ring)                                                                          \
    run_op("fused_aft_step_fwd", &params,                                                          \
           HOSTS(s.x, s.norm_weight, s.norm_bias, NULL, NULL, w.wq, w.bq, wk, w.bk, w.wv, w.bv,    \
                 w.wo, w.table, at, sums, ring, keys),                                             \
           HOSTS(y))
    ck_fails(ATTEMPT(map, keys), ATTNCL_ERR_SHAPE, "wk is [16, 17], wq is [16, 16]");
    ck_fails(ATTEMPT(w.wk, three), ATTNCL_ERR_SHAPE, "keys is [3, 16], expected [2, 16]");
#undef ATTEMPT
}
