// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: attention of all and some keys, pooling, attention to a memory.

#include <math.h>
#include <stdlib.h>

#include "selftest.h"

// With a fourth input, of lengths or a mask; c->kind > 0: the width of a window.
attncl_value check_build_attention(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_attention_inputs inputs = ATTNCL_ATTENTION_INPUTS_INIT;

    desc.causal = c->causal;
    desc.window = c->kind;
    desc.layout = ATTNCL_LAYOUT_BATCH_FIRST;
    inputs.query = in[0];
    inputs.key = in[1];
    inputs.value = in[2];
    if (c->in[3].dtype == ATTNCL_U8)
        inputs.mask = in[3];
    else if (c->in[3].rank > 0)
        inputs.valid_lens = in[3];
    return attncl_attention(g, &desc, &inputs, NULL);
}

void check_ref_attention(const struct check *c, double *const *in, double *out)
{
    const int64_t n_heads = c->in[0].dim[1], t = c->in[0].dim[2];
    const int64_t s = c->in[1].dim[2], d = c->in[0].dim[3], batch = c->in[0].dim[0];
    const bool masked = c->in[3].dtype == ATTNCL_U8;
    double p[CHECK_MAX_KEYS];

    for (int64_t row = 0; row < batch * n_heads * t; row++) {
        const int64_t head = row / t, last = row % t + s - t;
        int64_t end = c->causal ? last + 1 : s, first = 0;
        if (c->kind > 0) {
            first = last - c->kind + 1 > 0 ? last - c->kind + 1 : 0;
            end = last + c->kind < end ? last + c->kind : end;
        }
        if (c->in[3].dtype == ATTNCL_I32)
            end = (int64_t)in[3][head / n_heads];
        for (int64_t j = first; j < end; j++) {
            p[j] = 0;
            for (int64_t i = 0; i < d; i++)
                p[j] += in[0][row * d + i] * in[1][(head * s + j) * d + i] / sqrt((double)d);
            if (masked && in[3][(row % t * s + j) * batch + head / n_heads] == 0)
                p[j] = -INFINITY;
        }
        check_softmax_row(p + first, end - first, p + first);
        for (int64_t i = 0; i < d; i++) {
            out[row * d + i] = 0;
            for (int64_t j = first; j < end; j++)
                out[row * d + i] += p[j] * in[2][(head * s + j) * d + i];
        }
    }
}

static const float sigma = 0.75f;

attncl_value check_build_pooling(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    (void)c;
    return attncl_attention_pooling(g, ATTNCL_POOL_GAUSSIAN, sigma, in[0], in[1], in[2], NULL);
}

void check_ref_pooling(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->in[0].dim[0];
    double p[CHECK_MAX_KEYS];

    for (int64_t j = 0; j < check_count(&c->out); j++) {
        for (int64_t i = 0; i < n; i++) {
            const double u = (in[0][i] - in[2][j]) / sigma;
            p[i] = -u * u / 2;
        }
        check_softmax_row(p, n, p);
        out[j] = 0;
        for (int64_t i = 0; i < n; i++)
            out[j] += p[i] * in[1][i];
    }
}

// Inputs: query, its weight, projected keys and values, positions, query bias, output weight, its bias.
enum { QUERY, QUERY_WEIGHT, KEY, VALUE, POSITIONS, QUERY_BIAS, OUTPUT_WEIGHT, OUTPUT_BIAS };

attncl_value check_build_feedback(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_feedback_params params = ATTNCL_FEEDBACK_PARAMS_INIT;
    attncl_attention_inputs inputs = ATTNCL_ATTENTION_INPUTS_INIT;

    params.query_weight = in[QUERY_WEIGHT];
    params.key_pos_embeddings = in[POSITIONS];
    params.query_pos_bias = in[QUERY_BIAS];
    params.output_weight = in[OUTPUT_WEIGHT];
    params.output_bias = in[OUTPUT_BIAS];
    inputs.query = in[QUERY];
    inputs.key = in[KEY];
    inputs.value = in[VALUE];
    return attncl_feedback_attention(g, &params, c->in[QUERY_BIAS].dim[0], &inputs, NULL);
}

void check_ref_feedback(const struct check *c, double *const *in, double *out)
{
    const int64_t batch = c->out.dim[0], n = c->out.dim[1], s = c->in[KEY].dim[0];
    const int64_t n_heads = c->in[QUERY_BIAS].dim[0], d = n / n_heads;
    const int64_t first = c->in[POSITIONS].dim[0] - s;
    double p[CHECK_MAX_KEYS], q[CHECK_MAX_KEYS], mean[CHECK_MAX_KEYS];

    for (int64_t b = 0; b < batch; b++) {
        for (int64_t i = 0; i < n; i++) {
            q[i] = in[QUERY_BIAS][i];
            for (int64_t k = 0; k < n; k++)
                q[i] += in[QUERY_WEIGHT][i * n + k] * in[QUERY][b * n + k];
        }
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < s; j++) {
                p[j] = 0;
                for (int64_t k = i / d * d; k < i / d * d + d; k++)
                    p[j] +=
                        q[k] *
                        (in[KEY][(j * batch + b) * n + k] + in[POSITIONS][(first + j) * n + k]) /
                        sqrt((double)d);
            }
            check_softmax_row(p, s, p);
            mean[i] = 0;
            for (int64_t j = 0; j < s; j++)
                mean[i] += p[j] * in[VALUE][(j * batch + b) * n + i];
        }
        for (int64_t i = 0; i < n; i++) {
            out[b * n + i] = in[OUTPUT_BIAS][i];
            for (int64_t k = 0; k < n; k++)
                out[b * n + i] += in[OUTPUT_WEIGHT][i * n + k] * mean[k];
        }
    }
}
