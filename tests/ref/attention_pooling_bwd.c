// SPDX-License-Identifier: MIT
//
//   w_ij = K(u_ij) / S_j,   r_ij = g_j y_i + c_ij,   dlog_ij = w_ij (r_ij - sum_i w_ij r_ij)
//   du_ij = dlog_ij K'(u_ij) / K(u_ij);   dx_i = sum_j du_ij,   dz_j = -sum_i du_ij
//   dy_i = sum_j w_ij g_j
//
// With `sizes` all terms are taken as positive: what a result's rounding errors are measured by.

#include <math.h>

#include "ref/ref.h"

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
