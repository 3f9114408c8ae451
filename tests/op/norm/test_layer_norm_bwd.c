// SPDX-License-Identifier: MIT
// The gradients of layer normalisation against their reference (tests/ref/layer_norm_bwd.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

static const struct layer_norm_bwd_params params = {1e-5f};

static void gradients(const void *p, struct host *const *in, struct host *const *out)
{
    (void)p;
    ref_layer_norm_bwd(in[0], in[1], in[2], (double)params.eps, out[0], out[1], out[2]);
}

// Sums of n terms of size up to 4, and the roundings of each: a row for dx, a column for the other two.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const double n = spec_extent(p, k == 0 ? 'C' : 'R');
    const double rounding = 4 * 6e-8 * (16 + 2 * sqrt(n)) * (k == 0 ? 4 : sqrt(n));

    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 4e-6 * fabs(want->data[i]) + rounding;
}

// Several blocks of rows, the last of which is short.
OP_SPEC(layer_norm_bwd, .in = "x f32 R* C*; weight f32 C*; dy f32 R* C*",
        .out = "dx f32 R* C*; dweight f32 C*; dbias f32 C*", .ref = gradients, .allow = allow,
        .smoke = "R=3,4 C=1,7; R=37 C=19,64; R=2x5 C=3x7; R=300 C=33",
        .full = "R=9 C=1028; R=3 C=4099; R=2 C=4100", .special = "R=3 C=21", .data = OFFSET,
        .cases = {{.params = &params, .leeway = MEETS}});
