// SPDX-License-Identifier: MIT
// A fused step of a layer of multi-head attention, split by heads, position by position, against
// the definitions of what it joins: layer norm, three maps, softmax attention over the keys so far,
// the output map.
// Reference: tests/support/fused_step_test.c and attention in the test.

#include <math.h>

#include "device/context.h"
#include "support/fused_step_test.h"

// An error of a score is one of a weight e^score; else sums of some hundred terms.
static const double tolerance = 2e-5;

struct layer {
    int64_t m, d, n_heads, head, d_out, n_before;
    int steps, n_blocks; // n_blocks: a divisor of n_heads
    double score_scale;
    bool biased;
};

struct weights {
    struct host *wq, *bq, *wk, *bk, *wv, *bv, *wo;
};

static struct weights weights_of(const struct layer *l)
{
    const int64_t channels = l->n_heads * l->head;
    const double size = 1 / sqrt((double)l->d);
    struct weights w = {
        .wq = host_random(31, DIMS(channels, l->d)),
        .wk = host_random(32, DIMS(channels, l->d)),
        .wv = host_random(33, DIMS(channels, l->d)),
        .wo = host_random(34, DIMS(l->d_out, channels)),
    };
    host_scale(w.wq, size * l->score_scale), host_scale(w.wk, size), host_scale(w.wv, size);
    if (l->biased) {
        w.bq = host_random(36, DIMS(channels));
        w.bk = host_random(37, DIMS(channels));
        w.bv = host_random(38, DIMS(channels));
    }
    return w;
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

static void put_row(struct host *all, int64_t t, const struct host *row)
{
    for (int64_t i = 0; i < row->count; ++i)
        all->data[t * row->count + i] = row->data[i];
}

static void check(const struct layer *l)
{
    const int64_t channels = l->n_heads * l->head, row = l->m * channels;
    const struct weights w = weights_of(l);
    const struct fused_attention_step_fwd_params params = {
        stream_eps, {(float)(1 / sqrt((double)l->head)), (int32_t)l->n_heads}, l->n_blocks};
    struct host *k = host_new(ATTNCL_F32, DIMS(l->steps, l->m, channels)), *v = host_like(k);
    struct host *keys = host_like(k), *values = host_like(k);
    struct host *y = host_new(ATTNCL_F32, DIMS(l->m, channels)), *size = host_like(y);
    struct host *at = host_new(ATTNCL_I32, DIMS(1));
    struct host *partials = host_new(ATTNCL_F32, DIMS(l->n_blocks, l->m, l->d_out));

    for (int t = 0; t < l->steps; ++t) {
        const struct stream s = stream_make(100 + 10 * (unsigned)t, l->m, l->d, l->n_before);
        const struct host *q = map_rows(s.z, w.wq, w.bq);
        struct host *reduced = host_like(s.x);
        put_row(k, t, map_rows(s.z, w.wk, w.bk));
        put_row(v, t, map_rows(s.z, w.wv, w.bv));
        for (int64_t i = 0; i < row; i += l->head)
            attend(q->data + i, k->data + i, v->data + i, row, t, l->head, y->data + i,
                   size->data + i);

        at->data[0] = t;
        const attncl_status status =
            run_op("fused_attention_step_fwd", &params,
                   HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, w.wq, w.bq, w.wk,
                         w.bk, w.wv, w.bv, w.wo, at, keys, values),
                   (struct host *const[]){partials, reduced}, s.partials ? 2 : 1);
        if (test_context()->caps.variant != VARIANT_CPU ||
            test_context()->caps.max_loop_iterations) {
            ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be one launch on this device");
            return;
        }
        ck_ok(status);
        ck_partials(partials, map_rows(y, w.wo, NULL), map_sizes(size, w.wo, NULL), tolerance);
        if (s.partials)
            ck_near(reduced, s.reduced, 1e-5, 1e-5);
    }
}

// One head and several, heads shared out evenly and not, few and many rows, scores far apart.
static const struct layer layers[] = {
    {1, 16, 1, 16, 16, 0, 3, 1, 1, true},   {1, 32, 4, 16, 48, 2, 5, 4, 1, true},
    {2, 16, 3, 16, 16, 1, 4, 2, 20, false}, {5, 16, 2, 32, 32, 3, 3, 2, 1, true},
    {3, 16, 2, 16, 16, 1, 4, 1, 1, true},
};

LOOP_TEST(meets_the_definitions, 0, sizeof layers / sizeof layers[0])
{
    check(&layers[_i]);
}

// More keys than are scored at once.
TEST(many_keys)
{
    check(&(struct layer){1, 16, 1, 16, 16, 0, on_simulator() ? 20 : 64, 1, 1, true});
}

TEST(refusals)
{
    const struct layer l = {1, 16, 2, 16, 16, 0, 4, 1, 1, true};
    const struct stream s = stream_make(1, 1, 16, 0);
    const struct weights w = weights_of(&l);
    struct fused_attention_step_fwd_params params = {stream_eps, {1, 2}, 1};
    struct host *at = host_new(ATTNCL_I32, DIMS(1)), *y = host_new(ATTNCL_F32, DIMS(1, 1, 16));
    struct host *keys = host_new(ATTNCL_F32, DIMS(4, 1, 32)), *values = host_like(keys);
    struct host *narrow = host_new(ATTNCL_F32, DIMS(4, 1, 31)), *map = host_random(2, DIMS(32, 17));

#define ATTEMPT(wk, cache)                                                                         \
    run_op("fused_attention_step_fwd", &params,                                                    \
           HOSTS(s.x, s.norm_weight, s.norm_bias, NULL, NULL, w.wq, w.bq, wk, w.bk, w.wv, w.bv,    \
                 w.wo, at, cache, values),                                                         \
           HOSTS(y))
    ck_fails(ATTEMPT(map, keys), ATTNCL_ERR_SHAPE, "wk is [32, 17], wq is [32, 16]");
    ck_fails(ATTEMPT(w.wk, narrow), ATTNCL_ERR_SHAPE, "the cache of keys is [4, 1, 31]");
    params.step.n_heads = 5;
    ck_fails(ATTEMPT(w.wk, keys), ATTNCL_ERR_SHAPE, "C = 32 cannot be cut into H = 5 heads");
    params.step.n_heads = 16; // less than any vector
    ck_fails(ATTEMPT(w.wk, keys), ATTNCL_ERR_UNSUPPORTED,
             "16 heads of 2 channels in 1 blocks cannot be one launch");
#undef ATTEMPT
}
