// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: additive attention, gated recurrent units, the spatial gating unit, and attention-free
// mixing without a table of biases.

#include <math.h>

#include "selftest.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

attncl_value check_build_additive(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_additive_attention(g, in[0], in[1], in[2], in[3], (attncl_value)ATTNCL_VALUE_INIT,
                                     NULL);
}

void check_ref_additive(const struct check *c, double *const *in, double *out)
{
    const int64_t t = c->in[0].dim[1], s = c->in[1].dim[1], n = c->in[0].dim[2], e = c->out.dim[2];
    double p[CHECK_MAX_KEYS];

    for (int64_t row = 0; row < c->out.dim[0] * t; row++) {
        const int64_t first = row / t * s;
        for (int64_t j = 0; j < s; j++) {
            p[j] = 0;
            for (int64_t i = 0; i < n; i++)
                p[j] += in[3][i] * tanh(in[0][row * n + i] + in[1][(first + j) * n + i]);
        }
        check_softmax_row(p, s, p);
        for (int64_t i = 0; i < e; i++) {
            out[row * e + i] = 0;
            for (int64_t j = 0; j < s; j++)
                out[row * e + i] += p[j] * in[2][(first + j) * e + i];
        }
    }
}

attncl_value check_build_gru(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_gru_params params = ATTNCL_GRU_PARAMS_INIT;

    (void)c;
    params.weight_ih = in[1];
    params.bias_ih = in[2];
    params.weight_hh = in[3];
    params.bias_hh = in[4];
    return attncl_gru(g, &params, in[0], (attncl_value)ATTNCL_VALUE_INIT, ATTNCL_LAYOUT_TIME_FIRST,
                      NULL);
}

// W x + b of one row.
static double row_of(const double *weight, const double *bias, int64_t row, const double *x,
                     int64_t n)
{
    double sum = bias[row];

    for (int64_t i = 0; x && i < n; i++)
        sum += weight[row * n + i] * x[i];
    return sum;
}

void check_ref_gru(const struct check *c, double *const *in, double *out)
{
    const int64_t batch = c->out.dim[1], h = c->out.dim[2], n = c->in[0].dim[2];

    for (int64_t row = 0; row < c->out.dim[0] * batch; row++) {
        const double *x = in[0] + row * n, *old = row < batch ? NULL : out + (row - batch) * h;
        for (int64_t i = 0; i < h; i++) {
            double gate[3];
            for (int k = 0; k < 3; k++) {
                const double from_x = row_of(in[1], in[2], k * h + i, x, n);
                const double from_h = row_of(in[3], in[4], k * h + i, old, h);
                gate[k] = k < 2 ? sigmoid(from_x + from_h) : tanh(from_x + gate[0] * from_h);
            }
            out[row * h + i] = (1 - gate[1]) * gate[2] + gate[1] * (old ? old[i] : 0);
        }
    }
}

attncl_value check_build_gating(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_sgu_params params = ATTNCL_SGU_PARAMS_INIT;

    params.norm_weight = in[1];
    params.norm_bias = in[2];
    params.weight = in[3];
    params.bias = in[4];
    return attncl_spatial_gating_unit(g, &params, in[0], c->causal,
                                      c->in[5].rank > 0 ? in[5] : (attncl_value)ATTNCL_VALUE_INIT);
}

void check_ref_gating(const struct check *c, double *const *in, double *out)
{
    enum { MAX_POSITIONS = 64, MAX_WIDTH = 64 };
    const int64_t t = c->out.dim[0], batch = c->out.dim[1], n = c->out.dim[2];
    const bool masked = c->in[5].rank > 0;
    double u[MAX_POSITIONS][MAX_WIDTH];

    for (int64_t b = 0; b < batch; b++) {
        for (int64_t j = 0; j < t; j++)
            check_norm_row(in[0] + ((j * batch + b) * 2 + 1) * n, in[1], in[2], n, u[j]);
        for (int64_t i = 0; i < t; i++)
            for (int64_t k = 0; k < n; k++) {
                double gate = in[4][i];
                for (int64_t j = 0; j < (c->causal ? i + 1 : t); j++)
                    gate += in[3][i * t + j] * u[j][k] * (masked ? in[5][i * t + j] : 1);
                out[(i * batch + b) * n + k] = in[0][(i * batch + b) * 2 * n + k] * gate;
            }
    }
}

attncl_value check_build_mixing(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;

    desc.kind = (attncl_aft_kind)c->kind;
    desc.causal = c->causal;
    return attncl_aft_mix(g, &desc, in[0], in[1], in[2], in[3], (attncl_value)ATTNCL_VALUE_INIT);
}

// AFT-conv: the channels of a head share its keys and its biases by distance; AFT-simple: no biases, a key for each.
void check_ref_mixing(const struct check *c, double *const *in, double *out)
{
    const int64_t t = c->out.dim[0], batch = c->out.dim[1], channels = c->out.dim[2];
    const int64_t heads = c->in[1].dim[2], size = c->kind == ATTNCL_AFT_CONV ? c->in[3].dim[1] : 0;
    double p[CHECK_MAX_KEYS];

    for (int64_t at = 0; at < t * batch * channels; at++) {
        const int64_t i = at / (batch * channels), b = at / channels % batch,
                      head = at % channels / (channels / heads);
        const int64_t n = c->causal ? i + 1 : t;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const int64_t place = j - i + (size - 1) / 2;
            p[j] = in[1][(j * batch + b) * heads + head];
            p[j] += size > 0 && place >= 0 && place < size ? in[3][head * size + place] : 0;
        }
        check_softmax_row(p, n, p);
        for (int64_t j = 0; j < n; j++)
            sum += p[j] * in[2][j * batch * channels + at % (batch * channels)];
        out[at] = sum * sigmoid(in[0][at]);
    }
}
