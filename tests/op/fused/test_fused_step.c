// SPDX-License-Identifier: MIT
// Fused steps of AFT, attention and feed-forward layers, split into channel blocks, position by
// position, against the references of what they fuse: layer norm, input projections, the inner
// step, the output projection.
// Reference: tests/support/fused_step_test.c, tests/ref/aft.c, tests/ref/activation.c, attention here.

#include <math.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "op/fused/fused.h"
#include "ref/ref.h"
#include "support/fused_step_test.h"

struct layer {
    enum fused_step_kind kind;
    int64_t m, d, channels, d_out, n_partials;
    int steps, n_blocks; // n_blocks 0: as many as a device takes at most
    bool biased;
    int window, n_heads;
    double scale; // of the weights that an exponential amplifies
    bool tabled;  // AFT: position biases
    int activation;
};

// Relative to sums of absolute values.  AFT, attention: an error of a key or a score is one of the
// weight e^k or e^score.  Feed-forward: chains of some 100 FMAs, the norm's and the activation's
// roundings.
static const double tolerances[] = {
    [FUSED_AFT] = 3e-5, [FUSED_ATTENTION] = 2e-5, [FUSED_FFN] = 4e-6};

static int n_projections(const struct layer *l)
{
    return l->kind == FUSED_FFN ? 1 : 3;
}

struct weights {
    struct host *in[3], *bias[3], *out, *table;
};

// Weights of this type.
static struct weights weights_of(const struct layer *l, attncl_dtype stored)
{
    const int amplified = l->kind == FUSED_AFT ? 1 : 0; // keys; queries
    struct weights w = {
        .out = host_random(34, DIMS(l->d_out, l->channels)),
        .table = l->tabled ? host_random(35, DIMS(l->steps, l->steps)) : NULL,
    };

    for (int i = 0; i < n_projections(l); ++i) {
        w.in[i] = host_random(31 + (unsigned)i, DIMS(l->channels, l->d));
        w.bias[i] = l->biased ? host_random(36 + (unsigned)i, DIMS(l->channels)) : NULL;
        if (l->kind != FUSED_FFN)
            host_scale(w.in[i], (i == amplified ? l->scale : 1) / sqrt((double)l->d));
        if (stored != ATTNCL_F32)
            host_stored(w.in[i], stored);
    }
    if (stored != ATTNCL_F32)
        host_stored(w.out, stored);
    return w;
}

static struct stream stream_at(const struct layer *l, int t)
{
    return stream_make(100 + 10 * (unsigned)t, l->m, l->d, l->n_partials);
}

// y = sum_j p_j v_j of one head of one row over positions 0 .. t, size = sum_j p_j |v_j|.  q: its
// query; k, v: element (j, c) at [j * stride + c].
static void attend(const double *q, const double *k, const double *v, int64_t stride, int t,
                   int64_t head, double *y, double *size)
{
    double row_max = -INFINITY, total = 0, score[64];

    for (int j = 0; j <= t; ++j) {
        score[j] = 0;
        for (int64_t c = 0; c < head; ++c)
            score[j] += q[c] * k[j * stride + c] / sqrt((double)head);
        row_max = fmax(row_max, score[j]);
    }
    for (int j = 0; j <= t; ++j)
        total += exp(score[j] - row_max);
    for (int64_t c = 0; c < head; ++c) {
        y[c] = size[c] = 0;
        for (int j = 0; j <= t; ++j) {
            const double p = exp(score[j] - row_max) / total;
            y[c] += p * v[j * stride + c];
            size[c] += p * fabs(v[j * stride + c]);
        }
    }
}

// The inner step's results of all positions, [steps, m, C], and what their error is relative to.
static void reference(const struct layer *l, const struct weights *w, struct host *y,
                      struct host *size)
{
    const int64_t row = l->m * l->channels, head = l->n_heads ? l->channels / l->n_heads : 0;
    struct host *in[3];

    for (int i = 0; i < n_projections(l); ++i) {
        in[i] = host_like(y);
        for (int t = 0; t < l->steps; ++t) {
            const struct host *z = stream_at(l, t).z;
            const struct host *mapped = map_rows(z, w->in[i], w->bias[i]);
            memcpy(in[i]->data + t * row, mapped->data, (size_t)row * sizeof *mapped->data);
            if (l->kind == FUSED_FFN)
                memcpy(size->data + t * row, map_sizes(z, w->in[i], w->bias[i])->data,
                       (size_t)row * sizeof *size->data);
        }
    }
    if (l->kind == FUSED_AFT)
        ref_aft_local_fwd(in[0], in[1], in[2], w->table, NULL, l->window, 1, y, size);
    else if (l->kind == FUSED_FFN)
        ref_activation_fwd(in[0], l->activation, y);
    else
        for (int t = 0; t < l->steps; ++t)
            for (int64_t i = 0; i < row; i += head)
                attend(in[0]->data + t * row + i, in[1]->data + i, in[2]->data + i, row, t, head,
                       y->data + t * row + i, size->data + t * row + i);
}

static struct fused_step_fwd_params params_of(const struct layer *l)
{
    const struct device_caps *caps = &test_context()->caps;
    const int64_t head = l->n_heads ? l->channels / l->n_heads : 0;
    const int64_t granule = l->n_heads ? head : (int64_t)caps->vector_width;
    const int64_t granules = ceil_div(l->channels, granule);
    const int64_t wanted = l->n_blocks ? l->n_blocks : 2 * (int64_t)caps->compute_units;
    const int64_t per_block = ceil_div(granules, wanted);

    return (struct fused_step_fwd_params){
        .kind = l->kind,
        .n_blocks = (int32_t)ceil_div(granules, per_block),
        .eps = stream_eps,
        .aft = {.window = l->window},
        .attention = {head ? (float)(1 / sqrt((double)head)) : 1, l->n_heads},
        .activation = l->activation,
    };
}

static void check_stored(const struct layer *l, attncl_dtype stored)
{
    const int64_t ring = l->kind == FUSED_AFT ? (l->window > 0 ? l->window : 1) : l->steps;
    const struct weights w = weights_of(l, stored);
    const struct fused_step_fwd_params params = params_of(l);
    const bool aft = l->kind == FUSED_AFT, ffn = l->kind == FUSED_FFN;
    struct host *y = host_new(ATTNCL_F32, DIMS(l->steps, l->m, l->channels)), *size = host_like(y);
    struct host *sums = aft ? host_new(ATTNCL_F32, DIMS(3, l->m * l->channels)) : NULL;
    struct host *keys = aft ? host_new(ATTNCL_F32, DIMS(ring, l->m * l->channels)) : host_like(y);
    struct host *values = host_like(keys), *at = host_new(ATTNCL_I32, DIMS(1));
    struct host *partials = host_new(ATTNCL_F32, DIMS(params.n_blocks, l->m, l->d_out));

    reference(l, &w, y, size);
    for (int t = 0; t < l->steps; ++t) {
        const struct stream s = stream_at(l, t);
        struct host *reduced = host_like(s.x);
        // A position outside of attention's caches counts as the nearest.
        const int aside = l->kind != FUSED_ATTENTION ? 0 : t == 0 ? -2 : t == l->steps - 1 ? 2 : 0;
        at->data[0] = t + aside;
        const attncl_status status =
            run_op("fused_step_fwd", &params,
                   HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, w.in[0], w.bias[0],
                         w.in[1], w.bias[1], w.in[2], w.bias[2], w.out, w.table, ffn ? NULL : at,
                         sums, ffn ? NULL : keys, ffn ? NULL : values),
                   (struct host *const[]){partials, reduced}, s.partials ? 2 : 1);
        if (test_context()->caps.variant != VARIANT_CPU ||
            test_context()->caps.max_loop_iterations) {
            ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be one launch on this device");
            return;
        }
        ck_ok(status);
        ck_partials(partials, map_rows(host_row(y, t), w.out, NULL),
                    map_sizes(host_row(size, t), w.out, NULL), tolerances[l->kind]);
        if (s.partials)
            ck_near(reduced, s.reduced, 1e-5, 1e-5);
    }
    if (!w.table)
        return;
    // A position beyond the table gives NaN and leaves the state alone.
    const struct stream s = stream_at(l, 0);
    const struct host *before = host_copy(sums);
    at->data[0] = (double)w.table->dim[0];
    ck_ok(run_op("fused_step_fwd", &params,
                 HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, w.in[0], w.bias[0],
                       w.in[1], w.bias[1], w.in[2], w.bias[2], w.out, w.table, at, sums, keys,
                       values),
                 (struct host *const[]){partials, host_like(s.x)}, s.partials ? 2 : 1));
    for (int64_t i = 0; i < partials->count; ++i)
        ck_assert(isnan(partials->data[i]));
    for (int64_t i = 0; i < sums->count; ++i)
        ck_assert(sums->data[i] == before->data[i]);
}

static void check(const struct layer *l)
{
    check_stored(l, ATTNCL_F32);
}

static const struct layer layers[] = {
    // AFT.  Rings that wrap, one that never fills, none; few and many rows; keys far apart.
    {FUSED_AFT, 1, 16, 16, 16, 0, 5, 1, true, 2, 0, 1, true, 0},
    {FUSED_AFT, 1, 32, 64, 48, 2, 6, 4, true, 3, 0, 1, true, 0},
    {FUSED_AFT, 2, 16, 32, 16, 1, 5, 2, false, 2, 0, 20, true, 0},
    {FUSED_AFT, 5, 16, 48, 32, 3, 3, 0, true, 9, 0, 1, true, 0},
    {FUSED_AFT, 3, 16, 32, 16, 1, 4, 2, true, 0, 0, 1, false, 0},
    // Attention.  One head and several, shared out evenly and not; scores far apart.
    {FUSED_ATTENTION, 1, 16, 16, 16, 0, 3, 1, true, 0, 1, 1, false, 0},
    {FUSED_ATTENTION, 1, 32, 64, 48, 2, 5, 4, true, 0, 4, 1, false, 0},
    {FUSED_ATTENTION, 2, 16, 48, 16, 1, 4, 2, false, 0, 3, 20, false, 0},
    {FUSED_ATTENTION, 5, 16, 64, 32, 3, 3, 2, true, 0, 2, 1, false, 0},
    {FUSED_ATTENTION, 3, 16, 32, 16, 1, 4, 1, true, 0, 2, 1, false, 0},
    // Feed-forward.
    {FUSED_FFN, 1, 16, 16, 16, 1, 1, 1, true, 0, 0, 1, false, ATTNCL_RELU},
    {FUSED_FFN, 1, 48, 96, 32, 0, 1, 0, true, 0, 0, 1, false, ATTNCL_GELU},
    {FUSED_FFN, 2, 32, 64, 48, 3, 1, 4, false, 0, 0, 1, false, ATTNCL_GELU_TANH},
    {FUSED_FFN, 5, 32, 48, 32, 2, 1, 2, true, 0, 0, 1, false, ATTNCL_SILU},
    {FUSED_FFN, 16, 16, 32, 16, 1, 1, 2, false, 0, 0, 1, false, ATTNCL_RELU},
    {FUSED_FFN, 3, 16, 80, 16, 4, 1, 0, true, 0, 0, 1, false, ATTNCL_TANH},
};

LOOP_TEST(matches_the_references, 0, COUNT_OF(layers))
{
    check(&layers[_i]);
}

// Two of each kind.
LOOP_TEST(weights_of_16_bits, 0, 6)
{
    check_stored(&layers[3 * _i], _i % 2 ? ATTNCL_F16 : ATTNCL_BF16);
}

// More keys than are scored at once.
TEST(many_keys)
{
    const int steps = on_simulator() ? 20 : 64;
    check(&(struct layer){FUSED_ATTENTION, 1, 16, 16, 16, 0, steps, 1, true, 0, 1, 1, false, 0});
}

// One attempt with the inputs of layer `l`, of which wk or w1, wo or w2 and the keys may be others.
static attncl_status attempt(const struct layer *l, const struct fused_step_fwd_params *params,
                             struct host *second, struct host *out, struct host *keys)
{
    const struct weights w = weights_of(l, ATTNCL_F32);
    const struct stream s = stream_at(l, 0);
    const bool ffn = l->kind == FUSED_FFN;
    struct host *at = ffn ? NULL : host_new(ATTNCL_I32, DIMS(1));
    struct host *sums =
        l->kind == FUSED_AFT ? host_new(ATTNCL_F32, DIMS(3, l->m * l->channels)) : NULL;
    struct host *partials = host_new(ATTNCL_F32, DIMS(params->n_blocks, l->m, l->d_out));

    return run_op("fused_step_fwd", params,
                  HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias,
                        ffn && second ? second : w.in[0], w.bias[0],
                        !ffn && second ? second : w.in[1], w.bias[1], w.in[2], w.bias[2],
                        out ? out : w.out, w.table, at, sums, keys, keys),
                  HOSTS(partials, host_like(s.x)));
}

TEST(refuses_aft)
{
    const struct layer l = {FUSED_AFT, 1, 16, 16, 16, 0, 4, 1, true, 2, 0, 1, true, 0};
    struct fused_step_fwd_params params = params_of(&l);
    struct host *keys = host_new(ATTNCL_F32, DIMS(2, 16)), *map = host_random(2, DIMS(16, 17));

    ck_fails(attempt(&l, &params, map, NULL, keys), ATTNCL_ERR_SHAPE,
             "wk is [16, 17], must be [K, D] with D = 16 as x");
}

TEST(refuses_attention)
{
    const struct layer l = {FUSED_ATTENTION, 1, 16, 32, 16, 0, 4, 1, true, 0, 2, 1, false, 0};
    struct fused_step_fwd_params params = params_of(&l);
    struct host *keys = host_new(ATTNCL_F32, DIMS(4, 1, 32)), *map = host_random(2, DIMS(32, 17));

    ck_fails(attempt(&l, &params, map, NULL, keys), ATTNCL_ERR_SHAPE,
             "wk is [32, 17], must be [K, D] with D = 16 as x");
    params.attention.n_heads = 16; // heads narrower than any vector
    ck_fails(attempt(&l, &params, NULL, NULL, keys), ATTNCL_ERR_UNSUPPORTED,
             "a step of attention with 1 rows and 32 channels in 1 blocks cannot be one launch");
}

TEST(refuses_feed_forward)
{
    const struct layer l = {FUSED_FFN, 2, 16, 32, 16, 1, 1, 1, false, 0, 0, 1, false, ATTNCL_RELU};
    struct fused_step_fwd_params params = params_of(&l);
    struct host *other = host_random(3, DIMS(16, 48));
    const struct layer wide = {FUSED_FFN, 2,     17, 32, 16, 1,     1,
                               1,         false, 0,  0,  1,  false, ATTNCL_RELU};

    ck_fails(attempt(&l, &params, other, NULL, NULL), ATTNCL_ERR_SHAPE,
             "wq is [16, 48], must be [C, D] with D = 16 as x");
    ck_fails(attempt(&l, &params, NULL, other, NULL), ATTNCL_ERR_SHAPE,
             "wo is [16, 48], must be [E, C] with C = 32 as wq [32, 16]");
    const struct stream s = stream_at(&l, 0), many = stream_at(&wide, 0);
    const struct weights w = weights_of(&l, ATTNCL_F32);
    ck_refused("fused_step_fwd", &params,
               HOSTS(s.x, s.norm_weight, s.norm_bias, many.partials, s.bias, w.in[0], NULL, NULL,
                     NULL, NULL, NULL, w.out),
               ATTNCL_ERR_SHAPE, "partials is [1, 2, 17], must be [S, M, D] with D = 16 as x");
    params.n_blocks = 1000;
    ck_fails(attempt(&l, &params, NULL, NULL, NULL), ATTNCL_ERR_UNSUPPORTED,
             "1000 blocks cannot be one launch");
}
