// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_masked_softmax_fwd(const struct host *x, const struct host *lens, struct host *y)
{
    struct host *scores = host_like(x);
    const int64_t n_queries = x->dim[1], n_keys = x->dim[2];

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t row = i / n_keys;
        const double len = !lens             ? (double)n_keys
                           : lens->rank == 1 ? lens->data[row / n_queries]
                                             : lens->data[row];
        scores->data[i] = (double)(i % n_keys) < len ? x->data[i] : -1e6;
    }
    ref_softmax_fwd(scores, y);
}

// dx_c = y_c (dy_c - sum_k y_k dy_k), and 0 from a row's length on
void ref_softmax_bwd(const struct host *y, const struct host *dy, struct host *dx)
{
    ref_masked_softmax_bwd(y, dy, NULL, dx);
}

// lens: [B] or [B, Q] of y [B, Q, K], NULL: none
void ref_masked_softmax_bwd(const struct host *y, const struct host *dy, const struct host *lens,
                            struct host *dx)
{
    const int64_t width = y->dim[y->rank - 1];

    for (int64_t first = 0; first < y->count; first += width) {
        const int64_t row = first / width, per = lens ? y->count / width / lens->count : 1;
        const double length = lens ? lens->data[row / per] : (double)width;
        double sum = 0;
        for (int64_t k = first; k < first + width; ++k)
            sum += y->data[k] * dy->data[k];
        for (int64_t k = first; k < first + width; ++k)
            dx->data[k] = (double)(k - first) < length ? y->data[k] * (dy->data[k] - sum) : 0;
    }
}

// -- the op

static void masked_softmax(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_masked_softmax_fwd(in[0], in[1], out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    struct host *y = host_like(in[0]);

    masked_softmax(params, in, &y);
    ref_masked_softmax_bwd(y, dy[0], in[1], dx[0]);
}

SPEC_BUILD(build, attncl_masked_softmax(g, in[0], in[1]))

// As for softmax: the subtraction's rounding (spans), exp, the division and the row's sum.  Lengths: none, within a
// vector, its end, all, beyond the row, negative.
OP_SPEC(masked_softmax_fwd, .in = "x f32 B Q K; valid_lens? i32:-3:K+4 B", .out = "y f32 B Q K",
        .ref = masked_softmax, .build = build, .grad = "x", .ref_bwd = gradient,
        .grad_data = SPAN90, .rel = 10, .spans = true, .chain = 'K', .tiny = 2e-38,
        .smoke = "B=8 Q=3 K=37; B=3 Q=7 K=19,36; B=4 Q=1 K=1; B=2 Q=3 K=300",
        .gpu = "B=16 Q=4096 K=64,1023,1024,50257", .full = "B=2 Q=3 K=8200",
        .special = "B=2 Q=3 K=21", .data = SPAN90 | MINUS_INF | NAN_ROWS | INT_ENDS,
        .cases = {{"plain", .smoke = "B=2 Q=3 K=33"},
                  {"lengths", .with = "valid_lens i32:-3:K+4 B"},
                  {"lengths of rows", .with = "valid_lens i32:-3:K+4 B Q"}});
