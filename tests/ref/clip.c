// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/optim.h"
#include "ref/ref.h"
#include "support/op_spec.h"

double ref_norm(struct host *const *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; ++i)
        for (int64_t j = 0; j < x[i]->count; ++j)
            sum += x[i]->data[j] * x[i]->data[j];
    return sqrt(sum);
}

double ref_clip_factor(double norm, double max_norm, int d2l)
{
    if (d2l)
        return norm > max_norm ? max_norm / norm : 1;
    return fmin(1, max_norm / (norm + 1e-6));
}

// -- the op

// Squares of the elements, of those times 2^-64 and times 2^64, as floats that may overflow.
static void squares(const void *params, struct host *const *in, struct host *const *out)
{
    static const double scales[] = {1, 0x1p-64, 0x1p64};

    (void)params;
    for (int s = 0; s < 3; ++s) {
        double sum = in[0] ? in[0]->data[s] : 0;
        for (int k = 1; k <= 3; ++k)
            for (int64_t i = 0; in[k] && i < in[k]->count; ++i)
                sum += (in[k]->data[i] * scales[s]) * (in[k]->data[i] * scales[s]);
        out[0]->data[s] = (double)(float)sum;
    }
}

// A sum of terms of one sign over blocks of 64, their sums, lanes and work-groups: 300 additions in a row at most, each half
// of 2^-23.  Squares that are subnormal may be 0.
OP_SPEC(sum_squares_fwd, .in = "sums? f32:0.5:900 3; x f32 N*; x2? f32 M*; x3? f32 K*",
        .out = "total f32 3", .ref = squares, .rel = 300, .tiny = 3e-35,
        .smoke = "N=1,37; N=9x2063; N=-", .gpu = "N=262144", .special = "N=130",
        .full = "N=70001; N=7x5", .data = SCALED,
        .cases = {{"alone"},
                  {"added", .with = "sums f32:0.5:900 3; x2 f32 M*; x3 f32 K*", .leeway = MEETS}},
        .refusals = {{ATTNCL_ERR_SHAPE, "sums is [4], must be [3]", .with = "sums f32 4"}});

static void factor(const void *params, struct host *const *in, struct host *const *out)
{
    const struct clip_factor_fwd_params *p = params;
    const double plain = in[0]->data[0];
    double norm = sqrt(plain);

    if (!(plain < INFINITY))
        norm = sqrt(in[0]->data[1]) * 0x1p64;
    else if (plain < 1e-18)
        norm = sqrt(in[0]->data[2]) * 0x1p-64;
    out[0]->data[0] = norm;
    out[1]->data[0] = ref_clip_factor(norm, (float)p->max_norm, p->style);
    if (isnan(norm) && p->style == 0)
        out[1]->data[0] = NAN;
}

static void overflow(struct host *const *in)
{
    in[0]->data[0] = INFINITY;
}

static void vanish(struct host *const *in)
{
    in[0]->data[0] = 1e-30;
}

#define CLIP(max_norm, style) SPEC_PARAMS(clip_factor_fwd, max_norm, style)
OP_SPEC(clip_factor_fwd, .in = "sums f32:0.5:900 3", .out = "norm f32; factor f32", .ref = factor,
        .rel = 6, .smoke = "S=1", .gpu = "S=1", .special = "S=1",
        .cases = {{"PyTorch", CLIP(1, 0)},
                  {"d2l", CLIP(1, 1)},
                  {"far", CLIP(1000, 0)},
                  {"far d2l", CLIP(1000, 1)},
                  {"none", CLIP(0, 0)},
                  {"large", CLIP(3, 0), .prepare = overflow},
                  {"large d2l", CLIP(3, 1), .prepare = overflow},
                  {"small", CLIP(1e-7f, 0), .prepare = vanish},
                  {"small d2l", CLIP(1e-20, 1), .prepare = vanish}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "max_norm is -1", CLIP(-1, 0)},
                     {ATTNCL_ERR_ARGUMENT, "style is 2", CLIP(1, 2)},
                     {ATTNCL_ERR_SHAPE, "sums is [4], must be [3]", .with = "sums f32 4"}});

static void scale(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    for (int64_t i = 0; i < out[0]->count; ++i)
        out[0]->data[i] = in[0]->data[i] * in[1]->data[0];
}

OP_SPEC(scale_by_fwd, .in = "x f32 N*; factor f32", .out = "y f32 N*", .ref = scale, .rel = 1,
        .tiny = 1e-38, .smoke = "N=1,37,2100; N=3x5; N=-", .gpu = "N=262144", .special = "N=37",
        .full = "N=70001", .data = SCALED,
        .refusals = {{ATTNCL_ERR_SHAPE, "factor is [4], must be []", .with = "factor f32 4"}});

static void clamp(const void *params, struct host *const *in, struct host *const *out)
{
    const double limit = ((const struct clamp_fwd_params *)params)->limit;

    for (int64_t i = 0; i < out[0]->count; ++i) {
        const double x = in[0]->data[i];
        out[0]->data[i] = x > limit ? limit : x < -limit ? -limit : x;
    }
}

static void build_clamp(attncl_graph *g, const void *params, const attncl_value *in,
                        attncl_value *out)
{
    attncl_clip_grad_value(g, 1, in, ((const struct clamp_fwd_params *)params)->limit, out);
}

OP_SPEC(clamp_fwd, .in = "x f32 N*", .out = "y f32 N*", .ref = clamp, .build = build_clamp,
        .smoke = "N=1,37,2100; N=3x5; N=-", .gpu = "N=262144", .special = "N=37", .full = "N=70001",
        .data = LIMITS,
        .cases = {{"half", SPEC_PARAMS(clamp_fwd, 0.5)}, {"none", SPEC_PARAMS(clamp_fwd, 0)}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "max_value is -1", SPEC_PARAMS(clamp_fwd, -1)}});

// The three ops as users call them.
static void clip_norm(const void *params, struct host *const *in, struct host *const *out)
{
    const struct clip_factor_fwd_params *p = params;
    const int n = in[1] ? 2 : 1;

    out[2]->data[0] = ref_norm(in, n);
    for (int k = 0; k < n; ++k)
        for (int64_t i = 0; i < in[k]->count; ++i)
            out[k]->data[i] =
                in[k]->data[i] * ref_clip_factor(out[2]->data[0], p->max_norm, p->style);
}

static void build_clip(attncl_graph *g, const void *params, const attncl_value *in,
                       attncl_value *out)
{
    const struct clip_factor_fwd_params *p = params;

    out[2] = attncl_clip_grad_norm(g, in[1].id ? 2 : 1, in, p->max_norm,
                                   (attncl_clip_style)p->style, out);
}

OP_SPEC(clip_grad_norm, .in = "x f32 N*; more? f32 M K",
        .out = "clipped f32 N*; clipped_more? f32 M K; norm f32", .ref = clip_norm,
        .build = build_clip, .rel = 160, .tiny = 1e-38, .smoke = "N=37,2100 M=3 K=5; N=3x5 M=1 K=1",
        .cases = {{"one", CLIP(1, ATTNCL_CLIP_EPSILON)},
                  {"two", CLIP(0.25, ATTNCL_CLIP_EXACT), "more f32 M K; clipped_more f32 M K"}});
