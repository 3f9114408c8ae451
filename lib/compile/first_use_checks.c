// SPDX-License-Identifier: MIT
//
// What is compared at first use, with definitions in double: products by every kind of GEMM kernel, rows, functions,
// attention, AFT.  Sizes leave rests in every tile.

#include <math.h>

#include "compile/first_use.h"

static int64_t extent(const struct first_use_check *c, int input, int axis)
{
    return c->in[input].dim[axis];
}

static double dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n)
{
    double sum = 0;

    for (int64_t k = 0; k < n; ++k)
        sum += (double)a[k * a_step] * (double)b[k * b_step];
    return sum;
}

// x [m, k], weight [n, k]
static double linear(const struct first_use_check *c, const float *const *in, int64_t i)
{
    const int64_t n = extent(c, 1, 0), k = extent(c, 1, 1);

    return dot(in[0] + i / n * k, 1, in[1] + i % n * k, 1, k);
}

// a [batch, m, k], b [batch, k, n]
static double product(const struct first_use_check *c, const float *const *in, int64_t i)
{
    const int64_t m = extent(c, 0, 1), k = extent(c, 0, 2), n = extent(c, 1, 2);
    const int64_t row = i / n, batch = row / m;

    return dot(in[0] + row * k, 1, in[1] + batch * k * n + i % n, n, k);
}

static double softmax(const struct first_use_check *c, const float *const *in, int64_t i)
{
    const int64_t n = extent(c, 0, 1);
    const float *x = in[0] + i / n * n;
    double total = 0;

    for (int64_t k = 0; k < n; ++k)
        total += exp((double)x[k] - (double)x[i % n]);
    return 1 / total;
}

static double layer_norm(const struct first_use_check *c, const float *const *in, int64_t i)
{
    const struct layer_norm_fwd_params *p = c->params;
    const int64_t n = extent(c, 0, 1);
    const float *x = in[0] + i / n * n;
    double mean = 0, variance = 0;

    for (int64_t k = 0; k < n; ++k)
        mean += (double)x[k] / (double)n;
    for (int64_t k = 0; k < n; ++k)
        variance += ((double)x[k] - mean) * ((double)x[k] - mean) / (double)n;
    return ((double)x[i % n] - mean) / sqrt(variance + (double)p->eps) * (double)in[1][i % n] +
           (double)in[2][i % n];
}

static double gelu(const struct first_use_check *c, const float *const *in, int64_t i)
{
    (void)c;
    return (double)in[0][i] * erfc(-(double)in[0][i] / sqrt(2)) / 2;
}

static double sigmoid(const struct first_use_check *c, const float *const *in, int64_t i)
{
    (void)c;
    return 1 / (1 + exp(-(double)in[0][i]));
}

// q, k, v [B, H, T, D], causal; the result [B, T, H, D]
static double attention(const struct first_use_check *c, const float *const *in, int64_t i)
{
    const struct attention_fwd_params *p = c->params;
    const int64_t n_heads = extent(c, 0, 1), n = extent(c, 0, 2), d = extent(c, 0, 3);
    const int64_t head = i / d % n_heads, t = i / d / n_heads % n, b = i / d / n_heads / n;
    const int64_t base = (b * n_heads + head) * n * d;
    double total = 0, sum = 0;

    for (int64_t s = 0; s <= t; ++s) { // scores are small: no maximum is needed
        const double w =
            exp((double)p->scale * dot(in[0] + base + t * d, 1, in[1] + base + s * d, 1, d));
        total += w;
        sum += w * (double)in[2][base + s * d + i % d];
    }
    return sum / total;
}

// q, k, v [T, B, C], biases [T, T] within the window
static double aft(const struct first_use_check *c, const float *const *in, int64_t i)
{
    const struct aft_fwd_params *p = c->params;
    const int64_t n = extent(c, 0, 0), lanes = extent(c, 0, 1) * extent(c, 0, 2);
    const int64_t t = i / lanes, lane = i % lanes;
    double total = 0, sum = 0;

    for (int64_t s = 0; s < n; ++s) {
        const double bias = llabs(t - s) < p->window ? (double)in[3][t * n + s] : 0;
        const double w = exp(bias + (double)in[1][s * lanes + lane]);
        total += w;
        sum += w * (double)in[2][s * lanes + lane];
    }
    return sum / total / (1 + exp(-(double)in[0][i]));
}

static const struct linear_fwd_params no_activation = {0};
static const struct layer_norm_fwd_params norm = {1e-5f};
static const struct activation_fwd_params by_gelu = {ATTNCL_GELU}, by_sigmoid = {ATTNCL_SIGMOID};
static const struct attention_fwd_params causal = {
    .scale = 0.125f, .causal = 1, .layout = ATTNCL_LAYOUT_BATCH_FIRST};
static const struct aft_fwd_params local = {.window = 9};

// 0: set for the device.
static const struct first_use_check checks[N_FIRST_USE_CHECKS] = {
    {"a product of many rows",
     &attncl__op_linear_fwd,
     &no_activation,
     {{2, {0, 24}}, {2, {0, 24}}},
     1,
     false,
     linear},
    {"a product of some rows",
     &attncl__op_linear_fwd,
     &no_activation,
     {{2, {70, 130}}, {2, {90, 130}}},
     1,
     false,
     linear},
    {"a product of three rows",
     &attncl__op_linear_fwd,
     &no_activation,
     {{2, {3, 300}}, {2, {50, 300}}},
     1,
     false,
     linear},
    {"a batch of products",
     &attncl__op_bmm_fwd,
     NULL,
     {{3, {2, 45, 70}}, {3, {2, 70, 39}}},
     1,
     false,
     product},
    {"a softmax", &attncl__op_softmax_fwd, NULL, {{2, {37, 300}}}, 20, false, softmax},
    {"a layer norm",
     &attncl__op_layer_norm_fwd,
     &norm,
     {{2, {37, 300}}, {1, {300}}, {1, {300}}},
     2,
     false,
     layer_norm},
    {"GELU", &attncl__op_activation_fwd, &by_gelu, {{1, {5000}}}, 6, true, gelu},
    {"a sigmoid", &attncl__op_activation_fwd, &by_sigmoid, {{1, {5000}}}, 30, true, sigmoid},
    {"an attention",
     &attncl__op_attention_fwd,
     &causal,
     {{4, {2, 2, 70, 40}}, {4, {2, 2, 70, 40}}, {4, {2, 2, 70, 40}}},
     1,
     false,
     attention},
    {"an AFT",
     &attncl__op_aft_fwd,
     &local,
     {{3, {70, 2, 40}}, {3, {70, 2, 40}}, {3, {70, 2, 40}}, {2, {70, 70}}},
     2,
     false,
     aft},
};

// Rows and columns of a product that gives each compute unit two of the largest tiles.
static int64_t full_extent(const struct device_caps *caps)
{
    enum { TILE = 128, REST = 40, MAX_EXTENT = 4096 };
    const int64_t n = TILE * (int64_t)ceil(sqrt(2.0 * caps->compute_units)) - REST;

    return n < MAX_EXTENT ? n : MAX_EXTENT;
}

void attncl__first_use_checks(const struct device_caps *caps,
                              struct first_use_check ret[N_FIRST_USE_CHECKS])
{
    memcpy(ret, checks, sizeof checks);
    ret[0].in[0].dim[0] = ret[0].in[1].dim[0] = full_extent(caps);
}
