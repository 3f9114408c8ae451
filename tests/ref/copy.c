// SPDX-License-Identifier: MIT

#include <math.h>

#include "base/alloc.h"
#include "graph/graph.h"
#include "op/attention/q8_row.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_copy_fwd(const struct host *base, const struct tensor_desc *view, struct host *y)
{
    for (int64_t i = 0; i < y->count; ++i) {
        int64_t rest = i, at = view->start;
        for (int axis = view->rank - 1; axis >= 0; --axis) {
            at += rest % view->dim[axis] * view->stride[axis];
            rest /= view->dim[axis];
        }
        y->data[i] = base->data[at];
    }
}

// -- the op

static void copy(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    host_set(out[0], in[0]->data);
}

static void copy_bwd(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    copy(params, dy, dx);
    (void)in;
}

OP_SPEC(copy_fwd, .in = "x f32+ R*", .out = "y f32 R*", .ref = copy, .grad = "x",
        .ref_bwd = copy_bwd, .grad_tolerance = 1e-9, .smoke = "R=-,1,3x5,2x1x41,5003",
        .gpu = "R=64x8x512", .special = "R=3x21",
        .cases = {{"floats"},
                  {"integers", .with = "x i32+:-2000000000:2000000000 R*; y i32 R*"},
                  {"bytes", .with = "x u8+:0.5 R*; y u8 R*"}},
        .refusals = {{ATTNCL_ERR_DTYPE, "a copy of F16", .with = "x f16 R*"}});

// Rows of x into the first rows of the state; the others stay.  The result is what the state then has.
static void store_rows(const void *params, struct host *const *in, struct host *const *out)
{
    struct host *x = host_stored(host_copy(in[0]), in[1]->dtype);

    (void)params;
    memcpy(in[1]->data, x->data, (size_t)x->count * sizeof x->data[0]);
    if (out[0])
        host_set(out[0], x->data);
}

OP_SPEC(store_rows_fwd, .in = "x f32 T R*; state f32 S R*", .out = "y? f32 T R*", .ref = store_rows,
        .nonzero = "S", .smoke = "T=1 S=5 R=2x21; T=3,5 S=5 R=2x21; T=2 S=3 R=-",
        .gpu = "T=512 S=1024 R=1x512", .full = "T=2 S=4 R=2100",
        .cases = {{"floats"},
                  {"F16", .with = "state f16 S R*; y f32 T R*"},
                  {"BF16", .with = "state bf16 S R*; y f32 T R*"}},
        .refusals = {
            {ATTNCL_ERR_SHAPE, "x has T = 6, state has S = 5", .sizes = "T=6 S=5 R=2x21"}});

static unsigned char *scale_bytes(float *scale)
{
    return (unsigned char *)scale;
}

void ref_q8_encode(const double *x, int64_t n, int64_t width, double *row_ret)
{
    double *scales = row_ret + attncl__q8_scales(n * width);

    for (int64_t h = 0; h < n; ++h) {
        float largest = 0;
        for (int64_t c = h * width; c < (h + 1) * width; ++c)
            largest = isfinite(x[c]) && !isnan(largest) ? fmaxf(largest, (float)fabs(x[c])) : NAN;
        float d = largest * (1.0f / 127.0f);
        for (int64_t c = 0; c < width; ++c) {
            const double q = largest > 1e-30f ? rint(x[h * width + c] * 127 / (double)largest) : 0;
            row_ret[h * width + c] = q < 0 ? q + 256 : q;
        }
        for (int i = 0; i < 4; ++i)
            scales[4 * h + i] = scale_bytes(&d)[i];
    }
}

void ref_q8_decode(const double *row, int64_t n, int64_t width, double *x_ret)
{
    const double *scales = row + attncl__q8_scales(n * width);

    for (int64_t h = 0; h < n; ++h) {
        float d;
        for (int i = 0; i < 4; ++i)
            scale_bytes(&d)[i] = (unsigned char)scales[4 * h + i];
        for (int64_t c = h * width; c < (h + 1) * width; ++c)
            x_ret[c] = (double)d * (row[c] > 127 ? row[c] - 256 : row[c]);
    }
}

static void round_to(const void *params, struct host *const *in, struct host *const *out)
{
    const struct round_fwd_params *p = params;
    host_set(out[0], host_stored(host_copy(in[0]), (attncl_dtype)p->dtype)->data);
}

OP_SPEC(round_fwd, .in = "x f32 R*", .out = "y f32 R*", .ref = round_to,
        .smoke = "R=-,1,3x2x21,1031", .gpu = "R=4096", .data = FAR | NEAR_ZERO | ALIKE,
        .cases = {{"F16", SPEC_PARAMS(round_fwd, ATTNCL_F16)},
                  {"BF16", SPEC_PARAMS(round_fwd, ATTNCL_BF16)}},
        .refusals = {{ATTNCL_ERR_DTYPE, "rounding to F32, must be F16 or BF16",
                      SPEC_PARAMS(round_fwd, ATTNCL_F32)}});
