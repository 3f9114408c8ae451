// SPDX-License-Identifier: MIT

#include "cases/define.h"

#include <string.h>

#include "gemm/gemm.h"
#include "ref/ref.h"

// The same axes with another last one.
static struct host *like_rows(const struct host *x, int64_t width)
{
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, x->dim, sizeof dim);
    dim[x->rank - 1] = width;
    return host_new(ATTNCL_F32, x->rank, dim);
}

// The reference also says how far a float result may be off; cases have one limit for all kinds.
static void multiply(const struct gemm *g, const struct ref_operands *operands, struct host *y)
{
    ref_gemm(g, operands, y->data, host_like(y)->data);
}

struct host *define_linear(const struct host *x, const struct host *weight, const struct host *bias)
{
    const int64_t in = weight->dim[1], out = weight->dim[0];
    struct host *y = like_rows(x, out);
    const struct gemm g = {
        .batch = 1,
        .m = x->count / in,
        .n = out,
        .k = in,
        .a = {.ld = in},
        .b = {.ld = in},
        .trans_b = true,
        .bias_kind = bias ? GEMM_BIAS_COLUMN : GEMM_BIAS_NONE,
    };

    multiply(
        &g, &(struct ref_operands){x->data, weight->data, bias ? bias->data : NULL, NULL, NULL}, y);
    return y;
}

struct host *define_bmm(const struct host *a, const struct host *b)
{
    const int64_t n = a->dim[0], rows = a->dim[1], inner = a->dim[2], columns = b->dim[2];
    struct host *y = host_new(ATTNCL_F32, DIMS(n, rows, columns));
    const struct gemm g = {
        .batch = n,
        .m = rows,
        .n = columns,
        .k = inner,
        .a = {.ld = inner, .batch_stride = rows * inner},
        .b = {.ld = columns, .batch_stride = inner * columns},
    };

    multiply(&g, &(struct ref_operands){a->data, b->data, NULL, NULL, NULL}, y);
    return y;
}

struct host *define_activation(const struct host *x, attncl_activation kind)
{
    struct host *y = host_like(x);

    ref_activation_fwd(x, (int)kind, y);
    return y;
}

struct host *define_layer_norm(const struct host *x, const struct host *weight,
                               const struct host *bias)
{
    struct host *y = host_like(x);

    ref_layer_norm_fwd(x, weight, bias, LAYER_NORM_EPS, y);
    return y;
}

struct host *define_add(const struct host *a, const struct host *b)
{
    struct host *y = host_like(a);

    ref_add_fwd(a, b, y);
    return y;
}

struct host *define_aft(const struct host *q, const struct host *k, const struct host *v,
                        const struct host *pos_bias, attncl_aft_kind kind, int64_t window,
                        bool causal)
{
    struct host *y = host_like(q);
    const int64_t reach = kind == ATTNCL_AFT_FULL ? q->dim[0] : window;

    ref_aft_local_fwd(q, k, v, pos_bias, NULL, (int)(kind == ATTNCL_AFT_SIMPLE ? 0 : reach), causal,
                      y, host_like(q));
    return y;
}

// One half of the last axis of z.
static struct host *half(const struct host *z, int which)
{
    const int64_t width = z->dim[z->rank - 1] / 2;
    struct host *h = like_rows(z, width);

    for (int64_t i = 0; i < h->count; ++i)
        h->data[i] = z->data[i / width * 2 * width + which * width + i % width];
    return h;
}

struct host *define_spatial_gate(const struct host *z, const struct host *norm_weight,
                                 const struct host *norm_bias, const struct host *weight,
                                 const struct host *bias, bool causal)
{
    const struct host *u = define_layer_norm(half(z, 1), norm_weight, norm_bias);
    const struct host *z1 = half(z, 0);
    struct host *y = host_like(z1);
    const int64_t steps = z->dim[0], row = z1->count / steps;
    const struct gemm g = {
        .batch = 1,
        .m = steps,
        .n = row,
        .k = steps,
        .a = {.ld = weight->dim[1]},
        .b = {.ld = row},
        .gate = {.ld = row},
        .causal = causal,
        .bias_kind = GEMM_BIAS_ROW,
    };

    multiply(&g, &(struct ref_operands){weight->data, u->data, bias->data, z1->data, NULL}, y);
    return y;
}

struct host *define_pick(const struct host *h, struct part positions)
{
    const int64_t n = positions.count ? positions.count : h->dim[0];
    const int64_t row = h->count / h->dim[0];
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, h->dim, sizeof dim);
    dim[0] = n;
    struct host *picked = host_new(h->dtype, h->rank, dim);
    for (int64_t i = 0; i < n; ++i)
        memcpy(picked->data + i * row, h->data + (positions.begin + i * positions.step) * row,
               (size_t)row * sizeof h->data[0]);
    return picked;
}
