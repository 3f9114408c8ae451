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
