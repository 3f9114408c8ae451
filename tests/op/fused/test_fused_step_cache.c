// SPDX-License-Identifier: MIT
// Fused steps of attention and AFT whose caches or rings have 16 bits: they store what they project rounded to
// their type, and read what is stored.
// Reference: tests/support/fused_step_test.c, tests/ref/attention_step.c, tests/ref/aft.c.

#include <math.h>

#include "device/context.h"
#include "op/fused/fused.h"
#include "ref/ref.h"
#include "support/fused_step_test.h"

enum { D = 16, CHANNELS = 96, HEADS = 2, LIMIT = 80 };

struct caches {
    struct host *keys, *values;
    int32_t window;
    float softcap;
    struct host *slopes;
    bool is_ring;
};

static struct host *map_of(unsigned seed, int64_t channels)
{
    struct host *w = host_random(seed, DIMS(channels, D));
    host_scale(w, 1 / sqrt((double)D));
    return w;
}

// Row t is z W^T + b: within half a step of its type, and the rounding of the product.
static void ck_row(const struct host *cache, int t, const struct stream *s, const struct host *w,
                   const struct host *bias)
{
    const struct host *want = map_rows(s->z, w, bias), *size = map_sizes(s->z, w, bias);
    const double step = cache->dtype == ATTNCL_F16 ? 0x1p-11 : 0x1p-8;

    for (int64_t i = 0; i < want->count; ++i) {
        const double got = cache->data[t * want->count + i];
        const double slack = 4e-6 * size->data[i] + 0x1p-24;
        ck_assert_msg(fabs(got - want->data[i]) <= step * (fabs(want->data[i]) + slack) + slack,
                      "position %d, element %d is %.9g, expected %.9g", t, (int)i, got,
                      want->data[i]);
    }
}

// Position t, with the caches as the steps before left them.
static void check_step(int64_t m, int t, int n_heads, struct caches *c)
{
    const int64_t kv_channels = c->keys->dim[2], row = c->is_ring ? t % LIMIT : t;
    const struct stream s = stream_make(100 + 10 * (unsigned)t, m, D, t % 2);
    const struct fused_step_fwd_params params = {
        .kind = FUSED_ATTENTION,
        .n_blocks = 2,
        .eps = stream_eps,
        .attention = {(float)(1 / sqrt((double)(CHANNELS / n_heads))), n_heads, 0, c->window,
                      c->softcap, .ring = c->is_ring},
    };
    struct host *wq = map_of(1, CHANNELS), *wk = map_of(2, kv_channels),
                *wv = map_of(3, kv_channels);
    struct host *wo = host_random(4, DIMS(D, CHANNELS)), *bk = host_random(5, DIMS(kv_channels));
    struct host *partials = host_new(ATTNCL_F32, DIMS(params.n_blocks, m, D));
    const attncl_status status =
        run_op("fused_step_fwd", &params,
               HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, wq, NULL, wk, bk, wv,
                     NULL, wo, c->slopes, host_index(t), NULL, c->keys, c->values),
               (struct host *const[]){partials, host_like(s.x)}, s.partials ? 2 : 1);
    if (test_context()->caps.variant != VARIANT_CPU || test_context()->caps.max_loop_iterations) {
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be one launch on this device");
        return;
    }
    ck_ok(status);
    ck_row(c->keys, (int)row, &s, wk, bk);
    ck_row(c->values, (int)row, &s, wv, NULL);

    struct host *q = map_rows(s.z, wq, NULL), *y = host_like(q), *size = host_like(q);
    struct host *k = host_row(c->keys, row), *v = host_row(c->values, row);
    struct host *sizes = host_copy(c->values);
    for (int64_t i = 0; i < sizes->count; ++i)
        sizes->data[i] = fabs(sizes->data[i]);
    ref_attention_step_fwd(q, k, v, c->slopes, t, &params.attention, c->keys, c->values, y);
    ref_attention_step_fwd(q, k, host_row(sizes, row), c->slopes, t, &params.attention, c->keys,
                           sizes, size);
    ck_partials(partials, map_rows(y, wo, NULL), map_sizes(size, wo, NULL), 2e-5);
}

static void check(attncl_dtype dtype, int64_t m, int steps)
{
    struct caches c = {.keys = host_new(dtype, DIMS(LIMIT, m, CHANNELS)),
                       .values = host_new(dtype, DIMS(LIMIT, m, CHANNELS))};
    for (int t = 0; t < steps; ++t)
        check_step(m, t, HEADS, &c);
}

TEST(rounds_what_it_stores)
{
    check(ATTNCL_F16, 1, 3);
    check(ATTNCL_BF16, 1, 3);
    check(ATTNCL_F16, 5, 2);
}

// More keys than are scored at once.
TEST(many_keys)
{
    static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
    for (size_t i = 0; i < COUNT_OF(dtypes); ++i) {
        struct caches c = {.keys = host_random(6, DIMS(LIMIT, 1, CHANNELS)),
                           .values = host_random(7, DIMS(LIMIT, 1, CHANNELS))};
        host_stored(c.keys, dtypes[i]);
        host_stored(c.values, dtypes[i]);
        check_step(1, LIMIT - 1, HEADS, &c);
        check_step(1, 70, HEADS, &c);
    }
}

// Heads of several rows share their keys, a chunk and a few more of them.
TEST(shared_keys)
{
    enum { SHARED = CHANNELS / 3 };
    struct caches c = {.keys = host_stored(host_random(6, DIMS(LIMIT, 2, SHARED)), ATTNCL_F16),
                       .values = host_stored(host_random(7, DIMS(LIMIT, 2, SHARED)), ATTNCL_F16)};
    check_step(2, 70, 6, &c);
}

// Of the keys so far the last ones, whose scores are capped.
TEST(window_and_soft_cap)
{
    struct caches c = {.keys = host_random(6, DIMS(LIMIT, 1, CHANNELS)),
                       .values = host_random(7, DIMS(LIMIT, 1, CHANNELS)),
                       .window = 40,
                       .softcap = 0.25f};
    check_step(1, 30, HEADS, &c);
    check_step(1, 70, HEADS, &c);
}

// Positions that have wrapped once, twice, and not yet.
TEST(rings)
{
    struct caches c = {.keys = host_random(6, DIMS(LIMIT, 2, CHANNELS)),
                       .values = host_random(7, DIMS(LIMIT, 2, CHANNELS)),
                       .is_ring = true};
    check_step(2, LIMIT + 5, HEADS, &c);
    check_step(2, 2 * LIMIT, HEADS, &c);
    check_step(2, 5, HEADS, &c);
}

// Two rows; two groups of heads that share their keys.
TEST(slopes)
{
    enum { SHARED = CHANNELS / 3 };
    struct caches c = {.keys = host_random(6, DIMS(LIMIT, 2, SHARED)),
                       .values = host_random(7, DIMS(LIMIT, 2, SHARED)),
                       .slopes = host_random(8, DIMS(6))};
    check_step(2, 70, 6, &c);
}

static void copy_row(struct host *to, int t, const struct host *from, int row)
{
    const int64_t count = to->count / to->dim[0];
    memcpy(to->data + t * count, from->data + row * count, (size_t)count * sizeof *to->data);
}

// Rings that wrap.  What has left the window is in the sums as it was stored.
static void check_aft(attncl_dtype dtype, int64_t m, int window)
{
    enum { STEPS = 7 };
    const struct fused_step_fwd_params params = {
        .kind = FUSED_AFT, .n_blocks = 2, .eps = stream_eps, .aft = {.window = window}};
    struct host *wq = map_of(1, CHANNELS), *wk = map_of(2, CHANNELS), *wv = map_of(3, CHANNELS);
    struct host *wo = host_random(4, DIMS(D, CHANNELS)), *bk = host_random(5, DIMS(CHANNELS));
    struct host *table = host_random(6, DIMS(STEPS, STEPS));
    struct host *sums = host_new(ATTNCL_F32, DIMS(3, m * CHANNELS));
    struct caches ring = {.keys = host_new(dtype, DIMS(window, m * CHANNELS)),
                          .values = host_new(dtype, DIMS(window, m * CHANNELS))};
    struct host *q = host_new(ATTNCL_F32, DIMS(STEPS, m, CHANNELS)), *k = host_like(q);
    struct host *v = host_like(q), *y = host_like(q), *size = host_like(q);

    for (int t = 0; t < STEPS; ++t) {
        const struct stream s = stream_make(100 + 10 * (unsigned)t, m, D, t % 2);
        struct host *partials = host_new(ATTNCL_F32, DIMS(params.n_blocks, m, D));
        ck_ok(run_op("fused_step_fwd", &params,
                     HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, wq, NULL, wk, bk,
                           wv, NULL, wo, table, host_index(t), sums, ring.keys, ring.values),
                     (struct host *const[]){partials, host_like(s.x)}, s.partials ? 2 : 1));
        ck_row(ring.keys, t % window, &s, wk, bk);
        ck_row(ring.values, t % window, &s, wv, NULL);
        copy_row(q, t, map_rows(s.z, wq, NULL), 0);
        copy_row(k, t, ring.keys, t % window);
        copy_row(v, t, ring.values, t % window);
        ref_aft_local_fwd(q, k, v, table, NULL, window, 1, y, size);
        ck_partials(partials, map_rows(host_row(y, t), wo, NULL),
                    map_sizes(host_row(size, t), wo, NULL), 3e-5);
    }
}

TEST(aft_rounds_what_it_stores)
{
    if (test_context()->caps.variant != VARIANT_CPU || test_context()->caps.max_loop_iterations)
        return;
    check_aft(ATTNCL_F16, 1, 3);
    check_aft(ATTNCL_BF16, 1, 7);
    check_aft(ATTNCL_F16, 5, 1);
}
