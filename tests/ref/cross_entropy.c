// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_cross_entropy_fwd(const struct host *logits, const struct host *targets, int reduction,
                           int64_t pad, double smoothing, struct host *loss)
{
    const int64_t n_classes = logits->dim[logits->rank - 1];
    double total = 0, counted = 0;

    for (int64_t row = 0; row < targets->count; ++row) {
        const double *x = logits->data + row * n_classes;
        const int64_t target = (int64_t)targets->data[row];
        double row_max = -INFINITY, sum = 0, mean = 0;
        for (int64_t c = 0; c < n_classes; ++c)
            row_max = fmax(row_max, x[c]);
        for (int64_t c = 0; c < n_classes; ++c)
            sum += exp(x[c] - row_max);
        for (int64_t c = 0; c < n_classes && smoothing > 0; ++c)
            mean += x[c] / (double)n_classes;
        const double chosen =
            smoothing > 0 ? (1 - smoothing) * x[target] + smoothing * mean : x[target];
        const double here = pad >= 0 && target == pad ? 0 : log(sum) + row_max - chosen;
        if (reduction == ATTNCL_REDUCE_NONE)
            loss->data[row] = here;
        total += here;
        counted += !(pad >= 0 && target == pad);
    }
    if (reduction == ATTNCL_REDUCE_SUM)
        loss->data[0] = total;
    if (reduction == ATTNCL_REDUCE_MEAN)
        loss->data[0] = counted == 0 ? 0 : total / counted;
}

// -- the op

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
static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const struct cross_entropy_fwd_params *p = params;

    const attncl_cross_entropy_desc desc = {sizeof desc, (attncl_reduction)p->reduction, p->pad,
                                            p->smoothing};
    out[0] = attncl_cross_entropy(g, in[0], in[1], &desc);
}

OP_SPEC(
    cross_entropy_fwd, .in = "logits f32 R* C; targets i32:0:C R*", .out = "loss f32", .ref = loss,
    .build = build, .grad = "logits", .ref_bwd = loss_bwd, .allow_grad = allow_gradient,
    .grad_data = SPAN90 | PEAK, .allow = allow, .nonzero = "C",
    .smoke = "R=6 C=5; R=4x5 C=37; R=300 C=5; R=- C=7; R=3 C=1", .gpu = "R=4096 C=1024",
    .special = "R=3 C=21", .full = "R=2 C=1500,8193,8196; R=2100 C=3; R=37 C=19; R=5 C=301,64",
    .data = SPAN90 | PEAK | RISING | MINUS_INF | INT_ENDS,
    .cases = {{"mean", LOSS(MEAN, -1, 0), .gpu = "R=65536 C=64,1023,1024,50257",
               .data = SPAN90 | PEAK | RISING | INT_ENDS},
              {"mean pad", LOSS(MEAN, 0, 0), .data = SPAN90, .prepare = pad_middle},
              {"mean smooth", LOSS(MEAN, 2, 0.1), .data = SPAN90 | PEAK},
              {"sum", LOSS(SUM, 0, 0), .data = SPAN90 | INT_ENDS},
              {"sum smooth", LOSS(SUM, -1, 0.3), .data = SPAN90},
              {"each", LOSS(NONE, -1, 0), EACH, .gpu = "R=65536 C=64,1023,1024,50257"},
              {"each pad", LOSS(NONE, 0, 0), EACH, .data = SPAN90 | PEAK, .prepare = pad_middle},
              {"each smooth", LOSS(NONE, 2, 1), EACH, .data = SPAN90},
              {"padding only", LOSS(MEAN, 0, 0.1), "targets i32:0:1 R*", .data = SPAN90}},
    .refusals = {{ATTNCL_ERR_ARGUMENT, "label_smoothing is 1.5", LOSS(MEAN, -1, 1.5)},
                 {ATTNCL_ERR_ARGUMENT, "reduction 3", SPEC_PARAMS(cross_entropy_fwd, 3, -1, 0)},
                 {ATTNCL_ERR_SHAPE, "must be [...] where logits", .with = "targets i32:0:C R* C"}});
