// SPDX-License-Identifier: MIT
//
//   t_ij = tanh(q_i + k_j),   p_i = softmax of w . t_ij;   dp_ij = m_ij g_i . v_j + c_ij
//   ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij), 0 from the length on
//   dq_i = sum_j ds_ij w (1 - t_ij^2),   dk_j = sum_i of the same,   dw = sum_ij ds_ij t_ij
//   dv_j = sum_i m_ij p_ij g_i,   m: the mask of dropout, or 1
//
// With `sizes` all terms are taken as positive: what a result's rounding errors are measured by.

#include <math.h>

#include "ref/ref.h"

static int64_t length_of(const struct host *lens, int64_t row, int64_t n_queries, int64_t n_keys)
{
    return lens ? (int64_t)lens->data[lens->rank == 1 ? row / n_queries : row] : n_keys;
}

static double term(double x, bool sizes)
{
    return sizes ? fabs(x) : x;
}

// in: q, k, v, w, lens, step, position, g, c; out: dq, dk, dv, dw
void ref_additive_attention_bwd(struct host *const *in, const struct host *mask, bool sizes,
                                struct host *const *out)
{
    const struct host *q = in[0], *k = in[1], *v = in[2], *w = in[3], *lens = in[4];
    const struct host *g = in[7], *c = in[8];
    const int64_t n_queries = q->dim[1], n_keys = k->dim[1], n = q->dim[2], width = v->dim[2];
    struct host *p = host_new(ATTNCL_F32, DIMS(q->dim[0], n_queries, n_keys)), *ds = host_like(p);

    ref_additive_attention(q, k, v, w, lens, host_like(g), p);
    for (int o = 0; o < 4; ++o)
        for (int64_t i = 0; i < out[o]->count; ++i)
            out[o]->data[i] = 0;
    for (int64_t row = 0; row < q->dim[0] * n_queries; ++row) {
        const int64_t first = row / n_queries * n_keys;
        double *dsi = ds->data + row * n_keys, *pi = p->data + row * n_keys, mean = 0;
        for (int64_t j = 0; j < n_keys; ++j) {
            dsi[j] = c ? term(c->data[row * n_keys + j], sizes) : 0;
            const double m = mask ? mask->data[row * n_keys + j] : 1;
            for (int64_t e = 0; e < width; ++e) {
                const double ge = m * g->data[row * width + e];
                dsi[j] += term(ge * v->data[(first + j) * width + e], sizes);
                out[2]->data[(first + j) * width + e] += term(pi[j] * ge, sizes);
            }
            mean += pi[j] * dsi[j];
        }
        for (int64_t j = 0; j < n_keys; ++j) {
            const double d = sizes ? dsi[j] + mean : dsi[j] - mean;
            dsi[j] = j < length_of(lens, row, n_queries, n_keys) ? pi[j] * d : 0;
            for (int64_t x = 0; x < n; ++x) {
                const double t = tanh(q->data[row * n + x] + k->data[(first + j) * n + x]);
                const double down = term(dsi[j] * w->data[x] * (sizes ? 1 : 1 - t * t), sizes);
                out[0]->data[row * n + x] += down;
                out[1]->data[(first + j) * n + x] += down;
                out[3]->data[x] += term(dsi[j] * t, sizes);
            }
        }
    }
}
