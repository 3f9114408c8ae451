// SPDX-License-Identifier: MIT
//
// h' = (1 - z) n + z h of tests/ref/gru.c, differentiated from the last step to the first:
//
//   g = dh',  dn = g (1 - z) (1 - n^2),  dz = g (h - n) z (1 - z),  dr = dn hh_n r (1 - r)
//   dxi = dr, dz, dn,  dhh = dr, dz, r dn,  dh = g z + W_hh^T dhh
//
// Plain units, h' = f(xi + hh): dxi = dhh = g f',  dh = W_hh^T dhh

#include <math.h>
#include <string.h>

#include "attncl/kinds.h"
#include "op/op.h"
#include "ref/ref.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// h NULL: no state, zeros, which is not looked at.
static double hidden(const struct host *weight, const struct host *bias, const double *h,
                     int64_t row)
{
    double sum = bias->data[row];

    for (int64_t k = 0; h && k < weight->dim[1]; ++k)
        sum += weight->data[row * weight->dim[1] + k] * h[k];
    return sum;
}

// g: [H], the gradient of h'; becomes that of h.
static void step_back_plain(int plain, const double *xi, const struct host *weight,
                            const struct host *bias, const double *h, double *g, double *dxi,
                            double *dhh)
{
    const int64_t n = weight->dim[1];

    for (int64_t c = 0; c < n; ++c) {
        const double x = xi[c] + hidden(weight, bias, h, c), y = tanh(x);
        dxi[c] = plain == ATTNCL_TANH ? g[c] * (1 - y * y) : x <= 0 ? 0 : g[c];
        dhh[c] = dxi[c];
    }
    for (int64_t c = 0; c < n; ++c) {
        g[c] = 0;
        for (int64_t row = 0; row < n; ++row)
            g[c] += weight->data[row * n + c] * dhh[row];
    }
}

static void step_back(const double *xi, const struct host *weight, const struct host *bias,
                      const double *h, double *g, double *dxi, double *dhh)
{
    const int64_t n = weight->dim[1];

    for (int64_t c = 0; c < n; ++c) {
        const double r = sigmoid(xi[c] + hidden(weight, bias, h, c));
        const double z = sigmoid(xi[n + c] + hidden(weight, bias, h, n + c));
        const double hh_n = hidden(weight, bias, h, 2 * n + c);
        const double new = tanh(xi[2 * n + c] + r * hh_n);
        dxi[2 * n + c] = g[c] * (1 - z) * (1 - new *new);
        dxi[n + c] = g[c] * ((h ? h[c] : 0) - new) * z * (1 - z);
        dxi[c] = dxi[2 * n + c] * hh_n * r * (1 - r);
        dhh[c] = dxi[c];
        dhh[n + c] = dxi[n + c];
        dhh[2 * n + c] = r * dxi[2 * n + c];
        g[c] *= z;
    }
    for (int64_t row = 0; row < 3 * n; ++row)
        for (int64_t c = 0; c < n; ++c)
            g[c] += weight->data[row * n + c] * dhh[row];
}

// before: what each step started from; dh0 may be NULL, and lens and dmasked (ref_gru_fwd()).  A step beyond its entry's
// length passes the state's gradient on, and NaN of infinite weights, which its gates' gradients of 0 are multiplied by.
void ref_gru_bwd(const struct host *xi, const struct host *weight, const struct host *bias,
                 const struct host *h0, const struct host *lens, const struct gru_fwd_params *p,
                 const struct host *y, const struct host *dy, const struct host *dmasked,
                 struct host *dxi, struct host *dhh, struct host *before, struct host *dh0)
{
    const bool time_first = p->layout == ATTNCL_LAYOUT_TIME_FIRST;
    const int64_t width = weight->dim[1], n_gates = weight->dim[0];
    const int64_t n_steps = y->dim[!time_first], batch = y->dim[time_first];
    struct host *g = host_new(ATTNCL_F32, DIMS(width));

    for (int64_t b = 0; b < batch; ++b) {
        memset(g->data, 0, (size_t)width * sizeof g->data[0]);
        for (int64_t i = n_steps - 1; i >= 0; --i) {
            const int64_t t = p->reversed ? n_steps - 1 - i : i,
                          before_t = p->reversed ? t + 1 : t - 1;
            const int64_t row = time_first ? t * batch + b : b * n_steps + t;
            const int64_t former = time_first ? before_t * batch + b : b * n_steps + before_t;
            double *h = before->data + row * width;
            for (int64_t c = 0; c < width; ++c) {
                h[c] = i > 0 ? y->data[former * width + c] : h0 ? h0->data[b * width + c] : 0;
                g->data[c] += dy->data[row * width + c];
            }
            if (lens && (double)t >= lens->data[b]) {
                for (int64_t k = 0; k < n_gates * width; ++k)
                    g->data[k % width] += 0 * weight->data[k];
                continue;
            }
            for (int64_t c = 0; dmasked && c < width; ++c)
                g->data[c] += dmasked->data[row * width + c];
            const double *x = xi->data + row * n_gates, *from = i > 0 || h0 ? h : NULL;
            double *dx = dxi->data + row * n_gates, *dhh_row = dhh->data + row * n_gates;
            if (p->plain)
                step_back_plain(p->plain, x, weight, bias, from, g->data, dx, dhh_row);
            else
                step_back(x, weight, bias, from, g->data, dx, dhh_row);
        }
        if (dh0)
            memcpy(dh0->data + b * width, g->data, (size_t)width * sizeof g->data[0]);
    }
}
