// SPDX-License-Identifier: MIT

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_embedding_fwd(const struct host *tokens, const struct host *weight, double scale,
                       struct host *y)
{
    const int64_t width = weight->dim[1];

    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = weight->data[(int64_t)tokens->data[i / width] * width + i % width] * scale;
}

// -- the op

static double scale_of(const void *params)
{
    return (double)((const struct embedding_fwd_params *)params)->scale;
}

static void embedding(const void *params, struct host *const *in, struct host *const *out)
{
    ref_embedding_fwd(in[0], in[1], scale_of(params), out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    ref_embedding_bwd(in[0], dy[0], scale_of(params), dx[1]);
}

#define SCALE(s) SPEC_PARAMS(embedding_fwd, s, 0)
SPEC_BUILD(build, attncl_embedding(g, in[0], in[1], (float)scale_of(params)))

OP_SPEC(embedding_fwd, .in = "tokens i32:0:V R*; weight f32 V C", .out = "y f32 R* C",
        .ref = embedding, .build = build, .grad = "weight", .ref_bwd = gradient,
        .grad_tolerance = 2e-6, .rel = 1.01, .nonzero = "V", .data = INT_ENDS,
        .smoke = "R=5x3 V=11 C=37; R=7 V=11 C=8; R=400 V=11 C=5; R=- V=3 C=64; R=2x1x40 V=1 C=1",
        .gpu = "R=8x1024 V=50257 C=512", .full = "R=- V=3 C=1000; R=700 V=65 C=33",
        .special = "R=4 V=5 C=21",
        .cases = {{"scaled", SCALE(22.627417f)},
                  {"plain", SCALE(1)},
                  {"F16", SCALE(22.6f), "weight f16 V C"},
                  {"BF16", SCALE(1), "weight bf16 V C", .gpu = "R=8x1024 V=50257 C=511,512"},
                  {"Q8", SCALE(22.6f), "weight q8 V C", .grad = "",
                   .smoke = "R=5x3 V=19 C=96; R=1 V=1 C=32", .full = "R=700 V=65 C=64",
                   .special = "", .gpu = "R=8x1024 V=50257 C=512"},
                  {"Q4", SCALE(1), "weight q4 V C", .grad = "", .smoke = "R=5x3 V=19 C=96",
                   .full = "R=700 V=65 C=64", .special = "", .gpu = "R=8x1024 V=50257 C=512"}});
