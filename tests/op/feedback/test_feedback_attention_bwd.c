// SPDX-License-Identifier: MIT
// Gradients that steps gather in a growing memory, against the reference (tests/ref/feedback_attention_bwd.c); of memories
// that are given: test_feedback_attention.c.

#include <math.h>

#include "ref/ref.h"
#include "support/op_test.h"

struct shape {
    int64_t n, batch, n_heads, width, n_places; // S, B, H, D, P
};

// Sums of S terms and of D products, scores of D terms whose error the exponential passes on: in
// units of operands of at most 1 in size and gradients of at most their sums.
static double atol_for(struct shape s)
{
    return 16 * (double)(s.width + s.n + 30) * ldexp(1, -24) * sqrt((double)s.width);
}

static struct ref_feedback random_operands(struct shape s, bool split)
{
    return (struct ref_feedback){
        .q = host_random(1, DIMS(s.batch, s.n_heads * s.width)),
        .k = host_random(2, DIMS(s.n, s.batch, s.n_heads, s.width)),
        .v = host_random(3, DIMS(s.n, s.batch, s.n_heads, s.width)),
        .places = host_random(4, DIMS(s.n_places, s.n_heads, s.width)),
        .u = host_random(5, DIMS(s.n_heads, s.width)),
        .place_bias = split ? host_random(6, DIMS(s.n_places, s.n_heads)) : NULL,
    };
}

static const struct ref_dropout some_dropped = {0.3, 0x123456789u, 5, 77};

static struct host *step_of(const struct ref_dropout *d)
{
    struct host *step = host_new(ATTNCL_I32, 0, NULL);
    step->data[0] = d->step;
    return step;
}

static struct ref_feedback zeros_like(const struct ref_feedback *x)
{
    return (struct ref_feedback){
        .q = host_like(x->q),
        .k = host_like(x->k),
        .v = host_like(x->v),
        .places = host_like(x->places),
        .u = host_like(x->u),
        .place_bias = x->place_bias ? host_like(x->place_bias) : NULL,
    };
}

// The operands of the places' op, from those of the query's.
static void check_places(const struct ref_feedback *x, struct host *scores, struct host *parts,
                         struct host *position, const struct ref_feedback *want, double atol)
{
    const struct ref_feedback got = zeros_like(x);

    ck_ok(run_op("feedback_attention_bwd_positions", NULL,
                 HOSTS(x->q, x->u, scores, parts, x->places, x->place_bias, position),
                 (struct host *const[]){got.places, got.u, got.place_bias}, x->place_bias ? 3 : 2));
    ck_near(got.places, want->places, 0, atol * (double)x->q->dim[0]);
    ck_near(got.u, want->u, 0, atol * (double)x->q->dim[0]);
    if (x->place_bias)
        ck_near(got.place_bias, want->place_bias, 0, atol * (double)x->q->dim[0]);
}

// Slots 1 and 2 of [slots, B, H, S, D] against [S, B, H, D].
static double *in_slot(const struct host *cache, int64_t slot, int64_t memory, int64_t c)
{
    const int64_t *dim = cache->dim, width = dim[4], rows = dim[1] * dim[2];
    const int64_t j = memory / rows, row = memory % rows;
    return &cache->data[((slot * rows + row) * dim[3] + j) * width + c];
}

// A backward step adds to the memories there are at its position; the last step's starts them,
// unless told that they are started.
LOOP_TEST(growing_memories_gather_gradients, 0, 4)
{
    const struct shape s = {6, 2, 2, 5, 9};
    for (int i = 0; i < 4; ++i) {
        const int count = i < 3 ? 3 * i : 6;
        const struct feedback_attention_fwd_params params = {
            .slot = 1,
            .adds = i == 3,
            .dropout = {.p = _i >= 2 ? some_dropped.p : 0,
                        .seed = some_dropped.seed,
                        .site = some_dropped.site}};
        struct ref_feedback x = random_operands(s, _i % 2);
        const struct ref_feedback want = zeros_like(&x);
        struct host *dy = host_random(7, DIMS(2, 10)), *position = host_new(ATTNCL_I32, DIMS(1));
        struct host *cache = host_random(9, DIMS(4, 2, 2, 6, 5)), *before = host_like(cache);
        struct host *dq = host_like(x.q), *scores = host_new(ATTNCL_F32, DIMS(2, 2, 2, 6));
        struct host *parts = host_like(x.q);

        position->data[0] = count;
        x.grows = true;
        if (_i >= 2)
            x.dropout = some_dropped;
        for (int64_t e = 0; e < cache->count; ++e)
            before->data[e] = cache->data[e];
        ref_feedback_attention_bwd(&x, count, dy, NULL, &want);
        ck_ok(run_op("feedback_attention_bwd_accumulate", &params,
                     HOSTS(x.q, x.k, x.v, x.places, x.u, x.place_bias, position, dy, cache,
                           _i >= 2 ? step_of(&some_dropped) : NULL),
                     HOSTS(dq, scores, parts)));
        ck_near(dq, want.q, 0, atol_for(s));
        for (int64_t e = 0; e < x.k->count; ++e) {
            const int64_t memory = e / 5, c = e % 5;
            for (int64_t slot = 0; slot < 4; ++slot) {
                const double old = *in_slot(before, slot, memory, c);
                const double *d = slot == 1 ? want.k->data : want.v->data;
                const bool added = (slot == 1 || slot == 2) && memory / 4 < count;
                const double expected = !added ? old : i == 2 ? d[e] : old + d[e];
                ck_assert_double_eq_tol(*in_slot(cache, slot, memory, c), expected, atol_for(s));
            }
        }
        check_places(&x, scores, parts, position, &want, atol_for(s));
    }
}

TEST(refusals)
{
    const struct ref_feedback x = random_operands((struct shape){3, 2, 2, 3, 4}, false);
    const struct feedback_attention_fwd_params params = {.slot = 3};
    struct host *dy = host_new(ATTNCL_F32, DIMS(2, 5)), *one = host_new(ATTNCL_I32, DIMS(1));
    struct host *cache = host_new(ATTNCL_F32, DIMS(4, 2, 2, 3, 3));

    ck_refused("feedback_attention_bwd_query", NULL,
               HOSTS(x.q, x.k, x.v, x.places, x.u, NULL, NULL, dy), ATTNCL_ERR_SHAPE,
               "dy is [2, 5], must be [B, C] with C = 6 as query [2, 6]");
    ck_refused("feedback_attention_bwd_accumulate", &params,
               HOSTS(x.q, x.k, x.v, x.places, x.u, NULL, one, x.q, cache), ATTNCL_ERR_SHAPE,
               "from slot 3 on");
}
