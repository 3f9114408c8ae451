// SPDX-License-Identifier: MIT
//
// Attention to an encoder's memory, for decode steps: the encoder's graph projects keys and values once,
// into the states "memory_keys" and "memory_values" of each layer, which the step's graph shares.

#include "model/block_models.h"

static void declare_states(attncl_graph *g, const int64_t dim[3], attncl_value *keys_ret,
                           attncl_value *values_ret)
{
    *keys_ret = attncl_graph_state(g, "memory_keys", ATTNCL_F32, 3, dim);
    *values_ret = attncl_graph_state(g, "memory_values", ATTNCL_F32, 3, dim);
}

static void store_layer(struct build *b, const struct mha_settings *s, attncl_value memory)
{
    const attncl_value none = ATTNCL_NONE_VALUE;
    attncl_graph *g = b->graph;
    attncl_mha_params p = ATTNCL_MHA_PARAMS_INIT;
    attncl_value keys, values;

    attncl__mha_params(&b->params, s, &p);
    declare_states(g, attncl_graph_shape(g, memory).dim, &keys, &values);
    const attncl_value k = attncl__layer_project(g, "key", memory, p.key_weight, p.key_bias, none);
    const attncl_value v =
        attncl__layer_project(g, "value", memory, p.value_weight, p.value_bias, none);
    attncl__store_rows(g, k, ATTNCL_F32, keys);
    attncl__store_rows(g, v, ATTNCL_F32, values);
}

void attncl__memory_store(struct build *b, const struct encoder_settings *s, attncl_value memory)
{
    for (int64_t i = 0; i < s->n_layers && b->params.status == ATTNCL_OK; ++i) {
        attncl__params_enter(&b->params, "layers.%d", (int)i);
        attncl__params_enter(&b->params, "src_attn");
        store_layer(b, &s->block.mha, memory);
        attncl__params_leave(&b->params);
        attncl__params_leave(&b->params);
    }
}

attncl_value attncl__memory_attention_step(struct build *b, const struct mha_settings *s,
                                           const struct block_call *call,
                                           const attncl_mha_params *params, attncl_value z,
                                           attncl_value x)
{
    const attncl_layout layout = ATTNCL_LAYOUT_BATCH_FIRST;
    const int64_t n_batch = call->memory_dim[0];
    const int64_t memory[3] = {n_batch, call->memory_dim[1], s->d_model};
    const int64_t beams[3] = {n_batch, call->n_beams, s->d_model};
    const int64_t rows[2] = {n_batch * call->n_beams, s->d_model};
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_graph *g = b->graph;
    attncl_value keys, values;

    declare_states(g, memory, &keys, &values);
    desc.layout = layout;
    const attncl_value q = attncl__layer_project(g, "query", z, params->query_weight,
                                                 params->query_bias, ATTNCL_NONE_VALUE);
    const attncl_attention_inputs in = {
        .struct_size = sizeof in,
        .query = attncl_split_heads(g, attncl_reshape(g, q, 3, beams), s->heads, layout),
        .key = attncl_split_heads(g, keys, s->heads, layout),
        .value = attncl_split_heads(g, values, s->heads, layout),
        .valid_lens = call->memory_lens};
    const attncl_value y = attncl_merge_heads(g, attncl_attention(g, &desc, &in, NULL), layout);
    return attncl__layer_project(g, "output", attncl_reshape(g, y, 2, rows), params->output_weight,
                                 params->output_bias, x);
}
