// SPDX-License-Identifier: MIT
//
// dx_c = y_c (dy_c - sum_k y_k dy_k), and 0 from a row's length on

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

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

static void gradient(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_masked_softmax_bwd(in[0], in[1], in[2], out[0]);
}

// Rows that sum to 1.
static void make_weights(struct host *const *in)
{
    struct host *y = host_like(in[0]);

    ref_softmax_fwd(in[0], y);
    for (int64_t i = 0; i < y->count; ++i)
        in[0]->data[i] = (float)y->data[i];
}

// Each product and the sum of a row round: log2 of its length and a few more, in units of the largest |y dy|, which is
// below 5.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const double n = fmax(spec_extent(p, 'K'), 1);

    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 1e-6 * fabs(want->data[i]) + 5 * 6e-8 * (6 + log2(n) + n / 256);
}

static const char with_lengths[] = "B=3 Q=4 K=7,37";
OP_SPEC(softmax_bwd, .in = "y f32 B Q K; dy f32 B Q K; valid_lens? i32:0:K+3 B",
        .out = "dx f32 B Q K", .ref = gradient, .allow = allow,
        .smoke = "B=- Q=1,5 K=1,16; B=2 Q=3 K=7; B=- Q=37 K=19; B=- Q=- K=33; B=- Q=3 K=257",
        .full = "B=- Q=9 K=64; B=- Q=2 K=4096,4099", .special = "B=2 Q=3 K=21",
        .cases = {{"plain", .prepare = make_weights},
                  {"lengths", .with = "valid_lens i32:0:K+3 B", .smoke = with_lengths,
                   .data = INT_ENDS, .prepare = make_weights},
                  {"lengths of rows", .with = "valid_lens i32:0:K+3 B Q", .smoke = with_lengths,
                   .data = INT_ENDS, .prepare = make_weights}});
