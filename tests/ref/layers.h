// SPDX-License-Identifier: MIT
// The definitions of layers in C double, composed of those of ops.  NULL parameters are absent
// ones.
#ifndef ATTNCL_TEST_REF_LAYERS_H
#define ATTNCL_TEST_REF_LAYERS_H

#include "ref/ref.h"

// y = x W^T + b along the last axis.
void ref_dense(const struct host *x, const struct host *weight, const struct host *bias,
               struct host *y);

struct ref_aft {
    struct host *query_weight, *query_bias, *key_weight, *key_bias, *value_weight, *value_bias;
    struct host *pos_bias; // [n, n]
    struct host *output_weight, *output_bias;
};
// x is query, key and value; window: |i - j| < window has a bias.
void ref_aft_layer(const struct ref_aft *p, int window, int causal, const struct host *x,
                   const struct host *mask, struct host *y);

struct ref_mha {
    struct host *query_weight, *query_bias, *key_weight, *key_bias, *value_weight, *value_bias;
    struct host *output_weight, *output_bias;
    const struct host
        *rotary; // [T, 2, F]: turns queries and keys by halves, time first; NULL: none
};
// Keys and values have as many heads as their weights have rows for.
// [T, B, C] when time_first, else [B, T, C]; a.scale is not used.  weights: [B, H, T, S]
void ref_multi_head_attention(const struct ref_mha *p, struct ref_attention a, int64_t n_heads,
                              bool time_first, const struct host *query, const struct host *key,
                              const struct host *value, struct host *y, struct host *weights);

struct ref_feedback_layer {
    struct host *norm_attn_weight, *norm_attn_bias;
    struct host *query_weight, *key_weight, *value_weight, *value_bias, *output_weight,
        *output_bias;
    struct host *places, *u, *place_bias; // [P, H, D], [H, D], [P, H] or NULL: joint scores
    struct host *norm_ffn_weight, *norm_ffn_bias;
    struct host *layer1_weight, *layer1_bias, *layer2_weight, *layer2_bias;
};
// x [B, C], memory [S, B, C] or NULL: without, x passes by the attention
void ref_feedback_layer(const struct ref_feedback_layer *p, int activation, const struct host *x,
                        const struct host *memory, struct host *y); // feedback_layer.c

struct ref_feedback_transformer {
    const struct ref_feedback_layer *layers;
    int64_t n_layers;                                     // at most 16
    const struct host *weights, *norm_weight, *norm_bias; // weights: [n_layers + 1]
};
// x, y and memory [T, B, C]; every memory is projected anew in each step
void ref_feedback_transformer(const struct ref_feedback_transformer *p, int activation,
                              const struct host *x, struct host *y,
                              struct host *memory); // feedback_layer.c

struct ref_sgu {
    struct host *norm_weight, *norm_bias, *weight, *bias;
};
void ref_spatial_gating_unit(const struct ref_sgu *p, int causal, const struct host *z,
                             const struct host *mask, struct host *y);

struct ref_gmlp {
    struct host *norm_weight, *norm_bias, *proj1_weight, *proj1_bias;
    struct ref_sgu sgu;
    struct host *proj2_weight, *proj2_bias;
};
void ref_gmlp_block(const struct ref_gmlp *p, int causal, const struct host *x,
                    const struct host *mask, struct host *y);

struct ref_ffn {
    struct host *layer1_weight, *layer1_bias, *gate_weight, *gate_bias;
    struct host *layer2_weight, *layer2_bias;
};
void ref_feed_forward(const struct ref_ffn *p, int activation, const struct host *x,
                      struct host *y);

struct ref_gru {
    struct host *weight_ih, *bias_ih, *weight_hh, *bias_hh;
};
// x [T, B, I] when time_first, else [B, T, I]; states: one [B, H] a layer, replaced by the last.
void ref_gru_layers(const struct ref_gru *layers, int n_layers, const struct host *x,
                    bool time_first, struct host *const *states, struct host *y); // recurrent.c

struct ref_bahdanau {
    struct host *query_weight, *key_weight, *score_weight;
    const struct ref_gru *layers;
    int n_layers;
};
// source [B, S, H], embedded [B, T, E] -> y [B, T, H], weights [B, T, S]
void ref_bahdanau_decoder(const struct ref_bahdanau *p, const struct host *source,
                          const struct host *lens, const struct host *embedded,
                          struct host *const *states, struct host *y, struct host *weights);

#endif
