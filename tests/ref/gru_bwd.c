// SPDX-License-Identifier: MIT
//
// h' = (1 - z) n + z h of tests/ref/gru.c, differentiated from the last step to the first:
//
//   g = dh',  dn = g (1 - z) (1 - n^2),  dz = g (h - n) z (1 - z),  dr = dn hh_n r (1 - r)
//   dxi = dr, dz, dn,  dhh = dr, dz, r dn,  dh = g z + W_hh^T dhh

#include <math.h>
#include <string.h>

#include "ref/ref.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// No state, zeros, is not looked at.
static double hidden(const struct host *weight, const struct host *bias, const double *h,
                     int64_t row)
{
    double sum = bias->data[row];

    for (int64_t k = 0; k < weight->dim[1]; ++k)
        sum += h[k] == 0 ? 0 : weight->data[row * weight->dim[1] + k] * h[k];
    return sum;
}

// g: [H], the gradient of h'; becomes that of h.
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
        dxi[n + c] = g[c] * (h[c] - new) * z * (1 - z);
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

// before: what each step started from; dh0 may be NULL.
void ref_gru_bwd(const struct host *xi, const struct host *weight, const struct host *bias,
                 const struct host *h0, bool time_first, const struct host *y,
                 const struct host *dy, struct host *dxi, struct host *dhh, struct host *before,
                 struct host *dh0)
{
    const int64_t width = weight->dim[1], n_steps = y->dim[!time_first], batch = y->dim[time_first];
    struct host *g = host_new(ATTNCL_F32, DIMS(width));

    for (int64_t b = 0; b < batch; ++b) {
        memset(g->data, 0, (size_t)width * sizeof g->data[0]);
        for (int64_t t = n_steps - 1; t >= 0; --t) {
            const int64_t row = time_first ? t * batch + b : b * n_steps + t;
            const int64_t former = time_first ? row - batch : row - 1;
            double *h = before->data + row * width;
            for (int64_t c = 0; c < width; ++c) {
                h[c] = t > 0 ? y->data[former * width + c] : h0 ? h0->data[b * width + c] : 0;
                g->data[c] += dy->data[row * width + c];
            }
            step_back(xi->data + row * 3 * width, weight, bias, h, g->data,
                      dxi->data + row * 3 * width, dhh->data + row * 3 * width);
        }
        if (dh0)
            memcpy(dh0->data + b * width, g->data, (size_t)width * sizeof g->data[0]);
    }
}
