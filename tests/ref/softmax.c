// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_softmax_fwd(const struct host *x, struct host *y)
{
    const int64_t width = x->dim[x->rank - 1];

    for (int64_t first = 0; first < x->count; first += width) {
        const double *in = x->data + first;
        double *out = y->data + first;
        double row_max = -INFINITY, sum = 0;
        for (int64_t c = 0; c < width; ++c)
            row_max = in[c] > row_max || isnan(in[c]) ? in[c] : row_max;
        for (int64_t c = 0; c < width; ++c)
            sum += row_max == -INFINITY ? 0 : exp(in[c] - row_max);
        for (int64_t c = 0; c < width; ++c)
            out[c] = row_max == -INFINITY ? 0 : exp(in[c] - row_max) / sum;
    }
}

// -- the op

static void softmax(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_softmax_fwd(in[0], out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    struct host *y = host_like(in[0]);

    softmax(params, in, &y);
    ref_softmax_bwd(y, dy[0], dx[0]);
}

SPEC_BUILD(build, attncl_softmax(g, in[0], -1))

// A relative error of exp(x - m): the subtraction's rounding (spans), exp and the division, and the sum of the row.
// Smoke: one column, less than a vector, exactly one, a ragged tail, several rows to a work-item or to a work-group, of
// which the last has fewer.  Full: both sides of the widths at which a GPU's rows take more work-items, and cease to be
// held; there each piece of a row may change the maximum, or hold nothing.
OP_SPEC(softmax_fwd, .in = "x f32 R* C", .out = "y f32 R* C", .ref = softmax, .build = build,
        .grad = "x", .ref_bwd = gradient, .grad_data = SPAN90, .rel = 10, .spans = true,
        .chain = 'C', .tiny = 2e-38,
        .smoke = "R=1,5 C=1,7,64; R=3x5 C=21; R=- C=33; R=37 C=19; R=3 C=257",
        .gpu = "R=65536 C=64,1023,1024,50257", .special = "R=3 C=21; R=3 C=8196",
        .full = "R=70 C=16,256; R=9 C=31,32,33; R=5 C=1024,1025; R=3 C=4099,8192,8196,8197",
        .data = SPAN90 | FAR | PEAK | LIMITS | ALIKE | RISING | MINUS_INF | NAN_ROWS);
