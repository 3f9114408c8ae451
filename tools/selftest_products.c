// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: products of matrices, attention-free mixing.

#include <math.h>
#include <stdlib.h>

#include "selftest.h"

// -- products of matrices

attncl_value check_build_linear(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_linear(g, in[0], in[1], in[2]);
}

void check_ref_linear(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->out.dim[1], k = c->in[0].dim[1];

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        out[i] = in[2][i % n];
        for (int64_t j = 0; j < k; j++)
            out[i] += in[0][i / n * k + j] * in[1][i % n * k + j];
    }
}

attncl_value check_build_bmm(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_bmm(g, in[0], in[1]);
}

void check_ref_bmm(const struct check *c, double *const *in, double *out)
{
    const int64_t m = c->out.dim[1], n = c->out.dim[2], k = c->in[0].dim[2];

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        const int64_t batch = i / (m * n), row = i / n;
        out[i] = 0;
        for (int64_t j = 0; j < k; j++)
            out[i] += in[0][row * k + j] * in[1][(batch * k + j) * n + i % n];
    }
}

// -- attention-free mixing

enum { AFT_WINDOW = 4 };

attncl_value check_build_aft(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;

    desc.kind = (attncl_aft_kind)c->kind;
    desc.window = c->kind == ATTNCL_AFT_LOCAL ? AFT_WINDOW : 0;
    desc.causal = c->causal;
    return attncl_aft_mix(g, &desc, in[0], in[1], in[2], in[3],
                          c->in[4].rank > 0 ? in[4] : (attncl_value)ATTNCL_VALUE_INIT);
}

void check_ref_aft(const struct check *c, double *const *in, double *out)
{
    const int64_t t = c->out.dim[0], batch = c->out.dim[1], lanes = batch * c->out.dim[2];
    double p[CHECK_MAX_KEYS];

    for (int64_t at = 0; at < t * lanes; at++) {
        const int64_t i = at / lanes, n = c->causal ? i + 1 : t;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const bool biased = c->kind == ATTNCL_AFT_FULL || llabs(i - j) < AFT_WINDOW;
            p[j] = in[1][j * lanes + at % lanes] + (biased ? in[3][i * t + j] : 0);
            if (c->in[4].rank > 0 && in[4][(i * t + j) * batch + at % lanes / c->out.dim[2]] == 0)
                p[j] = -INFINITY;
        }
        check_softmax_row(p, n, p);
        for (int64_t j = 0; j < n; j++)
            sum += p[j] * in[2][j * lanes + at % lanes];
        out[at] = sum / (1 + exp(-in[0][at]));
    }
}
