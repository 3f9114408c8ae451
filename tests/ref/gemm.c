// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

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
    *bound = error_bound(g, size, activated, gate, residual);
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
                         .activation = (enum gemm_activation)activation,
                         .gate.ld = out,
                         .residual.ld = out};
}
