// SPDX-License-Identifier: MIT

#include <string.h>

#include "ref/layers.h"

static struct host *dense(const struct host *x, const struct host *weight, const struct host *bias)
{
    struct host *y = host_like(x);
    ref_dense(x, weight, bias, y);
    return y;
}

void ref_feedback_layer(const struct ref_feedback_layer *p, int activation, const struct host *x,
                        const struct host *memory, struct host *y)
{
    const struct ref_ffn ffn = {.layer1_weight = p->layer1_weight,
                                .layer1_bias = p->layer1_bias,
                                .layer2_weight = p->layer2_weight,
                                .layer2_bias = p->layer2_bias};
    struct host *z = host_like(x), *after = host_like(x);
    ref_add_fwd(x, host_like(x), after);
    if (memory) {
        struct host *mixed = host_like(x), *ignored = host_like(x);
        ref_layer_norm_fwd(x, p->norm_attn_weight, p->norm_attn_bias, 1e-5, z);
        const struct ref_feedback operands = {
            .q = dense(z, p->query_weight, NULL),
            .k = dense(memory, p->key_weight, NULL),
            .v = dense(memory, p->value_weight, p->value_bias),
            .places = p->places,
            .u = p->u,
            .place_bias = p->place_bias,
        };
        ref_feedback_attention_fwd(&operands, memory->dim[0], mixed, NULL, ignored);
        ref_add_fwd(x, dense(mixed, p->output_weight, p->output_bias), after);
    }
    ref_layer_norm_fwd(after, p->norm_ffn_weight, p->norm_ffn_bias, 1e-5, z);
    ref_feed_forward(&ffn, activation, z, y);
    ref_add_fwd(y, after, y);
}

void ref_feedback_transformer(const struct ref_feedback_transformer *p, int activation,
                              const struct host *x, struct host *y, struct host *memory)
{
    enum { MAX_VALUES = 17 };
    const int64_t row = x->count / x->dim[0];
    const size_t bytes = (size_t)row * sizeof x->data[0];
    struct host *values[MAX_VALUES], *normed, *mixed, before = *memory;

    for (int64_t t = 0; t < x->dim[0]; ++t) {
        values[0] = host_new(ATTNCL_F32, x->rank - 1, x->dim + 1);
        normed = host_like(values[0]), mixed = host_like(values[0]);
        memcpy(values[0]->data, x->data + t * row, bytes);
        before.dim[0] = t;
        before.count = t * row;
        for (int64_t l = 0; l < p->n_layers; ++l) {
            values[l + 1] = host_like(normed);
            ref_feedback_layer(&p->layers[l], activation, values[l], t > 0 ? &before : NULL,
                               values[l + 1]);
        }
        ref_feedback_mix_fwd(p->weights, 0, NULL, values, (int)p->n_layers + 1, mixed);
        ref_layer_norm_fwd(values[p->n_layers], p->norm_weight, p->norm_bias, 1e-5, normed);
        memcpy(memory->data + t * row, mixed->data, bytes);
        memcpy(y->data + t * row, normed->data, bytes);
    }
}
