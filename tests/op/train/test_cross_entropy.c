// SPDX-License-Identifier: MIT
// Cross entropy and its gradient against their references (tests/ref/cross_entropy.c, cross_entropy_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static void loss(const void *params, struct host *const *in, struct host *const *out)
{
    const struct cross_entropy_fwd_params *p = params;
    ref_cross_entropy_fwd(in[0], in[1], p->reduction, p->pad, p->smoothing, out[0]);
}

static void loss_bwd(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    const struct cross_entropy_fwd_params *p = params;
    ref_cross_entropy_bwd(in[0], in[1], dy[0], p->reduction, p->pad, p->smoothing, dx[0]);
}

// A row's loss: the relative error of the sum of exponentials becomes an absolute one of its logarithm; the difference of
// maximum and target, the logarithm and their sum round once each.  Sums over rows: serial pieces of at most 128 and
// trees above them.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct cross_entropy_fwd_params *params = spec_params(p);
    const double u = 6e-8, n = spec_extent(p, 'C'), rows = (double)spec_in(p, 1)->count;
    const double absolute = (10 + log2(n) + n / 256) * u;
    const double sum = params->reduction == ATTNCL_REDUCE_NONE ? 0
                       : rows < 128                            ? rows
                                                               : 128 + log2(rows);
    const double mean = params->smoothing > 0 ? 12 + n / 256 : 0; // of terms of one sign

    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] =
            (4 + sum + mean) * u * (isfinite(want->data[i]) ? fabs(want->data[i]) : 0) +
            absolute * (params->reduction == ATTNCL_REDUCE_SUM ? rows : 1);
}

// Probabilities with errors of exp, a sum and a division; their difference from 1 is below 1.
static void allow_gradient(const struct spec_point *p, int k, const struct host *want,
                           struct host *allowed)
{
    (void)p, (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 3e-6 * fabs(want->data[i]) + 1.2e-6;
}

// What is not a number in its row does not count.
static void pad_middle(struct host *const *in)
{
    if (in[1]->count > 1)
        in[1]->data[in[1]->count / 2] = 0;
}

#define EACH                 "loss f32 R*"
#define LOSS(reduction, ...) SPEC_PARAMS(cross_entropy_fwd, ATTNCL_REDUCE_##reduction, __VA_ARGS__)
OP_SPEC(cross_entropy_fwd, .in = "logits f32 R* C; targets i32:0:C R*", .out = "loss f32",
        .ref = loss, .grad = "logits", .ref_bwd = loss_bwd, .allow_grad = allow_gradient,
        .grad_data = SPAN90 | PEAK, .allow = allow, .nonzero = "C",
        .smoke = "R=6 C=5; R=4x5 C=37; R=300 C=5; R=- C=7; R=3 C=1", .special = "R=3 C=21",
        .full = "R=2 C=1500,8193,8196; R=2100 C=3; R=37 C=19; R=5 C=301,64",
        .data = SPAN90 | PEAK | RISING | MINUS_INF | INT_ENDS,
        .cases = {{"mean", LOSS(MEAN, -1, 0), .data = SPAN90 | PEAK | RISING | INT_ENDS},
                  {"mean pad", LOSS(MEAN, 0, 0), .data = SPAN90, .prepare = pad_middle},
                  {"mean smooth", LOSS(MEAN, 2, 0.1), .data = SPAN90 | PEAK},
                  {"sum", LOSS(SUM, 0, 0), .data = SPAN90 | INT_ENDS},
                  {"sum smooth", LOSS(SUM, -1, 0.3), .data = SPAN90},
                  {"each", LOSS(NONE, -1, 0), EACH},
                  {"each pad", LOSS(NONE, 0, 0), EACH, .data = SPAN90 | PEAK,
                   .prepare = pad_middle},
                  {"each smooth", LOSS(NONE, 2, 1), EACH, .data = SPAN90},
                  {"padding only", LOSS(MEAN, 0, 0.1), "targets i32:0:1 R*", .data = SPAN90}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "label_smoothing is 1.5", LOSS(MEAN, -1, 1.5)},
                     {ATTNCL_ERR_ARGUMENT, "reduction 3", SPEC_PARAMS(cross_entropy_fwd, 3, -1, 0)},
                     {ATTNCL_ERR_SHAPE, "one axis more", .with = "targets i32:0:C R* C"}});
