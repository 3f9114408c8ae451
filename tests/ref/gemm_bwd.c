// SPDX-License-Identifier: MIT
//
//   linear   y = act(x W^T + b) gate + residual, what its gradients are differences of
//   dx = d W, dW = d^T x, db = sum of the rows of d

#include <math.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/layer_test.h"
#include "support/op_spec.h"

// bias, gate, residual: NULL where absent
void ref_linear_fwd(struct host *const *in, int activation, struct host *y)
{
    const struct host *x = in[0], *weight = in[1], *bias = in[2], *gate = in[3], *residual = in[4];
    const int64_t n_in = weight->dim[1], n_out = weight->dim[0];

    for (int64_t i = 0; i < y->count; ++i) {
        const double *row = x->data + i / n_out * n_in, *w = weight->data + i % n_out * n_in;
        double sum = bias ? bias->data[i % n_out] : 0;
        for (int64_t c = 0; c < n_in; ++c)
            sum += row[c] * w[c];
        y->data[i] = ref_activate(sum, activation) * (gate ? gate->data[i] : 1) +
                     (residual ? residual->data[i] : 0);
    }
}

void ref_bmm_fwd(const struct host *a, const struct host *b, struct host *y)
{
    const int64_t n = a->dim[1], m = a->dim[2], p = b->dim[2];

    for (int64_t i = 0; i < y->count; ++i) {
        const int64_t entry = i / (n * p), row = i / p % n, column = i % p;
        y->data[i] = 0;
        for (int64_t k = 0; k < m; ++k)
            y->data[i] +=
                a->data[(entry * n + row) * m + k] * b->data[(entry * m + k) * p + column];
    }
}

// Every output is [.., out], every x [.., in] of as many rows.
void ref_linear_bwd_input(const struct host *d, const struct host *weight, struct host *dx)
{
    const int64_t n_in = weight->dim[1], n_out = weight->dim[0];

    for (int64_t i = 0; i < dx->count; ++i) {
        dx->data[i] = 0;
        for (int64_t o = 0; o < n_out; ++o)
            dx->data[i] += d->data[i / n_in * n_out + o] * weight->data[o * n_in + i % n_in];
    }
}

void ref_linear_bwd_weight(const struct host *d, const struct host *x, struct host *dw)
{
    const int64_t n_in = dw->dim[1], n_out = dw->dim[0];

    for (int64_t i = 0; i < dw->count; ++i) {
        dw->data[i] = 0;
        for (int64_t r = 0; r < d->count / n_out; ++r)
            dw->data[i] += d->data[r * n_out + i / n_in] * x->data[r * n_in + i % n_in];
    }
}

void ref_linear_bwd_bias(const struct host *d, struct host *db)
{
    for (int64_t i = 0; i < db->count; ++i)
        db->data[i] = 0;
    for (int64_t i = 0; i < d->count; ++i)
        db->data[i % db->count] += d->data[i];
}

// -- the op

static void add(const struct host *addend, struct host *y)
{
    for (int64_t i = 0; addend && i < y->count; ++i)
        y->data[i] += addend->data[i];
}

static void of_input(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_linear_bwd_input(in[0], in[1], out[0]);
    add(in[2], out[0]);
}

static void of_weight(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_linear_bwd_weight(in[0], in[1], out[0]);
    add(in[2], out[0]);
}

static void of_bias(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_linear_bwd_bias(in[0], out[0]);
}

static struct host *sizes_of(const struct host *h)
{
    struct host *sizes = h ? host_like(h) : NULL;

    for (int64_t i = 0; h && i < h->count; ++i)
        sizes->data[i] = fabs(h->data[i]);
    return sizes;
}

// n products, their sums and the addend: n + 2 roundings at most, of the size without cancelling signs.
static void allow(const struct spec_point *p, ref_forward forward, double n, struct host *allowed)
{
    struct host *in[3] = {NULL};

    for (int i = 0; i < 3 && spec_in(p, i); ++i)
        in[i] = sizes_of(spec_in(p, i));
    forward(NULL, in, &allowed);
    host_scale(allowed, (n + 2) * 0x1p-24);
    for (int64_t i = 0; i < allowed->count; ++i)
        allowed->data[i] += 1e-37;
}

static void allow_input(const struct spec_point *p, int k, const struct host *want,
                        struct host *allowed)
{
    (void)k, (void)want;
    allow(p, of_input, spec_extent(p, 'N'), allowed);
}

static void allow_weight(const struct spec_point *p, int k, const struct host *want,
                         struct host *allowed)
{
    (void)k, (void)want;
    allow(p, of_weight, spec_extent(p, 'R'), allowed);
}

static void allow_bias(const struct spec_point *p, int k, const struct host *want,
                       struct host *allowed)
{
    (void)k, (void)want;
    allow(p, of_bias, spec_extent(p, 'R'), allowed);
}

#define BWD_SIZES "R=1 K=1 N=1; R=37 K=19 N=33; R=130 K=64 N=48"

OP_SPEC(linear_bwd_input, .in = "d f32 R* N; weight f32+ N K; addend? f32 R* K",
        .out = "dx f32 R* K", .ref = of_input, .allow = allow_input,
        .smoke = "R=2 K=33 N=7; R=35 K=33 N=65", .special = "R=5 K=21 N=19", .full = BWD_SIZES,
        .data = SCALED,
        .cases = {{"alone"},
                  {"added", .with = "addend f32 R* K"},
                  {"F16", .with = "weight f16 N K"},
                  {"BF16", .with = "weight bf16 N K"}});

OP_SPEC(linear_bwd_weight, .in = "d f32 R* N; x f32 R* K; addend? f32 N K", .out = "dw f32 N K",
        .ref = of_weight, .allow = allow_weight, .smoke = "R=2 K=33 N=7; R=5x7 K=33 N=65",
        .special = "R=5 K=21 N=19", .full = BWD_SIZES, .data = SCALED,
        .cases = {{"alone"}, {"added", .with = "addend f32 N K"}});

// More rows than a block, more columns than a chunk, ragged both: two passes.
OP_SPEC(linear_bwd_bias, .in = "d f32 R* N", .out = "db f32 N", .ref = of_bias, .allow = allow_bias,
        .smoke = "R=2 N=7; R=3x257 N=331", .special = "R=5 N=19; R=300 N=33", .data = SCALED);
