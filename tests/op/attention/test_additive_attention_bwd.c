// SPDX-License-Identifier: MIT
// Gradients of additive attention against their reference (tests/ref/additive_attention_bwd.c),
// and that against differences.

#include <math.h>

#include "ref/ref.h"
#include "support/derivative.h"
#include "support/op_test.h"

enum { Q, K, V, W, LENS, STEP, POSITION, G, C, N_IN };

// Relative to the sum of the sizes of all terms: p to twice what a score of some hundred terms is
// off, 4e-6, and sums.
static const double tolerance = 1e-5;

static void fill(struct host **in, int64_t batch, int64_t n_queries, int64_t n_keys, int64_t n,
                 int64_t width, struct host *lens, bool weights)
{
    in[Q] = host_random(1, DIMS(batch, n_queries, n));
    in[K] = host_random(2, DIMS(batch, n_keys, n));
    in[V] = host_random(3, DIMS(batch, n_keys, width));
    in[W] = n % 2 ? host_random(4, DIMS(n)) : host_random(4, DIMS(1, n));
    in[LENS] = lens;
    in[STEP] = in[POSITION] = NULL;
    in[G] = host_random(5, DIMS(batch, n_queries, width));
    in[C] = weights ? host_random(6, DIMS(batch, n_queries, n_keys)) : NULL;
}

// mask: factors of the weights, NULL: 1.
static void check_masked(struct host *const *in, const struct additive_attention_bwd_params *params,
                         const struct host *mask)
{
    static const char *const names[] = {"dq", "dk", "dv", "dw"};
    struct host *got[4], *want[4], *size[4];

    for (int i = 0; i < 4; ++i) {
        got[i] = host_like(in[i]);
        want[i] = host_like(in[i]);
        size[i] = host_like(in[i]);
    }
    ref_additive_attention_bwd(in, mask, false, want);
    ref_additive_attention_bwd(in, mask, true, size);
    ck_ok(run_op("additive_attention_bwd", params, in, N_IN, got, 4));
    for (int i = 0; i < 4; ++i)
        ck_terms(got[i], want[i], size[i], tolerance, 1e-30, names[i]);
}

static void check(struct host *const *in)
{
    check_masked(in, NULL, NULL);
}

// position: -1: none.
static void check_dropped(struct host **in, double p, int64_t position)
{
    const struct ref_dropout d = {p, 0x123456789u, 5, 77};
    const struct additive_attention_bwd_params params = {
        .attention.dropout = {.p = p, .seed = d.seed, .site = d.site}};
    struct host *mask = host_new(ATTNCL_F32, DIMS(in[Q]->dim[0], in[Q]->dim[1], in[K]->dim[1]));

    for (int64_t i = 0; i < mask->count; ++i)
        mask->data[i] = 1;
    ref_dropout_fwd(&d, mask, position < 0 ? 0 : position, NULL, mask);
    in[STEP] = host_new(ATTNCL_I32, 0, NULL);
    in[STEP]->data[0] = d.step;
    in[POSITION] = position < 0 ? NULL : host_index((double)position);
    check_masked(in, &params, mask);
}

TEST(weights_are_dropped_by_the_same_mask)
{
    struct host *lens = host_with(ATTNCL_I32, (const double[]){0, 1, 13, 1000}, DIMS(4));
    struct host *in[N_IN];

    fill(in, 1, 1, 1, 1, 1, NULL, true);
    check_dropped(in, 0.3, -1);
    fill(in, 2, 3, 5, 4, 6, NULL, false);
    check_dropped(in, 0.3, 7);
    fill(in, 1, 2, 70, 33, 17, NULL, true);
    check_dropped(in, 0.4, -1);
    fill(in, 4, 3, 23, 7, 9, lens, true);
    check_dropped(in, 0.5, 2);
    check_dropped(in, 1, 2);
}

TEST(matches_the_reference)
{
    struct host *one = host_with(ATTNCL_I32, (const double[]){0, 1, 13, 1000}, DIMS(4)),
                *two = host_ints(9, -2, 25, DIMS(4, 3));
    struct host *in[N_IN];

    fill(in, 1, 1, 1, 1, 1, NULL, true);
    check(in);
    fill(in, 2, 3, 5, 4, 6, NULL, false);
    check(in);
    fill(in, 1, 2, 70, 33, 17, NULL, true);
    check(in);
    fill(in, 4, 3, 20, 7, 9, one, false);
    check(in);
    fill(in, 4, 3, 20, 8, 9, two, true);
    check(in);
}

TEST(empty_is_fine)
{
    struct host *in[N_IN];

    fill(in, 0, 2, 3, 4, 5, NULL, false);
    check(in);
    fill(in, 2, 0, 3, 4, 5, NULL, true);
    check(in);
    fill(in, 2, 3, 0, 4, 5, NULL, true);
    check(in);
}

static double loss(void *context)
{
    struct host **in = context, *y = host_like(in[G]), *p = host_like(in[C]);

    ref_additive_attention(in[Q], in[K], in[V], in[W], in[LENS], y, p);
    return host_dot(y, in[G]) + host_dot(p, in[C]);
}

LOOP_TEST(the_definition_meets_differences, 0, 2)
{
    struct host *in[N_IN], *out[4], *lens = host_with(ATTNCL_I32, (const double[]){3, 0}, DIMS(2));
    static const char *const names[] = {"q", "k", "v", "w"};

    fill(in, 2, 3, 4, 3, 2, _i ? lens : NULL, true);
    for (int i = 0; i < 4; ++i)
        out[i] = host_like(in[i]);
    ref_additive_attention_bwd(in, NULL, false, out);
    for (int i = 0; i < 4; ++i)
        ck_derivative(loss, in, in[i], out[i], names[i]);
}
