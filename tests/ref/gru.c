// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// r, z = sigmoid(xi + hh),  n = tanh(xi_n + r hh_n),  h' = (1 - z) n + z h,  hh = W_hh h + b_hh
static void step(const double *xi, const struct host *weight, const struct host *bias,
                 const double *h, double *y)
{
    const int64_t width = weight->dim[1];

    for (int64_t c = 0; c < width; ++c) {
        double gate[3];
        for (int i = 0; i < 3; ++i) {
            const int64_t row = i * width + c;
            double hh = bias->data[row];
            for (int64_t k = 0; h && k < width; ++k)
                hh += weight->data[row * width + k] * h[k];
            gate[i] = i < 2 ? sigmoid(xi[row] + hh) : tanh(xi[row] + gate[0] * hh);
        }
        y[c] = (1 - gate[1]) * gate[2] + gate[1] * (h ? h[c] : 0);
    }
}

void ref_gru_fwd(const struct host *xi, const struct host *weight, const struct host *bias,
                 const struct host *h0, bool time_first, struct host *y)
{
    const int64_t width = weight->dim[1], n_steps = y->dim[!time_first], batch = y->dim[time_first];

    for (int64_t b = 0; b < batch; ++b) {
        const double *h = h0 ? h0->data + b * width : NULL;
        for (int64_t t = 0; t < n_steps; ++t) {
            const int64_t row = time_first ? t * batch + b : b * n_steps + t;
            step(xi->data + row * 3 * width, weight, bias, h, y->data + row * width);
            h = y->data + row * width;
        }
    }
}
