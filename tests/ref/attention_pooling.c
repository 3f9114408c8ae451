// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/attention.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// log K, -INFINITY outside the support; a distance that is NaN stays NaN.
static double log_kernel(int kind, double sigma, double u)
{
    if (isnan(u) && kind != 2)
        return u;
    switch (kind) {
    case 0:
        return -u * u / (2 * sigma * sigma);
    case 1:
        return fabs(u) < 1 ? 0 : -INFINITY;
    case 2:
        return 0;
    default:
        return fabs(u) < 1 ? log(1 - fabs(u)) : -INFINITY;
    }
}

// Relative to the largest: 0 outside a support; NaN where a Gaussian's query is infinite.
static double weight(int kind, double log, double max_log)
{
    return kind != 0 && log == -INFINITY ? 0 : exp(log - max_log);
}

void ref_attention_pooling_fwd(int kind, double sigma, const struct host *x, const struct host *y,
                               const struct host *z, struct host *out, struct host *weights)
{
    const int64_t n = x->count, m = z->count;

    for (int64_t j = 0; j < m; ++j) {
        double max_log = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; ++i)
            max_log = fmax(max_log, log_kernel(kind, sigma, x->data[i] - z->data[j]));
        for (int64_t i = 0; i < n; ++i)
            sum += weight(kind, log_kernel(kind, sigma, x->data[i] - z->data[j]), max_log);
        out->data[j] = 0;
        for (int64_t i = 0; i < n; ++i) {
            const double e =
                weight(kind, log_kernel(kind, sigma, x->data[i] - z->data[j]), max_log);
            weights->data[i * m + j] = sum != 0 ? e / sum : 0;
            out->data[j] += sum != 0 ? weights->data[i * m + j] * y->data[i] : 0;
        }
    }
}

//   w_ij = K(u_ij) / S_j,   r_ij = g_j y_i + c_ij,   dlog_ij = w_ij (r_ij - sum_i w_ij r_ij)
//   du_ij = dlog_ij K'(u_ij) / K(u_ij);   dx_i = sum_j du_ij,   dz_j = -sum_i du_ij
//   dy_i = sum_j w_ij g_j
//
// With `sizes` all terms are taken as positive: what a result's rounding errors are measured by.

// K' / K
static double log_slope(int kind, double sigma, double u)
{
    if (kind == 0)
        return -u / (sigma * sigma);
    if (kind == 3 && u != 0 && fabs(u) < 1)
        return (u > 0 ? -1 : 1) / (1 - fabs(u));
    return 0;
}

static double term(double x, bool sizes)
{
    return sizes ? fabs(x) : x;
}

// in: x, y, z, g, c; out: dx, dy, dz
void ref_attention_pooling_bwd(int kind, double sigma, struct host *const *in, bool sizes,
                               struct host *const *out)
{
    const struct host *x = in[0], *y = in[1], *z = in[2], *g = in[3], *c = in[4];
    const int64_t n = x->count, m = z->count;
    struct host *w = host_new(ATTNCL_F32, DIMS(n, m));

    ref_attention_pooling_fwd(kind, sigma, x, y, z, host_like(z), w);
    for (int o = 0; o < 3; ++o)
        for (int64_t i = 0; i < out[o]->count; ++i)
            out[o]->data[i] = 0;
    for (int64_t j = 0; j < m; ++j) {
        double mean = 0;
        for (int64_t i = 0; i < n; ++i)
            mean += w->data[i * m + j] * term(g->data[j] * y->data[i], sizes) +
                    (c ? w->data[i * m + j] * term(c->data[i * m + j], sizes) : 0);
        for (int64_t i = 0; i < n; ++i) {
            const double wij = w->data[i * m + j];
            const double r =
                term(g->data[j] * y->data[i], sizes) + (c ? term(c->data[i * m + j], sizes) : 0);
            const double slope =
                wij == 0 ? 0 : wij * log_slope(kind, sigma, x->data[i] - z->data[j]);
            const double du = term((sizes ? r + mean : r - mean) * slope, sizes);
            out[0]->data[i] += du;
            out[1]->data[i] += term(wij * g->data[j], sizes);
            out[2]->data[j] += sizes ? du : -du;
        }
    }
}

// -- the op

enum { GAUSSIAN, BOXCAR, CONSTANT, EPANECHIKOV };

static void pooling(const void *params, struct host *const *in, struct host *const *out)
{
    const struct attention_pooling_fwd_params *p = params;
    struct host *weights = out[1] ? out[1] : host_new(ATTNCL_F32, DIMS(in[0]->count, in[2]->count));

    ref_attention_pooling_fwd(p->kind, (double)p->sigma, in[0], in[1], in[2], out[0], weights);
}

static void backward(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx, bool sizes)
{
    const struct attention_pooling_fwd_params *p = params;
    struct host *const all[] = {in[0], in[1], in[2], dy[0], dy[1]};

    ref_attention_pooling_bwd(p->kind, (double)p->sigma, all, sizes, dx);
}

static void pooling_bwd(const void *params, struct host *const *in, struct host *const *dy,
                        struct host *const *dx)
{
    backward(params, in, dy, dx, false);
}

static struct host *sizes_of(const struct spec_point *p, int i)
{
    struct host *in[3], *dx[3];
    struct host *const dy[] = {(struct host *)spec_dy(p, 0), (struct host *)spec_dy(p, 1)};

    for (int k = 0; k < 3; ++k) {
        in[k] = (struct host *)spec_in(p, k);
        dx[k] = host_like(in[k]);
    }
    backward(spec_params(p), in, dy, dx, true);
    return dx[i];
}

// A weight's exponent, known to u = 2^-24 times itself, counts up to where the weight is e^-20: 20 u.  Sums of n terms of one
// sign in blocks of 64, the quotient: at most (64 + n / 64) u, 80 u here.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    (void)p, (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 100 * 0x1p-24 * (1 + fabs(want->data[i]));
}

// The same relative to the sum of the sizes of all terms; an Epanechikov weight near its support's end is known to a
// rounding of its distance.
static void allow_grad(const struct spec_point *p, int i, const struct host *want,
                       struct host *allowed)
{
    const struct host *const size = sizes_of(p, i);

    for (int64_t at = 0; at < want->count; ++at)
        allowed->data[at] = (200 * size->data[at] + 4) * 0x1p-24;
}

// A query far from all keys takes the nearest with the Gaussian, none with a support.
static void set_far(struct host *const *in)
{
    static const double keys[] = {1e30, -1e30, 0, 5}, queries[] = {3e38, -3e38, 1e4, 0, 1e30};

    host_set(in[0], keys);
    host_set(in[2], queries);
    host_scale(in[0], 1); // to floats
    host_scale(in[2], 1);
}

// The support is open.
static void set_ends(struct host *const *in)
{
    host_set(in[0], (const double[]){0, 2});
    host_set(in[2], (const double[]){1, 0.999, -1});
    host_scale(in[2], 1);
}

#define KIND(kind_, ...) SPEC_PARAMS(attention_pooling_fwd, .kind = kind_, .sigma = 1, __VA_ARGS__)
#define WEIGHTS          "weights f32 N M"
#define FAR(kind_, sigma_)                                                                         \
    {                                                                                              \
        "far", SPEC_PARAMS(attention_pooling_fwd, kind_, sigma_, 1), WEIGHTS,                      \
            .grad = "", .smoke = "N=4 M=5", .special = "", .prepare = set_far                      \
    }
// Few pairs, or too many for central differences, which a corner of a kernel falsifies.
static const char corners[] = "N=1 M=1; N=6 M=4; N=210 M=200";
static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const struct attention_pooling_fwd_params *p = params;

    out[0] = attncl_attention_pooling(g, (attncl_pooling_kernel)p->kind, p->sigma, in[0], in[1],
                                      in[2], p->want_weights ? &out[1] : NULL);
}

OP_SPEC(attention_pooling_fwd, .in = "x_train f32:0:5 N; y_train f32 N; x_val f32:-1:6 M",
        .out = "y f32 M; weights? f32 N M", .ref = pooling, .build = build,
        .grad = "x_train y_train x_val", .ref_bwd = pooling_bwd, .allow = allow,
        .allow_grad = allow_grad, .leeway = MEETS,
        .smoke = "N=1 M=1; N=3 M=2; N=40 M=50; N=130 M=33", .gpu = "N=1024 M=1024",
        .full = "N=65 M=16; N=1000 M=5", .special = "N=7 M=5",
        .cases = {{"Gaussian", KIND(GAUSSIAN)},
                  {"Gaussian, weights", KIND(GAUSSIAN, .want_weights = 1), WEIGHTS},
                  {"narrow", SPEC_PARAMS(attention_pooling_fwd, GAUSSIAN, 0.1f, 1), WEIGHTS,
                   .grad = "", .special = ""},
                  {"wide", SPEC_PARAMS(attention_pooling_fwd, GAUSSIAN, -20, 1), WEIGHTS},
                  {"boxcar", KIND(BOXCAR), .smoke = corners},
                  {"boxcar, weights", KIND(BOXCAR, .want_weights = 1), WEIGHTS, .smoke = corners},
                  {"constant", KIND(CONSTANT)},
                  {"constant, weights", KIND(CONSTANT, .want_weights = 1), WEIGHTS},
                  {"Epanechikov", KIND(EPANECHIKOV), .smoke = corners},
                  {"Epanechikov, weights", KIND(EPANECHIKOV, .want_weights = 1), WEIGHTS,
                   .smoke = corners},
                  FAR(GAUSSIAN, 1),
                  FAR(GAUSSIAN, 1e-20f),
                  FAR(BOXCAR, 1),
                  FAR(CONSTANT, 1),
                  FAR(EPANECHIKOV, 1),
                  {"open support", KIND(BOXCAR), .grad = "", .smoke = "N=2 M=3", .special = "",
                   .prepare = set_ends}},
        .refusals = {
            {ATTNCL_ERR_ARGUMENT, "sigma is 0", SPEC_PARAMS(attention_pooling_fwd, .sigma = 0)},
            {ATTNCL_ERR_ARGUMENT, "kernel is 4", KIND(4)}});
