// SPDX-License-Identifier: MIT

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
