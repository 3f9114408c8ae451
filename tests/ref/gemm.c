// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "base/quantised.h"
#include "ref/ref.h"
#include "support/op_spec.h"

static const double unit = 5.9604644775390625e-8; // 2^-24, half a unit in the last place

static double at(const double *data, const struct gemm_matrix *x, int64_t entry, int64_t i,
                 int64_t j)
{
    return data[x->start + entry * x->batch_stride + i * x->ld + j];
}

// A sum of k rounded products and k - 1 rounded sums, in whatever order, is off by at most
// k unit sum|a||b|.  No activation is steeper than 1.13; its own error is below 10 units.  Each of
// the three other steps rounds once.
static double error_bound(const struct gemm *g, double size, double activated, double gate,
                          double residual)
{
    const double sum = (double)(g->k + 1) * unit * size;
    const double after =
        (g->activation ? 1.13 : 1) * sum + (g->activation ? 10 * unit * fabs(activated) : 0);

    return after * fabs(gate) + 2 * unit * (fabs(activated * gate) + fabs(residual)) + 1e-37;
}

// With B in 8 or 4 bits A may be rounded to 16 bits: each element by half of 1 / 32767 of its block's largest.
static double rounding_of_a(const struct gemm *g, const struct ref_operands *x, int64_t i,
                            int64_t j)
{
    double sum = 0;

    if (!attncl__is_quantised(g->b_dtype))
        return 0;
    for (int64_t block = 0; block < g->k; block += QUANTISED_BLOCK) {
        double largest = 0, size = 0;
        for (int64_t l = block; l < block + QUANTISED_BLOCK; ++l) {
            const double a = fabs(at(x->a, &g->a, 0, i, l));
            largest = a > largest || isnan(a) ? a : largest;
            size += fabs(at(x->b, &g->b, 0, j, l));
        }
        sum += largest / 65530 * size;
    }
    return 1.13 * sum;
}

static void element(const struct gemm *g, const struct ref_operands *x, int64_t entry, int64_t i,
                    int64_t j, double *c, double *bound)
{
    const int64_t end = g->causal ? i + 1 : g->k;
    double sum = 0, size = 0;

    for (int64_t l = 0; l < end; ++l) {
        const double product =
            (g->trans_a ? at(x->a, &g->a, entry, l, i) : at(x->a, &g->a, entry, i, l)) *
            (g->trans_b ? at(x->b, &g->b, entry, j, l) : at(x->b, &g->b, entry, l, j));
        sum += product;
        size += fabs(product);
    }
    if (g->bias_kind != GEMM_BIAS_NONE) {
        const double bias = x->bias[g->bias_kind == GEMM_BIAS_ROW ? i : j];
        sum += bias;
        size += fabs(bias);
    }
    const double activated = ref_activate(sum, (int)g->activation);
    const double gate = x->gate ? at(x->gate, &g->gate, entry, i, j) : 1;
    const double residual = x->residual ? at(x->residual, &g->residual, entry, i, j) : 0;
    *c = activated * gate + residual;
    *bound =
        error_bound(g, size, activated, gate, residual) + rounding_of_a(g, x, i, j) * fabs(gate);
}

void ref_gemm(const struct gemm *g, const struct ref_operands *x, double *c, double *bound)
{
    for (int64_t entry = 0; entry < g->batch; ++entry)
        for (int64_t i = 0; i < g->m; ++i)
            for (int64_t j = 0; j < g->n; ++j)
                element(g, x, entry, i, j, c++, bound++);
}

struct gemm ref_linear(int64_t rows, int64_t out, int64_t in, bool biased, int activation)
{
    return (struct gemm){.batch = 1,
                         .m = rows,
                         .n = out,
                         .k = in,
                         .a.ld = in,
                         .b.ld = in,
                         .trans_b = true,
                         .bias_kind = biased ? GEMM_BIAS_COLUMN : GEMM_BIAS_NONE,
                         .activation = (attncl_activation)activation,
                         .gate.ld = out,
                         .residual.ld = out};
}

// -- the op

static void linear(const void *params, struct host *const *in, struct host *const *out)
{
    const struct linear_fwd_params *p = params;
    ref_linear_fwd(in, p->activation, out[0]);
}

static void linear_bwd(const void *params, struct host *const *in, struct host *const *dy,
                       struct host *const *dx)
{
    const struct linear_fwd_params *p = params;
    struct host *const plain[] = {in[0], in[1], in[2], NULL, NULL};
    struct host *sum = host_like(dy[0]), *d = host_like(dy[0]);

    ref_linear_fwd(plain, ATTNCL_IDENTITY, sum);
    ref_linear_bwd_epilogue(sum, dy[0], in[3], p->activation, d, dx[3]);
    ref_linear_bwd_input(d, in[1], dx[0]);
    ref_linear_bwd_weight(d, in[0], dx[1]);
    if (in[2])
        ref_linear_bwd_bias(d, dx[2]);
    if (in[4])
        host_set(dx[4], dy[0]->data);
}

// The bound of any order of the sum (tests/ref/gemm.c).
static void allow_linear(const struct spec_point *p, int k, const struct host *want,
                         struct host *allowed)
{
    const struct linear_fwd_params *params = spec_params(p);
    const struct host *const *in = (const struct host *[]){
        spec_in(p, 0), spec_in(p, 1), spec_in(p, 2), spec_in(p, 3), spec_in(p, 4)};
    const double *data[5];
    struct gemm g = ref_linear((int64_t)spec_extent(p, 'R'), (int64_t)spec_extent(p, 'N'),
                               (int64_t)spec_extent(p, 'K'), in[2] != NULL, params->activation);

    (void)k;
    g.b_dtype = in[1]->dtype;
    for (int i = 0; i < 5; ++i)
        data[i] = in[i] ? in[i]->data : NULL;
    ref_gemm(&g, &(struct ref_operands){data[0], data[1], data[2], data[3], data[4]},
             host_like(want)->data, allowed->data);
}

#define ACT(kind) SPEC_PARAMS(linear_fwd, ATTNCL_##kind)
#define ALL_IN    "bias f32 N; gate f32 R* N; residual f32 R* N"

static void build_linear(attncl_graph *g, const void *params, const attncl_value *in,
                         attncl_value *out)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;

    desc.activation = (attncl_activation)((const struct linear_fwd_params *)params)->activation;
    desc.gate = in[3];
    desc.residual = in[4];
    out[0] = attncl_linear_fused(g, &desc, in[0], in[1], in[2]);
}

// One block and several, pairs of them and one left, more than are rounded at a time; whole panels of 16 and rows in the last; rows one
// by one, a few and many.
#define QUANTISED_SIZES                                                                            \
    .smoke = "R=1 K=32,160 N=7,65; R=3,2x7 K=96 N=35; R=21 K=1120 N=19",                           \
    .gpu = "R=1,4,2048 K=1024 N=1024",                                                             \
    .full = "R=1,2,4,5,8,9,32,33 K=64,96 N=48,200; R=130 K=352 N=81; R=2 K=4096 N=31"

// Sizes: few rows, of which kernels for few rows are made; whole vectors and ragged tails; a column, which other weights
// take as a row.  Gradients: the slope is that of a rounded sum, 50 roundings of the largest; test_gemm_bwd.c has the
// products alone.
OP_SPEC(
    linear_fwd,
    .in = "x f32 R* K; weight f32+ N K; bias? f32 N; gate? f32 R* N; residual? f32 R* N",
    .out = "y f32 R* N", .ref = linear, .build = build_linear,
    .grad = "x weight bias gate residual", .ref_bwd = linear_bwd, .allow = allow_linear,
    .grad_tolerance = 3e-6, .smoke = "R=2 K=33 N=7; R=5x7 K=33 N=65",
    .gpu = "R=1,2048 K=1024 N=1024", .special = "R=5 K=21 N=19; R=21 K=5 N=35",
    .full = "R=1 K=1,64 N=1,48; R=2 K=128 N=31; R=37 K=19 N=33; R=70 K=129 N=67; R=130 K=64 N=48; "
            "R=16 K=128 N=31; R=4 K=16 N=3; R=40 K=24 N=1; R=3 K=24 N=1; R=- K=5 N=3",
    .data = SCALED,
    .cases = {{"plain", ACT(IDENTITY), .gpu = "R=1,4,8,16,2048 K=512,1024 N=512"},
              {"GELU", ACT(GELU), ALL_IN},
              {"ReLU", ACT(RELU), "bias f32 N"},
              {"F16", ACT(IDENTITY), "weight f16 N K", .gpu = "R=1,8,4096 K=4096,4095 N=4096"},
              {"BF16", ACT(GELU), "weight bf16 N K;" ALL_IN,
               .gpu = "R=1,4 K=4096 N=4096; R=4096 K=4096,4095 N=4096"},
              {"Q8", ACT(GELU), "weight q8 N K;" ALL_IN, .grad = "", .special = "",
               QUANTISED_SIZES},
              {"Q4", ACT(IDENTITY), "weight q4 N K", .grad = "", .special = "", QUANTISED_SIZES}},
    .refusals = {{ATTNCL_ERR_ARGUMENT, "activation 9", SPEC_PARAMS(linear_fwd, 9)},
                 {ATTNCL_ERR_DTYPE, "weight is I32", .with = "weight i32:0:3 N K"},
                 {ATTNCL_ERR_DTYPE, "bias is F16", .with = "bias f16 N"}});

static void bmm(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_bmm_fwd(in[0], in[1], out[0]);
}

static void bmm_bwd(const void *params, struct host *const *in, struct host *const *dy,
                    struct host *const *dx)
{
    const int64_t n = in[0]->dim[1], m = in[0]->dim[2], p = in[1]->dim[2];

    (void)params;
    for (int64_t i = 0; i < dy[0]->count * m; ++i) {
        const int64_t y = i / m, k = i % m, row = y / p, column = y % p;
        const int64_t a = row * m + k, b = (row / n * m + k) * p + column;
        dx[0]->data[a] += dy[0]->data[y] * in[1]->data[b];
        dx[1]->data[b] += dy[0]->data[y] * in[0]->data[a];
    }
}

static void allow_bmm(const struct spec_point *p, int k, const struct host *want,
                      struct host *allowed)
{
    const struct host *const a = spec_in(p, 0), *const b = spec_in(p, 1);
    const int64_t n = a->dim[1], m = a->dim[2], columns = b->dim[2];
    const struct gemm g = {.batch = a->dim[0],
                           .m = n,
                           .n = columns,
                           .k = m,
                           .a = {.ld = m, .batch_stride = n * m},
                           .b = {.ld = columns, .batch_stride = m * columns}};

    (void)k;
    ref_gemm(&g, &(struct ref_operands){.a = a->data, .b = b->data}, host_like(want)->data,
             allowed->data);
}

SPEC_BUILD(build_bmm, attncl_bmm(g, in[0], in[1]))

OP_SPEC(bmm_fwd, .in = "a f32 B N M; b f32 B M P", .out = "y f32 B N P", .ref = bmm,
        .build = build_bmm, .grad = "a b", .ref_bwd = bmm_bwd, .allow = allow_bmm,
        .grad_tolerance = 1e-6, .smoke = "B=3 N=19 M=7 P=5; B=2 N=33 M=18 P=65",
        .gpu = "B=8 N=256 M=256 P=256; B=1 N=8,16,4096 M=8,16,4095,4096 P=4096",
        .special = "B=2 N=5 M=7 P=9; B=2 N=21 M=5 P=33",
        .full = "B=1 N=1 M=1 P=1; B=5 N=3 M=17 P=70; B=3 N=19 M=7 P=1; B=2 N=65 M=33 P=129",
        .data = SCALED);
