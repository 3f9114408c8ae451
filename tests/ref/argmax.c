// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// The first place of the largest; NaN is never it.
void ref_argmax_fwd(const struct host *x, struct host *y)
{
    const int64_t width = x->dim[x->rank - 1];

    for (int64_t i = 0; i < y->count; ++i) {
        const double *row = x->data + i * width;
        double largest = -INFINITY;
        int64_t place = 0;
        for (int64_t c = width - 1; c >= 0; --c)
            if (row[c] >= largest) {
                largest = row[c];
                place = c;
            }
        y->data[i] = (double)place;
    }
}

// -- the op

static void argmax(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_argmax_fwd(in[0], out[0]);
}

SPEC_BUILD(build, attncl_argmax(g, in[0]))

OP_SPEC(argmax_fwd, .in = "x f32 R* C", .out = "y i32 R*", .ref = argmax, .build = build,
        .nonzero = "C", .smoke = "R=1,7 C=1,3,19; R=3x2 C=21; R=- C=50; R=40 C=37; R=7 C=256,300",
        .gpu = "R=65536 C=64,1023,1024,50257", .full = "R=7 C=16,4099", .special = "R=3 C=19",
        .data = PEAK | LIMITS | ALIKE | RISING | MINUS_INF | NAN_ROWS);
