// SPDX-License-Identifier: MIT
//
// dweight[v, :] = scale sum over r with tokens[r] = v of dy[r, :],   0 for v = untrained - 1

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

void ref_embedding_bwd(const struct host *tokens, const struct host *dy, double scale,
                       struct host *dweight)
{
    const int64_t width = dweight->dim[1];

    for (int64_t i = 0; i < dweight->count; ++i)
        dweight->data[i] = 0;
    for (int64_t i = 0; i < dy->count; ++i) {
        const double token = fmin(fmax(tokens->data[i / width], 0), (double)dweight->dim[0] - 1);
        dweight->data[(int64_t)token * width + i % width] += scale * dy->data[i];
    }
}

// -- the op

static void gradient(const void *params, struct host *const *in, struct host *const *out)
{
    const struct embedding_bwd_params *p = params;

    if (out[0]->count > 0)
        ref_embedding_bwd(in[0], in[2], (double)p->scale, out[0]);
    for (int64_t c = 0; c < out[0]->dim[1] && p->untrained > 0 && p->untrained <= out[0]->dim[0];
         ++c)
        out[0]->data[(p->untrained - 1) * out[0]->dim[1] + c] = 0;
}

// Sums of at most that many terms of size up to 6, each rounded.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const double n = spec_extent(p, 'R');

    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 1e-6 * fabs(want->data[i]) + 6 * 6e-8 * sqrt(n) * 4;
}

// Every token several times, few of the table's, always the same.
OP_SPEC(embedding_bwd, .in = "tokens i32:-2:V+2 R*; weight f32 V C; dy f32 R* C",
        .out = "dweight f32 V C", .ref = gradient, .allow = allow,
        .smoke = "R=3x5 V=7 C=19; R=700 V=65 C=33; R=- V=3 C=5", .full = "R=40 V=3000 C=5",
        .special = "R=4 V=5 C=21", .data = INT_ENDS,
        .cases = {{"all", SPEC_PARAMS(embedding_bwd, 1.5f, 0)},
                  {"padded", SPEC_PARAMS(embedding_bwd, 1.5f, 2)},
                  {"one", SPEC_PARAMS(embedding_bwd, 1.5f, 0), "tokens i32:4:5 R*",
                   .smoke = "R=300 V=9 C=16"}});
